"""Runs compared with their predictions, and the samples of links that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Literal, TypeAlias

from planner.model.link import Link
from planner.model.units import MBPS_PER_GBPS
from probes.samples import Sample
from probes.verification.full_limits import Limit, limits_of
from probes.verification.predictions import RateRange
from probes.verification.runs import LIMITS, MOST_RECHECKED, PathRun, Run

LIMITED_SHARE = 0.97
"""A path that came this near to its rate limit could have carried more."""
AGREE = 0.15
"""Two runs over a link that differ by less than this agree."""
SURELY_MORE = 1.1
"""Connections that could carry this much more than they did are not the limit."""

Judgement: TypeAlias = Literal["within", "below", "above"]
LinkOf: TypeAlias = Callable[[str, str], Link | None]


@dataclass(frozen=True, slots=True)
class PathOutcome:
    """What one path of a run carried.

    Attributes
    ----------
    run : PathRun
    samples : tuple of Sample
        One for each of its streams, as the tool gave them.
    sent_gb : float
        Over one link, warm-up included.
    measured_at_s : float
    """

    run: PathRun
    samples: tuple[Sample, ...]
    sent_gb: float
    measured_at_s: float

    @property
    def achieved_gbps(self) -> float:
        """Of all its streams together."""
        return sum(sample.value for sample in self.samples) / MBPS_PER_GBPS

    @property
    def is_rate_limited(self) -> bool:
        """Whether it reached its rate limit, so that its own limit is not known."""
        return self.achieved_gbps >= LIMITED_SHARE * self.run.most_gbps


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The result of one run.

    Attributes
    ----------
    run : Run
    paths : tuple of PathOutcome
    relays : dict
        Relay host to the program that split TCP there.
    """

    run: Run
    paths: tuple[PathOutcome, ...]
    relays: Mapping[str, str]

    @property
    def achieved_gbps(self) -> float:
        """Of all paths together."""
        return sum(path.achieved_gbps for path in self.paths)

    @property
    def judgement(self) -> Judgement:
        """Whether the total is within the prediction."""
        return judged(self.achieved_gbps, self.run.prediction.rate)

    def carried(self) -> dict[Limit, tuple[float, float]]:
        """Return what was predicted and achieved of all paths of each VM and link together."""
        found: dict[Limit, tuple[float, float]] = {}
        for path in self.paths:
            for limit in limits_of(path.run.path):
                predicted, achieved = found.get(limit, (0.0, 0.0))
                predicted += path.run.path.rate.expected_gbps
                found[limit] = (predicted, achieved + path.achieved_gbps)
        return found

    @property
    def measured_at_s(self) -> float:
        """When it began, seconds since 1970 (UTC)."""
        return min(path.measured_at_s for path in self.paths)


def judged(achieved_gbps: float, predicted: RateRange) -> Judgement:
    """Compare a throughput with its prediction, allowing for the error of one measurement."""
    bounds = predicted.of_one_run()
    if achieved_gbps < bounds.low_gbps:
        return "below"
    return "above" if achieved_gbps > bounds.high_gbps else "within"


def in_doubt(outcomes: Sequence[RunOutcome]) -> list[PathOutcome]:
    """Return the paths outside of their bounds whose links should be rechecked, the worst first.

    Not a path beside others that also runs alone; nor a path that reached its rate limit.
    """
    alone = {one.paths[0].run.path.regions for one in outcomes if len(one.paths) == 1}
    found: dict[tuple[str, ...], PathOutcome] = {}
    for outcome in outcomes:
        if outcome.run.kind == LIMITS:
            continue
        for path in outcome.paths:
            regions = path.run.path.regions
            if len(outcome.paths) > 1 and regions in alone:
                continue
            verdict = judged(path.achieved_gbps, path.run.path.rate)
            if verdict == "below" or (verdict == "above" and not path.is_rate_limited):
                found.setdefault(regions, path)

    def ratio(path: PathOutcome) -> float:
        ratio = path.achieved_gbps / path.run.path.rate.expected_gbps
        return min(ratio, 1 / ratio) if ratio else 0.0

    return sorted(found.values(), key=ratio)[:MOST_RECHECKED]


def samples_of(
    outcomes: Sequence[RunOutcome], rechecks: Sequence[RunOutcome], link_of: LinkOf, plan_id: str
) -> list[Sample]:
    """Return the samples of single links that follow from runs.

    Direct paths that ran alone and rechecks are samples of their links. A relayed path that ran
    alone and was as predicted is a sample of its bottleneck link. Where two runs agree that a link
    is not as estimated, its level is new: older samples no longer count.

    Parameters
    ----------
    outcomes : sequence of RunOutcome
        Of the plan and of direct.
    rechecks : sequence of RunOutcome
        Each of one link.
    link_of : callable
        The estimate of a link.
    plan_id : str
        Goes into the samples' detail.
    """
    found: list[Sample] = []
    again = {one.paths[0].run.path.regions: one.paths[0] for one in rechecks}
    for outcome in outcomes:
        if len(outcome.paths) != 1:
            continue  # paths at the same time share VMs: no link shows what it can
        (path,) = outcome.paths
        regions = path.run.path.regions
        if path.is_rate_limited or not path.run.one_to_one:
            continue
        if len(regions) == 2:
            second = again.get(regions)
            is_new = second is not None and _agree(path, second)
            found += _of_link(path, regions[0], regions[1], link_of, plan_id, is_new=is_new)
        elif judged(path.achieved_gbps, path.run.path.rate) != "below":
            src, dst = _binding(path, link_of)
            found += _of_link(path, src, dst, link_of, plan_id, is_new=False)
    firsts = {path.run.path.regions: path for outcome in outcomes for path in outcome.paths}
    for recheck in rechecks:
        (path,) = recheck.paths
        if not path.run.one_to_one:
            continue
        src, dst = path.run.path.regions
        first = next(
            (f for regions, f in firsts.items() if (src, dst) in tuple(pairwise(regions))), None
        )
        against = _against(path, link_of(src, dst))
        if path.is_rate_limited and against != "above":
            continue
        is_new = first is not None and _agree(first, path) and against != "within"
        found += _of_link(path, src, dst, link_of, plan_id, is_new=is_new)
    return found


# ---- inside ------------------------------------------------------------------------------------


def _against(path: PathOutcome, link: Link | None) -> Judgement:
    """Compare what one VM pair carried with the estimate of its link."""
    if link is None:
        return "above"
    count = len(path.run.streams)
    each = max(1, path.run.path.connections // count)
    low, expected, high = (
        link.rate_gbps(each, "low"),
        link.rate_gbps(each),
        link.rate_gbps(each, "high"),
    )
    return judged(path.achieved_gbps / count, RateRange(low, expected, high))


def _agree(one: PathOutcome, other: PathOutcome) -> bool:
    low, high = sorted((one.achieved_gbps, other.achieved_gbps))
    return high <= low * (1 + AGREE)


def _binding(path: PathOutcome, link_of: LinkOf) -> tuple[str, str]:
    """Return the link of a path that was expected to be its bottleneck."""
    each = path.run.streams[0].connections

    def rate(link: tuple[str, str]) -> float:
        known = link_of(*link)
        return known.rate_gbps(each) if known else inf

    return min(pairwise(path.run.path.regions), key=rate)


def _of_link(
    path: PathOutcome, src: str, dst: str, link_of: LinkOf, plan_id: str, *, is_new: bool
) -> list[Sample]:
    """Return a path's streams as samples of a link: of its aggregate or of one flow.

    Connections that could not have carried more than they did show the rate of one flow, and not
    the link's aggregate.
    """
    found = []
    relayed = len(path.run.path.regions) == 3
    for stream, sample in zip(path.run.streams, path.samples, strict=True):
        link, value = link_of(src, dst), sample.value
        could_mbps = stream.connections * link.per_flow_mbps.expected if link else inf
        one_flow = stream.connections == 1 or could_mbps < SURELY_MORE * value
        told = sample.with_detail(verification=plan_id)
        if relayed:
            told = told.with_detail(path=path.run.path.regions)
        at = path.run.path.regions.index(src)
        found.append(
            told._replace(
                src=src,
                dst=dst,
                metric="per_flow_mbps" if one_flow else "aggregate_mbps",
                value=value / stream.connections if one_flow else value,
                src_zone=sample.src_zone if at == 0 else "",
                dst_zone=sample.dst_zone if dst == path.run.path.regions[-1] else "",
                src_vm=sample.src_vm if at == 0 else "",
                dst_vm=sample.dst_vm if dst == path.run.path.regions[-1] else "",
                new_level=is_new,
            )
        )
    return found
