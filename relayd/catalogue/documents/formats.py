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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil, floor
from pathlib import Path
from typing import NamedTuple

from planner.model.errors import FormatError
from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from relayd.catalogue.documents import aws_offers, google_skus
from relayd.catalogue.documents.opening import (
    MOST_GB,
    PROVIDERS,
    DocumentRow,
    PriceDocument,
    files_of,
    items_of,
)
from relayd.catalogue.documents.price_list import INTERNET, PriceList


def _is_of_skypilot(document: PriceDocument) -> bool:
    """Whether it is one of SkyPilot's tables."""
    if document.is_json or not document.head:
        return False
    names = set(document.head[0])
    return document.path.name == "vms.csv" or {"InstanceType", "SpotPrice", "Region"} <= names


def _read_skypilot(document: PriceDocument, found: PriceList) -> None:
    """Read the prices of a provider.

    Raises
    ------
    FormatError
        If the folder is not named after the provider, or a row is wrong.
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


def read_aws(document: PriceDocument, found: PriceList) -> None:
    """Read the applied quotas of EC2 in a region.

    Raises
    ------
    FormatError
        Of this and the other readers: if a figure or name is invalid.
    """
    for row in items_of(str(document.path), document.json["Quotas"]):
        # arn:aws:servicequotas:us-east-1:123456789012:ec2/L-1216C47A
        region = ":".join(row.text("QuotaArn").split(":")[3:4])
        _add(found, row, f"aws:{region}", ("QuotaCode",), "Value", "")


def read_azure(document: PriceDocument, found: PriceList) -> None:
    """Read what may run and runs in the region that the file is named after."""
    region = f"azure:{document.path.stem.lower().removeprefix('azure-')}"
    for row in items_of(str(document.path), document.json):
        _add(found, row, region, ("name", "value"), "limit", "currentValue")


def read_gcp(document: PriceDocument, found: PriceList) -> None:
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
    PriceFormat("aws-offers", "AWS price lists", aws_offers.recognises, aws_offers.read),
    PriceFormat(
        "azure-retail", "Azure Retail Prices", _has("Items", "BillingCurrency"), _read_azure_prices
    ),
    PriceFormat("aws-quotas", "AWS Service Quotas", _has("Quotas"), read_aws),
    PriceFormat("azure-usage", "Azure's VM usage", _has("currentValue"), read_azure),
    PriceFormat("gcp-regions", "Google Cloud's regions", _has("quotas", "name"), read_gcp),
    PriceFormat("google-skus", "Google Cloud SKUs", _has("skus"), google_skus.read),
)


class Reading(NamedTuple):
    """Prices, and the files that they were read from.

    Attributes
    ----------
    prices : PriceList
    files : dict
        Each file's path to the format that it was recognised as.
    """

    prices: PriceList
    files: dict[Path, PriceFormat]

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
        found = next((one for one in FORMATS if one.recognises(document)), None)
        if found is None:
            known = ", ".join(one.title for one in FORMATS)
            remedy = f"Known are {known}; docs/catalogue.md says how they look."
            raise FormatError(str(path), "is of no format that is known", remedy=remedy)
        found.read(document, reading.prices)
        reading.prices.as_of = max(reading.prices.as_of, document.modified_on)
        reading.files[path] = found
    if reading.prices.is_empty:
        places = ", ".join(str(path) for path in reading.files)[:200]
        why = "; ".join(f"{n} {reason}" for reason, n in reading.prices.left_out.items())
        raise FormatError(places, f"has no price to use ({why or 'it is empty'})")
    return reading
