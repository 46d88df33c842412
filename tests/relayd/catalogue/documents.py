"""Price documents in the documented formats, made by hand: a row is as its provider writes it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HEAD = ["InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"]
HEAD += ["Price", "SpotPrice", "Region", "AvailabilityZone"]
STANDARD = "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
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
        "armRegionName": region,
        "location": "a place",
        "meterName": name.replace("_", " "),
        "productName": "Virtual Machines Dv5 Series",
        "skuName": name.replace("_", " "),
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
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
            "unitOfMeasure": "1 GB",
            "armSkuName": "",
            **other,
        },
    )


def azure_page(items: Iterable[Mapping[str, Any]], after: str | None = None) -> dict[str, Any]:
    listed = list(items)
    return {"BillingCurrency": "USD", "Items": listed, "NextPageLink": after, "Count": len(listed)}


def written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


def aws_vm_table(prices: Iterable[Price]) -> bytes:
    """Return a list of EC2 as CSV: beside each price on demand, those of others."""
    rows = []
    for name, region, usd in prices:
        row = {
            "SKU": "2223B6PCG6QAUYY6",
            "TermType": "OnDemand",
            "StartingRange": "0",
            "EndingRange": "Inf",
            "Unit": "Hrs",
            "PricePerUnit": f"{usd:.10f}",
            "Currency": "USD",
            "Product Family": "Compute Instance",
            "Location Type": "AWS Region",
            "Instance Type": name,
            "Tenancy": "Shared",
            "Operating System": "Linux",
            "CapacityStatus": "Used",
            "MarketOption": "OnDemand",
            "Pre Installed S/W": "NA",
            "Region Code": region,
        }
        others = {
            "Operating System": "Windows",
            "Tenancy": "Dedicated",
            "CapacityStatus": "AllocatedCapacityReservation",
            "TermType": "Reserved",
            "Pre Installed S/W": "SQL Web",
            "Location Type": "AWS Local Zone",
        }
        rows += [row, *({**row, key: other, "PricePerUnit": "9"} for key, other in others.items())]
    return _aws_table("AmazonEC2", rows)


def aws_traffic_table(prices: Iterable[tuple[str, str, float, float]]) -> bytes:
    """Return a list of AWSDataTransfer as CSV: source, destination or "", start in GB, USD."""
    rows = []
    for source, destination, from_gb, usd in prices:
        row = {
            "SKU": "22ABCD",
            "TermType": "OnDemand",
            "StartingRange": f"{from_gb:g}",
            "EndingRange": "Inf",
            "Unit": "GB",
            "PricePerUnit": f"{usd:.10f}",
            "Currency": "USD",
            "Product Family": "Data Transfer",
            "Transfer Type": "InterRegion Outbound" if destination else "AWS Outbound",
            "From Location Type": "AWS Region",
            "usageType": "X-Y-AWS-Out-Bytes" if destination else "X-DataTransfer-Out-Bytes",
            "operation": "",
            "From Region Code": source,
            "To Region Code": destination,
        }
        others = {"Transfer Type": "IntraRegion", "operation": "GlobalReplication"}
        rows += [row, *({**row, key: other, "PricePerUnit": "9"} for key, other in others.items())]
    return _aws_table("AWSDataTransfer", rows)


def _aws_table(service: str, rows: list[dict[str, str]]) -> bytes:
    text = io.StringIO()
    written = csv.writer(text, quoting=csv.QUOTE_ALL)
    head = {"FormatVersion": "v1.0", "Disclaimer": "This list is for information only."}
    head |= {"Publication Date": "2026-11-19T21:29:23Z", "Version": "20261119212923"}
    written.writerows([*head.items(), ("OfferCode", service), tuple(rows[0])])
    written.writerows(row.values() for row in rows)
    return text.getvalue().encode()


def aws_as_json(table: bytes) -> dict[str, Any]:
    """Return a list of AWS as JSON, made of the same list as CSV."""
    lines = table.decode().splitlines()
    names = {"CapacityStatus": "capacitystatus", "Pre Installed S/W": "preInstalledSw"}
    names |= {"usageType": "usagetype", "MarketOption": "marketoption"}
    found: dict[str, Any] = {
        "formatVersion": "v1.0",
        "offerCode": next(csv.reader([lines[4]]))[1],
        "version": "20261119212923",
        "publicationDate": "2026-11-19T21:29:23Z",
        "products": {},
        "terms": {"OnDemand": {}, "Reserved": {}},
    }
    for number, row in enumerate(csv.DictReader(lines[5:])):
        sku = f"SKU{number}"
        attributes = {
            names.get(key, key[0].lower() + key[1:].replace(" ", "")): value
            for key, value in row.items()
        }
        found["products"][sku] = {"sku": sku, "productFamily": "", "attributes": attributes}
        price = {
            "unit": row["Unit"],
            "beginRange": row["StartingRange"],
            "endRange": row["EndingRange"],
            "pricePerUnit": {row["Currency"]: row["PricePerUnit"]},
        }
        offer = {"offerTermCode": "JRTCKXETXF", "sku": sku, "priceDimensions": {f"{sku}.D": price}}
        found["terms"][row["TermType"]][sku] = {f"{sku}.JRTCKXETXF": offer}
    return found


def google_sku(described: str, region: str, usd: float, **other: object) -> dict[str, Any]:
    """Return a SKU of Compute Engine."""
    rate = {
        "startUsageAmount": 0,
        "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": round(usd * 1e9)},
    }
    expression = {
        "usageUnit": "GiBy.h" if described.endswith("Ram") else "h",
        "baseUnit": "s",
        "tieredRates": [rate],
        **other,
    }
    return {
        "skuId": "D062-BDF8-38B3",
        "description": f"{described} running in Americas",
        "category": {
            "resourceGroup": "CPU",
            "usageType": "Preemptible" if "Spot" in described else "OnDemand",
        },
        "serviceRegions": [region],
        "pricingInfo": [{"effectiveTime": "2026-11-20T00:00:00Z", "pricingExpression": expression}],
    }


def aws_quotas(
    *quotas: tuple[str, str, object], arn: str = "arn:aws:quotas:us-east-1:1234:ec2/"
) -> Any:
    """Return what `aws service-quotas list-service-quotas --service-code ec2` prints."""
    same = {"ServiceCode": "ec2", "Unit": "None", "Adjustable": True, "GlobalQuota": False}
    return {
        "Quotas": [
            {**same, "QuotaArn": arn + code, "QuotaCode": code, "QuotaName": name, "Value": value}
            for code, name, value in quotas
        ]
    }


def azure_usages(*usages: tuple[str, object, object]) -> list[dict[str, Any]]:
    """Return what `az vm list-usage -o json` prints."""
    return [
        {"currentValue": used, "limit": limit, "name": {"localizedValue": name, "value": name}}
        for name, used, limit in usages
    ]


def gcp_quotas(region: str, *quotas: tuple[str, object, object]) -> dict[str, Any]:
    """Return what `gcloud compute regions describe --format json` prints."""
    return {
        "kind": "compute#region",
        "name": region,
        "quotas": [{"metric": m, "limit": limit, "usage": used} for m, limit, used in quotas],
        "status": "UP",
    }
