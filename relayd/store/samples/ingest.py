"""Taking in samples: a whole file or nothing, each sample once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import InputError
from planner.model.estimate import AddressKind
from probes.metrics import CAPS, METRICS, NAMES, number_of
from probes.samples import ADDRESSES, FILES, OWN, QuarantinedSample, Sample, Samples, SkippedRow
from relayd.store.database import Database
from relayd.store.failures import reason
from relayd.store.opening import Store
from relayd.store.samples.reading import SETUP, StoredSamples
from relayd.version import __version__

_CHUNK = 20_000
_FIRST_ROWS = 5
_MOST_REASONS = 100
_MOST = 1e300
_NAMES = {"regions": ("name",), "metrics": ("name",), "setups": SETUP}
"""Tables of names, and the columns that make one."""
_Ids: TypeAlias = NDArray[np.int64]


class Limits(NamedTuple):
    """The most names that a store may hold: each takes memory and time for ever."""

    regions: int = 1_000  # a snapshot has a link for each pair of them
    setups: int = 50_000
    """Tools, zones and VM types that samples were taken with, in all combinations. Tokens may fill
    half of them, so that the own prober can always store what it measures."""
    series: int = 100_000
    """Metrics of links, over each kind of address, of one token (or address without one); 0 for no
    limit. Three metrics of all pairs of 140 regions are 58,380."""


LIMITS = Limits()


class Batch(NamedTuple):
    """The origin of a group of samples: a file with its digest, or what was measured live."""

    name: str
    format: str
    """Name of the importer, or ``live``."""
    digest: str | None = None
    """Of the file's content, by :func:`content_digest`; None where there is no file."""
    options: Mapping[str, object] = {}  # options of the importer; values of JSON types
    reporter: str = ""
    address: str = ""
    """Name of the token that sent it, and from where; ``""`` for commands on the store itself."""

    @property
    def source(self) -> str:
        """The reporter: relayd trusts its own prober and files imported with ``--trust``."""
        if self.reporter:
            return source_of_token(self.reporter)
        if self.address:
            return f"address {self.address}"
        return OWN if self.format == "live" or self.options.get("trust") else FILES


def source_of_token(name: str) -> str:
    """Return the source that samples sent with a token have."""
    return f"token {name}"


class SkippedRows(NamedTuple):
    """The count of rows left out for one reason, and the numbers of the first few."""

    total: int
    first_rows: tuple[int, ...]


class ImportReport(NamedTuple):
    """Counts of the stored and skipped rows of a file."""

    accepted: int
    duplicates: int
    """Samples that are new, and that were there already (or twice in the file)."""
    skipped: Mapping[str, SkippedRows]  # by reason, what the importer left out
    batch_id: int | None
    """Under which the new samples are kept; None if there was nothing new, and nothing at all was
    stored."""
    quarantined: int = 0  # samples that can't be measurements and are new: kept apart


class SampleWriter:
    """Adds samples of one batch; lives inside one transaction, which an error must undo.

    The ids of names that it looks up may vanish with the transaction, so nothing of it is kept
    for the next one. It counts the samples so far: new ones, those that were there already, and
    new ones that were kept apart.
    """

    def __init__(self, database: Database, batch: Batch, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._database = database
        self._limited_source = batch.source if batch.reporter or batch.address else ""
        self._last_id = StoredSamples(database).last_id()
        self.accepted = self.duplicates = self.quarantined = 0
        row = {
            **batch._asdict(),
            "options": json.dumps(dict(batch.options), sort_keys=True),
            "source": batch.source,
            "relayd_version": __version__,
            "imported_at_s": time.time(),
        }
        self.batch_id = database.add("batches", row, "id")
        self._known: dict[str, dict[tuple[str, ...], int]] = {
            table: {
                tuple(name): number
                for number, *name in database.rows(f"SELECT id, {', '.join(columns)} FROM {table}")  # noqa: S608
            }
            for table, columns in _NAMES.items()
        }

    def take(self, rows: Sequence[Sample | QuarantinedSample | SkippedRow]) -> None:
        """Add the samples among some rows, and put those in quarantine that can't be any."""
        self.add([row for row in rows if isinstance(row, Sample)])
        self.keep_apart(row for row in rows if isinstance(row, QuarantinedSample))

    def add(self, given: Sequence[Sample]) -> int:
        """Add samples; return how many of them were new.

        Raises
        ------
        InputError
            If one can't be a measurement, is of a region to itself without being a VM's cap, or
            there would be too many names.
        """
        if not given:
            return 0
        try:
            samples = Samples.of(given)
            _refuse_wrong_ends(samples)
            ids = self._ids(samples)
            rows = self._table_rows(samples, ids)
            if self._limited_source:
                private = samples.rows["address"] == ADDRESSES.index("private")
                self._note_series(
                    set(zip(*(one.tolist() for one in (*ids[:3], private)), strict=True))
                )
            new = self._database.insert("samples", rows)
        except self._database.refusals as error:
            wrong = next((one for one in given if not _is_storable(one)), None)
            value = wrong and f"{wrong.src} to {wrong.dst}, {wrong.metric} = {wrong.value}"
            remedy = "Nothing of its file was stored. Correct or remove it, and import again."
            problem = f"can't be stored: {reason(error)}"
            raise InputError("sample", problem, value=value, remedy=remedy) from error
        self.accepted, self.duplicates = self.accepted + new, self.duplicates + len(rows) - new
        return new

    def _ids(self, samples: Samples) -> tuple[_Ids, _Ids, _Ids, _Ids]:
        """Return the ids of sources, destinations, metrics and setups; new ones are numbered."""
        rows, names = samples.rows, list(samples.names)
        # In the order of the file: who imports it anywhere gets the same numbers.
        ends = np.stack([rows["src"], rows["dst"]], axis=1)
        region_ids, metric_ids = np.zeros(len(names), np.int64), np.zeros(len(METRICS), np.int64)
        for number in dict.fromkeys(ends.ravel().tolist()):
            region_ids[number] = self._number("regions", names[number])
        for number in dict.fromkeys(rows["metric"].tolist()):
            metric_ids[number] = self._number("metrics", NAMES[number])
        setups = zip(*map(samples.column, SETUP), strict=True)
        setup_ids = [self._number("setups", *setup) for setup in setups]
        src, dst = region_ids[ends].T
        return src, dst, metric_ids[rows["metric"]], np.array(setup_ids, np.int64)

    def _number(self, table: str, *name: str) -> int:
        """Return the id of a name, a new one if the limits allow it."""
        known = self._known[table]
        if (found := known.get(name)) is not None:
            return found
        _refuse_nul(*name)
        if table == "regions" and len(known) >= self._limits.regions:
            problem = f"one more than the {self._limits.regions} that the store may hold"
            remedy = "Check its regions; start another store."
            raise _too_many("region", problem, name[0], remedy)
        most, holder = self._limits.setups, "the store may hold"
        if self._limited_source:
            most, holder = (most + 1) // 2, "tokens may bring the store to"
        if table == "setups" and len(known) >= most:
            problem = f"one more way to measure than the {most} that {holder}"
            remedy = "Use few names of tools, zones and VM types."
            value = " ".join(filter(None, name))
            raise _too_many("tool, zones and VM types", problem, value, remedy)
        row = dict(zip(_NAMES[table], name, strict=True))
        known[name] = number = self._database.add(table, row, "id")
        return number

    def _table_rows(self, samples: Samples, ids: Sequence[_Ids]) -> list[tuple[Any, ...]]:
        """Return samples as rows of the table, in the order of its key.

        Neighbours land on the same page then: a third faster.
        """
        first, rows = self._last_id + 1, samples.rows
        self._last_id += len(rows)
        texts = [samples.column(name) for name in ("detail", "address", "new_level", "intervals")]
        src, dst, metric, setup = (column.tolist() for column in ids)
        numeric = (rows[name] for name in ("measured_at_s", "value", "connections", "duration_s"))
        columns: list[Any] = [
            *(src, dst, metric),
            *(column.tolist() for column in numeric),
            map(int, rows["warmed_up"].tolist()),
            setup,
            map(detail_digest, *texts),
            texts[0],
            repeat(self.batch_id, len(rows)),
            range(first, first + len(rows)),
            texts[1],
            map(int, texts[2]),
            texts[3],
        ]
        return sorted(zip(*columns, strict=True))

    def _note_series(self, found: set[tuple[int, int, int, bool]]) -> None:
        """Note the series that a source sends: ids of ends and metric, and whether over private.

        Each takes time and memory in every snapshot for ever, so one token may bring only so many.
        Those of commands on the store itself are not counted.
        """
        source, most = self._limited_source, self._limits.series
        rows = sorted((source, *ids, int(private)) for *ids, private in found)
        if not self._database.insert("reported_series", rows) or not most:
            return
        sql = "SELECT count(*) FROM reported_series WHERE source = ?"
        (count,) = self._database.row(sql, (source,))
        if count > most:
            remedy = (
                "A series is one metric of a link: send fewer, or let the operator raise "
                "`max_series` of the service, or make a token that may send more (`relayd serve "
                "token create NAME --max-series N`)."
            )
            problem = f"{count:,}, more than the {most:,} that it may report"
            raise _too_many("series", problem, source, remedy)

    def keep_apart(self, rows: Iterable[QuarantinedSample]) -> None:
        """Put samples in quarantine, each once."""
        contents = []
        for row in rows:
            content = json.dumps(row.sample._asdict(), sort_keys=True)
            digest = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
            contents.append((self.batch_id, digest, row.reason, *row.sample[:5], content))
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
        counts = (self._last_id, self.accepted, self.duplicates, text, self.quarantined)
        self._database.change(
            "UPDATE batches SET last_sample_id = ?, accepted = ?, duplicates = ?, skipped = ?, "
            "quarantined = ? WHERE id = ?",
            (*counts, self.batch_id),
        )
        return self.batch_id


def _refuse_wrong_ends(samples: Samples) -> None:
    """Refuse samples from a region to itself, and caps of VMs between two regions."""
    rows = samples.rows
    of_one_vm = np.isin(rows["metric"], [*map(number_of, CAPS)])
    wrong = np.flatnonzero((rows["src"] == rows["dst"]) != of_one_vm)
    if not len(wrong):
        return
    first = samples[int(wrong[0])]
    problem = "is from a region to itself"
    remedy = "Only caps of VMs are: name the two regions of the test, or leave it out."
    if of_one_vm[wrong[0]]:
        problem, remedy = "is a cap of one VM, and names two regions", "Name the VM's region twice."
    value = f"{first.src} to {first.dst}, {first.metric} = {first.value}"
    raise InputError("sample", problem, value=value, remedy=f"Nothing was stored. {remedy}")


def _too_many(field: str, what: str, value: str, remedy: str) -> InputError:
    remedy = f"Nothing of the batch was stored. {remedy}"
    return InputError(field, f"would be {what}", value=value, remedy=remedy)


@lru_cache(maxsize=4096)  # many samples of a file say the same
def detail_digest(
    detail: str, address: AddressKind | None, new_level: bool, intervals: int | None
) -> int:
    """Return a number that differs where samples differ in these values alone; 0 without any."""
    _refuse_nul(detail)
    stated = detail
    if address or new_level or intervals:
        stated += f"\n{address} {new_level} {intervals}"
    digest = hashlib.blake2b(stated.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) if stated else 0


def _refuse_nul(*texts: str) -> None:
    """Raise for U+0000, which PostgreSQL cannot store: a store may move between engines."""
    if any("\0" in text for text in texts):
        raise UnicodeError("a text holds the character U+0000")


def _is_storable(sample: Sample) -> bool:
    """Return whether the table takes a sample, to find the one that it refused."""
    try:
        samples = Samples.of([sample])
        texts = [*map(str, samples.names), sample.detail]
        _refuse_nul(*texts)
        "".join(texts).encode()
    except (TypeError, ValueError, OverflowError):
        return False
    row = samples.rows[0]
    figures = row["value"], row["duration_s"], row["connections"]
    in_range = all(0 <= figure <= _MOST for figure in figures)
    named = sample.src and sample.dst and all(getattr(sample, one) is not None for one in SETUP)
    return bool(in_range and named and abs(row["measured_at_s"]) <= _MOST)


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
    rows: Iterable[Sample | SkippedRow | QuarantinedSample],
    *,
    progress: Callable[[int], None] | None = None,
    limits: Limits = LIMITS,
) -> ImportReport:
    """Store the samples that an importer yields: all of them, or none.

    Two samples with equal values are one sample, so a file that is imported twice adds nothing
    and one that has grown adds its new rows. Memory is bounded however long the file is. When
    this returns, the samples survive a loss of power. `progress` is called now and then with the
    number of samples and skipped rows so far. Where `rows` raises, nothing is stored.

    Raises StoreError or InputError if the database can't take them, or a sample can't be one or has
    names beyond the limits.
    """
    database = store.database
    skipped: dict[str, SkippedRows] = {}
    seen, stored = 0, None
    with database.transaction():
        writer = SampleWriter(database, batch, limits)
        remaining = iter(rows)
        while group := list(islice(remaining, _CHUNK)):
            writer.take(group)
            for row in group:
                if isinstance(row, SkippedRow):
                    _count(skipped, row)
            seen += len(group)
            if progress is not None:
                progress(seen)
        if writer.accepted or writer.quarantined:
            stored = writer.seal(skipped)
        else:
            database.roll_back()
    return ImportReport(writer.accepted, writer.duplicates, skipped, stored, writer.quarantined)


def append(store: Store, samples: Sequence[Sample], origin: str = "live") -> ImportReport:
    """Store a few samples as they are measured; they are on disk when this returns."""
    return ingest(store, Batch(origin, "live"), samples)


def content_digest(path: Path) -> str:
    """Return the BLAKE2b-256 of a file's content, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _count(skipped: dict[str, SkippedRows], row: SkippedRow) -> None:
    """Count a row that was left out by its reason, in bounded memory."""
    known = row.reason in skipped or len(skipped) < _MOST_REASONS
    why = row.reason if known else "other reasons"
    total, first = skipped.get(why, (0, ()))
    numbers = (*first, row.row) if row.row else first
    skipped[why] = SkippedRows(total + 1, numbers[:_FIRST_ROWS])
