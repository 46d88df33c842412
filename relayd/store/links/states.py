"""Links that are down or degraded now, in the store: every reader plans around them at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from planner.model.link_states import LinkState, Pair
from probes.liveness.link_health import LinkHealth
from relayd.store.database import Database
from relayd.times import utc_text

_SELECT = (
    "SELECT src.name, dst.name, condition, since_s, reason, rtt_ms, loss_share, rate_share, "
    "valid_until_s, health FROM link_states "
    "JOIN regions AS src ON src.id = link_states.src_id "
    "JOIN regions AS dst ON dst.id = link_states.dst_id"
)
_UPSERT = (
    "INSERT INTO link_states (src_id, dst_id, condition, since_s, reason, rtt_ms, loss_share, "
    "rate_share, valid_until_s, health) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (src_id, dst_id) DO UPDATE SET condition = excluded.condition, "
    "since_s = excluded.since_s, reason = excluded.reason, rtt_ms = excluded.rtt_ms, "
    "loss_share = excluded.loss_share, rate_share = excluded.rate_share, "
    "valid_until_s = excluded.valid_until_s, health = excluded.health"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A link's health as it is stored, and until when it is valid."""

    src: str
    dst: str
    health: dict[str, Any]
    valid_until_s: float


class LinkStates:
    """The states of a store.

    Parameters
    ----------
    database : Database
        Open for writing if states are to be kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def now(self, now_s: float) -> dict[Pair, LinkState]:
        """Return the links that are down or degraded, without states that have expired."""
        rows = self._database.rows(f"{_SELECT} WHERE valid_until_s >= ?", (now_s,))
        return {
            (src, dst): LinkState(src, dst, condition, utc_text(since_s), *figures)
            for src, dst, condition, since_s, *figures, _ in rows
        }

    def kept(self) -> list[Kept]:
        """Return the health of links that a watcher resumes from."""
        return [
            Kept(row[0], row[1], json.loads(row[9]), row[8]) for row in self._database.rows(_SELECT)
        ]

    def keep(
        self, healths: Mapping[Pair, LinkHealth], usual: Iterable[Pair], until_s: float
    ) -> None:
        """Store the health of some links and remove that of others, in the caller's transaction.

        Parameters
        ----------
        healths : mapping
            Links that are not up.
        usual : iterable of (src, dst)
            Links that are as usual again.
        until_s : float
            Until when they are to be believed unless they are kept again.
        """
        for (src, dst), health in healths.items():
            # A round trip counts against the link only where it is what is wrong.
            slow = health.rtt_ms if "round trips" in health.reason else None
            self._database.change(
                _UPSERT,
                (
                    self._database.region_id(src),
                    self._database.region_id(dst),
                    health.condition,
                    health.since_s,
                    health.reason,
                    slow,
                    min(1.0, health.loss_share),
                    min(1.0, health.rate_share),
                    until_s,
                    json.dumps(asdict(health), sort_keys=True),
                ),
            )
        for src, dst in usual:
            self._database.change(
                "DELETE FROM link_states WHERE src_id = ? AND dst_id = ?",
                (self._database.region_id(src), self._database.region_id(dst)),
            )

    def forget_before(self, at_s: float) -> None:
        """Remove states that have expired: no watcher refreshes them."""
        self._database.change("DELETE FROM link_states WHERE valid_until_s < ?", (at_s,))
