"""Limits of figures that can be a measurement at all."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from functools import cached_property, lru_cache
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.backbone import distance_km
from planner.model.catalogue import Catalogue, VmType
from planner.model.units import MBPS_PER_GBPS
from probes.metrics import MAX_DURATION_S, METRICS, Metric, number_of
from probes.samples import MAX_CONNECTIONS, QuarantinedSample, Sample, Samples


def number(cell: str) -> float | None:
    """Read a figure, NaN and infinities included; None where it is none.

    Python's own spelling of digit groups (``1_000``) is no figure of any measuring tool.
    """
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def connections(cell: str) -> int | None:
    """Read a number of TCP connections; None where it is none."""
    count = number(cell)
    if count is None or not 1 <= count <= MAX_CONNECTIONS or count != int(count):
        return None
    return int(count)


def duration_s(cell: str, factor: float = 1.0) -> float | None:
    """Read the length of a test, in units of so many seconds; None where it is none."""
    seconds = (number(cell) or 0.0) * factor
    return seconds if 0 < seconds <= MAX_DURATION_S else None


def are_possible(metric: Metric, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the values in which :func:`fault` finds none."""
    facts = METRICS[metric]
    above_zero = values >= 0 if facts.may_be_zero else values > 0
    return above_zero & (values <= facts.dimension.most)


def fault(metric: Metric, value: float | None, column: str) -> str:
    """Explain why a figure can't be a measurement of this metric; ``""`` if it can.

    `value` is in the unit of the metric, None if it was no number; `column` is its name in the
    file.
    """
    facts = METRICS[metric]
    if value is None:
        return f"{column} is not a number"
    if math.isnan(value):
        return f"{column} is NaN"
    if math.isinf(value):
        return f"{column} is infinite"
    if value < 0:
        return f"{column} is negative"
    if value == 0 and not facts.may_be_zero:
        return f"{column} is zero"
    most = facts.dimension.most
    return f"{column} is over {facts.dimension.most_in_words}" if value > most else ""


CLOCK_SKEW_S = 60.0
"""Tolerance for the clock of a host that is ahead; hosts with NTP keep within a second."""
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
"""Words, one of which is in each reason."""
MOST_KEPT = 65_536
"""Kinds of samples, and VM types, whose limits are remembered."""


class PhysicalGate:
    """Tells samples that can be measurements from those that can't.

    It reads every VM type of the catalogue once, where need be, so keep it.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        # Each miss searches the whole table of VM types.
        self._gbps_of_card = lru_cache(MOST_KEPT)(self._card_of)
        self._limits = lru_cache(MOST_KEPT)(self._limits_of)

    def judged(self, sample: Sample) -> Sample | QuarantinedSample:
        """Return a sample that can be a measurement, or else put it in quarantine."""
        reason = self.fault(sample)
        return sample if reason is None else QuarantinedSample(sample, reason)

    def fault(self, sample: Sample, arrived_at_s: float = inf) -> str | None:
        """Explain why a sample can't be a measurement; None if it can.

        `arrived_at_s` is when it was stored, in seconds since 1970 (UTC).
        """
        if sample.measured_at_s > min(arrived_at_s, time.time()) + CLOCK_SKEW_S:
            return f"its time is over {CLOCK_SKEW_S:g} s in the future"
        least_ms, most_mbps, name = self._limits(*_kind(sample))
        if sample.value < least_ms:
            distance = least_ms / FIBRE_RTT_MS_PER_KM + OFF_PLACE_KM
            return (
                f"{sample.value:g} ms is faster than light in fibre over {distance:,.0f} km "
                f"({least_ms:.1f} ms)"
            )
        if sample.value <= most_mbps:
            return None
        # As Python writes it: a name may have characters that no database takes.
        whose = repr(name) if name else "any VM type of the catalogue"
        return (
            f"{sample.value:g} Mbit/s is over twice what the network card carries of "
            f"{whose} ({most_mbps / ABOVE_CARD / MBPS_PER_GBPS:g} Gbit/s)"
        )

    def are_possible(self, samples: Samples) -> NDArray[np.bool_]:
        """Mark the stored samples in which :meth:`fault` finds none."""
        rows = samples.rows
        latest_s = np.minimum(rows["arrived_at_s"], time.time()) + CLOCK_SKEW_S
        found: NDArray[np.bool_] = rows["measured_at_s"] <= latest_s
        is_rtt = rows["metric"] == number_of("rtt_ms")
        # The limits of providers and VM types are looked up once for many links.
        keys = rows["metric"].astype(np.int64)
        for end in ("src", "dst"):
            provider = np.unique(samples.mapped(end, _provider_of), return_inverse=True)[1]
            for kind in (np.where(is_rtt, rows[end], provider), rows[f"{end}_vm"] * ~is_rtt):
                keys = keys * (int(kind.max(initial=0)) + 1) + kind
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        limits = [self._limits(*_kind(one))[:2] for one in samples[first]]
        least, most = np.array(limits, np.float64).reshape(-1, 2)[number].T
        found &= (least <= rows["value"]) & (rows["value"] <= most)
        return found

    def _limits_of(
        self, metric: Metric, src: tuple[str, str], dst: tuple[str, str]
    ) -> tuple[float, float, str]:
        """Return the least and the most that a sample can be, and the VM type that bounds it.

        Ends are regions for round-trip times, else providers, with VM types.
        """
        if metric == "rtt_ms":
            place, other = (self._catalogue.regions.get(end) for end, _ in (src, dst))
            distance = distance_km(place, other) if place and other else None
            light_ms = FIBRE_RTT_MS_PER_KM * ((distance or 0.0) - OFF_PLACE_KM)
            return (0.0 if distance is None else light_ms), inf, ""
        facts = METRICS[metric]
        used = [src, dst] if facts.is_rate else []
        if facts.cap_of:
            # Estimates take it for the cap of the region's VM type where it names none.
            provider, name = src if facts.cap_of == "src" else dst
            used = [(provider, name or self._catalogue.default_vm_types.get(provider, ""))]
        cards = ((self._gbps_of_card(*end), end[1]) for end in used)
        card_gbps, name = min(cards, key=lambda card: card[0], default=(inf, ""))
        return 0.0, ABOVE_CARD * MBPS_PER_GBPS * card_gbps, name

    @cached_property
    def _of_series_gbps(self) -> dict[str, float]:
        of_series: defaultdict[str, float] = defaultdict(float)
        for vm in self._catalogue.vm_types.values():
            series = _series(vm.id)
            of_series[series] = max(of_series[series], card_gbps(vm))
        return of_series

    def _card_of(self, provider: str, name: str) -> float:
        """Return the capacity of a VM type's card; the largest of all where it is not known."""
        types = self._catalogue.vm_types
        plain = name.removeprefix("Standard_")  # as Azure writes its sizes
        vm = types.get(name) or types.get(f"{provider}:{plain}")
        if vm is None:
            return max(self._of_series_gbps.values(), default=inf)
        if vm.provider == "aws" and vm.burst_gbps is None and vm.vcpus <= BURSTING_VCPUS:
            return self._of_series_gbps[_series(vm.id)]
        return card_gbps(vm)


def _provider_of(region: str) -> str:
    return region.partition(":")[0]


def _kind(sample: Sample) -> tuple[Metric, tuple[str, str], tuple[str, str]]:
    """Return the metric of a sample and its ends with VM types, on which its limits depend."""
    if sample.metric == "rtt_ms":
        return sample.metric, (sample.src, ""), (sample.dst, "")
    src, dst = _provider_of(sample.src), _provider_of(sample.dst)
    return sample.metric, (src, sample.src_vm), (dst, sample.dst_vm)


def _series(vm_type: str) -> str:
    """Return the part of a name before its size, where it has a size (``aws:m5``)."""
    return vm_type.partition(".")[0]


def card_gbps(vm: VmType) -> float:
    """Return the most that a VM's network card carries, as far as its figures tell."""
    further = (vm.region_egress_gbps, vm.burst_gbps, vm.tier1_gbps)
    return max(vm.egress_gbps, vm.ingress_gbps, *(gbps or 0.0 for gbps in further))
