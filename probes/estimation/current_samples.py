"""Which samples still count: those since a link last changed its level.

A change is found in a series of samples, or shown by a verification that looked twice.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from probes.analysis.level_shift import LEARNT_FROM, level_shifts
from probes.estimation import MOST_SAMPLES, THROUGHPUT, Estimator
from probes.samples import OWN, Metric, Reported, Sample

MOST_JUDGED = 256
"""Newest samples of a link and metric in which changes are looked for."""
assert MOST_JUDGED >= MOST_SAMPLES
WITH_A_LEVEL: tuple[Metric, ...] = ("rtt_ms", "per_flow_mbps", "aggregate_mbps")
"""Metrics in which changes are looked for."""


class LinkShift(NamedTuple):
    """A link that changed.

    Attributes
    ----------
    at_s, found_at_s : float
        When the first sample of the new level was measured, and the one that settled it.
    before, after : float
        In the metric's unit.
    """

    src: str
    dst: str
    metric: Metric
    at_s: float
    found_at_s: float
    before: float
    after: float


class CurrentSamples(NamedTuple):
    """What one source reported of a link and metric since the level last changed, oldest first.

    Attributes
    ----------
    source : str
    first_id : int
        The lowest order of arrival among all that it reported since then.
    """

    source: str
    first_id: int
    samples: list[Sample]


def add_current(
    estimator: Estimator,
    rows: Iterable[Reported],
    on_shift: Callable[[LinkShift], None] = lambda _: None,
) -> None:
    """Give an estimator the samples that still count.

    The others only have their vote on the VM type of a region.

    Parameters
    ----------
    rows : iterable of Reported
        Grouped by source, destination and metric, the oldest first.
    on_shift : callable
        Called with every change that is found, by the own prober where it has measured a link.
    """

    def on_old(row: Reported) -> None:
        sample = row.sample
        if sample.metric in THROUGHPUT:
            estimator.add_votes(sample.src, sample.dst, sample.src_vm, sample.dst_vm, 1, row.source)

    for source, first_id, samples in since_last_changes(rows, on_shift, on_old):
        estimator.add(samples, source, first_id)


def since_last_changes(
    rows: Iterable[Reported],
    on_shift: Callable[[LinkShift], None] = lambda _: None,
    on_old: Callable[[Reported], None] = lambda _: None,
) -> Iterator[CurrentSamples]:
    """Yield the newest samples without those from before their link's last change of level.

    Public and private addresses are links of their own, and each source is by itself: what one
    reports does not make another's samples old.

    Parameters
    ----------
    rows, on_shift
        See :func:`add_current`.
    on_old : callable
        Called with every sample that is left out.
    """
    for (_, _, metric), group in groupby(rows, lambda row: row.sample[:3]):
        newest: dict[tuple[bool, str], deque[Reported]] = defaultdict(deque)
        first_ids: dict[tuple[bool, str], int] = {}
        for row in group:
            key = (row.sample.address == "private", row.source)
            first_ids[key] = min(row.id, first_ids.get(key, row.id))
            of_source = newest[key]
            of_source.append(row)
            if len(of_source) > MOST_JUDGED:
                on_old(of_source.popleft())
        for key in sorted(newest):
            is_private, source = key
            found = newest[key]
            told = source == OWN or not any(k[0] == is_private and k != key for k in newest)
            since_s = float("-inf")
            if metric in WITH_A_LEVEL and len(found) > LEARNT_FROM:
                for shift in _shifts(row.sample for row in found):
                    if told:
                        on_shift(shift)
                    since_s = shift.at_s
            if metric in WITH_A_LEVEL:
                shown = (row.sample.measured_at_s for row in found if row.sample.new_level)
                since_s = max(since_s, max(shown, default=since_s))
            kept = [row for row in found if row.sample.measured_at_s >= since_s]
            if len(kept) < len(found):
                for row in found:
                    if row.sample.measured_at_s < since_s:
                        on_old(row)
                first_ids[key] = min(row.id for row in kept)
            yield CurrentSamples(source, first_ids[key], [row.sample for row in kept])


def _shifts(samples: Iterable[Sample]) -> Iterator[LinkShift]:
    """Yield the changes among samples that were taken the way the newest was."""
    listed = list(samples)
    alike = [sample for sample in listed if _way(sample) == _way(listed[-1])]
    for shift in level_shifts([sample.value for sample in alike]):
        first = alike[shift.position]
        yield LinkShift(
            first.src,
            first.dst,
            first.metric,
            first.measured_at_s,
            alike[shift.found_at].measured_at_s,
            shift.before,
            shift.after,
        )


def _way(sample: Sample) -> tuple[object, ...]:
    """Return how a sample was taken: samples are comparable where this agrees."""
    tool = sample.tool.partition(" ")[0]
    return (tool, sample.connections, sample.warmed_up, sample.src_vm, sample.dst_vm)
