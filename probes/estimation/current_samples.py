"""The samples that still count: those since a link last changed its level.

A change is found in a series of samples, or shown by a verification that measured twice. Public and
private addresses are links of their own, and each source is on its own: a report of one does not
make another's samples old.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import NamedTuple

import numpy as np

from planner.model.estimate import AddressKind
from probes.analysis.level_shift import LEARNT_FROM, level_shifts
from probes.estimation.groups import Bools, Groups, Ints
from probes.metrics import METRICS, NAMES, Metric, number_of
from probes.samples import ADDRESSES, FILES, OWN, NameTable, Rows, Sample, Samples

MOST_SAMPLES = 64
"""Of a link, metric and source: their median is known well."""
MOST_JUDGED = 256
"""Newest samples of a link and metric in which changes are looked for."""
WITH_A_LEVEL: tuple[Metric, ...] = tuple(name for name in NAMES if METRICS[name].has_levels)
"""Metrics in which changes are looked for."""
PRIVATE = ADDRESSES.index("private")

_WAY = ("connections", "warmed_up", "src_vm", "dst_vm")
"""The way a sample was taken, besides the tool: where these agree, samples are comparable."""


class LinkShift(NamedTuple):
    """A link that changed.

    Attributes
    ----------
    at_s, found_at_s : float
        Times of the first sample of the new level, and of the one that settled it.
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


class SeriesError(Exception):
    """A series of samples that can't be evaluated: estimates are to be made without it."""

    def __init__(self, sample: Sample, error: Exception) -> None:
        super().__init__(
            f"{sample.metric} of {sample.src} > {sample.dst} ({type(error).__name__}: {error})"
        )
        self.series = sample[:3]

    def concerns(self, samples: Samples) -> Bools:
        """Mark the samples of the series."""
        (src, dst, metric), rows, names = self.series, samples.rows, samples.names
        found: Bools = rows["metric"] == number_of(metric)
        found &= (rows["src"] == names.get(src, -1)) & (rows["dst"] == names.get(dst, -1))
        return found


@contextmanager
def evaluated(samples: Samples, place: int) -> Iterator[None]:
    """Name the series of a sample in any error while it is evaluated, in a SeriesError."""
    try:
        yield
    except Exception as error:
        raise SeriesError(samples[place], error) from error


class CurrentSamples(NamedTuple):
    """Samples since their link last changed its level."""

    # By source, destination, metric, kind of address and reporter, the oldest first; of each such
    # part the newest
    samples: Samples
    first_id: Ints  # of each sample, the lowest order of arrival of its part since then
    # Every change that was found, by the own prober where it has measured a link
    shifts: list[LinkShift]
    before: int = 0  # samples from before a change, among those that were looked at
    # Time of the first of them since the changes; infinity where there is none
    since_s: float = inf

    def over(self, address: AddressKind) -> CurrentSamples:
        """Return the samples over private addresses, or over others."""
        return self.where((self.samples.rows["address"] == PRIVATE) == (address == "private"))

    def where(self, chosen: Bools) -> CurrentSamples:
        """Return some of the samples."""
        if chosen.all():
            return self
        return self._replace(samples=self.samples[chosen], first_id=self.first_id[chosen])

    def updated(self, newer: CurrentSamples) -> CurrentSamples:
        """Return these samples with newer ones, of the same names, in place of whole series."""
        series, of_newer = (series_codes(one.samples) // 2 for one in (self, newer))
        kept, again = self.where(~np.isin(series, of_newer)), dict(newer.samples.groups())
        both = Samples.concat([kept.samples, newer.samples])
        order = _order(both)
        first_id = np.concatenate([kept.first_id, newer.first_id])[order]
        shifts = [shift for shift in self.shifts if shift[:3] not in again]
        return CurrentSamples(both.in_order(order), first_id, shifts + newer.shifts)

    @property
    def is_mixed(self) -> bool:
        """Whether several sources have reported tests, or one that is not trusted."""
        names, tests = list(self.samples.names), ~self.samples.are_transfers
        used = np.unique(self.samples.rows["source"][tests])
        sources = {names[number] for number in used.tolist()}
        return len(sources) > 1 or not sources <= {OWN, FILES}

    def reporters(self) -> dict[tuple[int, int], set[str]]:
        """Return the sources that reported each link, by the numbers of its ends."""
        reporters: dict[tuple[int, int], set[str]] = defaultdict(set)
        names = list(self.samples.names)
        for src, dst, source in np.unique(self.samples.rows[["src", "dst", "source"]]).tolist():
            reporters[src, dst].add(names[source])
        return reporters


def current_samples(samples: Samples) -> CurrentSamples:
    """Return the samples that still count."""
    samples = samples.in_order(_order(samples))
    rows = samples.rows
    parts = _parts(samples)
    levels = np.isin(rows["metric"], [number_of(name) for name in WITH_A_LEVEL])
    judged = parts.newest(MOST_JUDGED)
    shown_s = np.where(rows["new_level"] & levels & judged, rows["measured_at_s"], -np.inf)
    since_s = parts.reduced(np.maximum, shown_s)
    achieved = samples.are_transfers[parts.first]  # what held one says nothing of the next
    long = (parts.counts > LEARNT_FROM) & levels[parts.first] & ~achieved
    tells = _tell_of_shifts(rows, parts, achieved)
    shifts = []
    for number in np.flatnonzero(long).tolist():
        part = parts.part(number)
        with evaluated(samples, part.start):
            found = list(_shifts(samples[max(part.start, part.stop - MOST_JUDGED) : part.stop]))
        since_s[number] = max([since_s[number], *(shift.at_s for shift in found)])
        shifts += found if tells[number] else []
    kept = rows["measured_at_s"] >= parts.spread(since_s)
    if not kept.all():
        samples, parts = samples[kept], Groups.of(parts.numbers()[kept])
    first_s = float(samples.rows["measured_at_s"].min(initial=np.inf))
    first_id = parts.spread(parts.reduced(np.minimum, samples.rows["id"]))
    newest = parts.newest(MOST_SAMPLES)
    before = int((~kept).sum())
    return CurrentSamples(samples[newest], first_id[newest], shifts, before, first_s)


def series_codes(samples: Samples) -> Ints:
    """Return an even number for each sample's link and metric, 1 more if over private addresses."""
    rows = samples.rows
    link = rows["src"].astype(np.int64) << 32 | rows["dst"].astype(np.int64) << 8
    codes: Ints = link + rows["metric"] * 2 + (rows["address"] == PRIVATE)
    return codes


def series_order(samples: Samples) -> tuple[Ints, Groups]:
    """Return the places of samples by part of a series, each the oldest first; and the parts."""
    order = _order(samples)
    return order, _parts(samples.in_order(order))


def _order(samples: Samples) -> Ints:
    """Return the places of samples by part, each the oldest first; sources by their names."""
    rows, names = samples.rows, list(samples.names)
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    private = rows["address"] == PRIVATE
    keys = rows["measured_at_s"], samples.are_transfers, rank[rows["source"]], private
    order: Ints = np.lexsort((*keys, rows["metric"], rows["dst"], rows["src"]))
    return order


def _parts(samples: Samples) -> Groups:
    rows = samples.rows
    series = rows["src"], rows["dst"], rows["metric"], rows["address"] == PRIVATE
    return Groups.of(*series, rows["source"], samples.are_transfers)


def _tell_of_shifts(rows: Rows, parts: Groups, achieved: Bools) -> Bools:
    """Mark the parts whose changes count: others may lie where the own prober has measured."""
    first = parts.first
    columns = (rows[name][first] for name in ("src", "dst", "metric"))
    series = Groups.of(*columns, rows["address"][first] == PRIVATE)
    tell: Bools = series.spread(series.reduced(np.add, (~achieved).astype(np.int64))) == 1
    tell |= rows["source"][first] == NameTable()[OWN]
    return tell


def _shifts(part: Samples) -> Iterator[LinkShift]:
    """Yield the changes among samples that were taken the way the newest was."""
    tool = part.mapped("tool", lambda name: name.partition(" ")[0])
    alike = tool == tool[-1]
    for name in _WAY:
        alike &= part.rows[name] == part.rows[name][-1]
    first, at_s = part.rows[0], part.rows["measured_at_s"][alike].tolist()
    for shift in level_shifts(part.rows["value"][alike].tolist()):
        names = list(part.names)
        series = names[first["src"]], names[first["dst"]], NAMES[first["metric"]]
        times_s = at_s[shift.position], at_s[shift.found_at]
        yield LinkShift(*series, *times_s, shift.before, shift.after)
