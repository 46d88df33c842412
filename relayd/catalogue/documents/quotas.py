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
from typing import Annotated, Any

from pydantic import AliasChoices, AliasPath, BeforeValidator, Field

from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from relayd.catalogue.documents.opening import DocumentRow, PriceDocument, Text, checked, items_of
from relayd.catalogue.documents.price_list import PriceList

# Older versions of az write text. True is no figure, for all that Python makes 1 of it.
_Figure = Annotated[
    float,
    Field(ge=0, description="It must be a number from 0."),
    BeforeValidator(lambda value: None if isinstance(value, bool) else value),
]


class _QuotaItem(DocumentRow):
    arn: Text = Field("", alias="QuotaArn")
    family: str = Field(
        validation_alias=AliasChoices("QuotaCode", "metric", AliasPath("name", "value")),
        title="name (QuotaCode, metric or name.value)",
    )


class _Quota(DocumentRow):
    limit: _Figure = Field(validation_alias=AliasChoices("Value", "limit"))
    used: _Figure = Field(0.0, validation_alias=AliasChoices("currentValue", "usage"))


class _Region(DocumentRow):
    name: str
    quotas: list[Any]


def recognises_aws(document: PriceDocument) -> bool:
    """Whether it is a list of AWS's quotas."""
    return isinstance(document.json, dict) and "Quotas" in document.json


def recognises_azure(document: PriceDocument) -> bool:
    """Whether it is Azure's list of usages."""
    return _first_has(document.json, "currentValue", "limit")


def recognises_gcp(document: PriceDocument) -> bool:
    """Whether it describes regions of Google Cloud."""
    found = document.json
    return _first_has(found if isinstance(found, list) else [found], "quotas", "name")


def _first_has(items: object, *names: str) -> bool:
    first = items[0] if isinstance(items, list) and items else None
    return isinstance(first, dict) and all(name in first for name in names)


def read_aws(document: PriceDocument, found: PriceList) -> None:
    """Read the applied quotas of EC2 in a region; a FormatError if a figure or name is invalid."""
    _add(found, str(document.path), document.json["Quotas"])


def read_azure(document: PriceDocument, found: PriceList) -> None:
    """Read what may run and runs in the region that the file is named after."""
    region = f"azure:{document.path.stem.lower().removeprefix('azure-')}"
    _add(found, str(document.path), document.json, region)


def read_gcp(document: PriceDocument, found: PriceList) -> None:
    """Read the quotas of one region, or of several."""
    described = document.json if isinstance(document.json, list) else [document.json]
    for where, row in items_of(str(document.path), described):
        region = checked(_Region, where, row)
        _add(found, where, region.quotas, f"gcp:{region.name}")


def _add(found: PriceList, where: str, items: object, region: str = "") -> None:
    """Add those quotas that are on vCPUs of VMs on demand."""
    for place, row in items_of(where, items):
        item = checked(_QuotaItem, place, row)
        if family_key(item.family) is None:
            found.left_out["quotas on other things"] += 1
            continue
        quota = checked(_Quota, place, row)
        if quota.limit > MOST_VCPUS:
            found.left_out["quotas without a limit"] += 1
            continue
        # arn:aws:servicequotas:us-east-1:123456789012:ec2/L-1216C47A
        of = region or f"aws:{':'.join(item.arn.split(':')[3:4])}"
        # Small VMs of Google Cloud are parts of a vCPU.
        used = ceil(min(quota.used, MOST_VCPUS))
        found.add_quota(place, of, item.family, floor(quota.limit), used)
