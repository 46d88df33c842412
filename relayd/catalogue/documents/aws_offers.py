"""AWS price list files of AmazonEC2 and AWSDataTransfer, as JSON or CSV.

Layout as in https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/
reading-service-price-list-file-for-services.html; names of attributes as the files have them. JSON
keeps products and prices apart, CSV has a row a price below five lines about the file. Both become
rows with the same names here: in small letters, without blanks and slashes.

Of EC2, Linux on demand is read: shared, in use, without software of others. Of AWSDataTransfer,
what any service pays (no operation) from a region to the internet and to other regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from typing import Any

from planner.model.errors import FormatError
from relayd.catalogue.documents.opening import MOST_GB, DocumentRow, PriceDocument
from relayd.catalogue.documents.price_list import INTERNET, PriceList

_HEAD_LINES = 5
_LINUX = {
    "operatingsystem": {"Linux"},
    "tenancy": {"Shared"},
    "preinstalledsw": {"NA", ""},
    "capacitystatus": {"Used"},
    "termtype": {"OnDemand"},
    "marketoption": {"OnDemand", ""},
}


def recognises(document: PriceDocument) -> bool:
    """Whether it is a price list of AWS."""
    if document.is_json:
        found = document.json
        return isinstance(found, dict) and {"offerCode", "products", "terms"} <= found.keys()
    return bool(document.head and document.head[0] and document.head[0][0] == "FormatVersion")


def read(document: PriceDocument, found: PriceList) -> None:
    """Read a price list; a FormatError if it is of another service or a price is invalid."""
    head, rows = _of_json(document) if document.is_json else _of_csv(document)
    about = DocumentRow(str(document.path), head)
    with suppress(ValueError):
        document.modified_on = date.fromisoformat(about.text("PublicationDate")[:10]).isoformat()
    remedy = "Give the price lists of AmazonEC2 and AWSDataTransfer."
    of = about.one_of("OfferCode", words=("AmazonEC2", "AWSDataTransfer"), remedy=remedy)
    for row in rows:
        (_add_vm if of == "AmazonEC2" else _add_gb)(found, row)


def _add_vm(found: PriceList, row: DocumentRow) -> None:
    name, region = row.text("instancetype"), row.text("regioncode")
    wanted = all(row.text(field) in values for field, values in _LINUX.items())
    if not (name and region and wanted and _in_region(row, "locationtype")):
        found.left_out["prices other than Linux VMs on demand in a region"] += 1
        return
    found.add_vm(row.place, f"aws:{name}", f"aws:{region}", _usd(row, "Hrs"))


def _add_gb(found: PriceList, row: DocumentRow) -> None:
    source, usage, kind = (
        row.text("fromregioncode"),
        row.text("usagetype"),
        row.text("transfertype"),
    )
    destination = ""
    if kind == "AWS Outbound" and usage.endswith("DataTransfer-Out-Bytes"):
        destination = INTERNET
    elif kind == "InterRegion Outbound" and usage.endswith("-AWS-Out-Bytes"):
        destination = f"aws:{to}" if (to := row.text("toregioncode")) else ""
    in_region = _in_region(row, "fromlocationtype")
    if not (source and destination and in_region) or row.text("operation"):
        found.left_out["prices other than traffic out of a region"] += 1
        return
    from_gb = row.figure("startingrange", most=MOST_GB, default=0.0)
    found.add_traffic(f"aws:{source}", destination, from_gb, _usd(row, "GB"))


def _in_region(row: DocumentRow, kind: str) -> bool:
    return bool(row.at(kind, default="AWS Region") == "AWS Region")


def _usd(row: DocumentRow, unit: str) -> float:
    row.check_usd("currency")
    row.one_of("unit", words=(unit,))
    return row.figure("priceperunit")


# ---- rows --------------------------------------------------------------------------------------


def _of_csv(document: PriceDocument) -> tuple[dict[str, str], Iterator[DocumentRow]]:
    about = {row[0].replace(" ", ""): row[1] for row in document.head[:_HEAD_LINES] if row[1:]}
    rows = document.table(("PricePerUnit", "Currency", "Unit"), after=_HEAD_LINES)
    return about, (
        DocumentRow(row.place, {_plain(k): v for k, v in row.content.items()}) for row in rows
    )


def _of_json(document: PriceDocument) -> tuple[dict[str, str], Iterator[DocumentRow]]:
    found = document.json
    about = {key[:1].upper() + key[1:]: value for key, value in found.items()}
    return about, _rows_of(str(document.path), found)


def _rows_of(path: str, found: dict[str, Any]) -> Iterator[DocumentRow]:
    """Join the products of a JSON list with their prices on demand."""
    try:
        for sku, offers in found["terms"].get("OnDemand", {}).items():
            product = found["products"][sku]["attributes"]
            attributes = {_plain(key): str(value) for key, value in product.items()}
            for offer in offers.values():
                for price in offer["priceDimensions"].values():
                    currency, usd = next(iter(price["pricePerUnit"].items()))
                    yield DocumentRow(
                        f"{path}, SKU {str(sku)[:40]}",
                        {
                            **attributes,
                            "termtype": "OnDemand",
                            "unit": price["unit"],
                            "startingrange": price.get("beginRange", "0"),
                            "currency": currency,
                            "priceperunit": usd,
                        },
                    )
    except (AttributeError, KeyError, TypeError, StopIteration):
        problem = "has products or terms that are not as AWS describes them"
        raise FormatError(path, problem, remedy="Download it again.") from None


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "").replace("/", "")
