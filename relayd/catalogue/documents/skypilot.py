"""SkyPilot's catalogue: ``aws/vms.csv``, ``azure/vms.csv``, ``gcp/vms.csv``, a row a type and zone.

Columns as in https://github.com/skypilot-org/skypilot-catalog (v7): InstanceType, vCPUs, MemoryGiB,
AcceleratorName, AcceleratorCount, GpuInfo, Price, SpotPrice, Region, AvailabilityZone. Prices are
USD for an hour.
"""

from __future__ import annotations

from planner.model.errors import FormatError
from relayd.catalogue.documents.opening import PROVIDERS, PriceDocument
from relayd.catalogue.documents.price_list import PriceList


def recognises(document: PriceDocument) -> bool:
    """Whether it is one of SkyPilot's tables."""
    if document.is_json or not document.head:
        return False
    names = set(document.head[0])
    return document.path.name == "vms.csv" or {"InstanceType", "SpotPrice", "Region"} <= names


def read(document: PriceDocument, found: PriceList) -> None:
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
