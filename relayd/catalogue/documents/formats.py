"""The formats of price documents: how each is recognised, and what reads it.

- SkyPilot's catalogue: ``aws/vms.csv``, ``azure/vms.csv``, ``gcp/vms.csv``, a row a type and zone.
  Columns as in https://github.com/skypilot-org/skypilot-catalog (v7): InstanceType, vCPUs,
  MemoryGiB, AcceleratorName, AcceleratorCount, GpuInfo, Price, SpotPrice, Region,
  AvailabilityZone. Prices are USD for an hour.
- Azure Retail Prices pages: ``{"BillingCurrency": ..., "Items": [...], "NextPageLink": ...}``.
  Fields as in https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices.
  Of VMs, what a Linux VM costs on demand is read; of traffic, the meter to the internet over
  Microsoft's own network (product ``Rtn Preference: MGN``), which is what a VM uses unless told
  otherwise. Meters between regions do not say between which, and stay as they are.
- vCPU quotas, as the providers' command lines print them in JSON; those on other things than vCPUs
  of VMs on demand are left out. ``aws service-quotas list-service-quotas --service-code ec2``:
  ``{"Quotas": [{"QuotaCode": ..., "QuotaArn": ..., "Value": ...}]}``; the region is in the ARN,
  what is in use is not said. ``az vm list-usage --location REGION -o json``: ``[{"name":
  {"value": ...}, "currentValue": ..., "limit": ...}]``; the region is the file's name, as the
  document does not say it. ``gcloud compute regions describe REGION --format json``, or ``list``:
  ``{"name": ..., "quotas": [{"metric": ..., "limit": ..., "usage": ...}]}``.
- AWS price list files of AmazonEC2 and AWSDataTransfer, as JSON or CSV. Layout as in
  https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/
  reading-service-price-list-file-for-services.html; names of attributes as the files have them.
  JSON keeps products and prices apart, CSV has a row a price below five lines about the file. Both
  become rows with the same names here: in small letters, without blanks and slashes. Of EC2, Linux
  on demand is read: shared, in use, without software of others. Of AWSDataTransfer, what any
  service pays (no operation) from a region to the internet and to other regions.
- Google Cloud's list of SKUs of Compute Engine: ``{"skus": [...], "nextPageToken": ...}``. Fields
  as in https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list. Google prices
  cores and GiB of memory of a family of machines, not VM types: a type's price is that of its vCPUs
  and of its memory, which follows from its name. Only types whose price of 2026 in `vm-types.csv`
  is that to 0.3 % are priced so. Traffic is priced between parts of the world that are not those of
  the catalogue, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

from planner.model.errors import FormatError
from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from probes.importers import HEAD_BYTES
from relayd.catalogue.documents.price_list import (
    INTERNET,
    MOST_GB,
    PROVIDERS,
    DocumentRow,
    PriceDocument,
    PriceList,
    files_of,
    items_of,
)
from relayd.files import belongs_elsewhere


def _is_of_skypilot(document: PriceDocument) -> bool:
    """Whether it is one of SkyPilot's tables."""
    if document.is_json or not document.head:
        return False
    names = set(document.head[0])
    return document.path.name == "vms.csv" or {"InstanceType", "SpotPrice", "Region"} <= names


def _read_skypilot(document: PriceDocument, found: PriceList) -> None:
    """Read the prices of a provider.

    Raises FormatError if the folder is not named after the provider, or a row is wrong.
    """
    provider = document.path.parent.name or document.path.resolve().parent.name
    if provider not in PROVIDERS:
        remedy = f"SkyPilot keeps it in a folder that says so: {', '.join(PROVIDERS)}."
        raise FormatError(str(document.path), "does not say of which provider", remedy=remedy)
    for row in document.table(("InstanceType", "Price", "Region")):
        name, region = row.text("InstanceType"), row.text("Region")
        if not name or not row.text("Price"):
            found.left_out["rows without a VM type or an on-demand price"] += 1
            continue
        name = name.removeprefix("Standard_" if provider == "azure" else "")
        found.add_vm(row.place, f"{provider}:{name}", f"{provider}:{region}", row.figure("Price"))


_OTHER_VMS = ("windows", "cloud services", "dedicated host", "spot", "low priority")
_EGRESS = ("rtn preference: mgn", "standard data transfer out")
_HOURS = ("1 Hour", "10 Hours", "100 Hours")
_GB = ("1 GB", "10 GB", "100 GB")


def _read_azure_prices(document: PriceDocument, found: PriceList) -> None:
    """Read a page; a FormatError if it is not in USD, or an item's price or unit is invalid."""
    DocumentRow(str(document.path), document.json).check_usd("BillingCurrency")
    for row in items_of(str(document.path), document.json["Items"]):
        region, service = row.text("armRegionName"), row.text("serviceName")
        meter = (row.text("productName").casefold(), row.text("meterName").casefold())
        if row.text("type") not in {"Consumption", ""}:
            found.left_out["reservations and the like"] += 1
        elif service == "Virtual Machines":
            name = row.text("armSkuName").removeprefix("Standard_")
            words = f"{row.text('skuName').casefold()} {' '.join(meter)}"
            if not name or not region or any(other in words for other in _OTHER_VMS):
                found.left_out["VMs that are not Linux on demand"] += 1
                continue
            usd, hours = _price(row, _HOURS)
            found.add_vm(row.place, f"azure:{name}", f"azure:{region}", usd / hours)
        elif service == "Bandwidth" and region and meter == _EGRESS:
            usd, gb = _price(row, _GB)
            from_gb = gb * row.figure("tierMinimumUnits", most=MOST_GB, default=0.0)
            found.add_traffic(f"azure:{region}", INTERNET, from_gb, usd / gb)
        else:
            found.left_out["other meters"] += 1


def _price(row: DocumentRow, units: tuple[str, ...]) -> tuple[float, int]:
    """Return USD for so many units."""
    row.check_usd("currencyCode")
    unit = row.one_of("unitOfMeasure", words=units)
    return row.figure("retailPrice"), int(unit.partition(" ")[0])


_MOST = 1e300  # no limit is written as a large number


def _read_aws_quotas(document: PriceDocument, found: PriceList) -> None:
    """Read the applied quotas of EC2 in a region.

    Raises FormatError, of this and the other readers: if a figure or name is invalid.
    """
    for row in items_of(str(document.path), document.json["Quotas"]):
        # arn:aws:servicequotas:us-east-1:123456789012:ec2/L-1216C47A
        region = ":".join(row.text("QuotaArn").split(":")[3:4])
        _add(found, row, f"aws:{region}", ("QuotaCode",), "Value", "")


def _read_azure_quotas(document: PriceDocument, found: PriceList) -> None:
    """Read what may run and runs in the region that the file is named after."""
    region = f"azure:{document.path.stem.lower().removeprefix('azure-')}"
    for row in items_of(str(document.path), document.json):
        _add(found, row, region, ("name", "value"), "limit", "currentValue")


def _read_gcp_quotas(document: PriceDocument, found: PriceList) -> None:
    """Read the quotas of one region, or of several."""
    described = document.json if isinstance(document.json, list) else [document.json]
    for region in items_of(str(document.path), described):
        for row in items_of(region.place, region.at("quotas")):
            _add(found, row, f"gcp:{region.text('name')}", ("metric",), "limit", "usage")


def _add(
    found: PriceList, row: DocumentRow, region: str, name: tuple[str, ...], limit: str, used: str
) -> None:
    """Add a quota, given what its name, limit and use are called, if on vCPUs on demand."""
    family = row.at(*name)
    if not isinstance(family, str):
        raise row.invalid(name, family, "It must be text.")
    if family_key(family) is None:
        found.left_out["quotas on other things"] += 1
        return
    vcpus = row.figure(limit, most=_MOST)
    in_use = row.figure(used, most=_MOST, default=0.0) if used else 0.0
    if vcpus > MOST_VCPUS:
        found.left_out["quotas without a limit"] += 1
        return
    # Small VMs of Google Cloud are parts of a vCPU.
    found.add_quota(row.place, region, family, floor(vcpus), ceil(min(in_use, MOST_VCPUS)))


_HEAD_LINES = 5
_LINUX = {
    "operatingsystem": {"Linux"},
    "tenancy": {"Shared"},
    "preinstalledsw": {"NA", ""},
    "capacitystatus": {"Used"},
    "termtype": {"OnDemand"},
    "marketoption": {"OnDemand", ""},
}


def _is_of_aws(document: PriceDocument) -> bool:
    """Whether it is a price list of AWS."""
    if document.is_json:
        found = document.json
        return isinstance(found, dict) and {"offerCode", "products", "terms"} <= found.keys()
    return bool(document.head and document.head[0] and document.head[0][0] == "FormatVersion")


def _read_aws_offers(document: PriceDocument, found: PriceList) -> None:
    """Read a price list; a FormatError if it is of another service or a price is invalid."""
    path = str(document.path)
    if document.is_json:
        about = DocumentRow(
            path, {key[:1].upper() + key[1:]: v for key, v in document.json.items()}
        )
        rows = _rows_of_json(path, document.json)
    else:
        head = {row[0].replace(" ", ""): row[1] for row in document.head[:_HEAD_LINES] if row[1:]}
        about = DocumentRow(path, head)
        table = document.table(("PricePerUnit", "Currency", "Unit"), after=_HEAD_LINES)
        rows = (
            DocumentRow(row.place, {_plain(key): v for key, v in row.content.items()})
            for row in table
        )
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
    fields = ("fromregioncode", "usagetype", "transfertype")
    source, usage, kind = (row.text(field) for field in fields)
    destination = ""
    if kind == "AWS Outbound" and usage.endswith("DataTransfer-Out-Bytes"):
        destination = INTERNET
    elif kind == "InterRegion Outbound" and usage.endswith("-AWS-Out-Bytes"):
        destination = f"aws:{to}" if (to := row.text("toregioncode")) else ""
    in_region = _in_region(row, "fromlocationtype")
    if in_region and not source and row.text("fromlocation"):
        found.left_out["prices without a region code, as in old lists: download a new one"] += 1
        return
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


def _rows_of_json(path: str, found: dict[str, Any]) -> Iterator[DocumentRow]:
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


_PART = re.compile(
    r"(?:(?P<family>[A-Z]\d[A-Z]?)(?: Predefined| AMD| Arm)? Instance|Compute optimized)"
    r" (?P<part>Core|Ram) running in .*"
)
_UNIT = {"Core": "h", "Ram": "GiBy.h"}
_TYPE = re.compile(r"gcp:(?P<family>[a-z]\d[a-z]?)-(?P<kind>standard|highmem|highcpu)-(?P<n>\d+)")
_NEWER = ("c2", "c2d", "c3", "c3d", "c4a", "n4", "n4a", "n4d", "t2a", "t2d")
_GIB_PER_VCPU = {
    **{name: {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0} for name in ("e2", "n2", "n2d")},
    **{name: {"standard": 4.0, "highmem": 8.0, "highcpu": 2.0} for name in _NEWER},
    "c4": {"standard": 3.75, "highmem": 7.75, "highcpu": 2.0},
    "n1": {"standard": 3.75, "highmem": 6.5, "highcpu": 0.9},
}
_EXCEPTIONS = {"gcp:n2-highmem-128", "gcp:c4-standard-2", "gcp:c4-highmem-2"}  # of other memory

_EXPRESSION = ("pricingInfo", 0, "pricingExpression")
_PRICE = (*_EXPRESSION, "tieredRates", 0, "unitPrice")


def _read_google(document: PriceDocument, found: PriceList) -> None:
    """Read the prices of cores and memory on demand; a FormatError for a wrong price or unit."""
    for row in items_of(str(document.path), document.json["skus"]):
        described = _PART.fullmatch(row.text("description"))
        if not described or row.text("category", "usageType") != "OnDemand":
            found.left_out["SKUs other than cores and memory on demand"] += 1
            continue
        family, part = (described["family"] or "C2").lower(), described["part"]
        if row.at(*_EXPRESSION, "usageUnit") != _UNIT[part]:
            unit = row.at(*_EXPRESSION, "usageUnit")
            raise row.invalid(("usageUnit",), unit, f"It should be {_UNIT[part]}.")
        row.check_usd(*_PRICE, "currencyCode")
        usd = row.figure(*_PRICE, "units", default=0.0)
        usd += row.figure(*_PRICE, "nanos", most=1e9, default=0.0) * 1e-9
        regions = row.at("serviceRegions")
        if not isinstance(regions, list):
            raise row.invalid(("serviceRegions",), regions, "It must be a list.")
        for region in regions:
            found.add_part(row.place, family, f"gcp:{region}", part, usd)


def prices_of_types(
    parts: Mapping[tuple[str, str], Mapping[str, float]], type_ids: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Return USD for an hour of VM types by region, from what cores and memory cost.

    `parts` is family and region to USD of a ``Core`` and of a GiB of ``Ram`` for an hour.
    """
    by_family: dict[str, dict[str, Mapping[str, float]]] = {}
    for (family, region), both in parts.items():
        if both.keys() == _UNIT.keys():
            by_family.setdefault(family, {})[region] = both
    found = {}
    for type_id in type_ids:
        named = _TYPE.fullmatch(type_id)
        if named and type_id not in _EXCEPTIONS and named["family"] in by_family:
            gib = _GIB_PER_VCPU.get(named["family"], {}).get(named["kind"])
            if gib is not None:
                found[type_id] = {
                    region: int(named["n"]) * (both["Core"] + gib * both["Ram"])
                    for region, both in by_family[named["family"]].items()
                }
    return found


class PriceFormat(NamedTuple):
    """A format; ``name`` ends up in the names of overlays."""

    name: str
    title: str
    recognises: Callable[[PriceDocument], bool]
    read: Callable[[PriceDocument, PriceList], None]


def _has(*keys: str) -> Callable[[PriceDocument], bool]:
    """Recognise a JSON object with some keys, or a list of such objects by the first."""

    def recognises(document: PriceDocument) -> bool:
        found = document.json
        first = found[0] if isinstance(found, list) and found else found
        return isinstance(first, dict) and first.keys() >= set(keys)

    return recognises


FORMATS = (
    PriceFormat("skypilot", "SkyPilot's catalogue", _is_of_skypilot, _read_skypilot),
    PriceFormat("aws-offers", "AWS price lists", _is_of_aws, _read_aws_offers),
    PriceFormat(
        "azure-retail", "Azure Retail Prices", _has("Items", "BillingCurrency"), _read_azure_prices
    ),
    PriceFormat("aws-quotas", "AWS Service Quotas", _has("Quotas"), _read_aws_quotas),
    PriceFormat("azure-usage", "Azure's VM usage", _has("currentValue"), _read_azure_quotas),
    PriceFormat("gcp-regions", "Google Cloud's regions", _has("quotas", "name"), _read_gcp_quotas),
    PriceFormat("google-skus", "Google Cloud SKUs", _has("skus"), _read_google),
)


class Reading(NamedTuple):
    """Prices, and the files that they were read from."""

    prices: PriceList
    files: dict[Path, PriceFormat]  # each file's path to the format that it was recognised as

    @property
    def name(self) -> str:
        """A word for all the formats."""
        return "-".join(sorted({one.name for one in self.files.values()}))[:60]

    @property
    def title(self) -> str:
        """All the formats, for people."""
        return " and ".join(dict.fromkeys(one.title for one in self.files.values()))


def read_prices(paths: Iterable[Path]) -> Reading:
    """Read all price documents of some files and folders.

    A FormatError names the first file that is of no known format or damaged, or says that there is
    no price in any.
    """
    reading = Reading(PriceList(), {})
    for path in dict.fromkeys(file for named in paths for file in files_of(named)):
        document = PriceDocument(path)
        known = ", ".join(one.title for one in FORMATS)
        remedy = f"Known are {known}; docs/catalogue.md says how they look."
        unknown = FormatError(str(path), "is of no format that is known", remedy=remedy)
        try:
            found = next((one for one in FORMATS if one.recognises(document)), None)
        except FormatError as fault:  # it only begins like JSON
            found, unknown = None, fault
        if found is None:
            with path.open(encoding="utf-8", errors="replace") as file:
                head = file.read(HEAD_BYTES)
            raise belongs_elsewhere(head, str(path), "data catalogue import") or unknown
        found.read(document, reading.prices)
        reading.prices.as_of = max(reading.prices.as_of, document.modified_on)
        reading.files[path] = found
    if reading.prices.is_empty:
        places = ", ".join(str(path) for path in reading.files)[:200]
        why = "; ".join(f"{n} {reason}" for reason, n in reading.prices.left_out.items())
        raise FormatError(places, f"has no price to use ({why or 'it is empty'})")
    return reading
