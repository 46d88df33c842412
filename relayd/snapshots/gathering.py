"""Gives an estimator the samples of a store that count, reading as few of the others as it can."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.errors import StoreError
from probes.analysis.level_shift import LEARNT_FROM
from probes.estimation import Estimator
from probes.estimation.arrays.groups import Groups
from probes.estimation.current_samples import LinkShift
from probes.estimation.series_state import SeriesState, StaleError, series_state
from probes.importers.physics import PhysicalGate
from probes.samples import Reported
from relayd.snapshots.short_series import AT_ONCE, ShortSeries
from relayd.store import Store
from relayd.store.samples.decisions import confirmed_ids
from relayd.store.samples.new_samples import Row, new_parts, series_since
from relayd.store.samples.reading import (
    BATCH,
    COUNT,
    SERIES,
    BatchSource,
    BatchSources,
    SampleNames,
    reported_sample,
)
from relayd.store.samples.series_states import (
    Key,
    SeriesStates,
    StatesHead,
    kept_state,
    made_from,
    read_state,
)

_LONG_AGO_S = -1e308
MANY = 1000
"""Series of few samples; more are read again as quickly as they are looked up one by one."""


class FaultySeries(NamedTuple):
    """A series that can't be evaluated, and why."""

    src: str
    dst: str
    metric: str
    problem: str

    def __str__(self) -> str:
        """Return both in words."""
        return f"{self.metric} of {self.src} > {self.dst} ({self.problem})"


class Gathered(NamedTuple):
    """An estimator with samples, and the states that save reading them again.

    Attributes
    ----------
    estimator : Estimator
    impossible : int
        Samples that can't be measurements: nothing rests on them.
    shifts : list of LinkShift
        Every change of level that was found.
    states : dict | None
        Those that are new or have changed; None where most samples are of series that have few:
        reading all of them again takes no longer.
    head, instead_of : StatesHead
        See :meth:`.SeriesStates.save`.
    left_out : list of FaultySeries
        Series that could not be evaluated: all others are there. The next snapshot tries again.
    """

    estimator: Estimator
    impossible: int
    shifts: list[LinkShift]
    states: dict[Key, str] | None
    head: StatesHead
    instead_of: StatesHead | None
    left_out: list[FaultySeries]


def gathered(
    store: Store,
    catalogue: Catalogue,
    *,
    through: int,
    anew: bool = False,
    new: Callable[[], Estimator] | None = None,
) -> Gathered:
    """Give a new estimator the samples of a store that count.

    Parameters
    ----------
    through : int
        Only samples with this id or a lower one.
    anew : bool
        Read all samples, whatever was kept of them.
    new : callable, optional
        Makes the estimator; if not stated, it is of the catalogue alone.
    """
    estimator = (new or partial(Estimator, catalogue))()
    head = StatesHead(through, made_from(store.database, catalogue))
    kept = None if anew else SeriesStates(store.database).read()
    if kept:
        before, states = kept
        if before.made_from == head.made_from and before.through <= through:
            try:
                gathering = _Gathering(store, catalogue, estimator)
                gathering.resume(before, states, through)
                return gathering.done(head, before)
            except StaleError:
                estimator = (new or partial(Estimator, catalogue))()
    gathering = _Gathering(store, catalogue, estimator)
    gathering.all(through)
    return gathering.done(head, None)


class _Gathering:
    """Gives an estimator series after series: those of few samples many at once."""

    def __init__(self, store: Store, catalogue: Catalogue, estimator: Estimator) -> None:
        self._store, self._database, self._estimator = store, store.database, estimator
        self._gate = PhysicalGate(catalogue)
        self._names = SampleNames(store.database)
        self._confirmed = confirmed_ids(store.database)
        self._sources: BatchSources | dict[int, BatchSource] = {}
        self._short = ShortSeries(estimator, self._gate, self._names, self._confirmed)
        self._waiting: list[Row] = []
        self._keys_of_few: list[Key] = []
        self._of_few = self._of_many = self._impossible = 0
        self._shifts: list[LinkShift] = []
        self._states: dict[Key, str] = {}
        self._left_out: list[FaultySeries] = []

    def done(self, head: StatesHead, before: StatesHead | None) -> Gathered:
        """Return what was found."""
        self._take_waiting()
        names = self._names
        self._estimator.samples.sort(
            {name: number for number, name in names.regions.items()},
            {name: number for number, name in names.metrics.items()},
        )
        mostly_few = len(self._keys_of_few) > MANY and self._of_few > self._of_many
        keeps_none = before is None and mostly_few
        self._states.update((key, "") for key in (() if keeps_none else self._keys_of_few))
        return Gathered(
            self._estimator,
            self._impossible + self._short.impossible,
            self._shifts,
            None if keeps_none else self._states,
            head,
            before,
            self._left_out,
        )

    def all(self, through: int) -> None:
        """Take in all samples up to an id."""
        self._sources = self._store.samples.batch_sources()
        stream = self._store.samples.rows(through)
        left: list[Row] = []
        while found := [*left, *islice(stream, AT_ONCE)]:
            is_last = len(found) < len(left) + AT_ONCE
            columns = list(zip(*found, strict=True))
            keys = [np.array(columns[n]) for n in range(SERIES)]
            groups = Groups.of(*keys)
            # The last series may go on.
            begins = groups.begins if is_last else groups.begins[:-1]
            end = int(begins[-1])
            left = found[end:]
            if end and not self._waiting and (np.diff(begins) <= LEARNT_FROM).all():
                self._of_few += end
                first = groups.first if is_last else groups.first[:-1]
                self._keys_of_few += zip(*(key[first].tolist() for key in keys), strict=True)
                self._take_columns([column[:end] for column in columns])
            elif end:
                self._take_series(found, begins.tolist())
            elif left:
                more = _more_of(stream, found[0], left)
                self._take_many(_key(found[0]), chain(found, more))
                deque(more, maxlen=0)

    def _take_series(self, found: Sequence[Row], begins: Sequence[int]) -> None:
        """Take in whole series; those of few samples that follow each other at once."""
        few = 0  # where they begin
        for begin, end in pairwise(begins):
            if end - begin > LEARNT_FROM:
                self._take_few(found[few:begin])
                self._take_many(_key(found[begin]), found[begin:end])
                few = end
            else:
                self._keys_of_few.append(_key(found[begin]))
        self._take_few(found[few : begins[-1]])

    def _take_many(self, key: Key, rows: Iterable[Row]) -> None:
        """Take in a series of many samples, whose state is kept."""
        evaluate = partial(series_state, self._reported(rows), self._is_possible)
        self._take(key, evaluate, is_new=True)

    def resume(self, before: StatesHead, kept: dict[Key, str], through: int) -> None:
        """Take in states that were kept, and samples of series that have new ones, or few."""
        changed = new_parts(self._database, before.through, through)
        states = {k: read_state(text, self._named(k)) for k in changed if (text := kept.get(k))}

        def since_s(key: Key) -> float:
            if key not in states:
                return _LONG_AGO_S
            parts = states[key].parts
            return min(
                min(first_s, parts[part].newest_since_s) if part in parts else first_s
                for part, first_s in changed[key].items()
            )

        short = {key for key, text in kept.items() if not text}
        needed = {key: since_s(key) for key in sorted(short | changed.keys())}
        unread = needed.keys() & kept.keys()
        for key, text in kept.items():
            if key not in needed:
                self._take(key, partial(read_state, text, self._named(key)), is_new=False)
        sources = self._sources = {}
        for key, rows in series_since(self._database, needed, through):
            unread.discard(key)
            for row in rows:
                sources[row[BATCH]] = BatchSource(*row[COUNT:])
            if key not in states and len(rows) <= LEARNT_FROM:
                self._take_few(rows)
                if key in changed:
                    self._keys_of_few.append(key)
                continue
            known = states.get(key)
            found = self._reported(rows)
            after = before.through if known else 0
            evaluate = partial(series_state, found, self._is_possible, known, after)
            self._take(key, evaluate, is_new=key in changed)
        if unread:  # what was new of them was retracted meanwhile
            raise StaleError

    def _named(self, key: Key) -> tuple[str, str, str]:
        names = self._names
        return names.regions[key[0]], names.regions[key[1]], names.metrics[key[2]]

    def _reported(self, rows: Iterable[Row]) -> Iterator[Reported]:
        for row in rows:
            self._of_many += 1
            number, batch_id, sample = self._names.stored(row[:COUNT])
            yield reported_sample(number, sample, self._sources[batch_id], self._confirmed)

    def _is_possible(self, row: Reported) -> bool:
        return row.vouched or self._gate.fault(row.sample, row.arrived_at_s) is None

    def _take_few(self, rows: Sequence[Row]) -> None:
        """Take in series of few samples, of which no state is worth keeping."""
        self._waiting += rows
        self._of_few += len(rows)
        if len(self._waiting) >= AT_ONCE:
            self._take_waiting()

    def _take_waiting(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._take_columns(list(zip(*waiting, strict=True)))

    def _take_columns(self, columns: Sequence[Sequence[Any]]) -> None:
        try:
            self._short.take(columns, self._sources)
        except (StoreError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - one by one: a fault in a series is its own
            for key, rows in groupby(zip(*columns, strict=True), _key):
                found = self._reported(list(rows))
                self._take(key, partial(series_state, found, self._is_possible), is_new=False)

    def _take(self, key: Key, evaluate: Callable[[], SeriesState], *, is_new: bool) -> None:
        """Take in a series: a fault in it is its own, and no reason to go without the others."""
        try:
            state = evaluate()
            state.add_to(self._estimator, self._shifts.append)
        except (StaleError, StoreError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - what somebody sent may hold anything
            self._states[key] = ""  # read again for the next snapshot
            problem = f"{type(error).__name__}: {error}"[:200]
            self._left_out.append(FaultySeries(*self._named(key), problem))
            return
        self._impossible += state.impossible
        if is_new:
            self._states[key] = kept_state(state)


_key: Callable[[Row], Any] = itemgetter(0, 1, 2)


def _more_of(stream: Iterator[Row], first: Row, left: list[Row]) -> Iterator[Row]:
    """Yield the rows that are of one series; leave the first that is not."""
    left.clear()
    for row in stream:
        if _key(row) != _key(first):
            left.append(row)
            return
        yield row
