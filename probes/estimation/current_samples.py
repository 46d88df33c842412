"""Which samples still count: those since a link last changed its level.

A change is found in a series of samples, or shown by a verification that looked twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeAlias

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
    for _, group in groupby(rows, lambda row: row.sample[:3]):
        newest = newest_rows(group, on_old)
        for key in sorted(newest):
            tell = on_shift if tells_of_shifts(key, newest) else lambda _: None
            yield current_samples(newest[key], tell, on_old)


PartKey: TypeAlias = tuple[bool, str]
"""Whether over private addresses, and who reported."""


@dataclass(slots=True)
class NewestRows:
    """The newest samples that one source reported of a series over one kind of address.

    Attributes
    ----------
    first_id : int
        The lowest order of arrival among all that it reported.
    rows : deque of Reported
        At most :data:`MOST_JUDGED`, the oldest first.
    """

    first_id: int
    rows: deque[Reported] = field(default_factory=deque)


def part_key(row: Reported) -> PartKey:
    """Return which part of its series a sample belongs to."""
    return row.sample.address == "private", row.source


def newest_rows(
    rows: Iterable[Reported],
    on_old: Callable[[Reported], None],
    first_ids: Mapping[PartKey, int] = {},
) -> dict[PartKey, NewestRows]:
    """Return the newest samples of one series.

    Parameters
    ----------
    rows : iterable of Reported
        The oldest first.
    on_old : callable
        Called with every sample that is left out.
    first_ids : mapping
        Of samples that were left out before.
    """
    found: dict[PartKey, NewestRows] = {}
    for row in rows:
        key = part_key(row)
        part = found.get(key)
        if part is None:
            part = found[key] = NewestRows(first_ids.get(key, row.id))
        part.first_id = min(part.first_id, row.id)
        part.rows.append(row)
        if len(part.rows) > MOST_JUDGED:
            on_old(part.rows.popleft())
    return found


def tells_of_shifts(key: PartKey, keys: Collection[PartKey]) -> bool:
    """Whether changes that a part of a series shows count: others may lie."""
    is_private, source = key
    return source == OWN or not any(other[0] == is_private and other != key for other in keys)


def current_samples(
    newest: NewestRows, on_shift: Callable[[LinkShift], None], on_old: Callable[[Reported], None]
) -> CurrentSamples:
    """Return, of a part of a series, the samples since its last change of level.

    Parameters
    ----------
    on_shift : callable
        Called with every change that is found.
    on_old : callable
        Called with every sample that is left out.
    """
    rows, first_id = newest.rows, newest.first_id
    since_s = float("-inf")
    if rows[0].sample.metric in WITH_A_LEVEL:
        if len(rows) > LEARNT_FROM:
            for shift in _shifts(row.sample for row in rows):
                on_shift(shift)
                since_s = shift.at_s
        shown = (row.sample.measured_at_s for row in rows if row.sample.new_level)
        since_s = max(since_s, max(shown, default=since_s))
    kept = [row for row in rows if row.sample.measured_at_s >= since_s]
    if len(kept) < len(rows):
        for row in rows:
            if row.sample.measured_at_s < since_s:
                on_old(row)
        first_id = min(row.id for row in kept)
    return CurrentSamples(rows[0].source, first_id, [row.sample for row in kept])


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
