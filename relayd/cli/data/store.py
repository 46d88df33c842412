"""``relayd store``: look after the store."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.model.errors import StoreError
from planner.model.units import parse_duration_s
from relayd.cli import text
from relayd.cli.options import catalogue_of, store_location
from relayd.cli.output import tell_left_out
from relayd.settings import load_settings
from relayd.snapshots.building import make_snapshot
from relayd.store import Location, open_store
from relayd.store.changes import record_change
from relayd.store.failures import failure
from relayd.store.samples.reading import Counts
from relayd.store.samples.retention import compact as make_small
from relayd.store.transfers import Transfers
from relayd.store.upkeep.backup import backup as copy_to
from relayd.store.upkeep.backup import restore as restore_from
from relayd.store.upkeep.checking import check as find_damage
from relayd.store.upkeep.damage import Damage
from relayd.store.upkeep.verifying import verify as compare
from relayd.store.upkeep.versions import downgrade as go_back
from relayd.store.upkeep.versions import upgrade as go_forward

_SHOWN = 20


def compact(options: argparse.Namespace) -> int:
    """Summarise samples older than a time span, remove reports of transfers; print how many."""
    older_than_s = parse_duration_s(options.older_than, "--older-than")
    with open_store(_location(options), mode="write") as store:
        record_change(store.database, "store compact", f"older than {options.older_than}")
        done = make_small(store, older_than_s, period=options.period, files_too=options.files)
        reports = Transfers(store.database).forget_before(time.time() - older_than_s)
    if options.json:
        counts = {"samples": done.samples, "summaries": done.summaries, "kept": done.kept}
        print(json.dumps({**counts, "transfer_reports": reports}))
        return 0
    print(
        f"Summarised {done.samples} samples: {done.summaries} summaries, one per {options.period}"
    )
    if reports:
        print(f"Removed {reports} reports of old transfers; what became of these stays")
    if done.kept:
        print(f"Kept {done.kept} as old: estimates use them, or they are from imported files")
    return 0


def rebuild(options: argparse.Namespace) -> int:
    """Make a snapshot of all samples, and the states of series that later ones go on from."""
    settings = load_settings()
    with open_store(store_location(options, settings), mode="write") as store:
        snapshot = make_snapshot(
            store, catalogue_of(options, settings), on_left_out=tell_left_out, anew=True
        )
        samples = store.samples.counts().samples
    if options.json:
        print(json.dumps({"samples": samples, "snapshot": snapshot and snapshot.id}))
    elif snapshot:
        print(f"Snapshot {snapshot.id}, as of {snapshot.as_of}, of {samples:,} samples")
    else:
        print("There are no samples.")
    return 0


def check(options: argparse.Namespace) -> int:
    """Let the engine look for damage, and compare the schema."""
    where = _location(options)
    with open_store(where, mode="read") as store:
        counts = store.samples.counts()
        checked = find_damage(store.database)
    content = {"schema": checked.schema, **counts._asdict(), "notes": checked.notes}
    lines = [
        f"Schema {checked.schema}: {_held(counts)}.",
        *(text.filled(f"Note: {note}.", indent="  ") for note in checked.notes),
    ]
    return _report(options, where, content, lines, checked.damage)


def verify(options: argparse.Namespace) -> int:
    """Compare what is stored with the checksums from when it was."""
    where = _location(options)
    with open_store(where, mode="read") as store:
        verified = compare(store.database)
    content = {"rows": verified.rows, "unstamped": verified.unstamped}
    header = ("table", "rows with checksums", "without")
    cells = [
        (table, f"{count:,}", f"{verified.unstamped[table]:,}")
        for table, count in verified.rows.items()
    ]
    lines = [text.table(header, cells)]
    if any(verified.unstamped.values()):
        lines.append("Rows without one are from before version 12 of the schema.")
    return _report(options, where, content, lines, verified.damage)


def backup(options: argparse.Namespace) -> int:
    """Copy the store into a new file."""
    target = Path(options.file)
    with open_store(_location(options), mode="read") as store:
        copy_to(store, target)
    size_bytes = target.stat().st_size
    if options.json:
        print(json.dumps({"file": str(target), "bytes": size_bytes}))
    else:
        print(f"Wrote {size_bytes / 1e6:,.1f} MB to {target}")
    return 0


def restore(options: argparse.Namespace) -> int:
    """Make a store of a backup, and say what is in it."""
    where = _location(options)
    restore_from(Path(options.file), where)
    with open_store(where, mode="write") as store:
        record_change(store.database, "store restore", Path(options.file).name)
        counts = store.samples.counts()
    if options.json:
        print(json.dumps({"db": str(where), **counts._asdict()}))
    else:
        print(f"Restored {_held(counts)} into {where}")
    return 0


def upgrade(options: argparse.Namespace) -> int:
    """Bring the store to the newest schema."""
    version = go_forward(_location(options), keep_copy=not options.no_copy)
    return _print_version(options, version, "Nothing was lost")


def downgrade(options: argparse.Namespace) -> int:
    """Bring the store back to the schema before."""
    version = go_back(_location(options))
    return _print_version(
        options, version, "Install the older relayd before another command upgrades it again"
    )


def _print_version(options: argparse.Namespace, version: int, hint: str) -> int:
    print(json.dumps({"schema": version}) if options.json else f"Schema {version}. {hint}.")
    return 0


def _held(counts: Counts) -> str:
    return (
        f"{counts.samples:,} samples in {counts.batches:,} batches, {counts.snapshots:,} snapshots"
    )


def _location(options: argparse.Namespace) -> Location:
    return store_location(options, load_settings())


def _report(
    options: argparse.Namespace,
    where: Location,
    content: dict[str, Any],
    lines: Sequence[str],
    damage: Sequence[Damage],
) -> int:
    """Print what was found; raise StoreError where that is damage."""
    if options.json:
        print(json.dumps({**content, "damage": [one._asdict() for one in damage]}, indent=2))
    else:
        print("\n".join(lines))
        for one in damage[:_SHOWN]:
            place = f"{one.table} ({one.row})" if one.row else one.table
            print(f"  {place}: {one.problem}" if place else f"  {one.problem}")
        if len(damage) > _SHOWN:
            print(f"  and {len(damage) - _SHOWN:,} more (--json shows them)")
    if damage:
        raise _damaged(where, damage)
    if not options.json:
        print("No damage found.")
    return 0


def _damaged(where: Location, damage: Sequence[Damage]) -> StoreError:
    """Return the error for a store that was found damaged."""
    return failure(
        where,
        f"is damaged in {len(damage):,} {'place' if len(damage) == 1 else 'places'}",
        "Look after the disk, then `relayd store restore` a backup into a new store, or import "
        "the files again.",
    )
