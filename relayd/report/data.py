"""The samples that a report analyses, read when a section asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import inf
from typing import Literal, TypeVar

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.link_states import Pair
from planner.model.network import UNSAVED, Network
from planner.model.throughput import steady_rates
from probes.analysis.evidence import Floats, Record, TooFewError
from probes.estimation import Estimator
from probes.metrics import METRICS, Metric
from probes.samples import Rows, Sample, Samples
from relayd.history import SampleHistory
from relayd.tables.figures import matrix_of, measured_regions

K = TypeVar("K")
V = TypeVar("V")


class ReportData:
    """Samples by metric, with the catalogue's regions: all, or those since a time (s since 1970).

    `corrected` has the number of samples corrected for slow start, of each metric read so far.
    """

    def __init__(
        self, samples: SampleHistory, catalogue: Catalogue, since_s: float | None = None
    ) -> None:
        self.samples, self.catalogue, self.since_s = samples, catalogue, since_s
        self._samples: dict[str, Samples] = {}
        self._medians: dict[str, dict[Pair, float]] = {}
        self.corrected: dict[Metric, int] = {}

    def read(self, metric: Metric | None = None, *, details: bool = False) -> Samples:
        """Return samples as they were measured."""
        begin_s = -inf if self.since_s is None else self.since_s
        return self.samples.read(metric, begin_s, details=details)

    def samples_of(self, metric: Metric) -> Samples:
        """Return all samples of a metric, with rates of cold tests corrected to steady ones."""
        if metric not in self._samples:
            self._samples[metric] = self.read(metric)
            if METRICS[metric].flows:
                self._correct(metric)
        return self._samples[metric]

    def _correct(self, metric: Metric) -> None:
        """Correct tests that include slow start, by the round-trip time that plans rest on."""
        links, one_flow = self.network.links, METRICS[metric].flows == "one"
        count = 0
        for (src, dst, _), part in self._samples[metric].groups():
            rows = part.rows  # of the whole, changed in place
            cold = ~rows["warmed_up"] & (rows["duration_s"] > 0)
            if src == dst or not cold.any():
                continue
            rtt_ms = links[src][dst].rtt_ms.expected
            rows["value"][cold] = steady_rates(
                rows["value"][cold], rtt_ms, rows["duration_s"][cold], one_flow=one_flow
            )
            count += int(cold.sum())
        self.corrected[metric] = count

    def count(self, metric: Metric) -> int:
        """Count the samples of a metric."""
        return len(self.samples_of(metric))

    def pairs(self, metric: Metric) -> dict[Pair, Rows]:
        """Return the samples of each link, oldest first."""
        series = self.samples_of(metric).groups()
        return {(src, dst): part.rows for (src, dst, _), part in series if src != dst}

    def vm_types(self, metric: Metric, row: np.void) -> str:
        """Return the VM types of a sample, such as ``m5.8xlarge > n2-standard-32``."""
        names = list(self.samples_of(metric).names)
        return f"{names[row['src_vm']] or '?'} > {names[row['dst_vm']] or '?'}"

    def tests(self, metric: Metric, which: Literal["intervals", "detail"]) -> Iterator[Sample]:
        """Yield the tests that kept their intervals, or the details of their tool."""
        samples = self.read(metric, details=True)
        return iter(samples[samples.rows[which] > 0])

    def medians(self, metric: Metric) -> dict[Pair, float]:
        """Return the median of each link's samples, in the order of the store."""
        if metric not in self._medians:
            pairs = self.pairs(metric).items()
            self._medians[metric] = {pair: float(np.median(rows["value"])) for pair, rows in pairs}
        return self._medians[metric]

    def matrix(self, metric: Metric) -> Floats:
        """Return the matrix of medians of regions, NaN where there is no sample."""
        medians = self.medians(metric)
        names = list(dict.fromkeys(end for pair in medians for end in pair))
        values = [medians.get((src, dst), np.nan) for src in names for dst in names]
        return np.array(values).reshape(len(names), len(names))

    @cached_property
    def network(self) -> Network:
        """The network of present estimates on which plans by these samples rest."""
        estimator = Estimator(self.read(details=True), self.catalogue)
        return estimator.network(UNSAVED).with_(aged_to_s=time.time())

    def relay_gains(self, connections: int) -> Floats:
        """Return the gains of the best relays between measured regions; NaN where not known."""
        network = self.network.with_(restricted_to=measured_regions(self.network))
        gains: Floats = matrix_of(network, self.catalogue, "relay-gain", connections).values
        return np.maximum(gains, 1.0)

    @property
    def span_s(self) -> tuple[float, float] | None:
        """First and last time of any sample that was read so far; None without any."""
        read = [one.rows["measured_at_s"] for one in self._samples.values()]
        times = np.concatenate([np.empty(0), *read])
        return (float(times.min()), float(times.max())) if len(times) else None


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, keys in the order of their first value."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def analysed(of_links: Mapping[Pair, V], analyse: Callable[[V], Record]) -> list[Record]:
    """Return the analyses of links as records with their ends, where there is enough for one."""
    records = []
    for (src, dst), one in of_links.items():
        with suppress(TooFewError):
            records.append({"src": src, "dst": dst, **analyse(one)})
    return records


def at_most_connections(rows: Rows) -> Rows:
    """Return the tests with the largest number of connections."""
    most: Rows = rows[rows["connections"] == rows["connections"].max(initial=0)]
    return most


def in_time(analyse: Callable[..., Record]) -> Callable[[Rows], Record]:
    """Return an analysis of times and values as one of samples."""
    return lambda rows: analyse(rows["measured_at_s"], rows["value"])


def median_of(records: Sequence[Record], key: str) -> float:
    """Return the median of one figure of some records."""
    return float(np.median([one[key] for one in records]))


def provider_pair(src: str, dst: str) -> str:
    """Return ``aws > gcp`` for a link."""
    return f"{src.partition(':')[0]} > {dst.partition(':')[0]}"
