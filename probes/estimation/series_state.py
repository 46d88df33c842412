"""What a series of samples leaves behind for the next estimates: all but the samples that count.

A series is what all sources reported of one link and metric. Looking for changes of level reads
some hundred samples of it; estimates then rest on the newest few dozen of each source. The rest
only votes for VM types. A state is what was found of all samples, so that the next time those that
count are enough, and estimates are the same to the last digit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from probes.analysis.level_shift import LEARNT_FROM
from probes.estimation import MOST_SAMPLES, THROUGHPUT, Estimator
from probes.estimation.current_samples import CurrentSamples, LinkShift, since_last_changes
from probes.samples import Reported, Sample


class CountingPart(NamedTuple):
    """The samples of one source and kind of address that count.

    Attributes
    ----------
    is_private : bool
        Whether they were measured over private addresses.
    source : str
    first_id : int
        As in :class:`.CurrentSamples`.
    since_s : float
        When the oldest of them was measured, seconds since 1970 (UTC).
    samples : int
        How many they are.
    """

    is_private: bool
    source: str
    first_id: int
    since_s: float
    samples: int


class Votes(NamedTuple):
    """Throughput samples that no longer count but for the VM types that they name."""

    source: str
    src_vm: str
    dst_vm: str
    samples: int


class SeriesState(NamedTuple):
    """A series but for the samples that count.

    Attributes
    ----------
    parts : tuple of CountingPart
        In the order of the estimator.
    votes : tuple of Votes
    shifts : tuple of LinkShift
        Changes of level that were found.
    impossible : int
        Samples that can't be measurements.
    """

    parts: tuple[CountingPart, ...]
    votes: tuple[Votes, ...] = ()
    shifts: tuple[LinkShift, ...] = ()
    impossible: int = 0

    @property
    def since_s(self) -> float:
        """When the oldest sample that counts was measured."""
        return min(part.since_s for part in self.parts)


class CurrentSeries(NamedTuple):
    """A series with the samples that count.

    Attributes
    ----------
    is_short : bool
        Whether a state saves nothing: there are hardly more samples than count.
    """

    state: SeriesState
    current: list[CurrentSamples]
    is_short: bool = False

    def add_to(self, estimator: Estimator, on_shift: Callable[[LinkShift], None]) -> None:
        """Give an estimator what :func:`.add_current` gives it of all samples of the series."""
        for shift in self.state.shifts:
            on_shift(shift)
        for source, src_vm, dst_vm, samples in self.state.votes:
            first = self.current[0].samples[0]
            estimator.add_votes(first.src, first.dst, src_vm, dst_vm, samples, source)
        for source, first_id, counting in self.current:
            estimator.add(counting, source, first_id)


def current_series(
    rows: Iterable[Reported], is_possible: Callable[[Reported], bool]
) -> CurrentSeries:
    """Return what all samples of one series leave.

    Parameters
    ----------
    rows : iterable of Reported
        The oldest first.
    is_possible : callable
        Whether a sample can be a measurement.
    """
    votes: Counter[tuple[str, str, str]] = Counter()
    shifts: list[LinkShift] = []
    read = impossible = 0

    def possible() -> Iterator[Reported]:  # one by one: a series may have millions of samples
        nonlocal read, impossible
        for row in rows:
            read += 1
            if is_possible(row):
                yield row
            else:
                impossible += 1

    def vote(sample: Sample, source: str) -> None:
        if sample.metric in THROUGHPUT:
            votes[source, sample.src_vm, sample.dst_vm] += 1

    parts, current = [], []
    for source, first_id, samples in since_last_changes(
        possible(), shifts.append, lambda row: vote(row.sample, row.source)
    ):
        for sample in samples[:-MOST_SAMPLES]:
            vote(sample, source)
        counting = samples[-MOST_SAMPLES:]
        first = counting[0]
        is_private = first.address == "private"
        parts.append(CountingPart(is_private, source, first_id, first.measured_at_s, len(counting)))
        current.append(CurrentSamples(source, first_id, counting))
    state = SeriesState(
        tuple(parts),
        tuple(Votes(*names, count) for names, count in votes.items()),
        tuple(shifts),
        impossible,
    )
    return CurrentSeries(state, current, read <= LEARNT_FROM)


def resumed(
    state: SeriesState, rows: Sequence[Reported], is_possible: Callable[[Reported], bool]
) -> CurrentSeries | None:
    """Return a series of its state and of the samples from the oldest that counts on.

    None where these are not the samples that counted then.
    """
    if state.impossible:
        rows = [row for row in rows if is_possible(row)]
    current = []
    for is_private, source, first_id, since_s, samples in state.parts:
        found = [
            row.sample
            for row in rows
            if row.source == source and (row.sample.address == "private") == is_private
        ][-samples:]
        if len(found) < samples or found[0].measured_at_s != since_s:
            return None
        current.append(CurrentSamples(source, first_id, found))
    return CurrentSeries(state, current)


def plain_state(state: SeriesState) -> list[Any]:
    """Return a state as JSON types; :func:`state_of` reads it again."""
    return [state.parts, state.votes, state.shifts, state.impossible]


def state_of(plain: list[Any]) -> SeriesState:
    """Return the state that :func:`plain_state` made JSON types of."""
    parts, votes, shifts, impossible = plain
    return SeriesState(
        tuple(CountingPart(*part) for part in parts),
        tuple(Votes(*vote) for vote in votes),
        tuple(LinkShift(*shift) for shift in shifts),
        impossible,
    )
