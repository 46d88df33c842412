"""The samples that a report analyses, read when a section asks for them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError
from planner.model.network import UNSAVED, Network
from probes.analysis.cold_tests import steady_rates
from probes.analysis.series.periodicity import DAY_S
from probes.estimation import Estimator
from probes.samples import ADDRESSES, Metric, Sample, Samples
from relayd.backtesting.history import ReplayHistory
from relayd.history.source import SampleHistory
from relayd.tables.figures import matrix_of, measured_regions

Matrix = NDArray[np.float64]
Rows = NDArray[np.void]
Values = NDArray[np.float64]
_PUBLIC, _PRIVATE = map(ADDRESSES.index, ("public", "private"))

# Which metrics slow start lowers, and whether they are of one connection.
_FROM_COLD: dict[Metric, bool] = {"per_flow_mbps": True, "aggregate_mbps": False}


class ReportData:
    """Samples by metric, with what the catalogue says of the regions.

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
        self._begin_s = -inf if since_s is None else since_s
        self._samples: dict[str, Samples] = {}
        self._medians: dict[str, dict[tuple[str, str], float]] = {}
        self.corrected: dict[Metric, int] = {}
        self.catalogue = catalogue

    def samples_of(self, metric: Metric) -> Samples:
        """Return all samples of a metric, with rates of cold tests corrected to steady ones."""
        if metric not in self._samples:
            self._samples[metric] = self.samples.read(metric, self._begin_s)
            if metric in _FROM_COLD:
                self._correct(metric)
        return self._samples[metric]

    def _correct(self, metric: Metric) -> None:
        """Correct tests that include slow start, by the round-trip time that plans rest on."""
        links = self.network.links
        count = 0
        for (src, dst, _), part in self._samples[metric].groups():
            rows = part.rows  # of the whole, changed in place
            cold = ~rows["warmed_up"] & (rows["duration_s"] > 0)
            if src == dst or not cold.any():
                continue
            rtt_ms = links[src][dst].rtt_ms.expected
            rows["value"][cold] = steady_rates(
                rows["value"][cold], rtt_ms, rows["duration_s"][cold], one_flow=_FROM_COLD[metric]
            )
            count += int(cold.sum())
        self.corrected[metric] = count

    def count(self, metric: Metric) -> int:
        """Return how many samples of a metric there are."""
        return len(self.samples_of(metric))

    def pairs(self, metric: Metric) -> Iterator[tuple[str, str, Rows]]:
        """Yield source, destination and samples of each link, oldest first."""
        for (src, dst, _), part in self.samples_of(metric).groups():
            if src != dst:
                yield src, dst, part.rows

    def vm_types(self, metric: Metric, row: np.void) -> str:
        """Return the VM types of a sample, such as ``m5.8xlarge > n2-standard-32``."""
        names = list(self.samples_of(metric).names)
        return f"{names[row['src_vm']] or '?'} > {names[row['dst_vm']] or '?'}"

    def rates_of_vms(self, metric: Metric) -> dict[str, dict[str, list[float]]]:
        """Return the rates of each VM, by VM type: sources are their region and zone."""
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        samples = self.samples_of(metric)
        columns = map(samples.column, ("src", "src_zone", "src_vm", "value"))
        for region, zone, vm, value in zip(*columns, strict=True):
            found[f"{region.partition(':')[0]}:{vm or '?'}"][region + zone].append(value)
        return dict(sorted(found.items()))

    def series_by_zone(
        self, metric: Metric, step_s: float
    ) -> Iterator[dict[str, dict[float, float]]]:
        """Yield, of each link between several zones, the values of each pair of zones by time.

        Times are numbers of steps since 1970.
        """
        for (src, dst, _), part in self.samples_of(metric).groups():
            found: dict[str, dict[float, float]] = defaultdict(dict)
            columns = map(part.column, ("src_zone", "dst_zone", "measured_at_s", "value"))
            for src_zone, dst_zone, at_s, value in zip(*columns, strict=True):
                found[f"{src_zone} > {dst_zone}"][at_s // step_s] = value
            if len(found) > 1 and src != dst:
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

    def steady_tests(self, metric: Metric) -> Iterator[Sample]:
        """Yield the tests that kept their intervals."""
        samples = self.samples.read(metric, self._begin_s, details=True)
        return iter(samples[samples.rows["intervals"] > 0])

    def detailed_tests(self, metric: Metric) -> Iterator[Sample]:
        """Yield the samples whose tool said more than their figure."""
        samples = self.samples.read(metric, self._begin_s, details=True)
        return iter(samples[samples.rows["detail"] > 0])

    def finished_transfers(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield source, destination, GB and seconds of transfers that programs reported."""
        return self.samples.finished_transfers(self.since_s)

    def address_kinds(self, metric: Metric) -> Iterator[tuple[str, str, Values, Values]]:
        """Yield links measured over both kinds of address: values of private and public ones."""
        for (src, dst, _), part in self.samples.read(metric, self._begin_s).groups():
            values, address = part.rows["value"], part.rows["address"]
            private, public = values[address == _PRIVATE], values[address == _PUBLIC]
            if src != dst and len(private) and len(public):
                yield src, dst, private, public

    def medians(self, metric: Metric) -> dict[tuple[str, str], float]:
        """Return the median of each pair's samples, in the order of the store."""
        if metric not in self._medians:
            self._medians[metric] = {
                (src, dst): float(np.median(rows["value"])) for src, dst, rows in self.pairs(metric)
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

    @cached_property
    def network(self) -> Network:
        """The network of estimates of now that plans on these samples rest on."""
        samples = self.samples.read(begin_s=self._begin_s)
        network = Estimator(samples, self.catalogue, votes=self.samples.votes()).network(UNSAVED)
        return network.with_(aged_to_s=time.time())

    def relay_gains(self, connections: int) -> Matrix:
        """Return what the best relay gains between measured regions; NaN where nothing is known."""
        network = self.network.with_(restricted_to=measured_regions(self.network))
        gains: Matrix = matrix_of(network, self.catalogue, "relay-gain", connections).values
        return np.maximum(gains, 1.0)

    def egress_usd_per_gb(self, src: str, dst: str) -> float:
        """Return the first-tier fee of a link; NaN where the catalogue has none."""
        try:
            return self.catalogue.egress_price(src, dst).tiers[0].usd_per_gb
        except DataError:
            return float("nan")

    @cached_property
    def span_s(self) -> tuple[float, float] | None:
        """First and last time of any sample that was read so far; None without any."""
        times = [one.rows["measured_at_s"] for one in self._samples.values() if len(one)]
        if not times:
            return None
        return float(min(t.min() for t in times)), float(max(t.max() for t in times))


def provider_pair(src: str, dst: str) -> str:
    """Return ``aws > gcp`` for a link."""
    return f"{src.partition(':')[0]} > {dst.partition(':')[0]}"
