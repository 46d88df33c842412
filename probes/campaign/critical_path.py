"""How long a campaign would have taken had its tools alone taken time.

Stages follow one another. Within one, a probe needs all its hosts, and no more than so many run at
once; the longest chain of probes that waited for one another is the critical path. What a
campaign took beyond it is the cost of orchestration: logins, servers that start, jitter, the
store, choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapreplace

from probes.campaign.limits import CampaignLimits
from probes.campaign.state import ProbeOutcome


def critical_path_s(outcomes: Sequence[ProbeOutcome], limits: CampaignLimits) -> float:
    """Return the length of the critical path of probes that ran.

    Parameters
    ----------
    outcomes : sequence of ProbeOutcome
        In the order of their ends. They are replayed in the order of their beginnings, as far as
        their samples show them.
    limits : CampaignLimits
        Under which they ran.
    """
    stages: dict[str, list[ProbeOutcome]] = {}
    for outcome in outcomes:
        if outcome.busy_s > 0:
            stages.setdefault(outcome.probe.stage, []).append(outcome)
    return sum(_stage_s(sorted(stage, key=_began_s), limits) for stage in stages.values())


def _began_s(outcome: ProbeOutcome) -> float:
    return min((sample.measured_at_s for sample in outcome.samples), default=0.0)


def _stage_s(outcomes: Sequence[ProbeOutcome], limits: CampaignLimits) -> float:
    pings = outcomes[0].probe.task.phase == "rtt"
    together = limits.pings_at_once if pings else limits.at_once
    lanes = [0.0] * min(together, len(outcomes))
    seats: dict[str, list[float]] = {}
    for outcome in outcomes:
        task = outcome.probe.task
        # A ping occupies its sender alone, and only in part.
        hosts = {task.pairs[0][0]} if pings else task.hosts
        each = limits.pings_of_host if pings else 1
        places = [seats.setdefault(host, [0.0] * each) for host in hosts]
        end_s = max(lanes[0], *(place[0] for place in places)) + outcome.busy_s
        for heap in (lanes, *places):
            heapreplace(heap, end_s)
    return max(lanes)
