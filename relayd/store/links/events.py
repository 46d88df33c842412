"""What happened to one link: changes of its level, and of its condition."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, NamedTuple, TypeAlias

from probes.estimation.current_samples import WITH_A_LEVEL, LinkShift, current_samples
from relayd.store.database import Database
from relayd.store.samples.reading import StoredSamples

EventKind: TypeAlias = Literal["shift", "leg"]

_SHIFTS = (
    "SELECT metrics.name, at_s, found_at_s, before, after FROM level_shifts "
    "JOIN metrics ON metrics.id = metric_id "
    "WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?)"
)
# The number of a change is that of its metric: two can't begin at the same time.
_STATES = (
    "SELECT id, at_s, detail FROM events WHERE kind = 'leg' AND subject = ? "
    "AND (at_s < ? OR (at_s = ? AND id < ?)) ORDER BY at_s DESC, id DESC LIMIT ?"
)
EVERYTHING = 2**62


class Position(NamedTuple):
    """Where a page ended: times fall, and at one time states come before changes of level."""

    at_s: float
    number: int


NEWEST = Position(inf, EVERYTHING)


@dataclass(frozen=True, slots=True)
class LinkEvent:
    """Something that happened to a link.

    Attributes
    ----------
    at_s : float
        Of a change: when the first sample of the new level was measured.
    kind : {"shift", "leg"}
        A change of level, or of the link's condition.
    number : int
        Tells those of one time apart; negative for changes of level.
    found_at_s : float | None
        Of a change: when the sample was measured that settled it.
    metric : str | None
    before, after : float | None
        The levels, in the metric's unit.
    condition, condition_before : str | None
        ``up``, ``degraded`` or ``down``.
    reason : str
        Why the condition changed, as a clause.
    """

    at_s: float
    kind: EventKind
    number: int
    found_at_s: float | None = None
    metric: str | None = None
    before: float | None = None
    after: float | None = None
    condition: str | None = None
    condition_before: str | None = None
    reason: str = ""

    @property
    def position(self) -> Position:
        """For the next page."""
        return Position(self.at_s, self.number)


def link_events(
    database: Database, src: str, dst: str, *, after: Position = NEWEST, limit: int
) -> list[LinkEvent]:
    """Return what happened to a link, the newest first.

    Changes of level are those that were kept while the link was watched, and those that are found
    in its newest samples now, which are the ones that the next estimates will respect.

    Parameters
    ----------
    after : Position
        Only what comes after this one on the list.
    """
    until_s = min(after.at_s, 1e300)
    states = [
        _state(number, at_s, json.loads(detail))
        for number, at_s, detail in database.rows(
            _STATES, (f"{src}>{dst}", until_s, until_s, after.number, limit)
        )
    ]
    shifts = [event for event in _shifts(database, src, dst) if event.position < after]
    found = sorted([*states, *shifts], key=lambda event: event.position, reverse=True)
    return found[:limit]


def _state(number: int, at_s: float, detail: dict[str, Any]) -> LinkEvent:
    return LinkEvent(
        at_s,
        "leg",
        number,
        condition=detail.get("to"),
        condition_before=detail.get("from"),
        reason=str(detail.get("reason", "")),
    )


def _shifts(database: Database, src: str, dst: str) -> list[LinkEvent]:
    kept = [
        LinkShift(src, dst, metric, at_s, found_at_s, before, after)
        for metric, at_s, found_at_s, before, after in database.rows(_SHIFTS, (src, dst))
    ]
    found: list[LinkShift] = []
    for metric in WITH_A_LEVEL:
        known_s = max((s.found_at_s for s in kept if s.metric == metric), default=-inf)
        # As samples arrive, an old change is found again at about its old place.
        samples = StoredSamples(database).read(src=src, dst=dst, metric=metric)
        new = current_samples(samples).shifts
        found += [shift for shift in new if shift.at_s > known_s]
    order = {metric: -number for number, metric in enumerate(WITH_A_LEVEL, 1)}
    return [
        LinkEvent(
            shift.at_s,
            "shift",
            order.get(shift.metric, -9),
            shift.found_at_s,
            shift.metric,
            shift.before,
            shift.after,
        )
        for shift in (*kept, *found)
    ]
