"""Samples in the database: reading them, with their origin."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from probes.samples import OWN, Metric, Reported, Sample
from relayd.store.database import Database
from relayd.store.samples.decisions import Decision, confirmed_ids, last_decision, retracted_ids

_Setup: TypeAlias = tuple[str, str, str, str, str]

TRUSTED_IMPORT = '%"trust": true%'
"""The options of a batch that was imported with ``--trust``."""
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
_ID = 11
# The order of the table's key: nothing is sorted, so rows stream. The whole of it, so that samples
# of one time are in one order, however they are read.
_KEY = (
    *("src_id", "dst_id", "metric_id", "measured_at_s", "value", "connections", "duration_s"),
    *("warmed_up", "setup_id", "detail_digest"),
)
IN_ORDER = " ORDER BY " + ", ".join(f"samples.{name}" for name in _KEY)
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

    def reported(
        self, *, through: int | None = None, change: tuple[Decision, Collection[int]] | None = None
    ) -> Iterator[Reported]:
        """Yield what :meth:`samples_for_estimates` does, with who reported each sample, and when.

        A sample that an operator confirmed is the own prober's.

        Parameters
        ----------
        through : int, optional
            See :meth:`samples_for_estimates`.
        change : (decision, ids of samples), optional
            As if that had been decided about these samples.
        """
        batches = self.batch_sources()
        confirmed = confirmed_ids(self._database)
        decision, ids = change or ("retract", ())
        if decision == "confirm":
            confirmed.update(ids)
        left_out = ids if decision == "retract" else ()
        restored = ids if decision == "restore" else ()
        for number, batch_id, sample in self._read(None, None, None, None, through, restored):
            if number not in left_out:
                yield reported_sample(number, sample, batches[batch_id], confirmed)

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
        """Return the samples of one pair with their origin, by metric, the oldest first.

        With the ``samples_through`` of a snapshot, these are the samples behind its figures.
        """
        return list(self._read(src, dst, metric, since_s, through))

    def _read(
        self,
        src: str | None,
        dst: str | None,
        metric: str | None,
        since_s: float | None,
        through: int | None,
        restored: Collection[int] = (),
    ) -> Iterator[StoredSample]:
        # Samples that arrive from here on may use names that are not read below.
        last = self.last_id() if through is None else min(through, self.last_id())
        names = SampleNames(self._database)
        select, left_out = f"SELECT {COLUMNS} FROM used_samples AS samples", frozenset[int]()  # noqa: S608
        if restored:  # as if they were not retracted
            select = select.replace("used_samples AS samples", "samples")
            left_out = frozenset(retracted_ids(self._database)).difference(restored)
        conditions = ["samples.id <= ?"]
        values: list[object] = [last]
        for column, name, known in (
            ("samples.src_id", src, names.regions),
            ("samples.dst_id", dst, names.regions),
            ("samples.metric_id", metric, names.metrics),
        ):
            if name is not None:
                number = next((key for key, other in known.items() if other == name), None)
                if number is None:
                    return
                conditions.append(f"{column} = ?")
                values.append(number)
        if since_s is not None:
            conditions.append("samples.measured_at_s >= ?")
            values.append(since_s)
        where = " WHERE " + " AND ".join(conditions)
        for row in self._database.stream(select + where + IN_ORDER, values):
            if row[_ID] not in left_out:
                yield names.stored(row)
