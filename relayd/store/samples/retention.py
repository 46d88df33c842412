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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import floor
from typing import Any, Literal, TypeAlias

from planner.model.errors import InputError
from probes.estimation.current_samples import MOST_JUDGED
from probes.estimation.vm_types import THROUGHPUT, VmVote
from probes.samples import OWN
from relayd.store.opening import Store

Period: TypeAlias = Literal["hour", "day"]
PERIOD_S: dict[Period, float] = {"hour": 3600.0, "day": 86400.0}
DAY_S = 86400.0
LEAST_AGE_S = DAY_S
LINKS_AT_ONCE = 200
"""Links of one transaction: other writers wait no longer than that takes."""

_OLD = (
    "SELECT samples.measured_at_s, samples.setup_id, samples.connections, samples.warmed_up, "
    "samples.value, samples.duration_s FROM used_samples AS samples "
    "JOIN batches ON batches.id = samples.batch_id "
    "WHERE src_id = ? AND dst_id = ? AND metric_id = ? AND measured_at_s < ? "
    "AND (batches.digest IS NULL OR ?) AND batches.source = ? "
    "AND CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END = ? AND samples.id <> ? "
    "AND samples.id NOT IN (SELECT sample_id FROM confirmed_samples)"
)
_REMOVE = (
    "DELETE FROM samples WHERE src_id = ? AND dst_id = ? AND metric_id = ? AND measured_at_s < ? "
    "AND EXISTS (SELECT 1 FROM batches WHERE batches.id = samples.batch_id "
    "AND (batches.digest IS NULL OR ?) AND batches.source = ?) "
    "AND CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END = ? AND samples.id <> ? "
    "AND samples.id NOT IN (SELECT sample_id FROM confirmed_samples) "
    "AND NOT EXISTS (SELECT 1 FROM retracted_samples "
    "WHERE sample_id = samples.id AND restored_by IS NULL)"
)
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
_INSERT = f"INSERT INTO sample_summaries VALUES ({', '.join('?' * 19)})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What became of old samples.

    Attributes
    ----------
    samples : int
        How many were summarised.
    summaries : int
        Into how many rows.
    kept : int
        Old ones that stay, because estimates rest on them or they are of imported files.
    """

    samples: int
    summaries: int
    kept: int


def compact(
    store: Store,
    older_than_s: float,
    *,
    period: Period = "hour",
    files_too: bool = False,
    now_s: float | None = None,
) -> CompactionResult:
    """Summarise samples older than a time span.

    Parameters
    ----------
    store : Store
        Open for writing.
    older_than_s : float
        Age, at least a day.
    period : {"hour", "day"}
        What one row is to stand for.
    files_too : bool
        Whether samples of imported files go too; importing such a file again would then count
        its samples again.

    Raises
    ------
    InputError
        If the age is less than a day.
    StoreError
        If the database can't take it; what was done until then is whole.
    """
    if not older_than_s >= LEAST_AGE_S:
        raise InputError(
            "--older-than",
            "must be at least one day",
            value=f"{older_than_s:g} s",
            remedy="Samples of today are what plans rest on.",
        )
    now_s = time.time() if now_s is None else now_s
    # Whole periods only: the rest of one that has begun to age comes with the next run.
    before_s = floor((now_s - older_than_s) / PERIOD_S[period]) * PERIOD_S[period]
    series = store.database.rows(
        "SELECT DISTINCT src_id, dst_id, metric_id FROM samples WHERE measured_at_s < ?",
        (before_s,),
    )
    samples = summaries = 0
    for first in range(0, len(series), LINKS_AT_ONCE):
        run = _Run(store, before_s, period, files_too, now_s)
        done = run.compact(series[first : first + LINKS_AT_ONCE])
        samples, summaries = samples + done[0], summaries + done[1]
    (left,) = store.database.row(
        "SELECT count(*) FROM samples WHERE measured_at_s < ?", (before_s,)
    )
    return CompactionResult(samples, summaries, int(left))


def vm_votes(store: Store) -> Iterator[VmVote]:
    """Yield what throughput samples that were summarised say of VM types.

    Estimates count which VM type most samples of a region name; these still have their vote.
    """
    for src, dst, src_vm, dst_vm, source, samples in store.database.rows(
        "SELECT src.name, dst.name, src_vm, dst_vm, compactions.source, "  # noqa: S608
        "sum(sample_summaries.samples) "
        "FROM sample_summaries JOIN setups ON setups.id = setup_id "
        "JOIN compactions ON compactions.id = compaction_id "
        "JOIN regions AS src ON src.id = src_id JOIN regions AS dst ON dst.id = dst_id "
        "JOIN metrics ON metrics.id = metric_id "
        f"WHERE metrics.name IN ({', '.join('?' * len(THROUGHPUT))}) "
        "GROUP BY src.name, dst.name, src_vm, dst_vm, compactions.source",
        sorted(THROUGHPUT),
    ):
        yield VmVote(src, dst, src_vm, dst_vm, int(samples), source)


class _Run:
    """One transaction's worth of compaction."""

    def __init__(
        self, store: Store, before_s: float, period: Period, files_too: bool, now_s: float
    ) -> None:
        self._database = store.database
        self._before_s = before_s
        self._period_s = PERIOD_S[period]
        self._files_too = files_too
        self._now_s = now_s

    def compact(self, series: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
        """Return how many samples went into how many summaries."""
        database = self._database
        with database.transaction():
            numbers: dict[tuple[str, int], int] = {}
            done: dict[int, tuple[int, int]] = {}
            for key in series:
                for part, chosen in self._parts(key):
                    rows = database.rows(_OLD, chosen)
                    if not rows:
                        continue
                    if part not in numbers:
                        numbers[part] = database.change(
                            "INSERT INTO compactions (at_s, older_than_s, source) "
                            "VALUES (?, ?, ?) RETURNING id",
                            (self._now_s, self._before_s, part[0]),
                        )
                    number = numbers[part]
                    made = list(self._summaries(number, key, rows))
                    database.change_many(_INSERT, made)
                    removed = database.change_many(_REMOVE, [chosen])
                    assert removed == len(rows)
                    before = done.get(number, (0, 0))
                    done[number] = (before[0] + len(rows), before[1] + len(made))
            for number, counts in done.items():
                database.change(
                    "UPDATE compactions SET samples = ?, summaries = ? WHERE id = ?",
                    (*counts, number),
                )
            if not done:
                database.roll_back()
        return sum(count for count, _ in done.values()), sum(made for _, made in done.values())

    def _parts(
        self, key: tuple[int, int, int]
    ) -> Iterator[tuple[tuple[str, int], tuple[object, ...]]]:
        """Yield the reporters and kinds of address of a series, with what is old of each.

        Estimates read the newest samples of each. The first sample of one who is not trusted
        stays, too: it says for how long this link was reported.
        """
        for source, private, needed_s, first in self._database.rows(_PARTS, (MOST_JUDGED, *key)):
            before_s = min(self._before_s, needed_s)
            kept = -1 if source == OWN else first
            yield (source, private), (*key, before_s, self._files_too, source, private, kept)

    def _summaries(
        self, number: int, key: tuple[int, int, int], rows: list[Any]
    ) -> Iterator[tuple[object, ...]]:
        def place(row: Any) -> tuple[float, int, int, int]:
            return (floor(row[0] / self._period_s) * self._period_s, *row[1:4])

        src_id, dst_id, metric_id = key
        for (begin_s, setup_id, connections, warmed_up), group in groupby(
            sorted(rows, key=place), place
        ):
            found = list(group)
            values = sorted(row[4] for row in found)
            times = [row[0] for row in found]
            yield (
                number,
                src_id,
                dst_id,
                metric_id,
                setup_id,
                connections,
                warmed_up,
                begin_s,
                self._period_s,
                len(values),
                sum(values),
                values[0],
                quantile(values, 0.1),
                quantile(values, 0.5),
                quantile(values, 0.9),
                values[-1],
                sum(row[5] for row in found),
                min(times),
                max(times),
            )


def quantile(ordered: list[float], share: float) -> float:
    """Return a quantile of ordered values, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
