"""Gives an estimator series of few samples, in which no level changes, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from probes.estimation import THROUGHPUT, Estimator
from probes.estimation.arrays.groups import Bools, Groups
from probes.estimation.arrays.sample_table import ADDRESSES, Rows
from probes.estimation.current_samples import WITH_A_LEVEL
from probes.importers.physics import PhysicalGate
from probes.samples import METRICS, ROW, Metric, Samples
from relayd.store.samples.reading import COUNT, BatchSource, BatchSources, SampleNames
from relayd.store.samples.tables import ReportedRows, RowReader

AT_ONCE = 20_000
"""Samples."""
_PRIVATE = ADDRESSES.index("private")


class ShortSeries:
    """Takes in the samples of short series.

    Parameters
    ----------
    estimator : Estimator
    gate : PhysicalGate
    names : SampleNames
    confirmed : set of int
        Ids of samples that an operator confirmed.

    Attributes
    ----------
    impossible : int
        Samples that can't be measurements.
    """

    def __init__(
        self, estimator: Estimator, gate: PhysicalGate, names: SampleNames, confirmed: set[int]
    ) -> None:
        self._gate, self._names = gate, names
        self._table = estimator.samples
        self._reader = RowReader(names, confirmed, estimator.samples)
        self.impossible = 0

    def take(
        self, columns: Sequence[Sequence[Any]], sources: BatchSources | Mapping[int, BatchSource]
    ) -> None:
        """Take in samples, by series and time.

        Parameters
        ----------
        columns : sequence of sequences
            :data:`~relayd.store.samples.reading.COLUMNS`, and maybe more.
        sources : BatchSources or mapping
            Who reported the samples of a batch, by its id.
        """
        reported = self._reader.read(columns, sources)
        rows = reported.rows
        wrong = np.zeros(len(rows), np.bool_)
        for place in np.flatnonzero(self._suspicious(reported)).tolist():
            row = (column[place] for column in columns[:COUNT])
            plain = [one.item() if isinstance(one, np.generic) else one for one in row]
            sample = self._names.stored(plain).sample
            arrived_at_s = float(reported.arrived_at_s[place])
            wrong[place] = self._gate.fault(sample, arrived_at_s) is not None
        if wrong.any():
            self.impossible += int(wrong.sum())
            rows = rows[~wrong]
        if len(rows):
            self._table.add_rows(self._current(rows))

    def _suspicious(self, reported: ReportedRows) -> Bools:
        """Return the samples that may be no measurements."""
        rows, table = reported.rows, self._table
        found: Bools = rows["at_s"] > self._gate.latest_s(reported.arrived_at_s)
        regions, vms = list(table.regions), list(table.vms)
        samples = Samples(np.zeros(len(rows), ROW))
        for name, numbers in (
            *(("src", regions), ("dst", regions), ("src_vm", vms), ("dst_vm", vms)),
        ):
            samples.rows[name] = samples.names.numbers(numbers)[rows[name]]
        metrics = np.array([METRICS.index(name) for name in table.known_metrics()], np.int8)
        samples.rows["metric"] = metrics[rows["metric"]]
        least, most = self._gate.limits(samples)
        found |= ~((least <= rows["value"]) & (rows["value"] <= most))
        return found & ~reported.vouched

    def _kind(self, row: Any) -> tuple[str, str, Metric, str, str]:
        table = self._table
        metric: Any = table.metrics.name(row["metric"])
        src, dst = (table.regions.name(row[end]) for end in ("src", "dst"))
        return src, dst, metric, table.vms.name(row["src_vm"]), table.vms.name(row["dst_vm"])

    def _current(self, rows: Rows) -> Rows:
        """Return the samples that still count, by who reported them; others have their vote."""
        table = self._table
        series = Groups.of(rows["src"], rows["dst"], rows["metric"]).numbers()
        private = rows["address"] == _PRIVATE
        rank = {name: place for place, name in enumerate(sorted(table.sources))}
        source = np.array([rank[name] for name in table.sources])[rows["source"]]
        if len(rank) > 1 or private.any():
            order = np.lexsort((source, private, series))
            rows, series, private = rows[order], series[order], private[order]
        parts = Groups.of(series, private, rows["source"])
        levels = np.isin(rows["metric"], table.metric_numbers(WITH_A_LEVEL))
        shown_s = np.where(rows["new_level"] & levels, rows["at_s"], -np.inf)
        old = rows["at_s"] < parts.spread(parts.reduced(np.maximum, shown_s))
        if old.any():
            for row in rows[old & np.isin(rows["metric"], table.metric_numbers(THROUGHPUT))]:
                src, dst, _, src_vm, dst_vm = self._kind(row)
                self._table.add_votes(
                    src, dst, src_vm, dst_vm, 1, table.sources.name(row["source"])
                )
            rows, parts = rows[~old], parts.kept(~old)
        rows["first_id"] = parts.spread(parts.reduced(np.minimum, rows["number"]))
        return rows
