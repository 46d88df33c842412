"""Number of connections of a probe of many: a ramp once for each kind of sender.

A ramp (1, 2, 4, ... until the gain is under 5 %) moves about three times the volume of one probe.
Its end depends mostly on the sender: its VM's cap over the rate of one flow, and that falls with
the round-trip time. So the first link of each kind of sender is ramped; the others begin with
as many connections as that, and go on doubling only where they get less than it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from planner.model.estimate import BOUNDS
from planner.model.link import Link
from planner.model.throughput import FAR
from probes.analysis.ramp import Ramp, next_connections
from probes.campaign.specification import Method
from probes.campaign.tasks import ProbeTask
from probes.fleet.hosts import Fleet

RAMP_STEP_S = 3
HEADROOM = 2.0
"""Connections beyond the knee: flows are not equal, and some lose packets."""
REACHED = 0.9  # a link that gets this share of what saturates its sender needs no more connections
OWN_LIMIT = 0.8
"""A link that gets more than this share of its flows' own rates may be limited by these."""
UDP_S = 10
UDP_STEP_S = 5
"""Of each of several rates: the window over which a path's capacity is taken."""
UDP_OVER_TCP = 1.25  # rate offered over UDP, over the rate that TCP reached


def sender_kind(fleet: Fleet, src: str) -> str:
    """Name the kind of a sender: hosts of one kind are taken to send alike."""
    return f"{fleet[src].provider}:{fleet[src].vm_type}"


@dataclass(frozen=True, slots=True)
class Saturation:
    """The saturated ramp of a kind of sender, and the round-trip time of the link it was on."""

    ramp: Ramp
    rtt_ms: float

    def connections(self, rtt_ms: float, most: int) -> int:
        """Return a power of two with which a link is likely to saturate; at most `most`."""
        count = 1
        longer = max(1.0, rtt_ms / self.rtt_ms)
        while count < min(most, HEADROOM * self.ramp.knee_connections * longer):
            count *= 2
        return min(count, most)

    def suffices(self, connections: int, mbps: float, rtt_ms: float) -> bool:
        """Tell whether a link's rate with these connections is its saturated rate."""
        of_flows = connections * self.ramp.per_flow_mbps * min(1.0, self.rtt_ms / rtt_ms)
        return mbps >= REACHED * self.ramp.saturated_mbps and mbps <= OWN_LIMIT * of_flows


def with_ramps(
    tasks: Sequence[ProbeTask],
    method: Method,
    fleet: Fleet,
    link: Callable[[str, str], Link | None],
    before: Iterable[ProbeTask],
    warm_up_s: Callable[[ProbeTask], float],
    flow_s: float = 0.0,
    first_s: float = 0.0,
) -> list[ProbeTask]:
    """Return tasks with the ramps and UDP of the method, and their durations.

    `link` is source and destination host to the estimate of the link, `warm_up_s` is a task to
    the warm-up of one of its tests. Kinds of senders that tasks of earlier stages (`before`) have
    ramped need no other ramp. `flow_s` is the longest time of one connection before many, 0 for
    none; `first_s` is the first part of tasks without a ramp, after a warm-up, 0 to measure once.
    """
    ramped = {sender_kind(fleet, task.pairs[0][0]) for task in before if task.ramp}
    shaped = []
    for task in tasks:
        if task.phase == "aggregate":
            src, dst = task.pairs[0]
            kind = sender_kind(fleet, src)
            if method.ramp == "every" or (method.ramp == "first" and kind not in ramped):
                ramped.add(kind)
                task = _ramped(task, link(src, dst), warm_up_s(task))
            elif first_s and (known := link(src, dst)):
                task = _with_first(task, known, first_s + warm_up_s(task))
            if method.udp:
                rates = method.udp_rates
                udp_s = UDP_S if rates == 1 else UDP_STEP_S * rates
                gbps = task.expected_gbps * sum(udp_shares(rates)) / rates
                task = _with_part(task, udp_s, gbps, udp_s=udp_s, udp_rates=rates)
            if flow_s:
                gbps = _flow_gbps(task, link(src, dst))
                task = _with_part(task, flow_s, gbps, flow_s=flow_s, flow_gbps=gbps)
        shaped.append(task)
    return shaped


def _ramped(task: ProbeTask, link: Link | None, warm_up_s: float) -> ProbeTask:
    # Without a figure for one flow, its end is not known: all counts are expected.
    flow_gbps = _flow_gbps(task, link)
    rates: dict[int, float] = {}
    while (count := next_connections(rates, most=task.connections)) is not None:
        rates[count] = min(count * flow_gbps, task.expected_gbps)
    duration_s = len(rates) * (RAMP_STEP_S + warm_up_s)
    return replace(task, ramp=True, duration_s=duration_s, expected_gbps=fmean(rates.values()))


def udp_shares(rates: int) -> list[float]:
    """Return the rates offered over UDP in turn, as shares of the rate that TCP reached."""
    return [UDP_OVER_TCP * number / rates for number in range(1, rates + 1)]


def _with_part(task: ProbeTask, seconds: float, gbps: float, **changes: Any) -> ProbeTask:
    """Return a task with a further part at a rate of its own."""
    duration_s = task.duration_s + seconds
    volume = task.expected_gbps * task.duration_s + gbps * seconds
    return replace(task, duration_s=duration_s, expected_gbps=volume / duration_s, **changes)


def _with_first(task: ProbeTask, link: Link, first_s: float) -> ProbeTask:
    low, expected, high = (link.rate_gbps(task.connections, bound) for bound in BOUNDS)
    return replace(
        task,
        first_s=first_s,
        # A rate that is farther off may be of a test that went wrong.
        least_gbps=expected * (low / expected) ** FAR if expected else 0.0,
        most_gbps=expected * (high / expected) ** FAR if expected else 0.0,
        duration_s=task.duration_s + first_s,
    )


def _flow_gbps(task: ProbeTask, link: Link | None) -> float:
    return link.rate_gbps(1) if link else task.expected_gbps / task.connections
