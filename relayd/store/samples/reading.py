"""Samples in the database: reading them, with their origin."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from probes.samples import Metric, Reported, Sample, Samples
from relayd.store.database import Database
from relayd.store.samples.decisions import Decision, retracted_ids
from relayd.store.samples.table import IN_ORDER, confirm, read_samples

_BATCH = (
    "SELECT id, name, format, digest, options, relayd_version, imported_at_s, accepted, "
    "duplicates, skipped, quarantined, reporter, address, source FROM batches"
)


class StoredSample(NamedTuple):
    """A sample with where it is kept and came from.

    Attributes
    ----------
    id : int
        Ascending in the order of arrival.
    batch_id : int
        The :class:`StoredBatch` that brought it.
    """

    id: int
    batch_id: int
    sample: Sample


class StoredBatch(NamedTuple):
    """A group of samples that arrived together: its provenance and its counts.

    Attributes
    ----------
    name : str
        The file's name.
    format : str
        Name of the importer, or ``live``.
    digest : str | None
        BLAKE2b-256 of the file's content, hexadecimal.
    options : str
        JSON object: how it was imported.
    imported_at_s : float
        Seconds since 1970 (UTC).
    skipped : str
        JSON object: reason to ``{"total": ..., "first_rows": [...]}``.
    quarantined : int
        Samples that were kept apart: nothing rests on them.
    reporter, address : str
        Name of the token that sent it, and from where; ``""`` for commands on the store itself.
    source : str
        Who reported its samples; ``""`` for the own prober and what the operator trusts.
    """

    id: int
    name: str
    format: str
    digest: str | None
    options: str
    relayd_version: str
    imported_at_s: float
    accepted: int
    duplicates: int
    skipped: str
    quarantined: int
    reporter: str
    address: str
    source: str


class Counts(NamedTuple):
    """How much a store holds."""

    samples: int
    batches: int
    snapshots: int


class StoredSamples:
    """The samples of a store: append-only. Retracted ones are left out wherever they are read."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self) -> Counts:
        """Return how many samples, batches and snapshots there are."""
        return Counts(
            *self._database.row(
                "SELECT (SELECT coalesce(sum(accepted), 0) FROM batches), "
                "(SELECT count(*) FROM batches), (SELECT count(*) FROM snapshots)"
            )
        )

    def last_id(self) -> int:
        """Return the id of the newest sample; 0 if there is none."""
        row = self._database.row("SELECT last_sample_id FROM batches ORDER BY id DESC LIMIT 1")
        return 0 if row is None else int(row[0])

    def batches(self) -> list[StoredBatch]:
        """Return every batch, the oldest first."""
        return [StoredBatch(*row) for row in self._database.rows(_BATCH + " ORDER BY id")]

    def read(
        self,
        *,
        src: str | None = None,
        dst: str | None = None,
        metric: Metric | None = None,
        since_s: float | None = None,
        through: int | None = None,
        change: tuple[Decision, Collection[int]] | None = None,
    ) -> Samples:
        """Return samples by source, destination and metric, the oldest first.

        With the ``samples_through`` of a snapshot, these are the samples behind its figures.

        Parameters
        ----------
        src, dst : str, optional
            Region ids; a region without samples has none.
        metric : Metric, optional
            Only this metric.
        since_s : float, optional
            Only what was measured at or after this time, seconds since 1970.
        through : int, optional
            Only samples with this id or a lower one: what a snapshot was built from.
        change : (decision, ids of samples), optional
            As if that had been decided about these samples.
        """
        conditions, values = ["samples.id <= ?"], [self.last_id() if through is None else through]
        found: list[object] = list(values)
        for column, table, name in (
            ("src_id", "regions", src),
            ("dst_id", "regions", dst),
            ("metric_id", "metrics", metric),
        ):
            if name is not None:
                conditions.append(f"samples.{column} = (SELECT id FROM {table} WHERE name = ?)")  # noqa: S608
                found.append(name)
        if since_s is not None:
            conditions.append("samples.measured_at_s >= ?")
            found.append(since_s)
        of = f"WHERE {' AND '.join(conditions)}{IN_ORDER}"
        if change is None:
            return read_samples(self._database, of, found)
        return self._as_if(of, found, *change)

    def _as_if(
        self, of: str, values: list[object], decision: Decision, ids: Collection[int]
    ) -> Samples:
        """Return samples as if something had been decided about some of them."""
        samples = read_samples(self._database, of, values, table="samples")
        retracted = retracted_ids(self._database)
        if decision == "retract":
            retracted.update(ids)
        elif decision == "restore":
            retracted.difference_update(ids)
        else:
            confirm(samples, ids)
        return samples[~np.isin(samples.rows["id"], list(retracted))]

    def reported(self) -> Iterator[Reported]:
        """Yield what :meth:`read` does, with who reported each sample, and when."""
        samples = self.read()
        columns = map(samples.column, ("source", "id", "arrived_at_s", "vouched"))
        return map(Reported, samples, *columns)

    def sources(self, src: str, dst: str, metric: Metric) -> set[str]:
        """Return who has reported samples of one metric of a pair."""
        rows = self._database.rows(
            "SELECT DISTINCT batches.source FROM used_samples AS samples "
            "JOIN batches ON batches.id = samples.batch_id "
            "WHERE samples.src_id = (SELECT id FROM regions WHERE name = ?) "
            "AND samples.dst_id = (SELECT id FROM regions WHERE name = ?) "
            "AND samples.metric_id = (SELECT id FROM metrics WHERE name = ?)",
            (src, dst, metric),
        )
        return {source for (source,) in rows}

    def history(
        self,
        src: str,
        dst: str,
        metric: Metric | None = None,
        *,
        since_s: float | None = None,
        through: int | None = None,
    ) -> list[StoredSample]:
        """Return the samples of one pair with their origin, by metric, the oldest first."""
        samples = self.read(src=src, dst=dst, metric=metric, since_s=since_s, through=through)
        return list(map(StoredSample, samples.column("id"), samples.column("batch_id"), samples))
