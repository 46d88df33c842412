"""AWS price list files of AmazonEC2 and AWSDataTransfer, as JSON or CSV.

Layout as in https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/
reading-service-price-list-file-for-services.html; names of attributes as the files have them. JSON
keeps products and prices apart, CSV has a row a price below five lines about the file. Both become
rows with the same names here: in small letters, without blanks and slashes.

Of EC2, Linux on demand is read: shared, in use, without software of others. Of AWSDataTransfer,
what any service pays (no operation) from a region to the internet and to other regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from typing import Any, Literal

from pydantic import Field

from planner.model.errors import FormatError
from relayd.catalogue.documents.opening import (
    DocumentRow,
    Dollars,
    PriceDocument,
    Usd,
    Volume,
    checked,
)
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


class _About(DocumentRow):
    offer: Literal["AmazonEC2", "AWSDataTransfer"] = Field(
        alias="offercode",
        title="OfferCode",
        description="Give the price lists of AmazonEC2 and AWSDataTransfer.",
    )


class _OfferedVm(DocumentRow):
    currency: Dollars
    unit: Literal["Hrs"]
    usd: Usd = Field(alias="priceperunit")


class _OfferedTraffic(DocumentRow):
    currency: Dollars
    unit: Literal["GB"]
    usd: Usd = Field(alias="priceperunit")
    from_gb: Volume = Field(0.0, alias="startingrange")


def recognises(document: PriceDocument) -> bool:
    """Whether it is a price list of AWS."""
    if document.is_json:
        found = document.json
        return isinstance(found, dict) and {"offerCode", "products", "terms"} <= found.keys()
    return bool(document.head and document.head[0] and document.head[0][0] == "FormatVersion")


def read(document: PriceDocument, found: PriceList) -> None:
    """Read a price list; a FormatError if it is of another service or a price is invalid."""
    about, rows = _of_json(document) if document.is_json else _of_csv(document)
    with suppress(ValueError):
        document.modified_on = date.fromisoformat(about.get("publicationdate", "")[:10]).isoformat()
    add = _add_vm if checked(_About, str(document.path), about).offer == "AmazonEC2" else _add_gb
    for place, row in rows:
        add(found, place, row)


def _add_vm(found: PriceList, place: str, row: Mapping[str, str]) -> None:
    name, region = row.get("instancetype", ""), row.get("regioncode", "")
    in_region = row.get("locationtype", "AWS Region") == "AWS Region"
    wanted = all(row.get(field, "") in values for field, values in _LINUX.items())
    if not (name and region and in_region and wanted):
        found.left_out["prices other than Linux VMs on demand in a region"] += 1
        return
    usd = checked(_OfferedVm, place, row).usd
    found.add_vm(place, f"aws:{name}", f"aws:{region}", usd)


def _add_gb(found: PriceList, place: str, row: Mapping[str, str]) -> None:
    source, usage = row.get("fromregioncode", ""), row.get("usagetype", "")
    kind = row.get("transfertype", "")
    destination = ""
    if kind == "AWS Outbound" and usage.endswith("DataTransfer-Out-Bytes"):
        destination = INTERNET
    elif kind == "InterRegion Outbound" and usage.endswith("-AWS-Out-Bytes"):
        destination = f"aws:{row['toregioncode']}" if row.get("toregioncode") else ""
    in_region = row.get("fromlocationtype", "AWS Region") == "AWS Region"
    if not (source and destination and in_region) or row.get("operation"):
        found.left_out["prices other than traffic out of a region"] += 1
        return
    price = checked(_OfferedTraffic, place, row)
    found.add_traffic(f"aws:{source}", destination, price.from_gb, price.usd)


# ---- rows --------------------------------------------------------------------------------------

_Rows = Iterator[tuple[str, Mapping[str, str]]]


def _of_csv(document: PriceDocument) -> tuple[dict[str, str], _Rows]:
    about = {_plain(row[0]): row[1] for row in document.head[:_HEAD_LINES] if len(row) > 1}
    rows = document.table(("PricePerUnit", "Currency", "Unit"), after=_HEAD_LINES)
    return about, ((place, {_plain(k): v for k, v in row.items()}) for place, row in rows)


def _of_json(document: PriceDocument) -> tuple[dict[str, str], _Rows]:
    found = document.json
    about = {_plain(key): value for key, value in found.items() if isinstance(value, str)}
    return about, _rows_of(str(document.path), found)


def _rows_of(path: str, found: dict[str, Any]) -> _Rows:
    """Join the products of a JSON list with their prices on demand."""
    try:
        for sku, offers in found["terms"].get("OnDemand", {}).items():
            product = found["products"][sku]["attributes"]
            attributes = {_plain(key): str(value) for key, value in product.items()}
            for offer in offers.values():
                for price in offer["priceDimensions"].values():
                    currency, usd = next(iter(price["pricePerUnit"].items()))
                    yield (
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
