"""Is everything in the store what was stored? Recomputes all checksums, and counts rows."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from planner.model.errors import StoreError
from relayd.store.checksums import covered_columns, row_checksum
from relayd.store.database import Database
from relayd.store.upkeep.damage import MOST, Damage

_KEYS = {
    "batches": ("id",),
    "samples": ("batch_id", "id"),
    "snapshots": ("key",),
    "link_blocks": ("snapshot_key", "in_use", "src_block", "dst_block"),
    "sites": ("snapshot_key", "position"),
    "origins": ("snapshot_key", "number"),
    "verifications": ("id",),
}
_ALTERED = "is not what was stored"
# Each in one statement, so that what is written meanwhile counts on both sides or on neither.
_BATCHES = (
    "SELECT batches.id, accepted, coalesce(held, 0), (SELECT count(*) FROM compactions) "
    "FROM batches LEFT JOIN (SELECT batch_id, count(*) AS held FROM samples GROUP BY batch_id) "
    "AS found ON found.batch_id = batches.id WHERE accepted <> coalesce(held, 0)"
)
_ALL = (
    "SELECT (SELECT coalesce(sum(accepted), 0) FROM batches), (SELECT count(*) FROM samples), "
    "(SELECT coalesce(sum(samples), 0) FROM compactions)"
)
_SNAPSHOTS = (
    "SELECT key, snapshots.links, (SELECT coalesce(sum(link_blocks.links), 0) FROM link_blocks "
    "WHERE snapshot_key = key AND in_use = 1), "
    "snapshots.sites, (SELECT count(*) FROM sites WHERE snapshot_key = key) FROM snapshots"
)
_COMPACTIONS = (
    "SELECT id, compactions.samples, (SELECT coalesce(sum(sample_summaries.samples), 0) "
    "FROM sample_summaries WHERE compaction_id = id) FROM compactions"
)


class VerifiedRows(NamedTuple):
    """What was compared with its checksum.

    Attributes
    ----------
    rows, unstamped : dict of str to int
        By table: how many rows were compared, and how many have no checksum, because they are
        older than version 12.
    damage : list of Damage
        At most :data:`~relayd.store.upkeep.damage.MOST` of a table.
    """

    rows: dict[str, int]
    unstamped: dict[str, int]
    damage: list[Damage]


def verify(database: Database) -> VerifiedRows:
    """Compare all rows that have a checksum with it, and rows with the counts of them.

    Others may write meanwhile. Memory is bounded.
    """
    result = VerifiedRows({}, {}, [])
    with database.any_text():
        for table in _KEYS:
            _collect(result, table, _altered(database, table, result))
        _collect(result, "quarantined_samples", _altered_quarantine(database))
        for table, found in (
            ("batches", _miscounted_batches),
            ("snapshots", _miscounted_snapshots),
            ("compactions", _miscounted_compactions),
        ):
            _collect(result, table, found(database))
    return result


def _collect(result: VerifiedRows, table: str, found: Iterator[Damage]) -> None:
    """Add what is found in a table, or that it can't be read to its end."""
    try:
        result.damage.extend(islice(found, MOST))
    except StoreError as error:
        result.damage.append(Damage(table, "", f"can't be read: {error.problem}"))


def _altered(database: Database, table: str, result: VerifiedRows) -> Iterator[Damage]:
    result.rows[table] = result.unstamped[table] = 0
    columns = covered_columns(database, table)
    key = [columns.index(name) for name in _KEYS[table]]
    for *row, checksum in database.stream(
        f"SELECT {', '.join(columns)}, checksum FROM {table}"  # noqa: S608
    ):
        if checksum is None:
            result.unstamped[table] += 1
            continue
        result.rows[table] += 1
        if not _is_as_stored(row, checksum):
            yield Damage(table, ", ".join(f"{columns[i]} {row[i]}" for i in key), _ALTERED)


def _is_as_stored(row: list[object], checksum: object) -> bool:
    try:
        return row_checksum(row) == checksum
    except (UnicodeError, TypeError):  # no text, or a value of another kind
        return False


def _altered_quarantine(database: Database) -> Iterator[Damage]:
    for number, digest, content in database.stream(
        "SELECT id, digest, sample FROM quarantined_samples"
    ):
        if blake2b(content.encode(errors="replace"), digest_size=16).hexdigest() != digest:
            yield Damage("quarantined_samples", f"id {number}", _ALTERED)


def _miscounted_batches(database: Database) -> Iterator[Damage]:
    for number, accepted, held, compactions in database.rows(_BATCHES):
        # Of a batch some may have been summarised.
        if held > accepted or not compactions:
            problem = f"has {held} samples in place of {accepted}"
            yield Damage("batches", f"id {number}", problem)
    accepted, held, summarised = database.row(_ALL)
    if accepted != held + summarised:
        yield Damage(
            "samples",
            "",
            f"are {held}, and {summarised} in summaries, in place of {accepted} in all",
        )


def _miscounted_snapshots(database: Database) -> Iterator[Damage]:
    for key, links, links_held, sites, sites_held in database.rows(_SNAPSHOTS):
        for what, due, held in (("links", links, links_held), ("sites", sites, sites_held)):
            if due != held:
                yield Damage("snapshots", f"key {key}", f"has {held} {what} in place of {due}")


def _miscounted_compactions(database: Database) -> Iterator[Damage]:
    for number, due, held in database.rows(_COMPACTIONS):
        if due != held:
            problem = f"has summaries of {held} samples in place of {due}"
            yield Damage("compactions", f"id {number}", problem)
