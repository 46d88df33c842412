"""Price documents in the documented formats, made by hand: a row is as its provider writes it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEAD = ["InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"]
HEAD += ["Price", "SpotPrice", "Region", "AvailabilityZone"]
Price = tuple[str, str, float]  # VM type, region, USD for an hour


def skypilot_folder(folder: Path, provider: str, prices: Iterable[Price]) -> Path:
    """Write ``PROVIDER/vms.csv`` with each price in two zones, and return the folder."""
    table = folder / provider / "vms.csv"
    table.parent.mkdir(parents=True)
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(HEAD)
        for name, region, usd in prices:
            for zone in "ab":
                rows.writerow(
                    [name, "", "", "8.0", "32.0", "", usd, usd / 3, region, f"{region}{zone}"]
                )
        rows.writerow(["", "A100", "1", "", "", "", "", "", "us-east-1", "us-east-1a"])
    return folder


def azure_vm(name: str, region: str, usd: object, **other: object) -> dict[str, Any]:
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": region,
        "location": "a place",
        "effectiveStartDate": "2026-10-01T00:00:00Z",
        "meterId": "000a794b-bdb0-58be-a0cd-0c3a0f222923",
        "meterName": name.replace("_", " "),
        "productName": "Virtual Machines Dv5 Series",
        "skuName": name.replace("_", " "),
        "serviceName": "Virtual Machines",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": f"Standard_{name}",
        **other,
    }


def azure_traffic(region: str, from_gb: float, usd: float, **other: object) -> dict[str, Any]:
    return azure_vm(
        "",
        region,
        usd,
        **{
            "tierMinimumUnits": from_gb,
            "meterName": "Standard Data Transfer Out",
            "productName": "Rtn Preference: MGN",
            "skuName": "Standard",
            "serviceName": "Bandwidth",
            "serviceFamily": "Networking",
            "unitOfMeasure": "1 GB",
            "armSkuName": "",
            **other,
        },
    )


def azure_page(items: Iterable[Mapping[str, Any]], after: str | None = None) -> dict[str, Any]:
    listed = list(items)
    return {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": listed,
        "NextPageLink": after,
        "Count": len(listed),
    }


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path
