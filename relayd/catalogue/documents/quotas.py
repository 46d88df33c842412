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

from collections.abc import Iterator
from math import ceil, floor, isfinite, nan
from typing import Any

from planner.model.errors import FormatError
from planner.model.quotas.vcpus import MOST_VCPUS, family_key
from relayd.catalogue.documents.opening import PriceDocument, text_of
from relayd.catalogue.documents.price_list import PriceList


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


def read_aws(document: PriceDocument) -> PriceList:
    """Read the applied quotas of EC2 in a region.

    Raises
    ------
    FormatError
        Of this and the other readers: if a figure or name can't be.
    """
    found = PriceList(as_of=document.modified_on)
    for place, item in _items(str(document.path), document.json["Quotas"]):
        # arn:aws:servicequotas:us-east-1:123456789012:ec2/L-1216C47A
        arn = text_of(place, item, "QuotaArn").split(":")
        region = arn[3] if len(arn) > 3 else ""
        _add(found, place, f"aws:{region}", text_of(place, item, "QuotaCode"), item, "Value")
    return found


def read_azure(document: PriceDocument) -> PriceList:
    """Read what may run and runs in the region that the file is named after."""
    found = PriceList(as_of=document.modified_on)
    region = f"azure:{document.path.stem.lower().removeprefix('azure-')}"
    for place, item in _items(str(document.path), document.json):
        family = text_of(place, item.get("name"), "value")
        _add(found, place, region, family, item, "limit", "currentValue")
    return found


def read_gcp(document: PriceDocument) -> PriceList:
    """Read the quotas of one region, or of several."""
    found = PriceList(as_of=document.modified_on)
    described = document.json if isinstance(document.json, list) else [document.json]
    for where, region in _items(str(document.path), described):
        name = text_of(where, region, "name")
        for place, item in _items(where, region.get("quotas")):
            metric = text_of(place, item, "metric")
            _add(found, place, f"gcp:{name}", metric, item, "limit", "usage")
    return found


def _items(where: str, items: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(items, list):
        raise FormatError(where, "has quotas that are no list", value=items)
    for number, item in enumerate(items, 1):
        place = f"{where}, item {number}"
        if not isinstance(item, dict):
            raise FormatError(place, "must be an object", value=item)
        yield place, item


def _add(
    found: PriceList,
    place: str,
    region: str,
    family: str,
    item: dict[str, Any],
    limit: str,
    used: str = "",
) -> None:
    """Add a quota, where it is one on vCPUs of VMs on demand."""
    if family_key(family) is None:
        found.left_out["quotas on other things"] += 1
        return
    most = _figure(place, item, limit)
    if most > MOST_VCPUS:
        found.left_out["quotas without a limit"] += 1
        return
    in_use = min(_figure(place, item, used), MOST_VCPUS) if used else 0.0
    # Small VMs of Google Cloud are parts of a vCPU.
    found.add_quota(place, region, family, floor(most), ceil(in_use))


def _figure(place: str, item: dict[str, Any], name: str) -> float:
    value = item.get(name)
    try:  # older versions of az write text
        figure = float(value) if isinstance(value, int | float | str) else nan
    except (ValueError, OverflowError):
        figure = nan
    if isinstance(value, bool) or not isfinite(figure) or figure < 0:
        raise FormatError(place, f"has a {name} that can't be", value=value)
    return figure
