"""Samples in the database: reading them, with their origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from probes.samples import Metric, Sample
from relayd.store.database import Database

_Setup: TypeAlias = tuple[str, str, str, str, str]

_SELECT = (
    "SELECT src_id, dst_id, metric_id, measured_at_s, value, connections, duration_s, warmed_up, "
    "setup_id, detail, batch_id, id, address, new_level, intervals FROM samples"
)
# The order of the table's key: nothing is sorted, so rows stream.
_IN_ORDER = " ORDER BY src_id, dst_id, metric_id, measured_at_s"
_BATCH = (
    "SELECT id, name, format, digest, options, relayd_version, imported_at_s, accepted, "
    "duplicates, skipped, quarantined, reporter, address FROM batches"
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


class Counts(NamedTuple):
    """How much a store holds."""

    samples: int
    batches: int
    snapshots: int


class StoredSamples:
    """The samples of a store: append-only."""

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

    def samples_for_estimates(
        self,
        *,
        src: str | None = None,
        dst: str | None = None,
        metric: Metric | None = None,
        since_s: float | None = None,
        through: int | None = None,
    ) -> Iterator[Sample]:
        """Yield samples grouped by source, destination and metric, the oldest first.

        Parameters
        ----------
        src, dst : str, optional
            Region ids; a region without samples yields nothing.
        metric : Metric, optional
            Only this metric.
        since_s : float, optional
            Only what was measured at or after this time, seconds since 1970.
        through : int, optional
            Only samples with this id or a lower one: what a snapshot was built from.
        """
        for stored in self._read(src, dst, metric, since_s, through):
            yield stored.sample

    def history(
        self, src: str, dst: str, metric: Metric | None = None, *, through: int | None = None
    ) -> list[StoredSample]:
        """Return the samples of one pair with their origin, by metric, the oldest first.

        With the ``samples_through`` of a snapshot, these are the samples behind its figures.
        """
        return list(self._read(src, dst, metric, None, through))

    def _read(
        self,
        src: str | None,
        dst: str | None,
        metric: str | None,
        since_s: float | None,
        through: int | None,
    ) -> Iterator[StoredSample]:
        # Samples that arrive from here on may use names that are not read below.
        last = self.last_id() if through is None else min(through, self.last_id())
        regions = dict(self._database.rows("SELECT id, name FROM regions"))
        metrics = dict(self._database.rows("SELECT id, name FROM metrics"))
        setups: dict[int, _Setup] = {
            row[0]: row[1:]
            for row in self._database.rows(
                "SELECT id, tool, src_zone, dst_zone, src_vm, dst_vm FROM setups"
            )
        }
        conditions = ["id <= ?"]
        values: list[object] = [last]
        for column, name, names in (
            ("src_id", src, regions),
            ("dst_id", dst, regions),
            ("metric_id", metric, metrics),
        ):
            if name is not None:
                number = next((key for key, known in names.items() if known == name), None)
                if number is None:
                    return
                conditions.append(f"{column} = ?")
                values.append(number)
        if since_s is not None:
            conditions.append("measured_at_s >= ?")
            values.append(since_s)
        where = " WHERE " + " AND ".join(conditions)
        for (
            src_id,
            dst_id,
            metric_id,
            measured_at_s,
            value,
            connections,
            duration_s,
            warmed_up,
            setup_id,
            detail,
            batch_id,
            number,
            address,
            new_level,
            intervals,
        ) in self._database.stream(_SELECT + where + _IN_ORDER, values):
            tool, src_zone, dst_zone, src_vm, dst_vm = setups[setup_id]
            sample = Sample(
                regions[src_id],
                regions[dst_id],
                metrics[metric_id],
                value,
                measured_at_s,
                tool,
                connections or None,
                duration_s or None,
                bool(warmed_up),
                src_zone,
                dst_zone,
                src_vm,
                dst_vm,
                detail,
                address,
                bool(new_level),
                intervals,
            )
            yield StoredSample(number, batch_id, sample)
