"""Which series have new samples, and series read from a time on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby

from probes.estimation.current_samples import PartKey
from probes.samples import Reported
from relayd.store.database import Database
from relayd.store.samples.decisions import confirmed_ids
from relayd.store.samples.reading import (
    COLUMNS,
    IN_ORDER,
    TRUSTED_IMPORT,
    BatchSource,
    SampleNames,
    reported_sample,
)
from relayd.store.samples.series_states import Key

_AT_ONCE = 500
"""Series of one query; their rows are sorted in memory."""
_NEW_PARTS = (
    "SELECT src_id, dst_id, metric_id, CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END, "
    "batches.source, min(measured_at_s) FROM samples JOIN batches ON batches.id = samples.batch_id "
    "WHERE samples.id > ? AND samples.id <= ? GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3"
)
# SQLite is told the order of the join, as in relayd/store/snapshots.py.
_SINCE = (
    f"WITH series (src_id, dst_id, metric_id, since_s) AS (VALUES {{values}}) "  # noqa: S608
    f"SELECT {COLUMNS}, batches.source, batches.imported_at_s, "
    "CASE WHEN batches.options LIKE ? THEN 1 ELSE 0 END "
    "FROM series {join} used_samples AS samples ON samples.src_id = series.src_id "
    "AND samples.dst_id = series.dst_id AND samples.metric_id = series.metric_id "
    "AND samples.measured_at_s >= series.since_s AND samples.id <= ? "
    f"{{join}} batches ON batches.id = samples.batch_id{IN_ORDER}"
)
_JOINS = {"sqlite": "CROSS JOIN", "postgresql": "JOIN"}
_OF_SAMPLE = COLUMNS.count(",") + 1


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
) -> Iterator[tuple[Key, list[Reported]]]:
    """Yield the samples of series, the oldest first, with who reported each, and when.

    Parameters
    ----------
    since_s : mapping
        Series in order, to the time from which on its samples are wanted, seconds since 1970 (UTC).
    through : int
        Only samples with this id or a lower one.
    """
    names, confirmed = SampleNames(database), confirmed_ids(database)
    wanted = list(since_s.items())
    for first in range(0, len(wanted), _AT_ONCE):
        some = [(*key, at_s) for key, at_s in wanted[first : first + _AT_ONCE]]
        sql = _SINCE.format(
            join=_JOINS[database.engine], values=", ".join(["(?, ?, ?, ?)"] * len(some))
        )
        values = [value for row in some for value in row]
        rows = database.stream(sql, [*values, TRUSTED_IMPORT, through])
        for key, of_series in groupby(rows, lambda row: (row[0], row[1], row[2])):
            found = []
            for row in of_series:
                number, _, sample = names.stored(row[:_OF_SAMPLE])
                source, arrived_at_s, vouched = row[_OF_SAMPLE:]
                by = BatchSource(source, arrived_at_s, bool(vouched))
                found.append(reported_sample(number, sample, by, confirmed))
            yield key, found
