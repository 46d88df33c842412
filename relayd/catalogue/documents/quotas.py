"""vCPU quotas, as the providers' command lines print them in JSON.

- ``aws service-quotas list-service-quotas --service-code ec2``: ``{"Quotas": [{"QuotaCode": ...,
  "QuotaArn": ..., "Value": ...}]}``; the region is in the ARN, what is in use is not said.
- ``az vm list-usage --location REGION -o json``: ``[{"name": {"value": ...}, "currentValue": ...,
  "limit": ...}]``; the region is the file's name, as the document does not say it.
- ``gcloud compute regions describe REGION --format json``, or ``list``: ``{"name": ..., "quotas":
  [{"metric": ..., "limit": ..., "usage": ...}]}``.

Quotas on other things than vCPUs of VMs on demand are left out.
"""

from __future__ import annotations

from math import ceil, floor

from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from relayd.catalogue.documents.opening import DocumentRow, PriceDocument, items_of
from relayd.catalogue.documents.price_list import PriceList

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
