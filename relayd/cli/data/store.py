"""``relayd data store``: look after the store."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from planner.model.units import parse_duration_s
from relayd.cli import text
from relayd.cli.options import catalogue_of, store_location, store_of
from relayd.cli.output import print_rows, respond
from relayd.snapshots.building import make_snapshot
from relayd.store.backup import backup as copy_to
from relayd.store.backup import is_backup, refuse_changed
from relayd.store.backup import restore as restore_from
from relayd.store.checking import check as find_damage
from relayd.store.events import changes, record_change
from relayd.store.failures import failure
from relayd.store.samples.reading import Counts
from relayd.store.samples.retention import compact as make_small
from relayd.times import utc_text
from relayd.transfers.register import forget_reports

_SHOWN = 20


def compact(options: argparse.Namespace) -> int:
    """Summarise samples older than a time span, remove reports of transfers; print how many."""
    older_than_s = parse_duration_s(options.older_than, "--older-than")
    with store_of(options, "write") as store:
        record_change(store.database, "store compact", f"older than {options.older_than}")
        done = make_small(store, older_than_s, period=options.period, files_too=options.files)
        reports = forget_reports(store.database, time.time() - older_than_s)
    counts = {"samples": done.samples, "summaries": done.summaries, "kept": done.kept}
    said = [
        f"Summarised {done.samples} samples: {done.summaries} summaries, one per {options.period}"
    ]
    if reports:
        said.append(f"Removed {reports} reports of old transfers; what became of these stays")
    if done.kept:
        said.append(f"Kept {done.kept} as old: estimates use them, or they are from imported files")
    return respond(options, {**counts, "transfer_reports": reports}, "\n".join(said))


def rebuild(options: argparse.Namespace) -> int:
    """Make a snapshot of all samples, and the states of series that later ones go on from."""
    with store_of(options, "write") as store:
        catalogue = catalogue_of(options)
        snapshot = make_snapshot(store, catalogue, always=True)
        samples = store.samples.counts().samples
    said = "There are no samples."
    if snapshot:
        said = f"Snapshot {snapshot.id}, as of {snapshot.as_of}, of {samples:,} samples"
    return respond(options, {"samples": samples, "snapshot": snapshot and snapshot.id}, said)


def check(options: argparse.Namespace) -> int:
    """Let the engine look for damage, and print what it finds; raise StoreError for any."""
    where = store_location(options)
    if isinstance(where, Path) and where.is_file() and is_backup(where):
        refuse_changed(where)
    with store_of(options, "read") as store:
        counts = store.samples.counts()
        schema, damage, notes = find_damage(store.database)
    said = [f"Schema {schema}: {_held(counts)}."]
    said += [text.page().filled(f"Note: {note}.", indent="  ") for note in notes]
    for one in damage[:_SHOWN]:
        place = f"{one.table} ({one.row})" if one.row else one.table
        said.append(f"  {place}: {one.problem}" if place else f"  {one.problem}")
    if len(damage) > _SHOWN:
        said.append(f"  and {len(damage) - _SHOWN:,} more (--json shows them)")
    if not damage:
        said.append("No damage found.")
    found = [one._asdict() for one in damage]
    document = {"schema": schema, **counts._asdict(), "notes": notes, "damage": found}
    respond(options, document, "\n".join(said))
    if damage:
        raise failure(
            store.location,
            f"is damaged in {len(damage):,} {'place' if len(damage) == 1 else 'places'}",
            "Look after the disk, then `relayd data store restore` a backup into a new store, or "
            "import the files again.",
        )
    return 0


def backup(options: argparse.Namespace) -> int:
    """Copy the store into a new file."""
    target = Path(options.file)
    with store_of(options, "read") as store:
        copy_to(store, target)
    size_bytes = target.stat().st_size
    said = f"Wrote {size_bytes / 1e6:,.1f} MB to {target}"
    return respond(options, {"file": str(target), "bytes": size_bytes}, said)


def restore(options: argparse.Namespace) -> int:
    """Make a store of a backup, and say what is in it."""
    where = store_location(options)
    restore_from(Path(options.file), where)
    with store_of(options, "write") as store:
        record_change(store.database, "store restore", Path(options.file).name)
        counts = store.samples.counts()
    said = f"Restored {_held(counts)} into {where}"
    return respond(options, {"db": str(where), **counts._asdict()}, said)


def _held(counts: Counts) -> str:
    return (
        f"{counts.samples:,} samples in {counts.batches:,} batches, {counts.snapshots:,} snapshots"
    )


def list_changes(options: argparse.Namespace) -> int:
    """List what was changed last, the newest first."""
    with store_of(options, "read") as store:
        rows = [change._asdict() for change in changes(store.database, limit=options.last)]
    shown = [{**row, "at": utc_text(row["at_s"])} for row in rows]
    columns = "at | who | from=address | what=action | of=subject"
    return print_rows(
        options, "changes", rows, shown=lambda: text.page().table_of(shown, columns, left=True)
    )
