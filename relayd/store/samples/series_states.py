"""The states of series in the database, so that a snapshot reads what is new and what counts.

A state follows from the samples of its series, and from what decides which of them are used: the
catalogue, what operators have decided, and which samples were summarised. While these are the same
(:func:`made_from`), only the newest samples of series that have new ones are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

from planner.model.catalogue import Catalogue
from probes.estimation.series_state import SeriesState, plain_state, state_of
from relayd.store.database import Database
from relayd.store.metadata import Metadata
from relayd.store.samples.decisions import last_decision
from relayd.version import __version__

Key: TypeAlias = tuple[int, int, int]
"""Numbers of source, destination and metric: estimates take series in their order."""

FORMAT = 2
"""Goes up with whatever decides what a state is."""
_TRIES = 5
_THROUGH, _MADE_FROM = "series_states_through", "series_states_made_from"
_ALL = "SELECT src_id, dst_id, metric_id, state FROM series_states"
_DELETE = "DELETE FROM series_states WHERE src_id = ? AND dst_id = ? AND metric_id = ?"


class StatesHead(NamedTuple):
    """What the states of a store rest on.

    Attributes
    ----------
    through : int
        Id of the newest sample that they take into account.
    made_from : int
        See :func:`made_from`.
    """

    through: int
    made_from: int


class SeriesStates:
    """The states of series of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._metadata = Metadata(database)

    def head(self) -> StatesHead | None:
        """Return what the states rest on; None where there are none."""
        through, made = self._metadata.get(_THROUGH), self._metadata.get(_MADE_FROM)
        return None if through is None or made is None else StatesHead(int(through), int(made))

    def read(self) -> tuple[StatesHead, dict[Key, str]] | None:
        """Return what the states rest on, and all of them by series, in order.

        ``""`` for a series that is to be read wholly. None where there are none.
        """
        for _ in range(_TRIES):
            head, found = self.head(), self._texts()
            if head is None:
                return None
            if self.head() == head:  # else somebody else has saved others meanwhile
                return head, found
        return None

    def _texts(self) -> dict[Key, str]:
        found: dict[Key, str] = {}
        for row in self._database.stream(f"{_ALL} ORDER BY src_id, dst_id, metric_id"):
            found[row[0], row[1], row[2]] = row[3]
        return found

    def save(
        self, states: Mapping[Key, str] | None, head: StatesHead, instead_of: StatesHead | None
    ) -> None:
        """Save states of series in one transaction.

        Parameters
        ----------
        states : mapping or None
            None to keep none: the next snapshot reads all samples.
        head : StatesHead
            What all states rest on from now on.
        instead_of : StatesHead or None
            What those of the other series rest on; None where these are all. Where somebody else
            has saved states meanwhile, theirs stay.
        """
        database = self._database
        with database.transaction():
            if states is None:
                database.change("DELETE FROM series_states")
                names = (_THROUGH, _MADE_FROM)
                database.change("DELETE FROM metadata WHERE name IN (?, ?)", names)
                return
            if instead_of is None:
                database.change("DELETE FROM series_states")
            elif self.head() != instead_of:
                database.roll_back()
                return
            else:
                database.change_many(_DELETE, list(states))
            rows = [(*key, state) for key, state in states.items()]
            database.insert("series_states", rows)
            self._metadata.set(_THROUGH, head.through)
            self._metadata.set(_MADE_FROM, head.made_from)


def kept_state(state: SeriesState) -> str:
    """Return the state of a series as it is kept: nothing where it would save nothing."""
    return "" if state.is_short else json.dumps(plain_state(state), separators=(",", ":"))


def read_state(text: str, series: tuple[str, str, str]) -> SeriesState:
    """Return the state that :func:`kept_state` wrote, of a series by its names."""
    return state_of(json.loads(text), series)


def made_from(database: Database, catalogue: Catalogue) -> int:
    """Return a number that is another one where states have to be made again from all samples."""
    (summarised,) = database.row("SELECT coalesce(max(id), 0) FROM compactions")
    of = f"{FORMAT} {__version__} {catalogue.digest} {last_decision(database)} {summarised}"
    # A float, as metadata are, holds it exactly.
    return int.from_bytes(blake2b(of.encode(), digest_size=6).digest(), "big")
