"""Taking in samples: a whole file or nothing, each sample once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from probes.samples import OWN, Quarantined, Sample, Skipped
from relayd.store.opening import Store
from relayd.store.samples.quarantine import add_quarantined
from relayd.store.samples.writing import LIMITS, Limits, SampleWriter
from relayd.version import __version__

FILES = "files"
"""The source of all files that were imported without ``--trust``."""
_CHUNK = 20_000
_FIRST_ROWS = 5
_MOST_REASONS = 100
_OTHER_REASONS = "other reasons"


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
    accepted = seen = samples_seen = kept_apart = 0
    with database.transaction():
        writer = SampleWriter(
            database,
            name=batch.name,
            format=batch.format,
            digest=batch.digest,
            options=json.dumps(dict(batch.options), sort_keys=True),
            relayd_version=__version__,
            imported_at_s=time.time(),
            limits=limits,
            reporter=batch.reporter,
            address=batch.address,
            source=batch.source,
        )
        remaining = iter(rows)
        while group := list(islice(remaining, _CHUNK)):
            samples = [row for row in group if isinstance(row, Sample)]
            tally.add(row for row in group if isinstance(row, Skipped))
            apart = [row for row in group if isinstance(row, Quarantined)]
            kept_apart += add_quarantined(database, writer.batch_id, apart)
            accepted += writer.add(samples)
            samples_seen += len(samples)
            seen += len(group)
            if progress is not None:
                progress(seen)
        duplicates = samples_seen - accepted
        if accepted or kept_apart:
            writer.seal(
                accepted=accepted,
                duplicates=duplicates,
                quarantined=kept_apart,
                skipped=json.dumps({k: v._asdict() for k, v in tally.skipped().items()}),
            )
        else:
            database.roll_back()
    stored = writer.batch_id if accepted or kept_apart else None
    return ImportReport(accepted, duplicates, tally.skipped(), stored, kept_apart)


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
        for row, reason in rows:
            known = reason in self._counts or len(self._counts) < _MOST_REASONS
            key = reason if known else _OTHER_REASONS
            self._counts[key] = self._counts.get(key, 0) + 1
            first = self._first_rows.setdefault(key, [])
            if len(first) < _FIRST_ROWS:
                first.append(row)

    def skipped(self) -> dict[str, SkippedRows]:
        return {
            reason: SkippedRows(total, tuple(self._first_rows[reason]))
            for reason, total in self._counts.items()
        }
