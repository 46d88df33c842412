"""The paths of runs that are in doubt, and the samples of links that follow from runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from typing import TypeAlias

from planner.model.estimate import BOUNDS
from planner.model.link import Link
from probes.metrics import throughput_of
from probes.samples import Sample
from probes.verification.predictions import Judgement, PlanPath, RateRange
from probes.verification.runs import LIMITS, MOST_RECHECKED, Run

AGREE = 0.15
"""Two runs over a link that differ by less than this agree."""
SURELY_MORE = 1.1
"""Connections that could carry this much more than they did are not the limit."""

LinkOf: TypeAlias = Callable[[str, str], Link | None]


def in_doubt(runs: Sequence[Run]) -> list[PlanPath]:
    """Return the paths outside of their bounds whose links should be rechecked, the worst first.

    Not a path among others that also runs alone; nor a path that reached its rate limit.
    """
    alone = {run.paths[0].regions for run in runs if len(run.paths) == 1}
    found: dict[tuple[str, ...], PlanPath] = {}
    for run in runs:
        for path in run.paths if run.kind != LIMITS else ():
            if len(run.paths) > 1 and path.regions in alone:
                continue
            judgement = path.rate.judged(path.achieved_gbps)
            if judgement == "below" or (judgement == "above" and not path.is_rate_limited):
                found.setdefault(path.regions, path)

    def ratio(path: PlanPath) -> float:
        ratio = path.achieved_gbps / path.rate.expected_gbps
        return min(ratio, 1 / ratio) if ratio else 0.0

    return sorted(found.values(), key=ratio)[:MOST_RECHECKED]


def samples_of(
    runs: Sequence[Run], rechecks: Sequence[Run], link_of: LinkOf, plan_id: str
) -> list[Sample]:
    """Return the samples of single links that follow from runs.

    Direct paths that ran alone and rechecks are samples of their links. A relayed path that ran
    alone and was as predicted is a sample of its bottleneck link. Where two runs agree that a link
    is not as estimated, its level is new: older samples no longer count.

    Parameters
    ----------
    runs : sequence of Run
        Of the plan and of direct.
    rechecks : sequence of Run
        Each of one link.
    link_of : callable
        The estimate of a link.
    plan_id : str
        Goes into the samples' detail.
    """
    found: list[Sample] = []
    again = {run.paths[0].regions: run.paths[0] for run in rechecks}
    for run in runs:
        if len(run.paths) != 1:
            continue  # paths at the same time share VMs: no link shows what it can
        (path,) = run.paths
        if path.is_rate_limited or not path.one_to_one:
            continue
        if len(path.regions) == 2:
            second = again.get(path.regions)
            is_new = second is not None and _agree(path, second)
            found += _of_link(path, path.regions, link_of, plan_id, is_new=is_new)
        elif path.rate.judged(path.achieved_gbps) != "below":
            found += _of_link(path, _bottleneck(path, link_of), link_of, plan_id, is_new=False)
    firsts = {path.regions: path for run in runs for path in run.paths}
    for run in rechecks:
        (path,) = run.paths
        against = _against(path, link_of(path.regions[0], path.regions[1]))
        if not path.one_to_one or (path.is_rate_limited and against != "above"):
            continue
        ways = (way for way in firsts if path.regions in tuple(pairwise(way)))
        first = firsts.get(next(ways, ()))
        is_new = first is not None and _agree(first, path) and against != "within"
        found += _of_link(path, path.regions, link_of, plan_id, is_new=is_new)
    return found


def _against(path: PlanPath, link: Link | None) -> Judgement:
    """Compare the rate of one VM pair with the estimate of its link."""
    if link is None:
        return "above"
    count = len(path.streams)
    each = max(1, path.connections // count)
    rate = RateRange(*(link.rate_gbps(each, bound) for bound in BOUNDS))
    return rate.judged(path.achieved_gbps / count)


def _agree(one: PlanPath, other: PlanPath) -> bool:
    low, high = sorted((one.achieved_gbps, other.achieved_gbps))
    return high <= low * (1 + AGREE)


def _bottleneck(path: PlanPath, link_of: LinkOf) -> tuple[str, ...]:
    """Return the link of a path that was expected to be its bottleneck."""
    each, links = path.streams[0].connections, {ends: link_of(*ends) for ends in path.links}
    return min(links, key=lambda ends: link.rate_gbps(each) if (link := links[ends]) else inf)


def _of_link(
    path: PlanPath, ends: tuple[str, ...], link_of: LinkOf, plan_id: str, *, is_new: bool
) -> list[Sample]:
    """Return a path's streams as samples of a link: of its aggregate or of one flow.

    Connections that could not have carried more than they did show the rate of one flow, and not
    the link's aggregate.
    """
    found = []
    src, dst = ends
    link = link_of(src, dst)
    begins, finishes = src == path.regions[0], dst == path.regions[-1]
    for stream, sample in zip(path.streams, path.samples, strict=True):
        could_mbps = stream.connections * link.per_flow_mbps.expected if link else inf
        one_flow = stream.connections == 1 or could_mbps < SURELY_MORE * sample.value
        told = sample.with_detail(verification=plan_id)
        if len(path.regions) == 3:
            told = told.with_detail(path=path.regions)
        found.append(
            told._replace(
                src=src,
                dst=dst,
                metric=throughput_of(1 if one_flow else None),
                value=sample.value / stream.connections if one_flow else sample.value,
                src_zone=sample.src_zone if begins else "",
                dst_zone=sample.dst_zone if finishes else "",
                src_vm=sample.src_vm if begins else "",
                dst_vm=sample.dst_vm if finishes else "",
                new_level=is_new,
            )
        )
    return found
