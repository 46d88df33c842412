"""The most probable cause of what a plan in progress lacks, from what is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from planner.model.achieved import SLOW_SHARE
from planner.model.network import Network
from planner.model.units import duration_text, gbps_text, rate_text
from planner.replanning.plan import Cause
from planner.replanning.progress import InProgress
from planner.replanning.request import ReplanRequest
from planner.transfer.request import TransferRequest

FEWEST_BEFORE = 9
"""Transfers before, of which the low end is told."""


class OtherTransfer(NamedTuple):
    """A transfer that began while the plan was in progress, on VMs that the plan takes, too."""

    name: str
    region: str  # of the VMs
    rate_gbps: float  # what it takes of what these send or receive


def cause_of(
    asked: ReplanRequest, of: InProgress, network: Network, others: Sequence[OtherTransfer]
) -> Cause | None:
    """Return the first cause that is known, in the order of :class:`.plan.Cause`."""
    if asked.silent_s:
        said = f"Its program has not reported it for {duration_text(asked.silent_s)}."
        return Cause("silent", said)
    links = [state for pair, state in network.states.items() if of.workload.links_gb.get(pair)]
    if links:
        return Cause("link", f"{min(links, key=lambda one: one.condition != 'down')}.")
    rate, planned = _rate_gbps(asked, of, network), of.planned_gbps
    if rate is None:
        return None
    least = float(of.plan.get("throughput_gbps_low") or SLOW_SHARE * planned)
    if rate >= least:
        return _against_earlier(rate, of, network)
    if others:
        taken = {one.region: 0.0 for one in others}
        for one in others:
            taken[one.region] += one.rate_gbps
        region = max(taken, key=taken.__getitem__)
        count = len({one.name for one in others if one.region == region})
        who = f"{count} other transfer{' takes' if count == 1 else 's take'}"
        said = f"Since it began, {who} {rate_text(taken[region])} of the VMs at {region}."
        return Cause("others", said)
    span = "since it began" if asked.slow_s is None else f"for {duration_text(asked.slow_s)}"
    said = f"It has been slower than planned {span}: at {rate_text(rate)}, where at least"
    return Cause("slow", f"{said} {gbps_text(least)} of {rate_text(planned)} were planned.")


def _rate_gbps(asked: ReplanRequest, of: InProgress, network: Network) -> float | None:
    """Return the rate of the moment, else the mean since it was up to speed; None before that."""
    if asked.rate_gbps is not None:
        return asked.rate_gbps
    steady_s = of.elapsed_s - of.started.ramp_up_s(network, frozenset())
    return 8 * of.moved_gb / steady_s if steady_s > 0 else None


def _against_earlier(rate_gbps: float, of: InProgress, network: Network) -> Cause | None:
    """Compare with what transfers between the same ends reached of their plans before."""
    if not isinstance(of.request, TransferRequest):
        return None
    ends, share = (of.request.src, of.request.dst, ""), rate_gbps / of.planned_gbps
    before = next((a for a in network.achieved if (a.src, a.dst, a.label) == ends), None)
    if before is None or before.transfers < FEWEST_BEFORE or share >= before.low:
        return None
    had = f"of the last {before.transfers}, 95 % reached at least {before.low:.2f}"
    return Cause("slowest", f"It runs at {share:.2f} of its plan's rate: {had}.")
