"""The measured caps of each VM beside those of its type, and which VMs it may pay to recreate.

VMs of one type and region differ in steps, depending on the machine that they run on, and then stay
as they are: between 5-minute means of one VM the coefficient of variation is under 0.01
(GLOBECOM 2015, throughput variability in Azure). So measure a new VM, compare it with others of
its type, recreate it if it is far below, and expect no change afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.units import MBPS_PER_GBPS
from probes.samples import Metric, Sample

CAP_METRICS: tuple[Metric, ...] = ("egress_cap_mbps", "ingress_cap_mbps")
MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""


# Fewer VMs than this show too little of a type.
FEWEST_VMS = 5
# What one measurement of a cap may be off: a level within it counts as the present one.
MEASUREMENT_ERROR = 0.05
# Probability of a faster VM for which the number of tries is shown.
SURE = 0.9


@dataclass(frozen=True, slots=True)
class Reference:
    """How caps of one VM type are distributed.

    Attributes
    ----------
    vm_type : str
    levels_mbps : tuple of float
        Ascending.
    odds : tuple of float
        Of each level; they add up to 1.
    source : str
    """

    vm_type: str
    levels_mbps: tuple[float, ...]
    odds: tuple[float, ...]
    source: str

    def __post_init__(self) -> None:
        if not self.levels_mbps or len(self.levels_mbps) != len(self.odds):
            raise InputError("levels_mbps", "needs one level or more, each with its odds")
        if list(self.levels_mbps) != sorted(self.levels_mbps) or self.levels_mbps[0] <= 0:
            raise InputError("levels_mbps", "must ascend and be above 0", value=self.levels_mbps)
        if min(self.odds) < 0 or abs(sum(self.odds) - 1) > 1e-6:
            raise InputError("odds", "must add up to 1", value=self.odds)

    @classmethod
    def from_measured(cls, vm_type: str, caps_mbps: Sequence[float], source: str) -> Reference:
        """Make a reference from the caps of other VMs of the type, each as likely.

        Raises
        ------
        InputError
            If there are fewer than five.
        """
        if len(caps_mbps) < FEWEST_VMS:
            raise InputError(
                "caps",
                f"needs {FEWEST_VMS} VMs of type {vm_type} or more",
                value=len(caps_mbps),
                remedy="Measure more VMs of this type before judging one.",
            )
        share = 1 / len(caps_mbps)
        return cls(vm_type, tuple(sorted(caps_mbps)), (share,) * len(caps_mbps), source)


_AZURE_2015 = "GLOBECOM 2015 (throughput variability in Azure), medium VMs outside of groups"
# Medium VMs outside of virtual networks and affinity groups. "Over 650" is taken as 650.
IRELAND_MEDIUM = Reference("azure:A2", (200.0, 450.0, 650.0), (0.7, 0.1, 0.2), _AZURE_2015)
SAO_PAULO_MEDIUM = Reference("azure:A2", (200.0, 760.0), (0.9, 0.1), _AZURE_2015)

PUBLISHED = {
    ("azure:A2", "azure:northeurope"): IRELAND_MEDIUM,
    ("azure:A2", "azure:brazilsouth"): SAO_PAULO_MEDIUM,
}
"""VM type and region to a published distribution, used where too few own VMs are measured."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """Advice on one VM.

    Attributes
    ----------
    recreate : bool
    odds : float
        That one recreation gives at least ``worth`` times the present cap.
    expected_tries : float
        Recreations until that happens, in the mean; infinity where it can't.
    tries_to_be_sure : int
        Recreations after which it has happened with 90 % probability; 0 where it can't.
    expected_mbps : float
        Mean cap of the VMs that are that much faster; the present cap where there are none.
    percentile : float
        Share of VMs of the type that are slower, from 0 to 1.
    text : str
        The advice in a sentence or two.
    """

    recreate: bool
    odds: float
    expected_tries: float
    tries_to_be_sure: int
    expected_mbps: float
    percentile: float
    text: str


def advise(
    measured_mbps: float, reference: Reference, *, worth: float = 1.2, least_odds: float = 0.15
) -> Relocation:
    """Return whether recreating a VM pays, with odds.

    Parameters
    ----------
    measured_mbps : float
        The VM's cap.
    reference : Reference
        Of its type.
    worth : float
        How much faster a VM must be to be worth the trouble.
    least_odds : float
        Below these odds of one try, the advice is to keep the VM.

    Raises
    ------
    InputError
        If a figure is not above 0.
    """
    if measured_mbps <= 0 or worth <= 1:
        raise InputError(
            "cap", "must be above 0, and what is worth it above 1", value=(measured_mbps, worth)
        )
    levels, odds_of = reference.levels_mbps, reference.odds
    first = bisect_left(levels, measured_mbps * worth)
    odds = min(1.0, sum(odds_of[first:]))
    slower = sum(odds_of[: bisect_left(levels, measured_mbps * (1 - MEASUREMENT_ERROR))])
    share = f"Of VMs of type {reference.vm_type}, {slower:.0%} are slower than this one"
    if odds <= 0:
        text = f"{share} and none is {worth:g} times as fast: keep it. ({reference.source})"
        return Relocation(False, 0.0, inf, 0, measured_mbps, slower, text)
    faster = sum(
        level * share_of for level, share_of in zip(levels[first:], odds_of[first:], strict=True)
    ) / sum(odds_of[first:])
    sure = 1 if odds >= SURE else -int(log(1 - SURE) // -log(1 - odds))
    recreate = odds >= least_odds
    deed = (
        f"recreating it is likely to pay: {1 / odds:.1f} tries in the mean, {sure} for "
        f"{SURE:.0%} certainty; measure each and stop at the first fast one"
        if recreate
        else f"not worth it: {1 / odds:.0f} tries in the mean"
    )
    text = (
        f"{share}; a new one has a {odds:.0%} chance of at least {worth:g} times its rate "
        f"({faster:.0f} instead of {measured_mbps:.0f} Mbit/s on average): {deed}. "
        f"({reference.source})"
    )
    return Relocation(recreate, odds, 1 / odds, sure, faster, slower, text)


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
        The cap of its type in the catalogue.
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
        """The advice, or why there is none, in a sentence or two."""
        if self.advice:
            return self.advice.text
        return (
            f"{self.others} other VMs of type {self.vm_type} were measured; {FEWEST_VMS} are "
            "needed to state odds."
        )


def vm_caps(samples: Iterable[Sample], catalogue: Catalogue) -> list[VmCap]:
    """Return the newest caps of all VMs, each compared with the others of its type.

    Where fewer than five others were measured, a published distribution of the type is used.
    The catalogue's cap of a type is shown, but it is no distribution and yields no odds.

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
    found = sample.read_detail().get("host")
    return found if isinstance(found, str) else sample.src


def _type(sample: Sample) -> str:
    provider = sample.src.partition(":")[0]
    name = sample.src_vm.removeprefix("Standard_")
    return f"{provider}:{name}" if name else provider


def _is_open(sample: Sample) -> bool:
    high_mbps = sample.read_detail().get("high_mbps")
    return isinstance(high_mbps, int | float) and high_mbps > sample.value * MOST_OPEN_CAP
