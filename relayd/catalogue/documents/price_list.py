"""What price documents say, in the catalogue's terms."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import TypeAlias

from planner.model.errors import FormatError

INTERNET = "other-provider"
"""Destination of traffic to the internet, which other providers are part of."""

Tiers: TypeAlias = tuple[tuple[float, float | None], ...]
"""USD per GB and the volume in GB of one month that it holds until; the last has no end."""

Quota: TypeAlias = tuple[int, int, str]

_MOST_USD = 10_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,98}")


@dataclass
class PriceList:
    """Prices by VM type and region, and of traffic by source and destination.

    Attributes
    ----------
    vm_usd_per_h : dict
        VM type id to region id to USD for an hour: on demand, Linux, shared.
    traffic : dict
        Region and destination (a region, or :data:`INTERNET`) to USD per GB by the volume in GB of
        one month from which it holds.
    quotas : dict
        Region and family to the vCPUs that may run, those in use, and the place in the document.
    parts : dict
        Family of VM types and region to USD for an hour of its parts, where types are not priced.
    as_of : str
        ``YYYY-MM-DD`` of the newest document; ``""`` where none says.
    left_out : Counter
        Reason to how many rows were not used.
    """

    vm_usd_per_h: dict[str, dict[str, float]] = field(default_factory=dict)
    traffic: dict[tuple[str, str], dict[float, float]] = field(default_factory=dict)
    quotas: dict[tuple[str, str], Quota] = field(default_factory=dict)
    parts: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    as_of: str = ""
    left_out: Counter[str] = field(default_factory=Counter)

    def add_vm(self, place: str, type_id: str, region: str, usd_per_h: float) -> None:
        """Add the price of a VM; of several for one region, the dearest counts.

        Raises
        ------
        FormatError
            If a name or the price can't be; says the place in the document.
        """
        _must_be_name(place, "VM type", type_id)
        _must_be_name(place, "region", region)
        if usd_per_h == 0:
            self.left_out["VM prices of 0"] += 1
            return
        by_region = self.vm_usd_per_h.setdefault(type_id, {})
        before = by_region.get(region, usd_per_h)
        if abs(before - usd_per_h) > 1e-6 * usd_per_h:
            self.left_out["lower prices where several are stated"] += 1
        by_region[region] = max(before, usd_per_h)

    def add_part(self, place: str, family: str, region: str, part: str, usd: float) -> None:
        """Add what a part of VMs costs for an hour; of several, the dearest counts."""
        _must_be_name(place, "region", region)
        parts = self.parts.setdefault((family, region), {})
        parts[part] = max(usd, parts.get(part, 0.0))

    def add_traffic(self, source: str, destination: str, from_gb: float, usd: float) -> None:
        """Add what a GB costs from a volume of the month on; of several, the dearest counts."""
        by_start = self.traffic.setdefault((source, destination), {})
        by_start[from_gb] = max(usd, by_start.get(from_gb, 0.0))

    def add_quota(self, place: str, region: str, family: str, vcpus: int, used: int) -> None:
        """Add what an account may run; of several for one region, the one that leaves least counts.

        Raises
        ------
        FormatError
            If the region's name can't be.
        """
        if not _NAME.fullmatch(region.partition(":")[2]):
            raise FormatError(place, "has an odd name of a region", value=region)
        quota = (vcpus, used, place)
        before = self.quotas.get((region, family), quota)
        self.quotas[region, family] = min(before, quota, key=lambda one: one[0] - one[1])

    @property
    def egress(self) -> dict[tuple[str, str], Tiers]:
        """Tiers by source and destination.

        What is free at first is left out, as everywhere in the catalogue: all of the account
        shares it.
        """
        found: dict[tuple[str, str], Tiers] = {}
        for pair, by_start in self.traffic.items():
            starts = sorted(by_start.items())
            while len(starts) > 1 and starts[0][1] == 0:
                del starts[0]
            ends = [*(start for start, _ in starts[1:]), None]
            found[pair] = tuple((usd, end) for (_, usd), end in zip(starts, ends, strict=True))
        return found

    def merge(self, other: PriceList) -> None:
        """Add what a further document says."""
        for type_id, by_region in other.vm_usd_per_h.items():
            for region, usd in by_region.items():
                self.add_vm("", type_id, region, usd)
        for (family, region), parts in other.parts.items():
            for part, usd in parts.items():
                self.add_part("", family, region, part, usd)
        for pair, by_start in other.traffic.items():
            for from_gb, usd in by_start.items():
                self.add_traffic(*pair, from_gb, usd)
        for (region, family), (vcpus, used, place) in other.quotas.items():
            self.add_quota(place, region, family, vcpus, used)
        self.as_of = max(self.as_of, other.as_of)
        self.left_out.update(other.left_out)

    @property
    def is_empty(self) -> bool:
        """Whether there is no price in it, and no quota."""
        return not (self.vm_usd_per_h or self.traffic or self.parts or self.quotas)


def price_of(place: str, value: object, *, most: float = _MOST_USD, what: str = "price") -> float:
    """Read a price in USD, or another figure from 0 to some most.

    Raises
    ------
    FormatError
        If it is no such number.
    """
    try:
        usd = float(value) if isinstance(value, int | float | str) else nan
    except (ValueError, OverflowError):
        raise FormatError(place, f"has a {what} that is not a number", value=value) from None
    if not isfinite(usd) or not 0 <= usd <= most:
        remedy = f"It may be from 0 to {most:,.0f}."
        raise FormatError(place, f"has a {what} that can't be", value=value, remedy=remedy)
    return usd


def _must_be_name(place: str, what: str, name: str) -> None:
    if not _NAME.fullmatch(name.partition(":")[2]):
        raise FormatError(place, f"has an odd name of a {what}", value=name)


def must_be_usd(place: str, currency: object) -> None:
    """Refuse another currency than USD."""
    if currency != "USD":
        remedy = "relayd counts in US dollars: get the document with currency USD."
        raise FormatError(place, "is not in USD", value=currency, remedy=remedy)
