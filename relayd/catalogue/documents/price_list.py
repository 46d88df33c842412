"""Prices and quotas of documents, in the catalogue's terms."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import TypeAlias

from planner.model.catalogue import Tier
from planner.model.errors import FormatError

INTERNET = "other-provider"
"""Destination of traffic to the internet, which other providers are part of."""

Quota: TypeAlias = tuple[int, int, str]

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
            If a name is invalid; says the place in the document.
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
        """Add what an account may run; of several for a region, the one that leaves least counts.

        Raises
        ------
        FormatError
            If the region's name is invalid.
        """
        _must_be_name(place, "region", region)
        quota = (vcpus, used, place)
        before = self.quotas.get((region, family), quota)
        self.quotas[region, family] = min(before, quota, key=lambda one: one[0] - one[1])

    @property
    def egress(self) -> dict[tuple[str, str], tuple[Tier, ...]]:
        """Tiers by source and destination.

        What is free at first is left out, as everywhere in the catalogue: all of the account
        shares it.
        """
        found: dict[tuple[str, str], tuple[Tier, ...]] = {}
        for pair, by_start in self.traffic.items():
            starts = sorted(by_start.items())
            while len(starts) > 1 and starts[0][1] == 0:
                del starts[0]
            ends = [*(start for start, _ in starts[1:]), inf]
            found[pair] = tuple(Tier(usd, end) for (_, usd), end in zip(starts, ends, strict=True))
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is no price in it, and no quota."""
        return not (self.vm_usd_per_h or self.traffic or self.parts or self.quotas)


def _must_be_name(place: str, what: str, name: str) -> None:
    if not _NAME.fullmatch(name.partition(":")[2]):
        raise FormatError(place, f"has an odd name of a {what}", value=name)
