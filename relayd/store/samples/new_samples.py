"""Which series have new samples, and series read from a time on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeAlias

from probes.estimation.current_samples import PartKey
from relayd.store.database import Database
from relayd.store.samples.reading import COLUMNS
from relayd.store.samples.series_states import Key
from relayd.store.samples.table import IN_ORDER, TRUSTED_IMPORT

_AT_ONCE = 500
"""Series of one query; their rows are sorted in memory."""
_NEW_PARTS = (
    "SELECT src_id, dst_id, metric_id, CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END, "
    "batches.source, min(measured_at_s) FROM samples JOIN batches ON batches.id = samples.batch_id "
    "WHERE samples.id > ? AND samples.id <= ? GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3"
)
_OF_SERIES = (
    "samples.src_id = series.src_id AND samples.dst_id = series.dst_id "
    "AND samples.metric_id = series.metric_id AND samples.measured_at_s >= series.since_s "
    "AND samples.id <= ?"
)
# Both engines are told to look up one series after the other: SQLite by the order of the join, as
# in relayd/store/snapshots.py, PostgreSQL by an OFFSET, behind which it looks for no other plan. By
# its statistics it reads all samples there are, where series have many.
_FROM = {
    "sqlite": f"CROSS JOIN used_samples AS samples ON {_OF_SERIES} "
    "CROSS JOIN batches ON batches.id = samples.batch_id",
    "postgresql": f"CROSS JOIN LATERAL (SELECT * FROM used_samples AS samples WHERE {_OF_SERIES} "  # noqa: S608
    "OFFSET 0) AS samples JOIN batches ON batches.id = samples.batch_id",
}
_SINCE = (
    f"WITH series (src_id, dst_id, metric_id, since_s) AS (VALUES {{values}}) "  # noqa: S608
    f"SELECT {COLUMNS}, batches.source, batches.imported_at_s, "
    f"CASE WHEN batches.options LIKE ? THEN 1 ELSE 0 END FROM series {{samples}}{IN_ORDER}"
)
Row: TypeAlias = Sequence[Any]


def new_parts(database: Database, since: int, through: int) -> dict[Key, dict[PartKey, float]]:
    """Return the parts of series that have samples with ids above `since`, up to `through`.

    With when the first of these was measured, seconds since 1970 (UTC).
    """
    found: dict[Key, dict[PartKey, float]] = defaultdict(dict)
    for *key, is_private, source, at_s in database.rows(_NEW_PARTS, (since, through)):
        found[key[0], key[1], key[2]][bool(is_private), source] = at_s
    return found


def series_since(
    database: Database, since_s: Mapping[Key, float], through: int
) -> Iterator[tuple[Key, list[Row]]]:
    """Yield the samples of series, the oldest first, as rows of :data:`.COLUMNS` and their batch.

    That is, with what :class:`.BatchSource` has of it.

    Parameters
    ----------
    since_s : mapping
        Series in order, to the time from which on its samples are wanted, seconds since 1970 (UTC).
    through : int
        Only samples with this id or a lower one.
    """
    wanted = list(since_s.items())
    for first in range(0, len(wanted), _AT_ONCE):
        some = [(*key, at_s) for key, at_s in wanted[first : first + _AT_ONCE]]
        values = [value for row in some for value in row]
        sql = samples_of_series(database.engine, len(some))
        rows = database.stream(sql, [*values, TRUSTED_IMPORT, through])
        for key, of_series in groupby(rows, lambda row: (row[0], row[1], row[2])):
            yield key, list(of_series)


def samples_of_series(engine: str, series: int) -> str:
    """Return the query of so many series: of each, three ids and a time; and two values more."""
    values = ", ".join(["(?, ?, ?, ?)"] * series)
    return _SINCE.format(samples=_FROM[engine], values=values)
