"""Google Cloud's list of SKUs of Compute Engine: ``{"skus": [...], "nextPageToken": ...}``.

Fields as in https://cloud.google.com/billing/docs/reference/rest/v1/services.skus/list. Google
prices cores and GiB of memory of a family of machines, not VM types: a type's price is that of its
vCPUs and of its memory, which follows from its name. Only types whose price of 2026 in
`vm-types.csv` is that to 0.3 % are priced so. Traffic is priced between parts of the world that are
not those of the catalogue, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from relayd.catalogue.documents.opening import PriceDocument, items_of
from relayd.catalogue.documents.price_list import PriceList

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


def read(document: PriceDocument, found: PriceList) -> None:
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

    Parameters
    ----------
    parts : mapping
        Family and region to USD of a ``Core`` and of a GiB of ``Ram`` for an hour.
    type_ids : iterable of str
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
