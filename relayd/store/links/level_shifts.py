"""Lasting changes of level, each recorded once, open until throughput was measured again."""

from __future__ import annotations

import time
from typing import NamedTuple

from probes.estimation.current_samples import LinkShift
from relayd.store.database import Database


class Change(NamedTuple):
    """A link that has changed and was not measured again since."""

    src: str
    dst: str
    metric: str
    at_s: float
    before: float
    after: float


class LevelShifts:
    """The changes of a store.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, shift: LinkShift) -> bool:
        """Record a change, in the caller's transaction; return whether it is new.

        As samples arrive, an old change is found again at about its old place: what begins
        before the last change was found is not a new one.
        """
        database = self._database
        key = (
            database.region_id(shift.src),
            database.region_id(shift.dst),
            int(database.row("SELECT id FROM metrics WHERE name = ?", (shift.metric,))[0]),
        )
        (known_s,) = database.row(
            "SELECT max(found_at_s) FROM level_shifts "
            "WHERE src_id = ? AND dst_id = ? AND metric_id = ?",
            key,
        )
        if known_s is not None and shift.at_s <= known_s:
            return False
        database.change(
            "INSERT INTO level_shifts (src_id, dst_id, metric_id, at_s, before, after, "
            "found_at_s) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*key, shift.at_s, shift.before, shift.after, shift.found_at_s),
        )
        return True

    def open(self) -> list[Change]:
        """Return the changes after which throughput was not measured again, the oldest first."""
        rows = self._database.rows(
            "SELECT src.name, dst.name, metrics.name, at_s, before, after FROM level_shifts "
            "JOIN regions AS src ON src.id = src_id JOIN regions AS dst ON dst.id = dst_id "
            "JOIN metrics ON metrics.id = metric_id "
            "WHERE measured_again_at_s IS NULL ORDER BY found_at_s"
        )
        return [Change(*row) for row in rows]

    def found_since(self, at_s: float) -> list[LinkShift]:
        """Return the changes that were settled since a time, the newest first."""
        rows = self._database.rows(
            "SELECT src.name, dst.name, metrics.name, at_s, found_at_s, before, after "
            "FROM level_shifts JOIN regions AS src ON src.id = src_id "
            "JOIN regions AS dst ON dst.id = dst_id JOIN metrics ON metrics.id = metric_id "
            "WHERE found_at_s >= ? ORDER BY found_at_s DESC, src.name, dst.name",
            (at_s,),
        )
        return [LinkShift(*row) for row in rows]

    def close(self, src: str, dst: str) -> None:
        """Record that a probe measured throughput of a link again, or tried to."""
        self._database.change(
            "UPDATE level_shifts SET measured_again_at_s = ? WHERE measured_again_at_s IS NULL "
            "AND src_id = ? AND dst_id = ?",
            (time.time(), self._database.region_id(src), self._database.region_id(dst)),
        )
