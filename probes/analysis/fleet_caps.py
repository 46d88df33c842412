"""The measured caps of each VM beside those of its type, and which VMs it may pay to recreate."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from planner.model.catalogue import Catalogue
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.relocation import FEWEST_VMS, PUBLISHED, Reference, Relocation, advise
from probes.samples import Metric, Sample

CAP_METRICS: tuple[Metric, ...] = ("egress_cap_mbps", "ingress_cap_mbps")
MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""


@dataclass(frozen=True, slots=True)
class VmCap:
    """The newest cap of one VM in one direction.

    Attributes
    ----------
    host : str
        Name in the fleet file, or the region where the sample does not name one.
    region, vm_type : str
        Type as ``provider:name``, or the provider alone.
    metric : Metric
    mbps, measured_at_s : float
    nominal_mbps : float | None
        What the catalogue says of the type.
    others : int
        VMs of the same type with a measured cap.
    advice : Relocation | None
        None where there is nothing to compare with.
    """

    host: str
    region: str
    vm_type: str
    metric: Metric
    mbps: float
    measured_at_s: float
    nominal_mbps: float | None
    others: int
    advice: Relocation | None

    @property
    def recreate(self) -> bool:
        """Whether recreating the VM is likely to pay."""
        return self.advice is not None and self.advice.recreate

    @property
    def text(self) -> str:
        """What there is to say of it, in a sentence or two."""
        if self.advice:
            return self.advice.text
        return (
            f"{self.others} other VMs of type {self.vm_type} were measured; {FEWEST_VMS} are "
            "needed to tell odds."
        )


def vm_caps(samples: Iterable[Sample], catalogue: Catalogue) -> list[VmCap]:
    """Return the newest caps of all VMs, each compared with the others of its type.

    Where fewer than five others were measured, distributions that papers give for a type stand in.
    What the catalogue says of a type is shown, but it is no distribution: it has no odds.

    Parameters
    ----------
    samples : iterable of Sample
        In any order; those of other metrics are passed over, and so are lower bounds.
    """
    newest: dict[tuple[str, Metric], Sample] = {}
    for sample in samples:
        if sample.metric not in CAP_METRICS or sample.value <= 0 or _is_open(sample):
            continue
        key = (_host(sample), sample.metric)
        if key not in newest or sample.measured_at_s >= newest[key].measured_at_s:
            newest[key] = sample
    by_type: dict[tuple[str, Metric], dict[str, float]] = defaultdict(dict)
    for (host, metric), sample in newest.items():
        by_type[_type(sample), metric][host] = sample.value
    found = []
    for (host, metric), sample in newest.items():
        vm_type = _type(sample)
        others = [mbps for name, mbps in by_type[vm_type, metric].items() if name != host]
        reference = _reference(vm_type, sample.src, metric, others)
        known = catalogue.vm_types.get(vm_type)
        nominal_gbps = known and (
            known.egress_gbps if metric == "egress_cap_mbps" else known.ingress_gbps
        )
        found.append(
            VmCap(
                host,
                sample.src,
                vm_type,
                metric,
                sample.value,
                sample.measured_at_s,
                nominal_gbps * MBPS_PER_GBPS if nominal_gbps else None,
                len(others),
                advise(sample.value, reference) if reference else None,
            )
        )
    return sorted(found, key=lambda cap: (not cap.recreate, cap.vm_type, cap.host, cap.metric))


def _reference(vm_type: str, region: str, metric: Metric, others: list[float]) -> Reference | None:
    if len(others) >= FEWEST_VMS:
        source = f"{len(others)} other VMs of this type that were measured"
        return Reference.from_measured(vm_type, others, source)
    # What papers give is of VMs that send.
    return PUBLISHED.get((vm_type, region)) if metric == "egress_cap_mbps" else None


def _host(sample: Sample) -> str:
    found = json.loads(sample.detail).get("host") if sample.detail else None
    return found if isinstance(found, str) else sample.src


def _type(sample: Sample) -> str:
    provider = sample.src.partition(":")[0]
    name = sample.src_vm.removeprefix("Standard_")
    return f"{provider}:{name}" if name else provider


def _is_open(sample: Sample) -> bool:
    high_mbps = json.loads(sample.detail).get("high_mbps") if sample.detail else None
    return isinstance(high_mbps, int | float) and high_mbps > sample.value * MOST_OPEN_CAP
