"""The measured caps of each VM and of others of its type, and which VMs it may pay to recreate.

VMs of one type and region differ in steps, depending on the machine that they run on, and then stay
as they are: between 5-minute means of one VM the coefficient of variation is under 0.01
(GLOBECOM 2015, throughput variability in Azure). So measure a new VM, compare it with others of
its type, recreate it if it is far below, and expect no change afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.evidence import Floats, Record, figure_in
from probes.analysis.steady_state import Interval
from probes.metrics import CAPS, METRICS, Metric
from probes.samples import Sample

CAP_NAMES = {metric: METRICS[metric].base.removesuffix("_cap") for metric in CAPS}
MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""
FEWEST_VMS = 5
"""Fewer VMs than this show too little of a type."""
MEASUREMENT_ERROR = 0.05
"""Error of one measurement of a cap: a level within it counts as the present one."""
WORTH = 1.2
"""Ratio of caps from which a faster VM is worth the trouble."""
LEAST_ODDS = 0.15
"""Below these odds of one try, the advice is to keep the VM."""
SURE = 0.9
"""Probability of a faster VM for which the number of tries is shown."""


class Reference(NamedTuple):
    """Distribution of a VM type's caps: levels in Mbit/s, ascending, and the odds of each."""

    vm_type: str
    levels_mbps: Floats
    odds: Floats
    source: str


_AZURE_2015 = "GLOBECOM 2015 (throughput variability in Azure), medium VMs outside of groups"
# Medium VMs outside of virtual networks and affinity groups. "Over 650" is taken as 650.
IRELAND_MEDIUM = Reference(
    "azure:A2", np.array([200.0, 450.0, 650.0]), np.array([0.7, 0.1, 0.2]), _AZURE_2015
)
SAO_PAULO_MEDIUM = Reference(
    "azure:A2", np.array([200.0, 760.0]), np.array([0.9, 0.1]), _AZURE_2015
)
PUBLISHED = {
    ("azure:A2", "azure:northeurope"): IRELAND_MEDIUM,
    ("azure:A2", "azure:brazilsouth"): SAO_PAULO_MEDIUM,
}
"""VM type and region to a published distribution, used where too few own VMs are measured."""


def advise(mbps: float, reference: Reference) -> Record:
    """Advise whether to recreate a VM with a cap above 0, with odds, by the VMs of its type.

    Returns ``recreate``; ``odds`` that one recreation gives at least :data:`WORTH` times the
    present cap; ``tries_to_be_sure``, recreations after which that has happened with 90 %
    probability (0 where it can't); ``expected_mbps``, the mean cap of the VMs that are that much
    faster (the present cap where there are none); ``slower_share`` of VMs of the type; and
    ``text``, the advice in a sentence or two.
    """
    levels, odds_of = reference.levels_mbps, reference.odds
    faster = levels >= mbps * WORTH
    odds = min(1.0, float(odds_of[faster].sum()))
    slower = float(odds_of[levels < mbps * (1 - MEASUREMENT_ERROR)].sum())
    expected_mbps, sure, recreate = mbps, 0, odds >= LEAST_ODDS
    text = f"Of VMs of type {reference.vm_type}, {slower:.0%} are slower than this one"
    if odds <= 0:
        text += f" and none is {WORTH:g} times as fast: keep it."
    else:
        expected_mbps = float(levels[faster] @ odds_of[faster]) / odds
        sure = 1 if odds >= SURE else -int(log(1 - SURE) // -log(1 - odds))
        deed = (
            f"recreating it is likely to pay: {1 / odds:.1f} tries in the mean, {sure} for "
            f"{SURE:.0%} certainty; measure each and stop at the first fast one"
            if recreate
            else f"not worth it: {1 / odds:.0f} tries in the mean"
        )
        text += (
            f"; a new one has a {odds:.0%} chance of at least {WORTH:g} times its rate "
            f"({expected_mbps:.0f} instead of {mbps:.0f} Mbit/s on average): {deed}."
        )
    return {
        "recreate": recreate,
        "odds": odds,
        "tries_to_be_sure": sure,
        "expected_mbps": expected_mbps,
        "slower_share": slower,
        "text": f"{text} ({reference.source})",
    }


def vm_caps(samples: Iterable[Sample], catalogue: Catalogue) -> list[Record]:
    """Return the newest caps of all VMs, each compared with the others of its type.

    Where fewer than five others were measured, a published distribution of the type is used. The
    catalogue's cap of a type is shown, but it is no distribution and yields no odds. Samples of
    other metrics are passed over, and so are lower bounds.

    Of each it tells the ``host`` (name in the fleet file, or the region), ``region``, ``vm_type``
    (``provider:name``, or the provider alone), ``cap`` (egress or ingress), ``mbps``,
    ``measured_at_s``, ``catalogue_mbps`` (of its type), ``others_of_type`` with a measured cap, and
    what :func:`advise` says: None where there is nothing to compare with.
    """
    newest: dict[tuple[str, Metric], Sample] = {}
    for sample in sorted(samples, key=lambda one: one.measured_at_s):
        if sample.metric in CAP_NAMES and sample.value > 0 and not is_lower_bound(sample):
            host = sample.read_detail().get("host")
            newest[host if isinstance(host, str) else sample.src, sample.metric] = sample
    of_type: dict[tuple[str, Metric], list[float]] = defaultdict(list)
    for sample in newest.values():
        of_type[_type(sample), sample.metric].append(sample.value)
    caps: list[Record] = []
    for (host, metric), sample in newest.items():
        vm_type = _type(sample)
        others = of_type[vm_type, metric].copy()
        others.remove(sample.value)
        listed = catalogue.vm_types.get(vm_type)
        direction = CAP_NAMES[metric]
        # A probe of some seconds ends before network credits do.
        nominal_gbps = listed and (listed.wan_burst_gbps or getattr(listed, f"{direction}_gbps"))
        caps.append(
            {
                "host": host,
                "region": sample.src,
                "vm_type": vm_type,
                "cap": direction,
                "mbps": sample.value,
                "measured_at_s": sample.measured_at_s,
                "catalogue_mbps": nominal_gbps * MBPS_PER_GBPS if nominal_gbps else None,
                "others_of_type": len(others),
                **_advice(sample, vm_type, others),
            }
        )
    return sorted(caps, key=lambda c: (not c["recreate"], c["vm_type"], c["host"], c["cap"]))


def _advice(sample: Sample, vm_type: str, others: list[float]) -> Record:
    # Papers give distributions of VMs that send.
    sends = CAP_NAMES[sample.metric] == "egress"
    reference = PUBLISHED.get((vm_type, sample.src)) if sends else None
    if len(others) >= FEWEST_VMS:
        source = f"{len(others)} other VMs of this type that were measured"
        odds = np.full(len(others), 1 / len(others))
        reference = Reference(vm_type, np.sort(others), odds, source)
    if reference:
        return advise(sample.value, reference)
    missing = dict.fromkeys(("odds", "tries_to_be_sure", "expected_mbps", "slower_share"))
    text = f"{len(others)} other VMs of type {vm_type} were measured; {FEWEST_VMS} are needed to "
    return {"recreate": False, **missing, "text": text + "state odds."}


def _type(sample: Sample) -> str:
    provider = sample.src.partition(":")[0]
    name = sample.src_vm.removeprefix("Standard_")
    return f"{provider}:{name}" if name else provider


def is_lower_bound(sample: Sample) -> bool:
    """Tell whether a probe of a cap itself says that its VM was not fully loaded."""
    high_mbps = figure_in(sample.read_detail(), "high_mbps")
    return high_mbps is not None and high_mbps > sample.value * MOST_OPEN_CAP


BEGIN_S, END_S = 0.75, 0.5
"""Excluded from the time in which all peers were at work: the last to begin is not up to speed at
once, and the end of a test is known only to some tenths of a second."""
LEAST_TOGETHER_S = 1.0
"""Peers that were at work together for less don't show the cap."""


class PeerTest(NamedTuple):
    """A peer's test: its consecutive intervals, and the time at which the last of them ended."""

    at_s: float
    intervals: Sequence[Interval]


def together_mbps(tests: Mapping[str, PeerTest]) -> dict[str, float]:
    """Return the mean rate of each peer while all were at work, from their tests by one clock.

    Peers take turns in the hub's queue, so that only rates of the same time add up to the cap.
    Tests that were started together neither begin nor end together, and those that go on take what
    the others leave (in the lab, a last second carried up to 1.5 times the cap): only while all of
    them ran does anything count. The shorter the intervals, the less of what a peer had alone is
    taken for what it had with others: a quarter of a second leaves under 1 % in the lab, a whole
    second up to 5 %.

    Raises InputError if all ran together for less than :data:`LEAST_TOGETHER_S`, :data:`BEGIN_S`
    and :data:`END_S` aside.
    """
    began_s = {
        name: one.at_s - sum(i.seconds for i in one.intervals) for name, one in tests.items()
    }
    begin_s = max(began_s.values()) + BEGIN_S
    end_s = min(test.at_s for test in tests.values()) - END_S
    if end_s - begin_s < LEAST_TOGETHER_S - 1e-6:
        problem = f"had all {len(tests)} peers at work for {max(0.0, end_s - begin_s):.1f} s only"
        remedy = "Measure again when hosts and controller are less busy."
        raise InputError("cap probe", problem, remedy=remedy)
    found = {}
    for name, test in tests.items():
        seconds, rates = np.array(test.intervals).T
        ends_s = began_s[name] + np.append(0.0, seconds.cumsum())
        megabits = np.append(0.0, (seconds * rates).cumsum())
        before, after = np.interp((begin_s, end_s), ends_s, megabits)
        found[name] = float(after - before) / (end_s - begin_s)
    return found
