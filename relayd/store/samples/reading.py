"""Samples in the database: reading them, with their origin."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from probes.samples import OWN, Metric, Reported, Sample, Samples
from relayd.store.database import Database
from relayd.store.samples.decisions import Decision, last_decision, retracted_ids
from relayd.store.samples.table import IN_ORDER, TRUSTED_IMPORT, confirm, read_samples

_Setup: TypeAlias = tuple[str, str, str, str, str]

COLUMNS = ", ".join(
    f"samples.{name}"
    for name in (
        *("src_id", "dst_id", "metric_id", "measured_at_s", "value", "connections", "duration_s"),
        *("warmed_up", "setup_id", "detail", "batch_id", "id", "address", "new_level", "intervals"),
    )
)
"""What :meth:`SampleNames.stored` reads."""
COUNT = COLUMNS.count(",") + 1
SERIES, BATCH = 3, 10
"""How many columns come first that say of which series a sample is; and where its batch is."""
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


class BatchSource(NamedTuple):
    """Who reported the samples of a batch.

    Attributes
    ----------
    source : str
        As in :class:`StoredBatch`.
    arrived_at_s : float
    vouched : bool
        Whether an operator imported it with ``--trust``.
    """

    source: str
    arrived_at_s: float
    vouched: bool


def reported_sample(number: int, sample: Sample, by: BatchSource, confirmed: set[int]) -> Reported:
    """Return a sample with who reported it: those that an operator confirmed are the own prober's.

    Parameters
    ----------
    number : int
        Id of the sample.
    confirmed : set of int
        Ids of samples.
    """
    if number in confirmed:
        return Reported(sample, OWN, number, vouched=True)
    return Reported(sample, by.source, number, by.arrived_at_s, by.vouched)


class BatchSources:
    """Who reported the samples of each batch, in a few bytes a batch.

    Every request with samples makes a batch, so a store may have millions.

    Parameters
    ----------
    rows : iterable of (id, source, time of arrival, whether vouched for)
        By id.
    """

    def __init__(self, rows: Iterable[tuple[int, str, float, int]]) -> None:
        self._ids, self._arrived_at_s, self._who = array("q"), array("d"), array("L")
        numbers: dict[tuple[str, bool], int] = {}
        for number, source, arrived_at_s, vouched in rows:
            self._ids.append(number)
            self._arrived_at_s.append(arrived_at_s)
            self._who.append(numbers.setdefault((source, bool(vouched)), len(numbers)))
        self._sources = list(numbers)

    def __getitem__(self, batch_id: int) -> BatchSource:
        """Return the source of a batch; KeyError if there is none of this id."""
        place = bisect_left(self._ids, batch_id)
        if place == len(self._ids) or self._ids[place] != batch_id:
            raise KeyError(batch_id)
        source, vouched = self._sources[self._who[place]]
        return BatchSource(source, self._arrived_at_s[place], vouched)


class SampleNames:
    """The names that rows of samples have numbers of, as of when it is made.

    Attributes
    ----------
    regions : dict of int to str
    metrics : dict of int to Metric
    setups : dict of int to (tool, src_zone, dst_zone, src_vm, dst_vm)
    """

    def __init__(self, database: Database) -> None:
        self.regions: dict[int, str] = dict(database.rows("SELECT id, name FROM regions"))
        self.metrics: dict[int, Metric] = dict(database.rows("SELECT id, name FROM metrics"))
        self.setups: dict[int, _Setup] = {
            row[0]: row[1:]
            for row in database.rows(
                "SELECT id, tool, src_zone, dst_zone, src_vm, dst_vm FROM setups"
            )
        }

    def stored(self, row: Sequence[Any]) -> StoredSample:
        """Return the sample of a row of :data:`COLUMNS`."""
        (
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
        ) = row
        tool, src_zone, dst_zone, src_vm, dst_vm = self.setups[setup_id]
        sample = Sample(
            self.regions[src_id],
            self.regions[dst_id],
            self.metrics[metric_id],
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
        return StoredSample(number, batch_id, sample)


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

    def reported(
        self, *, through: int | None = None, change: tuple[Decision, Collection[int]] | None = None
    ) -> Iterator[Reported]:
        """Yield what :meth:`read` does, with who reported each sample, and when."""
        samples = self.read(through=through, change=change)
        columns = map(samples.column, ("source", "id", "arrived_at_s", "vouched"))
        return map(Reported, samples, *columns)

    def rows(self, through: int) -> Iterator[Sequence[Any]]:
        """Yield rows of :data:`COLUMNS` up to an id, by series and time."""
        # Where nothing is retracted, nothing is looked up for each sample.
        used = "used_samples AS samples" if last_decision(self._database) else "samples"
        return self._database.stream(
            f"SELECT {COLUMNS} FROM {used} WHERE samples.id <= ?{IN_ORDER}",  # noqa: S608
            (through,),
        )

    def batch_sources(self) -> BatchSources:
        """Return, by batch, who reported its samples."""
        return BatchSources(
            self._database.stream(
                "SELECT id, source, imported_at_s, CASE WHEN options LIKE ? THEN 1 ELSE 0 END "
                "FROM batches ORDER BY id",
                (TRUSTED_IMPORT,),
            )
        )

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
