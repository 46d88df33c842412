"""The samples of a store, for replays and reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from probes.samples import Metric, Samples
from relayd.history.source import SampleHistory, SeriesSpan, Vote
from relayd.store import Store
from relayd.store.database import Database
from relayd.store.samples.columns import (
    ROW,
    BothKinds,
    Columns,
    DetailedTest,
    has_both_address_kinds,
    read_address_kinds,
    read_columns,
    read_details,
    read_setups,
)
from relayd.store.samples.retention import vm_votes
from relayd.store.transfers import Transfers, WantedTransfers

MOST_TRANSFERS = 100_000
_SELECT = (
    "SELECT src_id, dst_id, measured_at_s, value, connections, duration_s, setup_id, warmed_up "
    "FROM used_samples AS samples WHERE src_id = ? AND metric_id = ? "
)


class StoredHistory(SampleHistory):
    """The samples of a store that count.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database: Database = store.database
        self._metrics: dict[Metric, int] = {
            name: number for number, name in self._database.rows("SELECT id, name FROM metrics")
        }
        self.regions = dict(self._database.rows("SELECT id, name FROM regions"))
        self.setups = read_setups(self._database)

    def series(self) -> list[SeriesSpan]:
        """Return what there is."""
        names = {number: name for name, number in self._metrics.items()}
        rows = self._database.rows(
            "SELECT src_id, dst_id, metric_id, setup_id, count(*), min(measured_at_s), "
            "max(measured_at_s) FROM used_samples GROUP BY src_id, dst_id, metric_id, setup_id"
        )
        return [SeriesSpan(src, dst, names[metric], *rest) for src, dst, metric, *rest in rows]

    def votes(self) -> Iterator[Vote]:
        """Return what summarised samples say of VM types."""
        return (Vote(*row[:6]) for row in vm_votes(self._store))

    def read(self, *, details: bool = False) -> Samples:  # noqa: ARG002 - they are there anyway
        """Return all samples, with what their tools said."""
        return self._store.samples.read()

    def most_connections(self, metric: Metric) -> int:
        """Return the most connections of any sample of a metric; 0 if no sample states them."""
        (most,) = self._database.row(
            "SELECT coalesce(max(connections), 0) FROM used_samples AS samples WHERE metric_id = ?",
            (self._metrics.get(metric, 0),),
        )
        return int(most)

    def between(
        self, metric: Metric, regions: Collection[int], begin_s: float, end_s: float
    ) -> NDArray[np.void]:
        """Return the samples among regions from one time until before another."""
        places = ", ".join("?" * len(regions))
        condition = f"AND dst_id IN ({places}) AND measured_at_s >= ? AND measured_at_s < ?"
        values = (*regions, float(begin_s), float(end_s))
        return _joined([self._rows(src, metric, condition, values) for src in regions])

    def before(
        self, metric: Metric, regions: Collection[int], before_s: float, most: int
    ) -> NDArray[np.void]:
        """Return of each link among regions the newest samples from before a time."""
        condition = "AND dst_id = ? AND measured_at_s < ? ORDER BY measured_at_s DESC LIMIT ?"
        found = [
            self._rows(src, metric, condition, (dst, float(before_s), most))
            for src in regions
            for dst in regions
        ]
        return _joined(found)

    def _rows(
        self, src: int, metric: Metric, condition: str, values: Sequence[object]
    ) -> NDArray[np.void]:
        number = self._metrics.get(metric)
        if number is None:
            return np.empty(0, ROW)
        return np.fromiter(self._database.stream(_SELECT + condition, (src, number, *values)), ROW)

    def columns(self, metric: Metric, since_s: float | None) -> Columns:
        """Return all samples of a metric, or those since a time."""
        return read_columns(self._database, metric, since_s=since_s)

    def details(
        self, metric: Metric, since_s: float | None, *, steady: bool = False
    ) -> Iterator[DetailedTest]:
        """Yield samples whose tool said more, or those that kept their intervals."""
        return read_details(self._database, metric, since_s=since_s, steady=steady)

    def address_kinds(self, metric: Metric, since_s: float | None) -> Iterator[BothKinds]:
        """Yield the values of links that were probed over both kinds of address."""
        if not self._has_both_address_kinds:
            return iter(())
        return read_address_kinds(self._database, metric, since_s=since_s)

    @cached_property
    def _has_both_address_kinds(self) -> bool:
        # Most stores have one kind alone: that is found out once, not for each metric.
        return has_both_address_kinds(self._database)

    def finished_transfers(self, since_s: float | None) -> Iterator[tuple[str, str, float, float]]:
        """Yield source, destination, GB and seconds of transfers that programs reported."""
        newest = Transfers(self._database).page(WantedTransfers("finished"), limit=MOST_TRANSFERS)
        for row in newest:
            if row.ended_s is not None and row.began_s >= (since_s or 0.0):
                yield row.src, row.dst, row.volume_gb, row.ended_s - row.began_s

    def about(self) -> dict[str, str]:
        """Return how much there is, in words."""
        counts = self._store.samples.counts()
        return {"samples in the store": f"{counts.samples:,}", "batches": f"{counts.batches:,}"}


def _joined(found: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    return np.concatenate(found) if found else np.empty(0, ROW)
