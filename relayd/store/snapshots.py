"""Snapshots in the database: immutable graphs of estimates.

The rows have the fields of :class:`planner.model.network.Link`, ``Site`` and ``Estimate``, in their
order, so ``Estimate(*row.rtt_ms)`` is what was saved.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from planner.model.errors import InputError
from planner.model.link import LINK_FIGURES, SITE_FIGURES
from relayd.store.database import Database
from relayd.store.failures import reason
from relayd.store.regions import region_id
from relayd.times import utc_date

_FIGURE = ("low", "expected", "high", "source", "measured_at_s", "samples", "basis")


def _columns(table: str, figures: Sequence[str]) -> str:
    return ", ".join(f"{table}.{figure}_{part}" for figure in figures for part in _FIGURE)


_HEADS = (
    "SELECT id, as_of_s, created_at_s, source, catalogue_digest, samples_through, legs, sites "
    "FROM snapshots"
)


# SQLite is told the order of joins (CROSS JOIN): links first, and their names by number. Left to
# itself, it reads the whole snapshot for the second half of _LINKS_BETWEEN. PostgreSQL has no such
# hints.
_HINTS = {
    "sqlite": {"join": "CROSS JOIN", "by_destination": "INDEXED BY legs_by_destination"},
    "postgresql": {"join": "JOIN", "by_destination": ""},
}
_LINKS_OF = (
    f"SELECT src.name, dst.name, {_columns('legs', LINK_FIGURES)}, legs.loss_pct "  # noqa: S608
    "FROM legs {index} {join} regions AS src ON src.id = legs.src_id "
    "{join} regions AS dst ON dst.id = legs.dst_id WHERE snapshot_key = :snapshot"
)
_LINKS = _LINKS_OF.replace("{index}", "") + " ORDER BY src_id, dst_id"
_LINKS_BETWEEN = (
    _LINKS_OF.replace("{index}", "")
    + " AND src_id = :src UNION ALL "
    + _LINKS_OF.replace("{index}", "{by_destination}")
    + " AND dst_id = :dst AND src_id <> :src"
)
_SITES = (
    f"SELECT regions.name, sites.vm_type, {_columns('sites', SITE_FIGURES)} "  # noqa: S608
    "FROM sites {join} regions ON regions.id = sites.region_id "
    "WHERE snapshot_key = :snapshot ORDER BY position"
)


class EstimateRow(NamedTuple):
    """One quantity: what is believed of it, and why.

    Attributes
    ----------
    source : str
        ``measured``, ``inferred`` or ``baseline``.
    measured_at_s : float | None
        Time of the newest sample, seconds since 1970 (UTC).
    samples : int
        How many samples of this very quantity it rests on.
    """

    low: float
    expected: float
    high: float
    source: str
    measured_at_s: float | None = None
    samples: int = 0
    basis: str = ""


class LinkRow(NamedTuple):
    """One directed pair of regions."""

    src: str
    dst: str
    rtt_ms: EstimateRow
    per_flow_mbps: EstimateRow
    aggregate_gbps: EstimateRow
    loss_pct: float | None = None


class SiteRow(NamedTuple):
    """A region, the VM type used there, and the caps of one VM."""

    region: str
    vm_type: str
    egress_gbps: EstimateRow
    ingress_gbps: EstimateRow
    window_mb: EstimateRow


class SnapshotRow(NamedTuple):
    """A graph without its links and sites: what it is of, and from what it was made.

    Attributes
    ----------
    id : str
        As plans name it; unique for ever, also after it was pruned.
    as_of_s, created_at_s : float
        Up to when measurements count, and when it was made; seconds since 1970 (UTC).
    source : str
        ``measured``, ``baseline`` or ``mixed``.
    catalogue_digest : str
        Of the catalogue whose caps and coordinates it uses.
    samples_through : int
        Id of the newest sample that it takes into account; 0 for none.
    links, sites : int
        How many; filled in by the store.
    """

    id: str
    as_of_s: float
    created_at_s: float
    source: str
    catalogue_digest: str
    samples_through: int
    links: int = 0
    sites: int = 0


class Snapshots:
    """The snapshots of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _hinted(self, sql: str) -> str:
        return sql.format_map(_HINTS[self._database.engine])

    def save(
        self, snapshot: SnapshotRow, links: Sequence[LinkRow], sites: Sequence[SiteRow]
    ) -> SnapshotRow:
        """Save a snapshot for good; returns its row with the counts.

        Raises
        ------
        InputError
            If the id is taken, or a figure has bounds out of order, is not a number, or comes
            twice.
        StoreError
            If the database can't take it.
        """
        database = self._database
        with database.transaction():
            if database.row(
                "SELECT 1 FROM snapshots WHERE id = :id "
                "UNION ALL SELECT 1 FROM pruned_snapshots WHERE id = :id",
                {"id": snapshot.id},
            ):
                raise InputError(
                    "snapshot",
                    "has been saved already, and a snapshot never changes",
                    value=snapshot.id,
                    remedy="Save the new figures under another id.",
                )
            try:
                key = database.change(
                    "INSERT INTO snapshots (id, as_of_s, created_at_s, source, catalogue_digest, "
                    "samples_through) VALUES (?, ?, ?, ?, ?, ?) RETURNING key",
                    snapshot[:6],
                )
                numbers = _Numbers(database)
                database.insert(
                    "legs",
                    [
                        (
                            key,
                            numbers[link.src],
                            numbers[link.dst],
                            *_stored(link.rtt_ms),
                            *_stored(link.per_flow_mbps),
                            *_stored(link.aggregate_gbps),
                            link.loss_pct,
                        )
                        for link in links
                    ],
                )
                database.insert(
                    "sites",
                    [
                        (
                            key,
                            position,
                            numbers[site.region],
                            site.vm_type,
                            *_stored(site.egress_gbps),
                            *_stored(site.ingress_gbps),
                            *_stored(site.window_mb),
                        )
                        for position, site in enumerate(sites)
                    ],
                )
            except database.refusals as error:
                raise InputError(
                    "snapshot", f"can't be saved: {reason(error)}", value=snapshot.id
                ) from error
            database.change(
                "UPDATE snapshots SET legs = ?, sites = ? WHERE key = ?",
                (len(links), len(sites), key),
            )
        return snapshot._replace(links=len(links), sites=len(sites))

    def latest(self) -> SnapshotRow | None:
        """Return the snapshot that was saved last; None if there is none."""
        row = self._database.row(_HEADS + " ORDER BY key DESC LIMIT 1")
        return None if row is None else SnapshotRow(*row)

    def current_at(self, at_s: float) -> SnapshotRow | None:
        """Return the snapshot that was the newest at a time; None if none is as old."""
        row = self._database.row(
            _HEADS + " WHERE created_at_s <= ? ORDER BY key DESC LIMIT 1", (at_s,)
        )
        return None if row is None else SnapshotRow(*row)

    def oldest(self) -> SnapshotRow | None:
        """Return the oldest snapshot that is kept; None if there is none."""
        row = self._database.row(_HEADS + " ORDER BY key LIMIT 1")
        return None if row is None else SnapshotRow(*row)

    def get(self, snapshot_id: str) -> SnapshotRow:
        """Return one snapshot.

        Raises
        ------
        InputError
            If it was never saved here, or was pruned.
        """
        row = self._database.row(_HEADS + " WHERE id = ?", (snapshot_id,))
        if row is not None:
            return SnapshotRow(*row)
        pruned = self._database.row(
            "SELECT pruned_at_s FROM pruned_snapshots WHERE id = ?", (snapshot_id,)
        )
        on = utc_date(pruned[0]) if pruned else ""
        raise InputError(
            "snapshot",
            f"was pruned on {on}" if pruned else "is not in this store",
            value=snapshot_id,
            remedy="Name another one, or none for the newest.",
        )

    def list(self) -> Sequence[SnapshotRow]:
        """Return every snapshot, the one that was saved last first."""
        return [SnapshotRow(*row) for row in self._database.rows(_HEADS + " ORDER BY key DESC")]

    def links(self, snapshot_id: str) -> Iterator[LinkRow]:
        """Yield all links of a snapshot, grouped by source.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        values = {"snapshot": self._key(snapshot_id)}
        return map(_link, self._database.rows(self._hinted(_LINKS), values))

    def links_between(self, snapshot_id: str, src: str, dst: str) -> Sequence[LinkRow]:
        """Return the links out of the source and into the destination: all of one-hop planning.

        A region that the snapshot does not know has no links.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        values: dict[str, object] = {"snapshot": self._key(snapshot_id)}
        # NULL for an unknown source would also hide the links into the destination.
        for end, name in (("src", src), ("dst", dst)):
            row = self._database.row("SELECT id FROM regions WHERE name = ?", (name,))
            values[end] = 0 if row is None else row[0]
        return [_link(row) for row in self._database.rows(self._hinted(_LINKS_BETWEEN), values)]

    def sites(self, snapshot_id: str) -> Sequence[SiteRow]:
        """Return the sites of a snapshot, in the order in which they were saved.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        rows = self._database.rows(self._hinted(_SITES), {"snapshot": self._key(snapshot_id)})
        return [
            SiteRow(row[0], row[1], _estimate(row[2:9]), _estimate(row[9:16]), _estimate(row[16:]))
            for row in rows
        ]

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all but the newest snapshots; returns the ids of those removed.

        Plans that name one of them can no longer be traced to its figures. Samples stay.
        """
        if keep < 1:
            raise InputError("keep", "must be at least 1: the newest is in use", value=keep)
        database = self._database
        with database.transaction():
            pruned = database.rows(
                "SELECT key, id FROM snapshots WHERE key NOT IN "
                "(SELECT key FROM snapshots ORDER BY key DESC LIMIT ?) ORDER BY key DESC",
                (keep,),
            )
            for key, snapshot_id in pruned:
                database.change(
                    "INSERT INTO pruned_snapshots VALUES (?, ?)", (snapshot_id, time.time())
                )
                database.change("DELETE FROM legs WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM sites WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM snapshots WHERE key = ?", (key,))
        return [snapshot_id for _, snapshot_id in pruned]

    def _key(self, snapshot_id: str) -> int:
        row = self._database.row("SELECT key FROM snapshots WHERE id = ?", (snapshot_id,))
        if row is None:
            self.get(snapshot_id)  # raises, with the reason
        return int(row[0])


class _Numbers(dict[str, int]):
    """Region ids to the numbers that stand for them, looked up once each."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def __missing__(self, name: str) -> int:
        self[name] = number = region_id(self._database, name)
        return number


def _stored(estimate: EstimateRow) -> tuple[object, ...]:
    return (*estimate[:6], estimate[6] or None)


def _estimate(columns: tuple[Any, ...]) -> EstimateRow:
    low, expected, high, source, measured_at_s, samples, basis = columns
    return EstimateRow(low, expected, high, source, measured_at_s, samples, basis or "")


def _link(row: tuple[Any, ...]) -> LinkRow:
    return LinkRow(
        row[0], row[1], _estimate(row[2:9]), _estimate(row[9:16]), _estimate(row[16:23]), row[23]
    )
