"""Gives an estimator the samples of a store that count, reading as few of the others as it can."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from probes.estimation import Estimator
from probes.estimation.current_samples import LinkShift
from probes.estimation.series_state import CurrentSeries, current_series, resumed
from probes.importers.physics import PhysicalGate
from probes.samples import Reported
from relayd.store import Store
from relayd.store.samples.series_states import (
    KeptState,
    Key,
    SeriesNumbers,
    SeriesStates,
    StatesHead,
    kept_state,
    made_from,
)


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
        Those of series that were read wholly.
    head, instead_of : StatesHead
        See :meth:`.SeriesStates.save`.
    """

    estimator: Estimator
    impossible: int
    shifts: list[LinkShift]
    states: dict[Key, KeptState]
    head: StatesHead
    instead_of: StatesHead | None


def gathered(store: Store, catalogue: Catalogue, *, through: int, anew: bool = False) -> Gathered:
    """Give a new estimator the samples of a store that count.

    Parameters
    ----------
    through : int
        Only samples with this id or a lower one.
    anew : bool
        Read all samples, whatever was kept of them.
    """
    gate, states = PhysicalGate(catalogue), SeriesStates(store.database)
    before, head = states.head(), StatesHead(through, made_from(store.database, catalogue))

    def is_possible(row: Reported) -> bool:
        return row.vouched or gate.fault(row.sample, row.arrived_at_s) is None

    if not anew and before and before.made_from == head.made_from and before.through <= through:
        try:
            return _gathered(catalogue, _resumed(store, before, through, is_possible), head, before)
        except _StaleError:
            pass
    return _gathered(catalogue, _all(store, through, is_possible), head, None)


class _StaleError(Exception):
    """The states that are kept are not those of the samples that are there."""


class _Series(NamedTuple):
    """One series; whether all of its samples were read."""

    key: Key
    series: CurrentSeries
    was_read: bool


def _gathered(
    catalogue: Catalogue, found: Iterator[_Series], head: StatesHead, before: StatesHead | None
) -> Gathered:
    estimator, impossible = Estimator(catalogue), 0
    shifts: list[LinkShift] = []
    states = {}
    for key, series, was_read in found:
        series.add_to(estimator, shifts.append)
        impossible += series.state.impossible
        if was_read:
            states[key] = kept_state(series)
    return Gathered(estimator, impossible, shifts, states, head, before)


def _all(store: Store, through: int, is_possible: Callable[[Reported], bool]) -> Iterator[_Series]:
    numbers = SeriesNumbers(store.database)
    for names, rows in groupby(store.samples.reported(through=through), _names):
        yield _Series(numbers.key(*names), current_series(rows, is_possible), True)


def _resumed(
    store: Store, before: StatesHead, through: int, is_possible: Callable[[Reported], bool]
) -> Iterator[_Series]:
    """Yield all series in order: those with new samples read wholly, the others of their states."""
    kept = SeriesStates(store.database).read()
    if kept is None:
        raise _StaleError
    numbers = SeriesNumbers(store.database)
    changed = {
        numbers.key(*names): current_series(rows, is_possible)
        for names, rows in groupby(store.samples.of_changed_series(before.through, through), _names)
    }

    def unchanged() -> Iterator[_Series]:
        unseen = kept.keys() - changed.keys()
        for names, rows in groupby(store.samples.counting(through), _names):
            key = numbers.key(*names)
            if key in changed:
                continue
            if key not in unseen:
                raise _StaleError
            unseen.remove(key)
            state = kept[key]
            series: CurrentSeries | None
            if state is None:
                series = current_series(rows, is_possible)
            else:
                series = resumed(state, list(rows), is_possible)
            if series is None:
                raise _StaleError
            yield _Series(key, series, False)
        if unseen:
            raise _StaleError

    new = (_Series(key, series, True) for key, series in changed.items())
    return merge(unchanged(), new, key=lambda one: one.key)


def _names(row: Reported) -> tuple[str, str, str]:
    return row.sample[:3]
