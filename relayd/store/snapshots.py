"""Snapshots in the database: immutable graphs of estimates.

A snapshot is kept as the bytes in which a service sends its network, compressed. With the newest
are the samples that still count, so that the next one reads only series with new samples.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.model.document import network_columns, network_of_columns
from planner.model.errors import FormatError, InputError, StoreError
from planner.model.network import Network
from probes.estimation.current_samples import CurrentSamples, LinkShift
from probes.samples import ROW, NameTable, Samples
from relayd.store.database import Part
from relayd.store.events import Events
from relayd.times import utc_date

_KEPT = "snapshots WHERE pruned_at_s IS NULL"


class SnapshotRow(NamedTuple):
    """A snapshot without its network: its id, its times, and what it was made from.

    Times are seconds since 1970 (UTC).
    """

    id: str  # as plans name it; unique for ever, also after it was pruned
    as_of_s: float  # up to when measurements count
    created_at_s: float
    source: str  # ``measured``, ``baseline`` or ``mixed``
    catalogue_digest: str  # of the catalogue whose caps and coordinates it uses
    samples_through: int  # id of the newest sample that it takes into account; 0 for none
    links: int = 0  # how many; filled in by the store
    sites: int = 0


class Snapshots(Part):
    """The snapshots of a store."""

    def save(
        self,
        snapshot: SnapshotRow,
        network: Network,
        event: Mapping[str, object] | None = None,
        current: CurrentSamples | None = None,
    ) -> SnapshotRow:
        """Save a snapshot; return its row with the counts.

        Raises InputError if the id is taken, or a figure is not a number or has bounds out of
        order.

        The network has the links over both kinds of address, and may have been estimated from
        `current` samples. `event` is the detail of the event that tells of the snapshot, stored
        with it.
        """
        for links in (network.usual, network.others):
            links.check()
        content = zlib.compress(b"".join(network_columns(network)), 1)
        saved = snapshot._replace(links=network.usual.count, sites=len(network.sites))
        database = self._database
        with database.transaction():
            if database.row("SELECT 1 FROM snapshots WHERE id = ?", (snapshot.id,)):
                problem = "has been saved already, and a snapshot never changes"
                remedy = "Save the new figures under another id."
                raise InputError("snapshot", problem, value=snapshot.id, remedy=remedy)
            key = database.add("snapshots", {**saved._asdict(), "content": content}, "key")
            database.change("DELETE FROM current_samples")
            if current is not None:
                row = {"snapshot_key": key, "content": _packed(current)}
                database.add("current_samples", row)
            if event is not None:
                Events(database).add("snapshot", saved.id, event)
        return saved

    def current_samples(self, snapshot_id: str) -> CurrentSamples | None:
        """Return the samples that a snapshot was estimated from; None unless it is the newest."""
        row = self._database.row(
            "SELECT current_samples.content FROM current_samples "
            "JOIN snapshots ON key = snapshot_key WHERE id = ?",
            (snapshot_id,),
        )
        return None if row is None else _unpacked(row[0])

    def network(self, snapshot_id: str) -> Network:
        """Return the network of a snapshot, with bounds as they were saved.

        Raises InputError if there is no such snapshot, StoreError if it is damaged.
        """
        row = self._database.row("SELECT content FROM snapshots WHERE id = ?", (snapshot_id,))
        if row is None or row[0] is None:
            self.get(snapshot_id)  # raises, with the reason
        try:
            return network_of_columns(zlib.decompress(row[0]))
        except (FormatError, zlib.error) as error:
            raise StoreError("snapshot", f"is damaged ({error})", value=snapshot_id) from error

    def latest(self) -> SnapshotRow | None:
        """Return the snapshot that was saved last; None if there is none."""
        return self._first("ORDER BY key DESC")

    def current_at(self, at_s: float) -> SnapshotRow | None:
        """Return the snapshot that was the newest at a time; None if none is as old."""
        return self._first("AND created_at_s <= ? ORDER BY key DESC", at_s)

    def oldest(self) -> SnapshotRow | None:
        """Return the oldest snapshot that is kept; None if there is none."""
        return self._first("ORDER BY key")

    def get(self, snapshot_id: str) -> SnapshotRow:
        """Return one snapshot; raise InputError if it was never saved here, or was pruned."""
        if found := self._first("AND id = ?", snapshot_id):
            return found
        pruned = self._database.row(
            "SELECT pruned_at_s FROM snapshots WHERE id = ?", (snapshot_id,)
        )
        problem = f"was pruned on {utc_date(pruned[0])}" if pruned else "is not in this store"
        remedy = "Name another one, or none for the newest."
        raise InputError("snapshot", problem, value=snapshot_id, remedy=remedy)

    def list(self) -> Sequence[SnapshotRow]:
        """Return every snapshot, the one that was saved last first."""
        return self._database.records(SnapshotRow, f"{_KEPT} ORDER BY key DESC")

    def _first(self, which: str, *values: object) -> SnapshotRow | None:
        found = self._database.records(SnapshotRow, f"{_KEPT} {which} LIMIT 1", values)
        return found[0] if found else None

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all but the newest snapshots; return the ids of those removed.

        Plans that name one of them can no longer be traced to its figures. Samples stay.

        Raises InputError if `keep` is below 1.
        """
        if keep < 1:
            raise InputError("keep", "must be at least 1: the newest is in use", value=keep)
        database = self._database
        with database.transaction():
            pruned = [row.id for row in self.list()[keep:]]
            database.change_many(
                "UPDATE snapshots SET content = NULL, pruned_at_s = ? WHERE id = ?",
                [(time.time(), name) for name in pruned],
            )
        return pruned


def _packed(current: CurrentSamples) -> bytes:
    """Return samples as bytes, by columns: many have few values."""
    samples, rows = current.samples, current.samples.rows.copy()
    told, details = np.union1d(rows["detail"], [0]), list(samples.details)
    rows["detail"] = np.searchsorted(told, rows["detail"])
    header = {
        "fields": ROW.descr,
        "samples": len(rows),
        "names": list(samples.names),
        "details": [details[number] for number in told.tolist()],
        "shifts": current.shifts,
    }
    columns = [rows[name] for name in ROW.names or ()] + [current.first_id.astype(np.int64)]
    # Of a column whose values are all the same, one.
    parts = [(one[:1] if (one == one[:1]).all() else one).tobytes() for one in columns]
    header["bytes"] = [len(part) for part in parts]
    return zlib.compress(b"".join([json.dumps(header).encode(), b"\n", *parts]), 1)


def _unpacked(content: bytes) -> CurrentSamples | None:
    """Return the samples that bytes hold; None if they are damaged, or of other fields."""
    try:
        data = zlib.decompress(content)
        begin = data.index(b"\n") + 1
        header = json.loads(data[:begin])
        if header["fields"] != [list(field) for field in ROW.descr]:
            return None
        rows, first_id = np.zeros(header["samples"], ROW), np.zeros(header["samples"], np.int64)
        columns = *(rows[name] for name in ROW.names or ()), first_id
        for column, size in zip(columns, header["bytes"], strict=True):
            column[:] = np.frombuffer(data[begin : begin + size], column.dtype)
            begin += size
        names, details = (NameTable(header[name]) for name in ("names", "details"))
        shifts = [LinkShift(*shift) for shift in header["shifts"]]
        return CurrentSamples(Samples(rows, names, details), first_id, shifts)
    except (zlib.error, ValueError, KeyError):
        return None
