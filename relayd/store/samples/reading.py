"""Samples in the database: reading them, with who reported them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from math import inf, isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.network import NewerSamples
from probes.metrics import Metric, number_of
from probes.samples import OWN, ROW, Samples, distinct
from relayd.store.database import Database, Part, matching

Decision: TypeAlias = Literal["retract", "restore", "confirm"]
SETUP = ("tool", "src_zone", "dst_zone", "src_vm", "dst_vm")
"""Fields that a row of ``setups`` holds for many samples."""
# The order of the table's key: nothing is sorted, and those of one time have one, too.
_IN_ORDER = " ORDER BY " + ", ".join(
    f"samples.{name}"
    for name in (
        *("src_id", "dst_id", "metric_id", "measured_at_s", "value", "connections", "duration_s"),
        *("warmed_up", "setup_id", "detail_digest"),
    )
)
_AS_THEY_ARE = (
    *("measured_at_s", "value", "connections", "duration_s", "warmed_up", "batch_id", "id"),
    "new_level",
)
"""Columns that are fields of samples as they are."""
_IDS = {"src_id": "src", "dst_id": "dst", "metric_id": "source", "setup_id": "tool"}
"""Columns of ids, and where they wait for names: names that came later are read after them."""
_TEXTS = ("detail", "address", "intervals")
_ARE_NEW = (
    "(samples.src_id, samples.dst_id, samples.metric_id) IN "
    "(SELECT src_id, dst_id, metric_id FROM samples WHERE id > ?)"
)
_SELECT = "SELECT " + ", ".join(f"samples.{name}" for name in (*_AS_THEY_ARE, *_IDS, *_TEXTS))
_AT_ONCE = 10_000
_TRUSTED_IMPORT = '%"trust": true%'
"""The options of a batch that was imported with ``--trust``."""
PATIENCE_S = 60.0
"""For so long nothing is amiss: samples come in batches, and a snapshot of several takes time."""
BETWEEN_S = 1800.0  # the same where there is a snapshot: watchers make the next 15 minutes later
BEGUN, FAILED = "snapshot_begun_s", "snapshot_failed_s"
"""Names of the times at which a snapshot was last begun, and at which one last failed."""
# The key of the table begins with link, metric and time: one descent into it for each.
_NEWEST = """
JOIN (
    SELECT src.id AS src_id, dst.id AS dst_id, metrics.id AS metric_id, (
        SELECT samples.measured_at_s FROM used_samples AS samples
        WHERE samples.src_id = src.id AND samples.dst_id = dst.id
        AND samples.metric_id = metrics.id
        AND samples.measured_at_s > ? AND samples.measured_at_s <= ?
        ORDER BY samples.measured_at_s DESC LIMIT 1
    ) AS at_s
    FROM regions AS src CROSS JOIN regions AS dst CROSS JOIN metrics
    WHERE metrics.name IN ('rtt_ms', 'per_flow_mbps', 'aggregate_mbps')
) AS newest ON samples.src_id = newest.src_id AND samples.dst_id = newest.dst_id
    AND samples.metric_id = newest.metric_id AND samples.measured_at_s = newest.at_s
"""


class StoredBatch(NamedTuple):
    """A group of samples that arrived together: its provenance and its counts."""

    id: int
    name: str
    """The file's name."""
    format: str  # name of the importer, or ``live``
    digest: str | None  # BLAKE2b-256 of the file's content, hexadecimal
    options: str  # JSON object: how it was imported
    relayd_version: str
    imported_at_s: float
    """Seconds since 1970 (UTC)."""
    accepted: int
    duplicates: int
    skipped: str
    """JSON object: reason to ``{"total": ..., "first_rows": [...]}``."""
    quarantined: int  # samples that were kept apart: nothing rests on them
    reporter: str
    address: str
    """Name of the token that sent it, and from where; ``""`` for commands on the store itself."""
    source: str
    """Token that reported its samples; ``""`` for the own prober and what the operator trusts."""


class Counts(NamedTuple):
    """The numbers of samples, batches and snapshots in a store."""

    samples: int
    batches: int
    snapshots: int


class StoredSamples(Part):
    """The samples of a store: append-only. Retracted ones are left out wherever they are read."""

    def counts(self) -> Counts:
        """Count samples, batches and snapshots."""
        return Counts(
            *self._database.row(
                "SELECT (SELECT coalesce(sum(accepted), 0) FROM batches), "
                "(SELECT count(*) FROM batches), "
                "(SELECT count(*) FROM snapshots WHERE pruned_at_s IS NULL)"
            )
        )

    def last_id(self) -> int:
        """Return the id of the newest sample; 0 if there is none."""
        row = self._database.row("SELECT last_sample_id FROM batches ORDER BY id DESC LIMIT 1")
        return 0 if row is None else int(row[0])

    def batches(self) -> list[StoredBatch]:
        """Return every batch, the oldest first."""
        return self._database.records(StoredBatch, "batches ORDER BY id")

    def read(
        self,
        *,
        src: str | None = None,
        dst: str | None = None,
        metric: Metric | None = None,
        since_s: float = -inf,
        until_s: float = inf,
        through: int | None = None,
        after: int | None = None,
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
        after : int, optional
            Only links and metrics of which a sample with a higher id is there, with all of theirs.
        details : bool
            With what their tools said, which may be long.
        change : (decision, ids of samples), optional
            As if that had been decided about these samples.
        """
        bounds = {
            "samples.id <= ?": self.last_id() if through is None else through,
            _ARE_NEW: after,
            "samples.measured_at_s >= ?": since_s if isfinite(since_s) else None,
            "samples.measured_at_s < ?": until_s if isfinite(until_s) else None,
        }
        where, values = _condition(src, dst, metric, bounds)
        if change is None:
            return self._samples(where + _IN_ORDER, values, details=details)
        samples = self._samples(where + _IN_ORDER, values, table="samples")
        decision, ids = change
        rows = self._database.rows(
            "SELECT sample_id FROM retracted_samples WHERE restored_by IS NULL"
        )
        retracted = {number for (number,) in rows}
        if decision == "retract":
            retracted.update(ids)
        elif decision == "restore":
            retracted.difference_update(ids)
        else:
            _confirm(samples, ids)
        return samples[~np.isin(samples.rows["id"], list(retracted))]

    def page(
        self, src: str, dst: str, metric: Metric | None, *, after_id: int, limit: int
    ) -> Samples:
        """Return the samples of a link that arrived after one of them, in order of arrival.

        `src` and `dst` are region ids; 0 for `after_id` stands for the first page.
        """
        where, values = _condition(src, dst, metric, {"samples.id > ?": after_id})
        return self._samples(f"{where} ORDER BY samples.id LIMIT ?", [*values, limit])

    def newest(self, after_s: float, until_s: float) -> Samples:
        """Return the newest samples of each link after one time, and not after another."""
        return self._samples(_NEWEST, (after_s, until_s))

    def sources(self, src: str, dst: str, metric: Metric) -> set[str]:
        """Return the sources of samples of one metric of a pair."""
        where, values = _condition(src, dst, metric)
        rows = self._database.rows(
            "SELECT DISTINCT batches.source FROM used_samples AS samples "  # noqa: S608
            f"JOIN batches ON batches.id = samples.batch_id {where}",
            values,
        )
        return {source for (source,) in rows}

    def series_by_source(self) -> dict[str, int]:
        """Count series (a metric of a link, over one kind of address) by source."""
        counts = self._database.rows("SELECT source, count(*) FROM reported_series GROUP BY source")
        return {source: int(count) for source, count in counts}

    def newer(self, through: int, made_at_s: float, now_s: float) -> NewerSamples | None:
        """Return the samples that a snapshot should have by now; None if nothing is amiss.

        It was made at a time and takes the samples `through` one into account; 0 without any.
        """
        samples, since_s = self._database.row(
            "SELECT sum(accepted), min(imported_at_s) FROM batches WHERE last_sample_id > ?",
            (through,),
        )
        if samples is None:
            return None
        samples, database = int(samples), self._database
        failed_s, begun_s = database.metadata(FAILED) or 0.0, database.metadata(BEGUN) or 0.0
        if failed_s > made_at_s:
            return NewerSamples(samples, since_s, "failed", failed_s)
        if begun_s > made_at_s and now_s - begun_s >= PATIENCE_S:
            return NewerSamples(samples, since_s, "begun", begun_s)
        if now_s - since_s < (BETWEEN_S if through else PATIENCE_S):
            return None
        return NewerSamples(samples, since_s, "none")

    def _samples(
        self,
        of: str,
        values: Sequence[object],
        *,
        table: str = "used_samples AS samples",
        details: bool = True,
    ) -> Samples:
        """Return samples with who reported them: confirmed ones are the own prober's.

        `of` is the rest of the query after ``FROM``, in which `table` is called ``samples``.
        """
        select = _SELECT if details else _SELECT.replace("samples.detail", "''")
        stream = self._database.stream(f"{select} FROM {table} {of}", values)
        found, parts = Samples(), []
        while read := list(islice(stream, _AT_ONCE)):
            columns = list(zip(*read, strict=True))
            parts.append(rows := np.zeros(len(read), ROW))
            part = Samples(rows, found.names, found.details)
            for name, column in zip((*_AS_THEY_ARE, *_IDS.values()), columns, strict=False):
                rows[name] = column
            for name, column in zip(_TEXTS, columns[-len(_TEXTS) :], strict=True):
                part.fill(name, column)
        if not parts:
            return found
        found = Samples(np.concatenate(parts), found.names, found.details)
        _name(self._database, found)
        _add_sources(self._database, found)
        return found


def _condition(
    src: str | None, dst: str | None, metric: Metric | None, further: Mapping[str, object] = {}
) -> tuple[str, list[object]]:
    named = {
        "samples.src_id = (SELECT id FROM regions WHERE name = ?)": src,
        "samples.dst_id = (SELECT id FROM regions WHERE name = ?)": dst,
        "samples.metric_id = (SELECT id FROM metrics WHERE name = ?)": metric,
    }
    condition, values = matching({**named, **further})
    return f"WHERE {condition}", values


def _name(database: Database, samples: Samples) -> None:
    """Put numbers of names in place of the ids of the database."""
    rows, names = samples.rows, samples.names
    regions = dict(database.rows("SELECT id, name FROM regions"))
    for number in sorted({*distinct(rows["src"])[0].tolist(), *distinct(rows["dst"])[0].tolist()}):
        names[regions[number]]  # in the order of ids, which is that of the table
    for end in ("src", "dst"):
        rows[end] = _looked_up(rows[end], regions, lambda name: names[name])
    metrics = dict(database.rows("SELECT id, name FROM metrics"))
    rows["metric"] = _looked_up(rows["source"], metrics, number_of)
    setups = database.rows(f"SELECT id, {', '.join(SETUP)} FROM setups")  # noqa: S608
    setup = rows["tool"].copy()
    for place, name in enumerate(SETUP, 1):
        of_name = {one[0]: one[place] for one in setups}
        rows[name] = _looked_up(setup, of_name, lambda one: names[one])


def _looked_up(
    ids: NDArray[Any], known: dict[int, Any], number_of: Callable[[Any], int]
) -> NDArray[Any]:
    used, place = distinct(ids)
    return np.array([number_of(known[one]) for one in used.tolist()], np.int32)[place]


def _add_sources(database: Database, samples: Samples) -> None:
    """Add the reporters of samples, and when they reported them."""
    rows = samples.rows
    used, place = np.unique(rows["batch_id"], return_inverse=True)
    by = {
        number: (samples.names[source], at_s, bool(vouched))
        for number, source, at_s, vouched in database.stream(
            "SELECT id, source, imported_at_s, CASE WHEN options LIKE ? THEN 1 ELSE 0 END "
            "FROM batches WHERE id >= ? AND id <= ?",
            (_TRUSTED_IMPORT, int(used[0]), int(used[-1])),
        )
    }
    columns = zip(*(by[number] for number in used.tolist()), strict=True)
    for field, column in zip(("source", "arrived_at_s", "vouched"), columns, strict=True):
        rows[field] = np.array(column)[place]
    confirmed = [number for (number,) in database.rows("SELECT sample_id FROM confirmed_samples")]
    if confirmed:
        _confirm(samples, confirmed)


def _confirm(samples: Samples, ids: Collection[int]) -> None:
    """Make those samples that an operator confirmed the own prober's."""
    confirmed = np.isin(samples.rows["id"], list(ids))
    samples.rows["source"][confirmed] = samples.names[OWN]
    samples.rows["arrived_at_s"][confirmed] = np.inf
    samples.rows["vouched"][confirmed] = True
