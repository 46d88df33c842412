"""Spending of continuous probing by day. A day's budget holds even if a process is killed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from relayd.store.database import Part

Kind: TypeAlias = Literal["liveness", "campaign"]


class Spending(Part):
    """The spending of a store, by UTC day.

    Money is reserved before it is spent. A reservation counts as spent until it is settled.

    Parameters
    ----------
    database : Database
        Open for writing.
    """

    def committed_usd(self, day: str, kind: Kind | None = None) -> float:
        """Return USD spent or reserved on a day, of one kind or of all."""
        return self._sum("reserved_usd + spent_usd", day, kind)

    def reserved_usd(self, day: str, kind: Kind) -> float:
        """Return USD reserved on a day and not settled."""
        return self._sum("reserved_usd", day, kind)

    def sent_gb(self, day: str) -> float:
        """Return GB sent on a day, without open reservations."""
        return self._sum("sent_gb", day, None)

    def _sum(self, what: str, day: str, kind: Kind | None) -> float:
        row = self._database.row(
            f"SELECT coalesce(sum({what}), 0) FROM watch_spending "  # noqa: S608
            "WHERE day = ? AND (kind = ? OR ? = '')",
            (day, kind or "", kind or ""),
        )
        return float(row[0])

    def reserve(self, day: str, kind: Kind, usd: float, budget_usd: float) -> bool:
        """Reserve an amount if the day's budget allows it."""
        with self._database.transaction():
            if self.committed_usd(day) + usd > budget_usd:
                return False
            self._database.change(
                "INSERT INTO watch_spending (day, kind, reserved_usd) VALUES (?, ?, ?) "
                "ON CONFLICT (day, kind) DO UPDATE SET "
                "reserved_usd = watch_spending.reserved_usd + excluded.reserved_usd",
                (day, kind, usd),
            )
        return True

    def settle(self, day: str, kind: Kind, reserved_usd: float, usd: float, sent_gb: float) -> None:
        """Replace a reservation by what was actually spent."""
        self._database.change(
            "UPDATE watch_spending SET reserved_usd = reserved_usd - ?, "
            "spent_usd = spent_usd + ?, sent_gb = sent_gb + ? WHERE day = ? AND kind = ?",
            (reserved_usd, usd, sent_gb, day, kind),
        )
