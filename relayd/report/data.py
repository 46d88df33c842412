"""The samples that a report analyses, read when a section asks for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError
from probes.analysis.cold_tests import steady_rates
from probes.analysis.series.periodicity import DAY_S
from probes.samples import Metric
from relayd.backtesting.history import ReplayHistory
from relayd.history.source import SampleHistory
from relayd.store.samples.columns import BothKinds, Columns, DetailedTest

Matrix = NDArray[np.float64]
Rows = NDArray[np.void]

# Which metrics slow start lowers, and whether they are of one connection.
_FROM_COLD: dict[Metric, bool] = {"per_flow_mbps": True, "aggregate_mbps": False}


class ReportData:
    """Samples as columns, with what the catalogue says of the regions.

    Parameters
    ----------
    samples : SampleHistory
    catalogue : Catalogue
    since_s : float, optional
        Only what was measured since, seconds since 1970.

    Attributes
    ----------
    since_s : float | None
    corrected : dict
        By metric of those read so far, how many samples were corrected for slow start.
    """

    def __init__(
        self, samples: SampleHistory, catalogue: Catalogue, since_s: float | None = None
    ) -> None:
        self.samples = samples
        self.since_s = since_s
        self._columns: dict[str, Columns] = {}
        self._medians: dict[str, dict[tuple[str, str], float]] = {}
        self.corrected: dict[Metric, int] = {}
        self.catalogue = catalogue

    def columns(self, metric: Metric) -> Columns:
        """Return all samples of a metric, with rates of cold tests corrected to steady ones."""
        if metric not in self._columns:
            columns = self.samples.columns(metric, self.since_s)
            self._columns[metric] = columns
            if metric in _FROM_COLD:
                self._correct(columns, metric)
        return self._columns[metric]

    def _correct(self, columns: Columns, metric: Metric) -> None:
        """Correct tests that include slow start, where the round-trip time is known."""
        rtts = self.medians("rtt_ms")
        count = 0
        for src, dst, rows in columns.by_pair():  # parts of the whole, changed in place
            rtt_ms = rtts.get((src, dst), rtts.get((dst, src)))
            cold = ~rows["warmed_up"] & (rows["duration_s"] > 0)
            if rtt_ms is None or not cold.any():
                continue
            rows["value"][cold] = steady_rates(
                rows["value"][cold], rtt_ms, rows["duration_s"][cold], one_flow=_FROM_COLD[metric]
            )
            count += int(cold.sum())
        self.corrected[metric] = count

    def count(self, metric: Metric) -> int:
        """Return how many samples of a metric there are."""
        return len(self.columns(metric))

    def pairs(self, metric: Metric) -> Iterator[tuple[str, str, Rows]]:
        """Yield source, destination and samples of each link, oldest first."""
        for src, dst, rows in self.columns(metric).by_pair():
            if src != dst:
                yield src, dst, rows

    def vm_types(self, metric: Metric, row: np.void) -> str:
        """Return the VM types of a sample, such as ``m5.8xlarge > n2-standard-32``."""
        setup = self.columns(metric).setups[int(row["setup"])]
        return f"{setup.src_vm or '?'} > {setup.dst_vm or '?'}"

    def rates_of_vms(self, metric: Metric) -> dict[str, dict[str, list[float]]]:
        """Return the rates of each VM, by VM type: sources are their region and zone."""
        columns = self.columns(metric)
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in columns.rows:
            setup, region = columns.setups[int(row["setup"])], columns.regions[int(row["src"])]
            vm_type = f"{region.partition(':')[0]}:{setup.src_vm or '?'}"
            found[vm_type][region + setup.src_zone].append(float(row["value"]))
        return dict(sorted(found.items()))

    def series_by_zone(
        self, metric: Metric, step_s: float
    ) -> Iterator[dict[str, dict[float, float]]]:
        """Yield, of each link between several zones, the values of each pair of zones by time.

        Times are numbers of steps since 1970.
        """
        columns = self.columns(metric)
        zones = {
            number: f"{setup.src_zone} > {setup.dst_zone}"
            for number, setup in columns.setups.items()
        }
        for _, _, rows in self.pairs(metric):
            found: dict[str, dict[float, float]] = defaultdict(dict)
            for row in rows:
                of_zone = found[zones[int(row["setup"])]]
                of_zone[float(row["at_s"]) // step_s] = float(row["value"])
            if len(found) > 1:
                yield found

    def predictions(self, metric: Metric) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield whether later measurements lay within the bounds of before, by providers and day.

        Each day, links are estimated from what was known when it began.
        """
        history = ReplayHistory(self.samples, self.catalogue, metric)
        connections = 1
        if metric == "aggregate_mbps":
            connections = max(2, history.most_connections or DEFAULT_CONNECTIONS)
        estimator = history.estimator(connections)
        names = np.array([[provider_pair(a, b) for b in history.regions] for a in history.regions])
        for step in map(estimator.step, history.steps(history.span(DAY_S, self.since_s, None))):
            foreseen = step.estimated & ~np.isnan(step.truth_gbps)
            for name in np.unique(names[foreseen]).tolist():
                yield name, step.covered[foreseen & (names == name)]

    def steady_tests(self, metric: Metric) -> Iterator[DetailedTest]:
        """Yield the tests that kept their intervals."""
        return self.samples.details(metric, self.since_s, steady=True)

    def detailed_tests(self, metric: Metric) -> Iterator[DetailedTest]:
        """Yield the samples whose tool said more than their figure."""
        return self.samples.details(metric, self.since_s)

    def finished_transfers(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield source, destination, GB and seconds of transfers that programs reported."""
        return self.samples.finished_transfers(self.since_s)

    def address_kinds(self, metric: Metric) -> Iterator[BothKinds]:
        """Yield the values of links that were measured over both private and public addresses."""
        return self.samples.address_kinds(metric, self.since_s)

    def medians(self, metric: Metric) -> dict[tuple[str, str], float]:
        """Return the median of each pair's samples, in the order of the store."""
        if metric not in self._medians:
            self._medians[metric] = {
                (src, dst): float(np.median(rows["value"]))
                for src, dst, rows in self.columns(metric).by_pair()
                if src != dst
            }
        return self._medians[metric]

    def matrix(self, metric: Metric) -> tuple[list[str], Matrix]:
        """Return regions and the matrix of medians, NaN where there is no sample."""
        medians = self.medians(metric)
        regions = list(dict.fromkeys(region for pair in medians for region in pair))
        index = {region: i for i, region in enumerate(regions)}
        found = np.full((len(regions), len(regions)), np.nan)
        for (src, dst), value in medians.items():
            found[index[src], index[dst]] = value
        return regions, found

    def egress_usd_per_gb(self, src: str, dst: str) -> float:
        """Return the first-tier fee of a link; NaN where the catalogue has none."""
        try:
            return self.catalogue.egress_price(src, dst).tiers[0].usd_per_gb
        except DataError:
            return float("nan")

    @cached_property
    def span_s(self) -> tuple[float, float] | None:
        """First and last time of any sample that was read so far; None without any."""
        times = [c.rows["at_s"] for c in self._columns.values() if len(c)]
        if not times:
            return None
        return float(min(t.min() for t in times)), float(max(t.max() for t in times))


def provider_pair(src: str, dst: str) -> str:
    """Return ``aws > gcp`` for a link."""
    return f"{src.partition(':')[0]} > {dst.partition(':')[0]}"
