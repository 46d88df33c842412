"""Snapshots in the database: immutable graphs of estimates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from planner.model.document import figures_as_json, figures_of
from planner.model.errors import InputError
from planner.model.estimate import Estimate, Figures, Origin, Prior
from planner.model.link import LINK_FIGURES, PRIVATE_CAPS, SITE_FIGURES, Link, Site
from relayd.store.checksums import row_checksum, with_checksum
from relayd.store.database import Database
from relayd.store.events import Events
from relayd.store.failures import altered, reason
from relayd.store.regions import region_id
from relayd.times import utc_date

# In the order of the parameters of _estimate.
_PARTS = ("low", "expected", "high", "origin", "samples", "links", "newest_s", "oldest_s")
# Of aggregates alone, in the order of Prior.
_PRIOR = ("low", "expected", "high", "memory_years")
_NO_PRIOR = (None,) * len(_PRIOR)
_NO_ESTIMATE = (None,) * len(_PARTS)
_PRIOR_COLUMNS = ", ".join(f"links.aggregate_gbps_prior_{part}" for part in _PRIOR)


def _columns(table: str, figures: Sequence[str]) -> str:
    return ", ".join(f"{table}.{figure}_{part}" for figure in figures for part in _PARTS)


_HEADS = (
    "SELECT key, id, as_of_s, created_at_s, source, catalogue_digest, samples_through, links, "
    "sites, checksum FROM snapshots"
)


# SQLite is told the order of joins (CROSS JOIN): links first, and their names by number. Left to
# itself, it reads the whole snapshot for the second half of _LINKS_BETWEEN. PostgreSQL has no such
# hints.
_HINTS = {
    "sqlite": {
        "join": "CROSS JOIN",
        "by_destination": "INDEXED BY links_by_destination",
        "others_by_destination": "INDEXED BY other_links_by_destination",
    },
    "postgresql": {"join": "JOIN", "by_destination": "", "others_by_destination": ""},
}
_LINKS_OF = (
    f"SELECT src.name, dst.name, src_id, dst_id, {_columns('links', LINK_FIGURES)}, "  # noqa: S608
    f"links.loss_pct, links.limited_by, {_PRIOR_COLUMNS}, links.address, links.checksum "
    "FROM links {index} "
    "{join} regions AS src ON src.id = links.src_id {join} regions AS dst "
    "ON dst.id = links.dst_id WHERE snapshot_key = :snapshot"
)
_LINKS = _LINKS_OF.replace("{index}", "") + " ORDER BY src_id, dst_id"
_LINKS_BETWEEN = (
    _LINKS_OF.replace("{index}", "")
    + " AND src_id = :src UNION ALL "
    + _LINKS_OF.replace("{index}", "{by_destination}")
    + " AND dst_id = :dst AND src_id <> :src"
)
# The same of links over the kind of address that is not in use, called as in these statements.
_OTHERS, _OTHERS_BETWEEN = (
    sql.replace("FROM links ", "FROM other_links AS links ").replace(
        "{by_destination}", "{others_by_destination}"
    )
    for sql in (_LINKS, _LINKS_BETWEEN)
)
_ORIGINS = (
    "SELECT number, kind, method, address, figures, checksum FROM origins "
    "WHERE snapshot_key = :snapshot"
)
_SITES = (
    "SELECT regions.name, sites.position, sites.region_id, sites.vm_type, "  # noqa: S608
    f"{_columns('sites', (*SITE_FIGURES, *PRIVATE_CAPS))}, sites.checksum "
    "FROM sites {join} regions ON regions.id = sites.region_id "
    "WHERE snapshot_key = :snapshot ORDER BY position"
)


class SnapshotRow(NamedTuple):
    """A snapshot without its links and sites: its id, its times, and what it was made from.

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
        self,
        snapshot: SnapshotRow,
        links: Sequence[Link],
        sites: Sequence[Site],
        others: Sequence[Link] = (),
        event: Mapping[str, object] | None = None,
    ) -> SnapshotRow:
        """Save a snapshot; return its row with the counts.

        Parameters
        ----------
        snapshot, links, sites
        others : sequence of Link
            Over the kind of address that is not in use.
        event : mapping, optional
            Detail of the event that tells of the snapshot, stored with it.

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
                origins = _Origins()
                for table, of_kind in (("links", links), ("other_links", others)):
                    database.insert(
                        table,
                        [
                            with_checksum(
                                (
                                    key,
                                    numbers[link.src],
                                    numbers[link.dst],
                                    *origins.columns(link.rtt_ms),
                                    *origins.columns(link.per_flow_mbps),
                                    *origins.columns(link.aggregate_gbps),
                                    link.loss_pct,
                                    link.limited_by,
                                    *(link.aggregate_gbps.prior or _NO_PRIOR),
                                    link.address,
                                )
                            )
                            for link in of_kind
                        ],
                    )
                database.insert(
                    "sites",
                    [
                        with_checksum(
                            (
                                key,
                                position,
                                numbers[site.region],
                                site.vm_type,
                                *origins.columns(site.egress_gbps),
                                *origins.columns(site.ingress_gbps),
                                *origins.columns(site.window_mb),
                                *origins.columns_or_none(site.private_egress_gbps),
                                *origins.columns_or_none(site.private_ingress_gbps),
                            )
                        )
                        for position, site in enumerate(sites)
                    ],
                )
                database.insert("origins", origins.rows(key))
            except database.refusals as error:
                raise InputError(
                    "snapshot", f"can't be saved: {reason(error)}", value=snapshot.id
                ) from error
            saved = snapshot._replace(links=len(links), sites=len(sites))
            database.change(
                "UPDATE snapshots SET links = ?, sites = ?, checksum = ? WHERE key = ?",
                (saved.links, saved.sites, row_checksum((key, *saved)), key),
            )
            if event is not None:
                Events(database).add("snapshot", saved.id, event)
        return saved

    def latest(self) -> SnapshotRow | None:
        """Return the snapshot that was saved last; None if there is none."""
        return self._head(" ORDER BY key DESC LIMIT 1")

    def current_at(self, at_s: float) -> SnapshotRow | None:
        """Return the snapshot that was the newest at a time; None if none is as old."""
        return self._head(" WHERE created_at_s <= ? ORDER BY key DESC LIMIT 1", (at_s,))

    def oldest(self) -> SnapshotRow | None:
        """Return the oldest snapshot that is kept; None if there is none."""
        return self._head(" ORDER BY key LIMIT 1")

    def get(self, snapshot_id: str) -> SnapshotRow:
        """Return one snapshot.

        Raises
        ------
        InputError
            If it was never saved here, or was pruned.
        """
        if found := self._head(" WHERE id = ?", (snapshot_id,)):
            return found
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
        return list(self._heads(" ORDER BY key DESC"))

    def _head(self, where: str, values: Sequence[object] = ()) -> SnapshotRow | None:
        return next(self._heads(where, values), None)

    def _heads(self, where: str, values: Sequence[object] = ()) -> Iterator[SnapshotRow]:
        for key, *head, checksum in self._database.rows(_HEADS + where, values):
            row = SnapshotRow(*head)
            self._check((key, *head), checksum, f"the head of snapshot {row.id!r}")
            yield row

    def _check(self, row: Sequence[object], checksum: int | None, what: str) -> None:
        """Raise if a row is not what was stored."""
        if checksum is not None and row_checksum(row) != checksum:
            raise altered(self._database.location, what)

    def links(self, snapshot_id: str) -> Iterator[Link]:
        """Yield all links of a snapshot, grouped by source.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        return self._all_links(snapshot_id, _LINKS)

    def others(self, snapshot_id: str) -> Iterator[Link]:
        """Yield the links over the kind of address that is not in use, where both are known."""
        return self._all_links(snapshot_id, _OTHERS)

    def _all_links(self, snapshot_id: str, sql: str) -> Iterator[Link]:
        key = self._key(snapshot_id)
        rows = self._database.rows(self._hinted(sql), {"snapshot": key})
        return self._links_of(key, rows)

    def links_between(self, snapshot_id: str, src: str, dst: str) -> Sequence[Link]:
        """Return the links out of the source and into the destination: all of one-hop planning.

        A region that the snapshot does not know has no links.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        return self._all_between(snapshot_id, src, dst, _LINKS_BETWEEN)

    def others_between(self, snapshot_id: str, src: str, dst: str) -> Sequence[Link]:
        """Return the same of links over the kind of address that is not in use."""
        return self._all_between(snapshot_id, src, dst, _OTHERS_BETWEEN)

    def _all_between(self, snapshot_id: str, src: str, dst: str, sql: str) -> Sequence[Link]:
        key = self._key(snapshot_id)
        values: dict[str, object] = {"snapshot": key}
        # NULL for an unknown source would also hide the links into the destination.
        for end, name in (("src", src), ("dst", dst)):
            row = self._database.row("SELECT id FROM regions WHERE name = ?", (name,))
            values[end] = 0 if row is None else row[0]
        rows = self._database.rows(self._hinted(sql), values)
        return list(self._links_of(key, rows))

    def sites(self, snapshot_id: str) -> Sequence[Site]:
        """Return the sites of a snapshot, in the order in which they were saved.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        key = self._key(snapshot_id)
        origins = self._origins(key)
        found = []
        for name, *row, checksum in self._database.rows(self._hinted(_SITES), {"snapshot": key}):
            self._check((key, *row), checksum, f"the site {name!r} of snapshot {snapshot_id!r}")
            found.append(
                Site(
                    name,
                    row[2],
                    _estimate(origins, *row[3:11]),
                    _estimate(origins, *row[11:19]),
                    _estimate(origins, *row[19:27]),
                    private_egress_gbps=_estimate_or_none(origins, *row[27:35]),
                    private_ingress_gbps=_estimate_or_none(origins, *row[35:]),
                )
            )
        return found

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all but the newest snapshots; return the ids of those removed.

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
                database.change("DELETE FROM links WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM other_links WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM sites WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM origins WHERE snapshot_key = ?", (key,))
                database.change("DELETE FROM snapshots WHERE key = ?", (key,))
        return [snapshot_id for _, snapshot_id in pruned]

    def _links_of(self, key: int, rows: Iterable[tuple[Any, ...]]) -> Iterator[Link]:
        origins = self._origins(key)
        for src, dst, *row, checksum in rows:
            self._check((key, *row), checksum, f"the link {src} > {dst} of a snapshot")
            yield Link(
                src,
                dst,
                _estimate(origins, *row[2:10]),
                _estimate(origins, *row[10:18]),
                _fading(_estimate(origins, *row[18:26]), *row[28:32]),
                row[26],
                row[27],
                row[32],
            )

    def _origins(self, key: int) -> dict[int, Origin]:
        """Return the origins of a snapshot by number, without the counts and times of samples."""
        found = {}
        for *row, checksum in self._database.rows(_ORIGINS, {"snapshot": key}):
            self._check((key, *row), checksum, "an origin of a snapshot's estimates")
            number, kind, method, address, figures = row
            found[number] = Origin(kind, method, address=address, figures=_figures(figures))
        return found

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


class _Origins:
    """The origins of a snapshot to be saved, without the counts and times of their samples."""

    def __init__(self) -> None:
        self._numbers: dict[Origin, int] = {}

    def columns(self, estimate: Estimate) -> tuple[object, ...]:
        """Return an estimate as columns."""
        kind, method, samples, links, newest_s, oldest_s, address, figures = estimate.origin
        shared = Origin(kind, method, address=address, figures=figures)
        number = self._numbers.setdefault(shared, len(self._numbers))
        low, expected, high = estimate.low, estimate.expected, estimate.high
        return (low, expected, high, number, samples, links, newest_s, oldest_s)

    def columns_or_none(self, estimate: Estimate | None) -> tuple[object, ...]:
        """Return the same of an estimate that may be missing."""
        return _NO_ESTIMATE if estimate is None else self.columns(estimate)

    def rows(self, key: int) -> list[tuple[object, ...]]:
        """Return them as rows of a snapshot."""
        return [
            with_checksum(
                (
                    key,
                    number,
                    origin.kind,
                    origin.method,
                    origin.address,
                    None if origin.figures is None else json.dumps(figures_as_json(origin.figures)),
                )
            )
            for origin, number in self._numbers.items()
        ]


@lru_cache(maxsize=1024)
def _figures(text: str | None) -> Figures | None:
    return None if text is None else figures_of(json.loads(text))


def _estimate(
    origins: Mapping[int, Origin],
    low: float,
    expected: float,
    high: float,
    number: int,
    samples: int,
    links: int,
    newest_s: float | None,
    oldest_s: float | None,
) -> Estimate:
    origin = origins[number]
    if newest_s is not None:
        kind, method, *_, address, figures = origin
        origin = Origin(kind, method, samples, links, newest_s, oldest_s, address, figures)
    return Estimate(low, expected, high, origin)


def _estimate_or_none(
    origins: Mapping[int, Origin], low: float | None, *rest: Any
) -> Estimate | None:
    return None if low is None else _estimate(origins, low, *rest)


def _fading(estimate: Estimate, low: float | None, *rest: float) -> Estimate:
    """Return an estimate with the prior that was saved with it."""
    if low is None:
        return estimate
    return Estimate(
        estimate.low, estimate.expected, estimate.high, estimate.origin, Prior(low, *rest)
    )
