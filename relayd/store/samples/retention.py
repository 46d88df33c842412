"""Summarises old samples: an hour or a day of them becomes one row, and no total changes.

What estimates rest on always stays, however old: of each link, metric and reporter the newest
samples, as many as changes of level are looked for in, which is more than estimates take. So a
snapshot made after a compaction is the one that would have been made before it, to the last digit.

Retracted samples stay, so that they can be restored. Samples of imported files stay too, unless
asked for: a file that is imported again is recognised by its samples. What was measured live can't
come again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from math import floor
from typing import Any, Literal, TypeAlias

import numpy as np

from planner.model.errors import InputError
from probes.estimation.current_samples import MOST_JUDGED
from probes.samples import OWN
from relayd.store.opening import Store

Period: TypeAlias = Literal["hour", "day"]
PERIOD_S: dict[Period, float] = {"hour": 3600.0, "day": 86400.0}
DAY_S = 86400.0
LEAST_AGE_S = DAY_S
LINKS_AT_ONCE = 200
"""Links of one transaction: other writers wait no longer than that takes."""

# The old samples of a series that one reporter has sent over one kind of address.
_OLD = (
    "src_id = ? AND dst_id = ? AND metric_id = ? AND measured_at_s < ? "
    "AND EXISTS (SELECT 1 FROM batches WHERE batches.id = samples.batch_id "
    "AND (batches.digest IS NULL OR ?) AND batches.source = ?) "
    "AND CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END = ? AND samples.id <> ? "
    "AND samples.id NOT IN (SELECT sample_id FROM confirmed_samples) "
    "AND NOT EXISTS (SELECT 1 FROM retracted_samples "
    "WHERE sample_id = samples.id AND restored_by IS NULL)"
)
_READ = (
    "SELECT measured_at_s, setup_id, connections, warmed_up, value, duration_s "  # noqa: S608
    f"FROM samples WHERE {_OLD}"
)
_REMOVE = f"DELETE FROM samples WHERE {_OLD}"  # noqa: S608
# Of each reporter and kind of address: when the samples begin that estimates need, and the first.
_PARTS = (
    "SELECT source, private, min(CASE WHEN place <= ? THEN measured_at_s END), min(id) "
    "FROM (SELECT batches.source AS source, "
    "CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END AS private, "
    "measured_at_s, samples.id AS id, row_number() OVER ("
    "PARTITION BY batches.source, CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END "
    "ORDER BY measured_at_s DESC) AS place "
    "FROM used_samples AS samples JOIN batches ON batches.id = samples.batch_id "
    "WHERE src_id = ? AND dst_id = ? AND metric_id = ?) AS placed "
    "GROUP BY source, private ORDER BY source, private"
)


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """Counts of summarised and kept old samples."""

    samples: int  # number of samples that were summarised
    summaries: int  # number of rows that they became
    kept: int  # old ones that stay, because estimates rest on them or they are of imported files


def compact(
    store: Store,
    older_than_s: float,
    *,
    period: Period = "hour",
    files_too: bool = False,
    now_s: float | None = None,
) -> CompactionResult:
    """Summarise samples older than a time span, at least a day; a row for each hour or day.

    With `files_too`, samples of imported files go too; importing such a file again would then
    count its samples again. What was done before an error is whole.

    Raises
    ------
    InputError
        If `older_than_s` is less than one day.
    StoreError
        If the store cannot be written.
    """
    if not older_than_s >= LEAST_AGE_S:
        problem = "must be at least one day"
        remedy = "Samples of today are what plans rest on."
        raise InputError("--older-than", problem, value=f"{older_than_s:g} s", remedy=remedy)
    now_s = time.time() if now_s is None else now_s
    # Whole periods only: the rest of one that has begun to age comes with the next run.
    before_s = floor((now_s - older_than_s) / PERIOD_S[period]) * PERIOD_S[period]
    database = store.database
    series = database.rows(
        "SELECT DISTINCT src_id, dst_id, metric_id FROM samples WHERE measured_at_s < ?",
        (before_s,),
    )
    samples = summaries = 0
    for first in range(0, len(series), LINKS_AT_ONCE):
        # Of each reporter and kind of address, the compaction's id and counts.
        done: dict[tuple[str, int], list[int]] = {}
        with database.transaction():
            for key in series[first : first + LINKS_AT_ONCE]:
                for source, private, needed_s, oldest in database.rows(_PARTS, (MOST_JUDGED, *key)):
                    # The first sample of one who is not trusted says for how long it was reported.
                    kept = -1 if source == OWN else oldest
                    chosen = (*key, min(before_s, needed_s), files_too, source, private, kept)
                    rows = database.rows(_READ, chosen)
                    if not rows:
                        continue
                    if (source, private) not in done:
                        row = {"at_s": now_s, "older_than_s": before_s, "source": source}
                        done[source, private] = [database.add("compactions", row, "id"), 0, 0]
                    counts = done[source, private]
                    made = [(counts[0], *key, *one) for one in _summaries(rows, PERIOD_S[period])]
                    database.insert("sample_summaries", made)
                    removed = database.change_many(_REMOVE, [chosen])
                    assert removed == len(rows)
                    counts[1] += len(rows)
                    counts[2] += len(made)
            for number, *counts in done.values():
                sql = "UPDATE compactions SET samples = ?, summaries = ? WHERE id = ?"
                database.change(sql, (*counts, number))
            if not done:
                database.roll_back()
        samples += sum(one[1] for one in done.values())
        summaries += sum(one[2] for one in done.values())
    (left,) = database.row("SELECT count(*) FROM samples WHERE measured_at_s < ?", (before_s,))
    return CompactionResult(samples, summaries, int(left))


def _summaries(rows: list[Any], period_s: float) -> Iterator[tuple[object, ...]]:
    """Yield the rows that summarise samples of one series, for each period and setup."""

    def place(row: Any) -> tuple[float, int, int, int]:
        return (floor(row[0] / period_s) * period_s, *row[1:4])

    for (begin_s, *setup), group in groupby(sorted(rows, key=place), place):
        times_s, _, _, _, values, durations_s = zip(*group, strict=True)
        yield (
            *setup,
            begin_s,
            period_s,
            len(values),
            sum(values),
            *np.quantile(values, (0, 0.1, 0.5, 0.9, 1)).tolist(),
            sum(durations_s),
            min(times_s),
            max(times_s),
        )
