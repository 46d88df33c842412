"""What no measurement can show: above a VM's network card, faster than light, in the future.

One gate for all samples that others send. What it stops is kept apart with the reason (in
quarantine), because it says more about who sent it than about the network.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property, lru_cache
from math import inf
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.backbone import distance_km
from planner.model.catalogue import Catalogue, VmType
from planner.model.units import MBPS_PER_GBPS
from probes.samples import METRICS, Metric, Sample, Samples

CLOCK_SKEW_S = 60.0
"""How far the clock of who measured may be ahead; hosts with NTP keep within a second."""
FIBRE_RTT_MS_PER_KM = 2 * 1.468 / 299.792458
"""There and back in single-mode fibre: ITU-T G.652, group index 1.468 at 1,550 nm."""
OFF_PLACE_KM = 200.0
"""A region's place is its city's centre; datacenters stand up to 100 km away, at both ends."""
ABOVE_CARD = 2.0
"""Documented figures are not hard: of 3,966 tests of January 2022 (Skyplane, 5 s) 20 out of Azure
D32_v5 (16 Gbit/s) were over 1.1 times as fast, the fastest 1.65 times."""
BURSTING_VCPUS = 16
"""AWS sizes up to this burst beyond their baseline (EC2 user guide), often without a figure."""
FAULTS = ("in the future", "faster than light", "network card")
"""Words of which each reason has one."""
MOST_KEPT = 65_536
"""Kinds of samples, and VM types, whose limits are remembered."""
_CAPS = {"egress_cap_mbps": True, "ingress_cap_mbps": False}
_KIND = itemgetter(
    *(Sample._fields.index(name) for name in ("src", "dst", "metric", "src_vm", "dst_vm"))
)
_RATES = ("per_flow_mbps", "aggregate_mbps", "udp_mbps")


class PhysicalGate:
    """Tells samples that can be measurements from those that can't.

    It reads every VM type of the catalogue once, where need be, so keep it.

    Parameters
    ----------
    catalogue : Catalogue
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        # Each miss searches the whole table of VM types.
        self._card_gbps = lru_cache(MOST_KEPT)(self._card_of)
        self._possible = _OfNames(self._possible_values)
        self._most_of_cards = _OfNames(self._most_of)
        self._provider = _OfNames(_provider_of)

    def fault(self, sample: Sample, arrived_at_s: float = inf) -> str | None:
        """Return why a sample can't be a measurement; None if it can.

        Parameters
        ----------
        sample : Sample
        arrived_at_s : float, optional
            When it was stored, if it was: seconds since 1970 (UTC).
        """
        if sample.measured_at_s > min(arrived_at_s, time.time()) + CLOCK_SKEW_S:
            return f"its time is over {CLOCK_SKEW_S:g} s in the future"
        least, most = self._possible[_KIND(sample)]
        if least <= sample.value <= most:
            return None
        return self._faster_than_light(sample) or self._above_card(sample)

    def latest_s(self, arrived_at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return up to when samples that were stored at some times can have been measured."""
        return np.minimum(arrived_at_s, time.time()) + CLOCK_SKEW_S

    def possible(
        self, src: str, dst: str, metric: Metric, src_vm: str, dst_vm: str
    ) -> tuple[float, float]:
        """Return the least and the most of which samples of a kind are surely possible.

        Of round trips it is the places that decide, of all else the providers and VM types.
        """
        found: tuple[float, float] = self._possible[src, dst, metric, src_vm, dst_vm]
        return found

    def limits(self, samples: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what :meth:`possible` does of many samples."""
        rows = samples.rows
        found = np.zeros(len(rows)), np.full(len(rows), inf)
        is_rtt = rows["metric"] == METRICS.index("rtt_ms")
        ends = samples.rows["src"], samples.rows["dst"]
        # Of many links, what providers and VM types allow is looked up for few.
        providers = (samples.mapped(end, _provider_of) for end in ("src", "dst"))
        numbers = [np.unique(names, return_inverse=True)[1] for names in providers]
        placed = samples.mapped("src", self._is_placed) & samples.mapped("dst", self._is_placed)
        for chosen, kinds in (
            (~is_rtt, (*numbers, rows["metric"], rows["src_vm"], rows["dst_vm"])),
            (is_rtt & placed, ends),
        ):
            at = np.flatnonzero(chosen)
            keys = np.zeros(len(at), np.int64)
            for kind in kinds:
                keys = keys * (int(kind.max(initial=0)) + 1) + kind[at]
            _, first, number = np.unique(keys, return_index=True, return_inverse=True)
            of_kinds = [self._possible[_KIND(one)] for one in samples[at[first]]]
            limits = np.array(of_kinds, np.float64).reshape(-1, 2)[number]
            for column, values in zip(found, limits.T, strict=True):
                column[at] = values
        return found

    def _is_placed(self, region: str) -> bool:
        found = self._catalogue.regions.get(region)
        return found is not None and found.is_placed

    def _possible_values(
        self, src: str, dst: str, metric: Metric, src_vm: str, dst_vm: str
    ) -> tuple[float, float]:
        """Return the least and the most that samples of this kind can show."""
        if metric == "rtt_ms":
            return self._least_ms(src, dst) or 0.0, inf
        ends = self._provider[src], src_vm, self._provider[dst], dst_vm
        return 0.0, self._most_of_cards[(*ends, metric)]

    @cached_property
    def _of_series_gbps(self) -> dict[str, float]:
        of_series: defaultdict[str, float] = defaultdict(float)
        for vm in self._catalogue.vm_types.values():
            series = _series(vm.id)
            of_series[series] = max(of_series[series], _own_card_gbps(vm))
        return of_series

    @cached_property
    def _largest_gbps(self) -> float:
        return max(self._of_series_gbps.values(), default=inf)

    def _most_of(self, *ends_and_metric: str) -> float:
        cards = [self._card_gbps(*end) for end in self._cards_used(*ends_and_metric)]
        return ABOVE_CARD * MBPS_PER_GBPS * min(cards, default=inf)

    def _faster_than_light(self, sample: Sample) -> str | None:
        least_ms = self._least_ms(sample.src, sample.dst)
        if sample.metric != "rtt_ms" or least_ms is None or sample.value >= least_ms:
            return None
        distance = least_ms / FIBRE_RTT_MS_PER_KM + OFF_PLACE_KM
        return (
            f"{sample.value:g} ms is faster than light in fibre over {distance:,.0f} km "
            f"({least_ms:.1f} ms)"
        )

    def _least_ms(self, src: str, dst: str) -> float | None:
        """Return the time of light in fibre, there and back; None where that is not known."""
        regions = self._catalogue.regions
        place, other = regions.get(src), regions.get(dst)
        distance = distance_km(place, other) if place and other else None
        return None if distance is None else FIBRE_RTT_MS_PER_KM * (distance - OFF_PLACE_KM)

    def _cards_used(
        self, src_provider: str, src_vm: str, dst_provider: str, dst_vm: str, metric: str
    ) -> list[tuple[str, str]]:
        """Return the providers and VM types whose network cards carried a sample."""
        ends = ((src_provider, src_vm), (dst_provider, dst_vm))
        if metric in _CAPS:
            # Estimates take it for the cap of the region's VM type where it names none.
            provider, name = ends[0 if _CAPS[metric] else 1]
            return [(provider, name or self._catalogue.default_vm_types.get(provider, ""))]
        return list(ends) if metric in _RATES else []

    def _above_card(self, sample: Sample) -> str | None:
        src, dst = (end.partition(":")[0] for end in (sample.src, sample.dst))
        used = self._cards_used(src, sample.src_vm, dst, sample.dst_vm, sample.metric)
        for provider, name in used:
            card_gbps = self._card_gbps(provider, name)
            if sample.value > ABOVE_CARD * card_gbps * MBPS_PER_GBPS:
                # As Python writes it: a name may have characters that no database takes.
                whose = repr(name) if name else "any VM type of the catalogue"
                return (
                    f"{sample.value:g} Mbit/s is over twice what the network card carries of "
                    f"{whose} ({card_gbps:g} Gbit/s)"
                )
        return None

    def _card_of(self, provider: str, name: str) -> float:
        """Return what the card of a VM type carries; the largest of all where it is not known."""
        types = self._catalogue.vm_types
        plain = name.removeprefix("Standard_")  # as Azure writes its sizes
        vm = types.get(name) or types.get(f"{provider}:{plain}")
        if vm is None:
            return self._largest_gbps
        if vm.provider == "aws" and vm.burst_gbps is None and vm.vcpus <= BURSTING_VCPUS:
            return self._of_series_gbps[_series(vm.id)]
        return _own_card_gbps(vm)


def _provider_of(region: str) -> str:
    return region.partition(":")[0]


class _OfNames(dict[Any, Any]):
    """What a function returned of some names, which are whatever was sent."""

    def __init__(self, of: Callable[..., Any]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, names: str | tuple[str, ...]) -> Any:
        if len(self) >= MOST_KEPT:
            self.clear()
        self[names] = found = self._of(names) if isinstance(names, str) else self._of(*names)
        return found


def _series(vm_type: str) -> str:
    """Return the part of a name before its size, where it has a size (``aws:m5``)."""
    return vm_type.partition(".")[0]


def _own_card_gbps(vm: VmType) -> float:
    further = (vm.region_egress_gbps, vm.burst_gbps, vm.tier1_gbps)
    return max(vm.egress_gbps, vm.ingress_gbps, *(gbps or 0.0 for gbps in further))
