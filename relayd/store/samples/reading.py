"""Samples in the database: reading them, with who reported them."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import NamedTuple

import numpy as np

from probes.samples import Metric, Samples
from relayd.store.database import Database
from relayd.store.samples.decisions import Decision, retracted_ids
from relayd.store.samples.table import IN_ORDER, confirm, read_samples

_BATCH = (
    "SELECT id, name, format, digest, options, relayd_version, imported_at_s, accepted, "
    "duplicates, skipped, quarantined, reporter, address, source FROM batches"
)


# The key of the table begins with link, metric and time: one descent into it for each.
_NEWEST = """
JOIN (
    SELECT src.region_id AS src_id, dst.region_id AS dst_id, metrics.id AS metric_id, (
        SELECT samples.measured_at_s FROM used_samples AS samples
        WHERE samples.src_id = src.region_id AND samples.dst_id = dst.region_id
        AND samples.metric_id = metrics.id
        AND samples.measured_at_s > ? AND samples.measured_at_s <= ?
        ORDER BY samples.measured_at_s DESC LIMIT 1
    ) AS at_s
    FROM snapshots JOIN sites AS src ON src.snapshot_key = snapshots.key
    JOIN sites AS dst ON dst.snapshot_key = snapshots.key CROSS JOIN metrics
    WHERE snapshots.id = ? AND metrics.name IN ('rtt_ms', 'per_flow_mbps', 'aggregate_mbps')
) AS newest ON samples.src_id = newest.src_id AND samples.dst_id = newest.dst_id
    AND samples.metric_id = newest.metric_id AND samples.measured_at_s = newest.at_s
"""


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
        since_s: float = -inf,
        until_s: float = inf,
        through: int | None = None,
        details: bool = True,
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
        since_s, until_s : float
            Only what was measured at or after one time and before another, seconds since 1970.
        through : int, optional
            Only samples with this id or a lower one: what a snapshot was built from.
        details : bool
            With what their tools said, which may be long.
        change : (decision, ids of samples), optional
            As if that had been decided about these samples.
        """
        where, values = _condition(src, dst, metric)
        where += " AND samples.id <= ?"
        values.append(self.last_id() if through is None else through)
        for bound, operator in ((since_s, ">="), (until_s, "<")):
            if abs(bound) != inf:
                where += f" AND samples.measured_at_s {operator} ?"
                values.append(bound)
        if change is None:
            return read_samples(self._database, where + IN_ORDER, values, details=details)
        return self._as_if(where + IN_ORDER, values, *change)

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

    def page(
        self, src: str, dst: str, metric: Metric | None, *, after_id: int, limit: int
    ) -> Samples:
        """Return the samples of a link that arrived after one of them, in order of arrival.

        Parameters
        ----------
        src, dst : str
            Region ids; regions without samples have an empty page.
        metric : Metric, optional
            Only this metric.
        after_id : int
            0 for the first page.
        """
        where, values = _condition(src, dst, metric)
        of = f"{where} AND samples.id > ? ORDER BY samples.id LIMIT ?"
        return read_samples(self._database, of, [*values, after_id, limit])

    def newest(self, snapshot: str, after_s: float, until_s: float) -> Samples:
        """Return, for the pairs of a snapshot's regions, what was measured last in a span of time.

        Parameters
        ----------
        snapshot : str
            Id; one that was pruned has no regions.
        after_s, until_s : float
            Seconds since 1970; the end counts, the beginning does not.
        """
        return read_samples(self._database, _NEWEST, (after_s, until_s, snapshot))

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


def _condition(src: str | None, dst: str | None, metric: Metric | None) -> tuple[str, list[object]]:
    """Return the condition for samples of a link and metric, and the values in it."""
    where, values = "WHERE 1 = 1", list[object]()
    for column, table, name in (
        ("src_id", "regions", src),
        ("dst_id", "regions", dst),
        ("metric_id", "metrics", metric),
    ):
        if name is not None:
            where += f" AND samples.{column} = (SELECT id FROM {table} WHERE name = ?)"  # noqa: S608
            values.append(name)
    return where, values
