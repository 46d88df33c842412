"""What no measurement can show: above a VM's network card, faster than light, in the future.

One gate for all samples that others send. What it stops is kept apart with the reason (in
quarantine), because it says more about who sent it than about the network.
"""

from __future__ import annotations

import time
from collections import defaultdict

from planner.model.backbone import distance_km
from planner.model.catalogue import Catalogue, VmType
from planner.model.units import MBPS_PER_GBPS
from probes.samples import Sample

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
_CAPS = {"egress_cap_mbps": True, "ingress_cap_mbps": False}
_RATES = ("per_flow_mbps", "aggregate_mbps", "udp_mbps")


class PhysicalGate:
    """Tells samples that can be measurements from those that can't.

    It reads every VM type of the catalogue once, so keep it.

    Parameters
    ----------
    catalogue : Catalogue
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        of_series: defaultdict[str, float] = defaultdict(float)
        for vm in catalogue.vm_types.values():
            series = _series(vm.id)
            of_series[series] = max(of_series[series], _own_card_gbps(vm))
        self._of_series_gbps = of_series
        self._largest_gbps = max(of_series.values(), default=float("inf"))

    def fault(self, sample: Sample) -> str | None:
        """Return why a sample can't be a measurement; None if it can."""
        if sample.measured_at_s > time.time() + CLOCK_SKEW_S:
            return f"its time is over {CLOCK_SKEW_S:g} s in the future"
        if sample.metric == "rtt_ms":
            return self._faster_than_light(sample)
        return self._above_card(sample)

    def _faster_than_light(self, sample: Sample) -> str | None:
        regions = self._catalogue.regions
        src, dst = regions.get(sample.src), regions.get(sample.dst)
        distance = distance_km(src, dst) if src and dst else None
        if distance is None:
            return None
        least_ms = FIBRE_RTT_MS_PER_KM * (distance - OFF_PLACE_KM)
        if sample.value >= least_ms:
            return None
        return (
            f"{sample.value:g} ms is faster than light in fibre over {distance:,.0f} km "
            f"({least_ms:.1f} ms)"
        )

    def _above_card(self, sample: Sample) -> str | None:
        ends = ((sample.src, sample.src_vm), (sample.dst, sample.dst_vm))
        if sample.metric in _CAPS:
            # Estimates take it for the cap of the region's VM type where it names none.
            region, name = ends[0 if _CAPS[sample.metric] else 1]
            names = [(region, name or self._usual(region))]
        elif sample.metric in _RATES:
            names = list(ends)
        else:
            return None
        for region, name in names:
            card_gbps = self._card_gbps(region, name)
            if sample.value > ABOVE_CARD * card_gbps * MBPS_PER_GBPS:
                # As Python writes it: a name may have characters that no database takes.
                whose = repr(name) if name else "any VM type of the catalogue"
                return (
                    f"{sample.value:g} Mbit/s is over twice what the network card carries of "
                    f"{whose} ({card_gbps:g} Gbit/s)"
                )
        return None

    def _usual(self, region: str) -> str:
        return self._catalogue.default_vm_types.get(region.partition(":")[0], "")

    def _card_gbps(self, region: str, name: str) -> float:
        """Return what the card of a VM type carries; the largest of all where it is not known."""
        types = self._catalogue.vm_types
        plain = name.removeprefix("Standard_")  # as Azure writes its sizes
        vm = types.get(name) or types.get(f"{region.partition(':')[0]}:{plain}")
        if vm is None:
            return self._largest_gbps
        if vm.provider == "aws" and vm.burst_gbps is None and vm.vcpus <= BURSTING_VCPUS:
            return self._of_series_gbps[_series(vm.id)]
        return _own_card_gbps(vm)


def _series(vm_type: str) -> str:
    """Return the part of a name before its size, where it has a size (``aws:m5``)."""
    return vm_type.partition(".")[0]


def _own_card_gbps(vm: VmType) -> float:
    further = (vm.region_egress_gbps, vm.burst_gbps, vm.tier1_gbps)
    return max(vm.egress_gbps, vm.ingress_gbps, *(gbps or 0.0 for gbps in further))
