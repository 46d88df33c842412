"""What a series of samples leaves behind, so that the next estimates need not read it again.

A series is what was reported of one link and metric; its parts are what each source reported over
each kind of address. Looking for changes of level reads the newest samples of a part, some hundred;
estimates then rest on a few dozen of these. All others only vote for VM types. The state of a part
holds those on which estimates rest and counts the votes: while nothing new comes in, no sample of
it is read, and with something new only the newest are. Estimates are the same to the last digit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from probes.analysis.level_shift import LEARNT_FROM
from probes.estimation import MOST_SAMPLES, THROUGHPUT, Estimator
from probes.estimation.arrays.series_samples import SeriesSamples
from probes.estimation.current_samples import (
    LinkShift,
    NewestRows,
    PartKey,
    current_samples,
    newest_rows,
    part_key,
    tells_of_shifts,
)
from probes.samples import Reported, Sample

Votes: TypeAlias = Mapping[tuple[str, str], int]
"""VM types of source and destination: how many throughput samples name these."""


class StaleError(Exception):
    """A state is not that of the samples that are there."""


class PartState(NamedTuple):
    """What one source reported of a series over one kind of address.

    Attributes
    ----------
    first_id : int
        As in :class:`.CurrentSamples`.
    first_of_all_id : int
        As in :class:`.NewestRows`.
    newest_since_s : float
        When the oldest of the newest samples was measured, seconds since 1970 (UTC).
    newest : int
        How many these are.
    older, others : Votes
        Of samples on which no estimate rests: those older than the newest, and those among them.
    shifts : tuple of LinkShift
        Changes of level among the newest.
    counting : SeriesSamples
        Those of the newest on which estimates rest, oldest first.
    """

    first_id: int
    first_of_all_id: int
    newest_since_s: float
    newest: int
    older: Votes
    others: Votes
    shifts: tuple[LinkShift, ...]
    counting: SeriesSamples


class SeriesState(NamedTuple):
    """A series as estimates see it.

    Attributes
    ----------
    parts : mapping
        By whether it is over private addresses, and source.
    impossible : int
        Samples that can't be measurements.
    is_short : bool
        Whether reading its few samples again is as good as keeping this.
    """

    parts: Mapping[PartKey, PartState]
    impossible: int = 0
    is_short: bool = False

    def add_to(self, estimator: Estimator, on_shift: Callable[[LinkShift], None]) -> None:
        """Give an estimator what :func:`.add_current` gives it of all samples of the series."""
        for key in sorted(self.parts):
            source, part = key[1], self.parts[key]
            if tells_of_shifts(key, self.parts):
                for shift in part.shifts:
                    on_shift(shift)
            src, dst, _ = part.counting.series
            for votes in (part.older, part.others):
                for (src_vm, dst_vm), samples in votes.items():
                    estimator.add_votes(src, dst, src_vm, dst_vm, samples, source)
            estimator.samples.add_series(part.counting, source, part.first_id)


def series_state(
    rows: Iterable[Reported],
    is_possible: Callable[[Reported], bool],
    before: SeriesState | None = None,
    through: int = 0,
) -> SeriesState:
    """Return the state of one series.

    Parameters
    ----------
    rows : iterable of Reported
        All of its samples, the oldest first. With `before`, all that are new; and of the parts that
        have new ones, also those measured since their `newest_since_s`.
    is_possible : callable
        Whether a sample can be a measurement.
    before : SeriesState, optional
        That of the samples with ids up to `through`.

    Raises
    ------
    StaleError
        If `before` is not the state of these samples.
    """
    known = before.parts if before else {}
    read, impossible = 0, before.impossible if before else 0
    older: dict[PartKey, Counter[tuple[str, str]]] = defaultdict(Counter)

    def possible() -> Iterator[Reported]:  # one by one: a series may have millions of samples
        nonlocal read, impossible
        for row in rows:
            read += 1
            if is_possible(row):
                yield row
            elif row.id > through:
                impossible += 1

    newest = newest_rows(
        _needed(known, list(possible()), through) if known else possible(),
        lambda row: _vote(older[part_key(row)], row.sample),
        {key: part.first_of_all_id for key, part in known.items()},
    )
    parts = dict(known)
    for key, found in newest.items():
        if key in known:
            older[key].update(known[key].older)
        parts[key] = _part_state(found, older[key])
    return SeriesState(parts, impossible, before is None and read <= LEARNT_FROM)


def _part_state(found: NewestRows, older: Votes) -> PartState:
    shifts: list[LinkShift] = []
    others: Counter[tuple[str, str]] = Counter()
    current = current_samples(found, shifts.append, lambda row: _vote(others, row.sample))
    for sample in current.samples[:-MOST_SAMPLES]:
        _vote(others, sample)
    return PartState(
        current.first_id,
        found.first_id,
        found.rows[0].sample.measured_at_s,
        len(found.rows),
        older,
        others,
        tuple(shifts),
        SeriesSamples.of(current.samples[-MOST_SAMPLES:]),
    )


def _vote(votes: Counter[tuple[str, str]], sample: Sample) -> None:
    if sample.metric in THROUGHPUT:
        votes[sample.src_vm, sample.dst_vm] += 1


def _needed(
    known: Mapping[PartKey, PartState], rows: Sequence[Reported], through: int
) -> Iterator[Reported]:
    """Yield the new rows, and of the parts that have some those that were among the newest.

    Others may have been measured at the same time as the oldest of these, or before it. They are
    counted in the state.
    """
    changed = {part_key(row) for row in rows if row.id > through}
    excess = Counter(part_key(row) for row in rows if row.id <= through)
    for key in changed & known.keys():
        excess[key] -= known[key].newest
        if excess[key] < 0:
            raise StaleError
    for row in rows:
        key = part_key(row)
        if key not in changed:
            continue
        if row.id <= through and excess[key] > 0:
            excess[key] -= 1
        else:
            yield row


def plain_state(state: SeriesState) -> list[Any]:
    """Return a state as JSON types; :func:`state_of` reads it again."""
    return [[[*key, _plain_part(part)] for key, part in state.parts.items()], state.impossible]


def _plain_part(part: PartState) -> list[Any]:
    *head, older, others, shifts, counting = part
    votes = [[[*names, count] for names, count in of.items()] for of in (older, others)]
    return [*head, *votes, shifts, counting.size, counting.columns]


def state_of(plain: list[Any], series: tuple[str, str, str]) -> SeriesState:
    """Return the state that :func:`plain_state` made JSON types of.

    Parameters
    ----------
    plain : list
    series : (str, str, str)
        Source, destination and metric.
    """
    parts, impossible = plain
    return SeriesState({tuple(key): _part(plain, series) for *key, plain in parts}, impossible)


def _part(plain: list[Any], series: tuple[str, str, str]) -> PartState:
    *head, older, others, shifts, count, columns = plain
    return PartState._make(
        (
            *head,
            {tuple(names): votes for *names, votes in older},
            {tuple(names): votes for *names, votes in others},
            tuple(LinkShift(*shift) for shift in shifts),
            SeriesSamples(series, count, columns),
        )
    )
