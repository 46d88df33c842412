"""``relayd import``: measurements from files into the store, and a new snapshot."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from planner.model.aliases import only_region
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, StoreError
from planner.model.units import parse_duration_s
from probes.estimation.current_samples import MOST_JUDGED
from probes.importers import HEAD_BYTES, ImportOptions, addressed, identified, importers, read
from probes.importers.limits import PhysicalGate
from probes.importers.options import BAD_REGION
from probes.samples import Sample
from relayd.cli.options import (
    catalogue_of,
    meanings,
    region_id,
    store_location,
    time_s,
    whole_number,
)
from relayd.cli.output import pick, respond, snapshot_as_json
from relayd.cli.text import Progress, page
from relayd.history import DataSetHistory  # few imports are of such
from relayd.snapshots.building import make_snapshot, vm_type_notes
from relayd.store import Store, open_store
from relayd.store.samples.data_set import files_of
from relayd.store.samples.ingest import Batch, ImportReport, content_digest, ingest

FINISHED_IN_PART = 5


class _Input(NamedTuple):
    """A file, and what it is called: of a data set, with its folders in that."""

    path: Path
    name: str
    format: str
    what: str
    data_set: DataSetHistory | None = None
    """Of which only the newest samples are wanted."""


def run(options: argparse.Namespace) -> int:
    """Import each file whole or not at all, then take a snapshot."""
    catalogue = catalogue_of(options)
    wanted, *names = options.files
    if not names or wanted not in importers():
        wanted, names = "", options.files
    files = [file for name in names for file in _files(Path(name), wanted, options)]
    location = store_location(options)
    reports: list[tuple[_Input, ImportReport]] = []
    try:
        with open_store(location, mode="create") as store, _saying_what_was_stored(reports):
            # One by one: of those before a fault, it is said what is stored.
            reports.extend((file, _import(store, file, options, catalogue)) for file in files)
            snapshot = make_snapshot(store, catalogue)
            notes = vm_type_notes(store, snapshot.id) if snapshot else []
    finally:  # after the snapshot, which a reader that closes the pipe must not prevent
        if not options.json:
            for file, report in reports:
                _print_report(file, "" if wanted else f", {file.what}", report)
    if snapshot or options.json:
        document = {
            "db": str(location),
            "files": [_as_json(*one) for one in reports],
            "snapshot": snapshot_as_json(snapshot),
            "notes": notes,
        }
        if not options.json:
            for note in notes:
                print(page().filled(f"Note: {note}.", "  "))
        said = snapshot and f"Snapshot {snapshot.id}, as of {snapshot.as_of}, in {location}"
        respond(options, document, said or "")
    unusable = [
        str(file.path)
        for file, report in reports
        # Of a data set's older files nothing is wanted.
        if not (file.data_set or report.accepted + report.duplicates)
    ]
    if unusable:
        print(f"relayd: nothing to use in {', '.join(unusable)}", file=sys.stderr)
        return FINISHED_IN_PART
    return 0


@contextmanager
def _saying_what_was_stored(reports: Sequence[tuple[_Input, ImportReport]]) -> Iterator[None]:
    """Add to errors of the store what of an import it holds already."""
    try:
        yield
    except StoreError as error:
        if not reports:
            raise
        samples = sum(report.accepted + report.quarantined for _, report in reports)
        files = ", ".join(file.name for file, _ in reports)
        raise StoreError(
            error.field,
            error.problem,
            value=error.value,
            remedy=f"{error.remedy} Stored are {samples:,} new samples of {files}; importing these "
            "again adds nothing, and makes the snapshot.",
        ) from error


def _files(path: Path, wanted: str, options: argparse.Namespace) -> list[_Input]:
    """Return the files that a name stands for: a data set has many."""
    if not path.is_dir():
        if options.newest:
            problem = "is of data sets, and this is a file"
            remedy = "Name a folder of Parquet files, such as `relayd data export samples` writes."
            raise InputError("--newest", problem, value=str(path), remedy=remedy)
        return [_readable(path, path.name, wanted)]
    if wanted not in ("", "parquet"):
        raise InputError(str(path), "is a folder", remedy="Name the files in it.")
    data_set = DataSetHistory(path) if options.newest else None
    files = [_readable(file, str(file.relative_to(path)), "parquet") for file in files_of(path)]
    return [file._replace(data_set=data_set) for file in files]


def _readable(path: Path, name: str, wanted: str) -> _Input:
    try:
        with path.open("rb") as stream:
            found = identified(stream.read(HEAD_BYTES), name, wanted)
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        remedy = f"Formats that may stand before the file are {', '.join(importers())}."
        if name in importers():
            problem, remedy = "is a format, and no file follows it", "Name the file after it."
        raise InputError(str(path), problem, remedy=remedy) from None
    return _Input(path, name, found.importer.name, found.what)


def _import(
    store: Store, file: _Input, options: argparse.Namespace, catalogue: Catalogue
) -> ImportReport:
    path, name = file[:2]
    digest = content_digest(path)
    if options.measured_at:
        measured_at_s = time_s(options.measured_at, "--measured-at")
    else:
        measured_at_s = _earlier_time_s(store, digest) or path.stat().st_mtime
    kept = {
        "src": region_id(options.src, "--src", catalogue),
        "dst": region_id(options.dst, "--dst", catalogue),
        "src_vm": options.src_vm or "",
        "dst_vm": options.dst_vm or "",
        "measured_at_s": measured_at_s,
        "columns": meanings("--columns", options) | meanings("--labels", options),
        "provider": options.provider or "",
        "metric": options.metric or "",
        **pick(options, "force address hosts"),
    }
    chosen = ImportOptions(
        **kept,
        connections=options.connections and whole_number(options.connections, "--connections"),
        duration_s=options.duration and parse_duration_s(options.duration, "--duration"),
        tiers=tuple(options.tier) or ("PREMIUM",),
        named=lru_cache(lambda written: only_region(written, catalogue) or written),
        name=name,
    )
    described = {**kept, "tiers": list(chosen.tiers), "trust": options.trust}
    if file.data_set:
        described["newest"] = MOST_JUDGED
    batch = Batch(name, file.format, digest, described)
    with path.open("rb") as stream:
        if file.data_set:
            rows = addressed(file.data_set.newest_rows(path, chosen), chosen)
        else:
            rows = read(file.format, stream, chosen)
        gate = PhysicalGate(catalogue)
        judged = (
            gate.judged(row) if isinstance(row, Sample) and not options.trust else row
            for row in rows
        )
        progress = Progress()
        try:
            return ingest(
                store,
                batch,
                judged,
                progress=lambda count: progress.show(f"{name}: {count:,} rows"),
            )
        finally:
            progress.end()


def _earlier_time_s(store: Store, digest: str) -> float | None:
    """Return the time under which the same content was imported before.

    A file without times is dated by its modification; copying it must not make new samples.
    """
    for batch in store.samples.batches():
        if batch.digest == digest:
            found = json.loads(batch.options).get("measured_at_s")
            return None if found is None else float(found)
    return None


_OWN_SITES = (
    "  A site of your own is called provider:name, such as own:paris: write it so, or say "
    "--provider own. configs/catalogue-onprem.example.toml shows how to give it a place and prices."
)


def _print_report(file: _Input, what: str, report: ImportReport) -> None:
    line = f"{file.name}{what}: {report.accepted:,} samples added"
    if report.duplicates:
        line += f", {report.duplicates:,} already there or twice in the file"
    if report.quarantined:
        line += f", {report.quarantined:,} in quarantine (`relayd data samples quarantine`)"
    print(line)
    for reason, skipped in report.skipped.items():
        rows = ", ".join(str(row) for row in skipped.first_rows)
        more = ", ..." if skipped.total > len(skipped.first_rows) else ""
        lines = f" (line {rows}{more})" if rows else ""
        print(f"  skipped {skipped.total:,}: {reason}{lines}")
        if reason == BAD_REGION:
            print(page().filled(_OWN_SITES, "  "))


def _as_json(file: _Input, report: ImportReport) -> dict[str, Any]:
    skipped = {
        reason: {"total": rows.total, "first_rows": list(rows.first_rows)}
        for reason, rows in report.skipped.items()
    }
    counts = pick(report, "accepted duplicates quarantined")
    told = {"file": str(file.path), "what": file.what}
    return {**told, **counts, "skipped": skipped, "batch": report.batch_id}
