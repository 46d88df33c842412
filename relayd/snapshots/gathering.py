"""Gives an estimator the samples of a store that count, reading as few of the others as it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.errors import StoreError
from probes.estimation import Estimator
from probes.estimation.current_samples import LinkShift
from probes.estimation.series_state import SeriesState, StaleError, series_state
from probes.importers.physics import PhysicalGate
from probes.samples import Reported
from relayd.store import Store
from relayd.store.samples.new_samples import new_parts, series_since
from relayd.store.samples.series_states import (
    Key,
    SeriesNames,
    SeriesStates,
    StatesHead,
    kept_state,
    made_from,
    read_state,
)

_LONG_AGO_S = -1e308


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
    states : dict
        Those that are new or have changed.
    head, instead_of : StatesHead
        See :meth:`.SeriesStates.save`.
    left_out : list of FaultySeries
        Series that could not be evaluated: all others are there. The next snapshot tries again.
    """

    estimator: Estimator
    impossible: int
    shifts: list[LinkShift]
    states: dict[Key, str]
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
    new = new or partial(Estimator, catalogue)
    gate, head = PhysicalGate(catalogue), StatesHead(through, made_from(store.database, catalogue))

    def is_possible(row: Reported) -> bool:
        return row.vouched or gate.fault(row.sample, row.arrived_at_s) is None

    names = SeriesNames(store.database)
    kept = None if anew else SeriesStates(store.database).read()
    if kept:
        before, states = kept
        if before.made_from == head.made_from and before.through <= through:
            try:
                found = _resumed(store, before, states, through, is_possible)
                return _gathered(new(), found, names, head, before)
            except StaleError:
                pass
    return _gathered(new(), _all(store, through, is_possible), names, head, None)


class _Series(NamedTuple):
    """One series; whether its state is new; or what keeps it from one."""

    key: Key
    state: SeriesState | None
    is_new: bool
    problem: str = ""


def _series(key: Key, evaluate: Callable[[], SeriesState], *, is_new: bool) -> _Series:
    """Evaluate one series: a fault in it is its own, and no reason to go without the others."""
    try:
        return _Series(key, evaluate(), is_new)
    except (StaleError, StoreError, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - what somebody sent may hold anything
        return _Series(key, None, True, _in_words(error))


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


def _gathered(
    estimator: Estimator,
    found: Iterator[_Series],
    names: SeriesNames,
    head: StatesHead,
    before: StatesHead | None,
) -> Gathered:
    impossible = 0
    shifts: list[LinkShift] = []
    states, left_out = {}, []
    for key, state, is_new, problem in found:
        if state:
            try:
                state.add_to(estimator, shifts.append)
            except Exception as error:  # noqa: BLE001 - as above
                problem = _in_words(error)
        if state is None or problem:
            states[key] = ""  # read again for the next snapshot
            left_out.append(FaultySeries(*names.of(key), problem))
            continue
        impossible += state.impossible
        if is_new:
            states[key] = kept_state(state)
    return Gathered(estimator, impossible, shifts, states, head, before, left_out)


def _all(store: Store, through: int, is_possible: Callable[[Reported], bool]) -> Iterator[_Series]:
    names = SeriesNames(store.database)
    for series, rows in groupby(store.samples.reported(through=through), lambda r: r.sample[:3]):
        yield _series(names.key(*series), partial(series_state, rows, is_possible), is_new=True)


def _resumed(
    store: Store,
    before: StatesHead,
    kept: dict[Key, str],
    through: int,
    is_possible: Callable[[Reported], bool],
) -> Iterator[_Series]:
    """Yield all series in order: samples are read of those that have new ones, or few."""
    database = store.database
    names, changed = SeriesNames(database), new_parts(database, before.through, through)

    states = {key: read_state(text, names.of(key)) for key in changed if (text := kept.get(key))}

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

    def read() -> Iterator[_Series]:
        unread = needed.keys() & kept.keys()
        for key, rows in series_since(database, needed, through):
            unread.discard(key)
            known = states.get(key)
            after = before.through if known else 0
            evaluate = partial(series_state, rows, is_possible, known, after)
            yield _series(key, evaluate, is_new=key in changed)
        if unread:  # what was new of them was retracted meanwhile
            raise StaleError

    def unchanged() -> Iterator[_Series]:
        for key, text in kept.items():
            if key not in needed:
                yield _series(key, partial(read_state, text, names.of(key)), is_new=False)

    return merge(unchanged(), read(), key=lambda one: one.key)
