"""Snapshots in the database: immutable graphs of estimates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from planner.model.errors import InputError
from planner.model.estimate import Estimate, Figures, Origin, figures_as_json, figures_of
from planner.model.link import PRIVATE_CAPS, SITE_FIGURES, Link, Site
from planner.model.link_array import LinkArray, Origins
from relayd.store.database import Database
from relayd.store.events import Events
from relayd.store.failures import reason
from relayd.store.link_blocks import read_links, save_links
from relayd.times import utc_date

_FIGURES = (*SITE_FIGURES, *PRIVATE_CAPS)
# Each figure of a site in columns, in the order of what _values returns.
_PARTS = ("low", "expected", "high", "origin", "samples", "links", "newest_s", "oldest_s")
_SITES = (
    "SELECT regions.name, sites.vm_type, "  # noqa: S608
    + ", ".join(f"sites.{figure}_{part}" for figure in _FIGURES for part in _PARTS)
    + " FROM sites JOIN regions ON regions.id = sites.region_id "
    "WHERE snapshot_key = ? ORDER BY position"
)
_NAMES = (
    "SELECT regions.name FROM sites JOIN regions ON regions.id = sites.region_id "
    "WHERE snapshot_key = ? ORDER BY position"
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
        self._origins: tuple[int, Mapping[int, Origin]] = (-1, {})
        """Those of the snapshot that was read last, by its key."""

    def save(
        self,
        snapshot: SnapshotRow,
        links: LinkArray | Sequence[Link],
        sites: Sequence[Site],
        others: LinkArray | Sequence[Link] = (),
        event: Mapping[str, object] | None = None,
    ) -> SnapshotRow:
        """Save a snapshot; return its row with the counts.

        Parameters
        ----------
        snapshot : SnapshotRow
        links : LinkArray or sequence of Link
            Between the sites.
        sites : sequence of Site
        others : LinkArray or sequence of Link
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
                saved = self._save(snapshot, links, sites, others)
            except InputError:
                raise
            except (ValueError, *database.refusals) as error:  # type: ignore[misc]
                raise InputError(
                    "snapshot", f"can't be saved: {reason(error)}", value=snapshot.id
                ) from error
            if event is not None:
                Events(database).add("snapshot", saved.id, event)
        return saved

    def _save(
        self,
        snapshot: SnapshotRow,
        links: LinkArray | Sequence[Link],
        sites: Sequence[Site],
        others: LinkArray | Sequence[Link],
    ) -> SnapshotRow:
        database, origins = self._database, Origins()
        row = snapshot._asdict()
        del row["links"], row["sites"]
        key = database.add("snapshots", row, "key")
        names = [site.region for site in sites]
        of_kind = {True: _between(links, names), False: _between(others, names)}
        for in_use, found in of_kind.items():
            found.check()
            save_links(database, key, found, origins, in_use=in_use)
        rows = []
        for position, site in enumerate(sites):
            cells: list[object] = [key, position, database.region_id(site.region), site.vm_type]
            for figure in _FIGURES:
                cells += _values(getattr(site, figure), origins)
            rows.append(cells)
        database.insert("sites", rows)
        _save_origins(database, key, origins.numbers)
        saved = snapshot._replace(links=of_kind[True].count, sites=len(sites))
        database.change(
            "UPDATE snapshots SET links = ?, sites = ? WHERE key = ?",
            (saved.links, saved.sites, key),
        )
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
        sql = f"SELECT {', '.join(SnapshotRow._fields)} FROM snapshots{where}"  # noqa: S608
        yield from map(SnapshotRow._make, self._database.rows(sql, values))

    def links(self, snapshot_id: str, between: tuple[str, str] | None = None) -> LinkArray:
        """Return the links of a snapshot.

        Parameters
        ----------
        snapshot_id : str
        between : (src, dst), optional
            Read only the links out of the source and into the destination: all of one-hop
            planning.

        Raises
        ------
        InputError
            If there is no such snapshot.
        StoreError
            If they are not what was stored.
        """
        return self._links(snapshot_id, between, in_use=True)

    def others(self, snapshot_id: str, between: tuple[str, str] | None = None) -> LinkArray:
        """Return the links over the kind of address that is not in use, where both are known."""
        return self._links(snapshot_id, between, in_use=False)

    def _links(
        self, snapshot_id: str, between: tuple[str, str] | None, *, in_use: bool
    ) -> LinkArray:
        key = self._key(snapshot_id)
        regions = [name for (name,) in self._database.rows(_NAMES, (key,))]
        origins = self._origins_of(key)
        return read_links(self._database, key, regions, origins, in_use=in_use, between=between)

    def _origins_of(self, key: int) -> Mapping[int, Origin]:
        of, origins = self._origins
        if of != key:
            origins = _read_origins(self._database, key)
            self._origins = (key, origins)
        return origins

    def sites(self, snapshot_id: str) -> Sequence[Site]:
        """Return the sites of a snapshot, in the order in which they were saved.

        Raises
        ------
        InputError
            If there is no such snapshot.
        """
        key = self._key(snapshot_id)
        origins = self._origins_of(key)
        width = len(_PARTS)
        return [
            Site(
                name,
                vm_type,
                **{
                    figure: _estimate(origins, *parts[width * n : width * (n + 1)])
                    for n, figure in enumerate(_FIGURES)
                },
            )
            for name, vm_type, *parts in self._database.rows(_SITES, (key,))
        ]

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
                for table in ("link_blocks", "sites", "origins"):
                    database.change(f"DELETE FROM {table} WHERE snapshot_key = ?", (key,))  # noqa: S608
                database.change("DELETE FROM snapshots WHERE key = ?", (key,))
        return [snapshot_id for _, snapshot_id in pruned]

    def _key(self, snapshot_id: str) -> int:
        row = self._database.row("SELECT key FROM snapshots WHERE id = ?", (snapshot_id,))
        if row is None:
            self.get(snapshot_id)  # raises, with the reason
        return int(row[0])


def _between(links: LinkArray | Sequence[Link], sites: Sequence[str]) -> LinkArray:
    """Return links as an array in the order of sites.

    Raises
    ------
    InputError
        If an end of one is no site.
    """
    found = links if isinstance(links, LinkArray) else LinkArray.of(links, sites)
    if strangers := set(found.regions).difference(sites):
        raise InputError("links", f"lead to {min(strangers)}, which is no site of the snapshot")
    return found.among(sites)


def _values(estimate: Estimate | None, origins: Origins) -> Sequence[object]:
    """Return an estimate, which may be missing, as values of columns."""
    if estimate is None:
        return [None] * len(_PARTS)
    origin = estimate.origin
    counts = (origin.samples, origin.links, origin.newest_s, origin.oldest_s)
    number = origins.number_of(origin)
    return (estimate.low, estimate.expected, estimate.high, number, *counts)


def _estimate(
    origins: Mapping[int, Origin], low: float | None, expected: float, high: float, *parts: Any
) -> Any:
    """Return the estimate in columns; None where there is none."""
    if low is None:
        return None
    number, samples, links, newest_s, oldest_s = parts
    origin = origins[number]
    if newest_s is not None:
        origin = origin._replace(samples=samples, links=links, newest_s=newest_s, oldest_s=oldest_s)
    return Estimate(low, expected, high, origin)


# ---- origins, each once, without the counts and times of their samples --------------------------


def _save_origins(database: Database, key: int, numbers: Mapping[Origin, int]) -> None:
    rows = []
    for origin, number in numbers.items():
        figures = None if origin.figures is None else json.dumps(figures_as_json(origin.figures))
        rows.append((key, number, origin.kind, origin.method, origin.address, figures))
    database.insert("origins", rows)


def _read_origins(database: Database, key: int) -> dict[int, Origin]:
    sql = "SELECT number, kind, method, address, figures FROM origins WHERE snapshot_key = ?"
    return {
        number: Origin(kind, method, 0, 0, None, None, address, figures and _figures(figures))
        for number, kind, method, address, figures in database.rows(sql, (key,))
    }


@lru_cache(maxsize=1024)
def _figures(text: str) -> Figures:
    return figures_of(json.loads(text))
