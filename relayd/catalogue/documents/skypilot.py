"""SkyPilot's catalogue: ``aws/vms.csv``, ``azure/vms.csv``, ``gcp/vms.csv``, a row a type and zone.

Columns as in https://github.com/skypilot-org/skypilot-catalog (v7): InstanceType, vCPUs, MemoryGiB,
AcceleratorName, AcceleratorCount, GpuInfo, Price, SpotPrice, Region, AvailabilityZone. Prices are
USD for an hour.
"""

from __future__ import annotations

from pydantic import Field

from planner.model.errors import FormatError
from relayd.catalogue.documents.opening import PROVIDERS, DocumentRow, PriceDocument, Usd, checked
from relayd.catalogue.documents.price_list import PriceList


class _Vm(DocumentRow):
    usd_per_h: Usd = Field(alias="Price")


def recognises(document: PriceDocument) -> bool:
    """Whether it is one of SkyPilot's tables."""
    if document.is_json or not document.head:
        return False
    names = set(document.head[0])
    return document.path.name == "vms.csv" or {"InstanceType", "SpotPrice", "Region"} <= names


def read(document: PriceDocument, found: PriceList) -> None:
    """Read the prices of a provider, whose name is that of the folder; a FormatError otherwise."""
    provider = document.path.parent.name or document.path.resolve().parent.name
    if provider not in PROVIDERS:
        remedy = f"SkyPilot keeps it in a folder that says so: {', '.join(PROVIDERS)}."
        raise FormatError(str(document.path), "does not say of which provider", remedy=remedy)
    for place, row in document.table(("InstanceType", "Price", "Region")):
        if not row["InstanceType"] or not row["Price"]:
            found.left_out["rows without a VM type or an on-demand price"] += 1
            continue
        name = row["InstanceType"].removeprefix("Standard_" if provider == "azure" else "")
        usd = checked(_Vm, place, row).usd_per_h
        found.add_vm(place, f"{provider}:{name}", f"{provider}:{row['Region']}", usd)
