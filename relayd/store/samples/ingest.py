"""Taking in samples: a whole file or nothing, each sample once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import InputError
from probes.samples import ADDRESSES, METRICS, OWN, Metric, Quarantined, Sample, Samples, Skipped
from relayd.store.database import Database
from relayd.store.failures import reason
from relayd.store.opening import Store
from relayd.store.regions import new_region_id
from relayd.store.samples.reading import StoredSamples
from relayd.store.samples.reported_series import note_series
from relayd.store.samples.table import SETUP, detail_digest, refuse_nul, table_rows
from relayd.version import __version__

FILES = "files"
"""The source of all files that were imported without ``--trust``."""
_CHUNK = 20_000
_FIRST_ROWS = 5
_MOST_REASONS = 100
_OTHER_REASONS = "other reasons"
_Setup: TypeAlias = tuple[str, str, str, str, str]


class Limits(NamedTuple):
    """How many names a store may hold: each takes memory and time for ever.

    Attributes
    ----------
    regions : int
        A snapshot has a link for each pair of them.
    setups : int
        Tools, zones and VM types that samples were taken with, in all combinations. Tokens may
        fill half of them, so that the own prober can always store what it measures.
    series : int
        Metrics of links, over each kind of address, of one token (or address without one); 0 for
        no limit. Three metrics of all pairs of 140 regions are 58,380.
    """

    regions: int = 1_000
    setups: int = 50_000
    series: int = 100_000


LIMITS = Limits()


class Batch(NamedTuple):
    """Where a group of samples comes from.

    Attributes
    ----------
    name : str
        The file's name, or what was measured.
    format : str
        Name of the importer, or ``live``.
    digest : str | None
        Of the file's content, by :func:`content_digest`; None where there is no file.
    options : Mapping
        How it was read; values of JSON types.
    reporter, address : str
        Name of the token that sent it, and from where; ``""`` for commands on the store itself.
    """

    name: str
    format: str
    digest: str | None = None
    options: Mapping[str, object] = {}
    reporter: str = ""
    address: str = ""

    @property
    def source(self) -> str:
        """Who reported it: trusted are the own prober and files imported with ``--trust``."""
        if self.reporter:
            return source_of_token(self.reporter)
        if self.address:
            return f"address {self.address}"
        if self.format != "live" and not self.options.get("trust"):
            return FILES
        return OWN


def source_of_token(name: str) -> str:
    """Return the source that samples sent with a token have."""
    return f"token {name}"


class SkippedRows(NamedTuple):
    """How many rows were left out for one reason, and the numbers of the first few."""

    total: int
    first_rows: tuple[int, ...]


class ImportReport(NamedTuple):
    """What became of the rows of a file.

    Attributes
    ----------
    accepted, duplicates : int
        Samples that are new, and that were there already (or twice in the file).
    quarantined : int
        Samples that can't be measurements and are new: kept apart.
    skipped : Mapping of str to SkippedRows
        By reason, what the importer left out.
    batch_id : int | None
        Under which the new samples are kept; None if there was nothing new, and nothing at all
        was stored.
    """

    accepted: int
    duplicates: int
    skipped: Mapping[str, SkippedRows]
    batch_id: int | None
    quarantined: int = 0


class SampleWriter:
    """Adds samples of one batch; lives inside one transaction.

    The ids of names that it looks up may vanish with the transaction, so nothing of it is kept
    for the next one.

    Attributes
    ----------
    batch_id : int
    accepted, duplicates, quarantined : int
        Of the samples so far: those that are new, that were there already, and that were kept apart
        and are new.
    """

    def __init__(self, database: Database, batch: Batch, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._database = database
        self._limited_source = batch.source if batch.reporter or batch.address else ""
        self._last_id = StoredSamples(database).last_id()
        self.accepted = self.duplicates = self.quarantined = 0
        options = json.dumps(dict(batch.options), sort_keys=True)
        self.batch_id = database.change(
            "INSERT INTO batches (name, format, digest, options, relayd_version, imported_at_s, "
            "reporter, address, source) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                *(batch.name, batch.format, batch.digest, options, __version__, time.time()),
                *(batch.reporter, batch.address, batch.source),
            ),
        )
        self._read_names()

    def _read_names(self) -> None:
        database = self._database
        self._regions: dict[str, int] = dict(database.rows("SELECT name, id FROM regions"))
        self._metrics: dict[str, int] = dict(database.rows("SELECT name, id FROM metrics"))
        self._setups: dict[_Setup, int] = {
            row[:5]: row[5]
            for row in database.rows(
                "SELECT tool, src_zone, dst_zone, src_vm, dst_vm, id FROM setups"
            )
        }

    def add(self, samples: Sequence[Sample] | Samples) -> int:
        """Add samples; return how many of them were new.

        Raises
        ------
        InputError
            If one has a value that can't be a measurement.
        """
        try:
            return self._add(samples)
        except self._database.refusals as error:
            raise self._refusal(samples, error) from error

    def _add(self, given: Sequence[Sample] | Samples) -> int:
        if not len(given):
            return 0
        with self._database.savepoint():
            samples = given if isinstance(given, Samples) else Samples.of(given)
            numbers = range(self._last_id + 1, self._last_id + 1 + len(samples))
            ids = self._ids(samples)
            rows = table_rows(samples, ids, self.batch_id, numbers)
            self._last_id = numbers[-1]
            if self._limited_source:
                private = samples.rows["address"] == ADDRESSES.index("private")
                told = set(zip(*(one.tolist() for one in (*ids[:3], private)), strict=True))
                note_series(self._database, self._limited_source, told, self._limits.series)
            new = self._database.insert("samples", rows, skip_known=True)
        self.accepted, self.duplicates = self.accepted + new, self.duplicates + len(rows) - new
        return new

    def _ids(self, samples: Samples) -> tuple[NDArray[np.int64], ...]:
        """Return the ids of sources, destinations, metrics and setups; new ones are numbered."""
        rows, names = samples.rows, list(samples.names)
        # In the order of the file: who imports it anywhere gets the same numbers.
        ends = np.stack([rows["src"], rows["dst"]], axis=1)
        region_ids = np.zeros(len(names), np.int64)
        for number in dict.fromkeys(ends.ravel().tolist()):
            name = names[number]
            region_ids[number] = self._regions.get(name) or self._new_region(name)
        metric_ids = np.zeros(len(METRICS), np.int64)
        for number in dict.fromkeys(rows["metric"].tolist()):
            metric = METRICS[number]
            metric_ids[number] = self._metrics.get(metric) or self._new_metric(metric)
        setups = [
            self._setups.get(setup) or self._new_setup(setup)
            for setup in zip(*map(samples.column, SETUP), strict=True)
        ]
        src, dst = region_ids[ends].T
        return src, dst, metric_ids[rows["metric"]], np.array(setups, np.int64)

    def _new_region(self, name: str) -> int:
        refuse_nul(name)
        if len(self._regions) >= self._limits.regions:
            raise InputError(
                "region",
                f"would be one more than the {self._limits.regions} that the store may hold",
                value=name,
                remedy="Nothing of the batch was stored. Check its regions; start another store.",
            )
        number = new_region_id(self._database, name)
        self._regions[name] = number
        return number

    def _new_metric(self, name: Metric) -> int:
        number = self._database.change(
            "INSERT INTO metrics (name) VALUES (?) RETURNING id", (name,)
        )
        self._metrics[name] = number
        return number

    def _new_setup(self, setup: _Setup) -> int:
        refuse_nul(*setup)
        most, holder = self._limits.setups, "the store may hold"
        if self._limited_source:
            most, holder = (most + 1) // 2, "tokens may bring the store to"
        if len(self._setups) >= most:
            raise InputError(
                "tool, zones and VM types",
                f"would be one more way to measure than the {most} that {holder}",
                value=" ".join(filter(None, setup)),
                remedy="Nothing of the batch was stored. Use few names of tools, zones and VM "
                "types.",
            )
        number = self._database.change(
            "INSERT INTO setups (tool, src_zone, dst_zone, src_vm, dst_vm) "
            "VALUES (?, ?, ?, ?, ?) RETURNING id",
            setup,
        )
        self._setups[setup] = number
        return number

    def _refusal(self, samples: Sequence[Sample] | Samples, error: Exception) -> InputError:
        """Find the first sample that was refused, by adding one half and then its halves."""
        shown = None
        while len(samples):
            half = samples[: (len(samples) + 1) // 2]
            # What was numbered in vain is gone from the database.
            self._read_names()
            try:
                self._add(half)
            except self._database.refusals as again:
                if len(samples) == 1:
                    error = again
                    only = samples[0]
                    shown = f"{only.src} to {only.dst}, {only.metric} = {only.value}"
                    break
                samples = half
            else:
                samples = samples[len(half) :]
        return InputError(
            "sample",
            f"can't be stored: {reason(error)}",
            value=shown,
            remedy="Nothing of its file was stored. Correct or remove it, and import again.",
        )

    def keep_apart(self, rows: Iterable[Quarantined]) -> None:
        """Put samples in quarantine, each once."""
        contents = []
        for sample, why in rows:
            content = json.dumps(sample._asdict(), sort_keys=True)
            digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
            contents.append((self.batch_id, digest, why, *sample[:5], content))
        if contents:
            self.quarantined += self._database.change_many(
                "INSERT INTO quarantined_samples "
                "(batch_id, digest, reason, src, dst, metric, value, measured_at_s, sample) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
                contents,
            )

    def seal(self, skipped: Mapping[str, SkippedRows] = {}) -> int:
        """Fill in the counts of the batch and return its id; it can't change from then on."""
        text = json.dumps({why: rows._asdict() for why, rows in skipped.items()})
        self._database.change(
            "UPDATE batches SET last_sample_id = ?, accepted = ?, duplicates = ?, skipped = ?, "
            "quarantined = ? WHERE id = ?",
            (
                *(self._last_id, self.accepted, self.duplicates, text),
                *(self.quarantined, self.batch_id),
            ),
        )
        return self.batch_id


def write_live(database: Database, name: str, samples: Sequence[Sample]) -> tuple[int | None, int]:
    """Add samples that were measured just now, inside a transaction, as a batch of their own.

    Returns the batch's number, None without samples, and how many were new.
    """
    if not samples:
        return None, 0
    writer = SampleWriter(database, Batch(name, "live"))
    accepted = writer.add(samples)
    return writer.seal(), accepted


def ingest(
    store: Store,
    batch: Batch,
    rows: Iterable[Sample | Skipped | Quarantined],
    *,
    progress: Callable[[int], None] | None = None,
    limits: Limits = LIMITS,
) -> ImportReport:
    """Store the samples that an importer yields: all of them, or none.

    Two samples with equal values are one sample, so a file that is imported twice adds nothing
    and one that has grown adds its new rows. Memory is bounded however long the file is. When
    this returns, the samples survive a loss of power.

    Parameters
    ----------
    rows : iterable
        May raise, and then nothing is stored.
    progress : callable, optional
        Called now and then with the number of samples and skipped rows so far.
    limits : Limits, optional
        How many names the store may come to hold.

    Raises
    ------
    StoreError
        If the database can't take them.
    InputError
        If a sample has a value that no measurement can have, or names beyond the limits.
    """
    database = store.database
    tally = _Tally()
    seen = 0
    with database.transaction():
        writer = SampleWriter(database, batch, limits)
        remaining = iter(rows)
        while group := list(islice(remaining, _CHUNK)):
            writer.add([row for row in group if isinstance(row, Sample)])
            writer.keep_apart(row for row in group if isinstance(row, Quarantined))
            tally.add(row for row in group if isinstance(row, Skipped))
            seen += len(group)
            if progress is not None:
                progress(seen)
        skipped, stored = tally.skipped(), None
        if writer.accepted or writer.quarantined:
            stored = writer.seal(skipped)
        else:
            database.roll_back()
    return ImportReport(writer.accepted, writer.duplicates, skipped, stored, writer.quarantined)


def append(store: Store, samples: Sequence[Sample], origin: str = "live") -> ImportReport:
    """Store a few samples as they are measured; they are on disk when this returns."""
    return ingest(store, Batch(origin, "live"), samples)


def content_digest(path: Path) -> str:
    """Return the BLAKE2b-256 of a file's content, hexadecimal.

    Raises
    ------
    OSError
        If the file can't be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


class _Tally:
    """Counts skipped rows by reason, in bounded memory."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._first_rows: dict[str, list[int]] = {}

    def add(self, rows: Iterable[Skipped]) -> None:
        for row, why in rows:
            known = why in self._counts or len(self._counts) < _MOST_REASONS
            key = why if known else _OTHER_REASONS
            self._counts[key] = self._counts.get(key, 0) + 1
            first = self._first_rows.setdefault(key, [])
            if len(first) < _FIRST_ROWS:
                first.append(row)

    def skipped(self) -> dict[str, SkippedRows]:
        return {
            why: SkippedRows(total, tuple(self._first_rows[why]))
            for why, total in self._counts.items()
        }


def batch_with(database: Database, sample: Sample) -> int | None:
    """Return the batch that has a sample with the same values, retracted or not; None if none."""
    digest = detail_digest(sample.detail, sample.address, sample.new_level, sample.intervals)
    rows = database.rows(
        "SELECT samples.batch_id FROM samples JOIN setups ON setups.id = setup_id "
        "WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
        "AND dst_id = (SELECT id FROM regions WHERE name = ?) "
        "AND metric_id = (SELECT id FROM metrics WHERE name = ?) "
        "AND measured_at_s = ? AND value = ? AND connections = ? AND duration_s = ? "
        "AND warmed_up = ? AND detail_digest = ? "
        "AND tool = ? AND src_zone = ? AND dst_zone = ? AND src_vm = ? AND dst_vm = ?",
        (
            *sample[:3],
            sample.measured_at_s + 0.0,
            sample.value + 0.0,
            sample.connections or 0,
            (sample.duration_s or 0) + 0.0,
            int(sample.warmed_up),
            digest,
            sample.tool,
            sample.src_zone,
            sample.dst_zone,
            sample.src_vm,
            sample.dst_vm,
        ),
    )
    return int(rows[0][0]) if rows else None
