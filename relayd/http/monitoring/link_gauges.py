"""Gauges of each link for Prometheus: what is expected of it, how old that is, its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isnan, nan
from typing import NamedTuple

from prometheus_client import Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from planner.model.estimate import Bound
from planner.model.link import LINK_FIGURES, Link
from planner.model.link_states import Condition
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S
from relayd.sources.wan import Wan
from relayd.tables.figures import links_to_watch
from relayd.tables.matrices import Matrix

BYTES_PER_S_PER_GBPS = MBPS_PER_GBPS * BITS_PER_MBIT / BITS_PER_BYTE
CONDITIONS: dict[Condition, int] = {"up": 0, "degraded": 1, "down": 2}


class LinkGauge(NamedTuple):
    """A gauge with a value for each link; NaN where nothing is known.

    Attributes
    ----------
    name : str
        Without ``relayd_link_``.
    digits : int
        That are written.
    """

    name: str
    help: str
    value: Callable[[Link], float]
    digits: int = 6


def link_gauges(wan: Wan, most: int) -> bytes:
    """Return the gauges of at most so many links, in Prometheus' text format (0.0.4).

    Where there are more, those that are not up come first, then those that were measured: that
    choice changes only with what is known, so that series do not come and go.
    """
    return generate_latest(_LinkGauges(wan, most))


class _LinkGauges(Collector):
    def __init__(self, wan: Wan, most: int) -> None:
        self._wan, self._most = wan, most

    def collect(self) -> Iterator[Metric]:
        links, known = links_to_watch(self._wan.network, self._most)
        shown = "Links with gauges of their own here."
        yield GaugeMetricFamily("relayd_links_known", "Links between measured regions.", known)
        yield GaugeMetricFamily("relayd_links_shown", shown, len(links))
        for name, meaning, value, digits in _gauges(self._wan) if links else ():
            family = GaugeMetricFamily(f"relayd_link_{name}", meaning, labels=("src", "dst"))
            for link in links:
                if not isnan(found := value(link)):
                    family.add_metric((link.src, link.dst), float(f"{found:.{digits}g}"))
            yield family


def _gauges(wan: Wan) -> Iterator[LinkGauge]:
    network = wan.network
    states, verified = network.states, network.verified
    gains, usd_per_gb = wan.matrix("relay-gain"), wan.matrix("fee")
    index = network.index

    def of_pair(matrix: Matrix) -> Callable[[Link], float]:
        return lambda link: float(matrix.values[index[link.src], index[link.dst]])

    def error(link: Link) -> float:
        seen = verified.get((link.src, link.dst))
        if seen is None or seen.expected_gbps <= 0:
            return nan
        return seen.achieved_gbps / seen.expected_gbps - 1

    def state(link: Link) -> float:
        found = states.get((link.src, link.dst))
        return CONDITIONS[found.condition] if found else 0

    throughput = "Throughput of one VM pair with many connections"
    bounds: tuple[tuple[Bound, str, str], ...] = (
        ("expected", "", "what is expected"),
        ("low", "_low", "5th percentile"),
        ("high", "_high", "95th percentile"),
    )
    for bound, suffix, which in bounds:
        yield LinkGauge(
            f"throughput{suffix}_bytes_per_second", f"{throughput}: {which}.", _throughput(bound)
        )
    yield LinkGauge("rtt_seconds", "Round-trip time.", lambda link: link.rtt_ms.expected / MS_PER_S)
    yield LinkGauge(
        "loss_ratio",
        "Share of packets lost, where measured.",
        lambda link: nan if link.loss_pct is None else link.loss_pct / 100,
    )
    yield LinkGauge(
        "measured_timestamp_seconds",
        "When the newest sample of this very link was taken (Unix time).",
        _newest_sample_s,
        digits=10,
    )
    yield LinkGauge("state", "0 up, 1 degraded, 2 down.", state)
    yield LinkGauge(
        "relay_gain_ratio",
        "Throughput of the best single relay over that of the direct path, one VM a region.",
        of_pair(gains),
    )
    yield LinkGauge(
        "egress_usd_per_gigabyte",
        "Price of the first gigabyte, in US dollars.",
        of_pair(usd_per_gb),
    )
    yield LinkGauge(
        "prediction_error_ratio",
        "What the last verified plan from here to there carried over its prediction, less 1.",
        error,
    )


def _throughput(bound: Bound) -> Callable[[Link], float]:
    return lambda link: float(getattr(link.aggregate_gbps, bound)) * BYTES_PER_S_PER_GBPS


def _newest_sample_s(link: Link) -> float:
    estimates = (getattr(link, name) for name in LINK_FIGURES)
    times_s = [e.measured_at_s for e in estimates if e.source == "measured"]
    return max((at_s for at_s in times_s if at_s is not None), default=nan)
