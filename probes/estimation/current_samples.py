"""Which samples still count: those since a link last changed its level.

A change is found in a series of samples, or shown by a verification that looked twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from probes.analysis.level_shift import LEARNT_FROM, level_shifts
from probes.estimation import MOST_SAMPLES, THROUGHPUT, Estimator
from probes.samples import Metric, Sample

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


def add_current(
    estimator: Estimator,
    samples: Iterable[Sample],
    on_shift: Callable[[LinkShift], None] = lambda _: None,
) -> None:
    """Give an estimator the samples that still count.

    The others only have their vote on the VM type of a region.

    Parameters
    ----------
    samples : iterable of Sample
        Grouped by source, destination and metric, the oldest first.
    on_shift : callable
        Called with every change that is found.
    """

    def on_old(sample: Sample) -> None:
        if sample.metric in THROUGHPUT:
            estimator.add_votes(sample.src, sample.dst, sample.src_vm, sample.dst_vm, 1)

    estimator.add(since_last_changes(samples, on_shift, on_old))


def since_last_changes(
    samples: Iterable[Sample],
    on_shift: Callable[[LinkShift], None] = lambda _: None,
    on_old: Callable[[Sample], None] = lambda _: None,
) -> Iterator[Sample]:
    """Yield the newest samples without those from before their link's last change of level.

    Public and private addresses are links of their own.

    Parameters
    ----------
    samples, on_shift
        See :func:`add_current`.
    on_old : callable
        Called with every sample that is left out.
    """
    for (_, _, metric), group in groupby(samples, lambda sample: sample[:3]):
        public: deque[Sample] = deque()
        private: deque[Sample] = deque()
        for sample in group:
            newest = private if sample.address == "private" else public
            newest.append(sample)
            if len(newest) > MOST_JUDGED:
                on_old(newest.popleft())
        for newest in (public, private):
            since_s = float("-inf")
            if metric in WITH_A_LEVEL and len(newest) > LEARNT_FROM:
                for shift in _shifts(newest):
                    on_shift(shift)
                    since_s = shift.at_s
            if metric in WITH_A_LEVEL:
                shown = (s.measured_at_s for s in newest if s.new_level)
                since_s = max(since_s, max(shown, default=since_s))
            for sample in newest:
                if sample.measured_at_s >= since_s:
                    yield sample
                else:
                    on_old(sample)


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
