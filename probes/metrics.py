"""The metrics of samples, as one table: all that relayd knows of a metric stands in its row.

To add a metric, add its name to :data:`Metric` and its row to :data:`METRICS`. Importers, limits,
the store, exports and reports then take it; nothing else has a list of metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from planner.model.baseline.flow_spreads import REPEAT_ERROR
from planner.model.errors import InputError
from planner.model.link import LinkFigure, SiteFigure
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS, MS_PER_S, S_PER_H

Metric: TypeAlias = Literal[
    "rtt_ms",
    "per_flow_mbps",
    "aggregate_mbps",
    "loss_pct",
    "jitter_ms",
    "udp_mbps",
    "transfer_s",
    "route_hops",
    "egress_cap_mbps",
    "ingress_cap_mbps",
]

MAX_RATE_MBPS = 1e8
"""100 Tbit/s: some hundred times the fastest network card of a VM (3.2 Tbit/s, 2024)."""
MAX_RTT_MS = 60_000.0
"""60 s: beyond TCP's own timeout for one reply (RFC 6298 lets it be capped there)."""
MAX_DURATION_S = 31 * 86_400.0
MAX_HOPS = 255
"""The time to live of a packet is one byte (RFC 791)."""
RTT_NOISE = 0.02
"""Relative error of a median of pings, seen when repeating it, 90th percentile."""
CAP_NOISE = 0.05
"""Relative error of a VM's cap that was reached, 90th percentile."""


class Dimension(NamedTuple):
    """A kind of figure: its units, and the most that can be a measurement."""

    # Units in which tables of users may state it, and the factor of each to the metric's own
    units: Mapping[str, float]
    most: float  # in the metric's own unit
    most_in_words: str


RATE = Dimension(
    {
        "bps": 1 / BITS_PER_MBIT,
        "kbps": 1 / 1000,
        "mbps": 1.0,
        "gbps": MBPS_PER_GBPS,
        "tbps": MBPS_PER_GBPS * 1000,
    },
    MAX_RATE_MBPS,
    "100 Tbit/s",
)
TIME = Dimension({"us": 1 / 1000, "ms": 1.0, "s": MS_PER_S}, MAX_RTT_MS, "60 s")
SHARE = Dimension({"pct": 1.0, "percent": 1.0, "fraction": 100.0, "ratio": 100.0}, 100.0, "100 %")
DURATION = Dimension(
    {"ms": 1 / MS_PER_S, "s": 1.0, "min": 60.0, "h": S_PER_H}, MAX_DURATION_S, "31 days"
)
HOPS = Dimension({}, MAX_HOPS, "255")
_WORDS_OF_UNITS = {"mbps": "Mbit/s", "pct": "%"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFacts:
    """A metric."""

    name: Metric  # ends in the unit of its values
    dimension: Dimension  # its units and the greatest value that can be a measurement
    may_be_zero: bool = False
    # Of the steady throughput of TCP between two VMs: how many connections it has
    flows: Literal["one", "many"] | None = None
    # Of a cap of one VM over all destinations together: its end of the path. Both regions of such a
    # sample are the VM's own
    cap_of: Literal["src", "dst"] | None = None
    estimate: LinkFigure | SiteFigure | None = None  # the figure of a link or a site that it tells
    # Relative error that repeating a test shows; None where the tests themselves show it. Of loss,
    # the error of the logarithm of one more percent
    noise: float | None = None
    # Whether a lasting change of its level is looked for, and ends the use of older samples
    has_levels: bool = False
    # Whether it is zero most of the time, so that a value above zero is an event
    counts_events: bool = False
    has_series: bool = False  # whether reports show its course on one link

    @property
    def base(self) -> str:
        """The name without its unit, such as ``per_flow``."""
        return self.name.rpartition("_")[0]

    @property
    def label(self) -> str:
        """The name of a table's column for people, such as ``loss, %``."""
        unit = self.name.rpartition("_")[2]
        return f"{self.base.replace('_', ' ')}, {_WORDS_OF_UNITS.get(unit, unit)}"

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate, which the network cards of VMs bound."""
        return self.dimension is RATE

    @property
    def per_estimate(self) -> float:
        """Units of the metric in one unit of its estimate."""
        return MBPS_PER_GBPS if (self.estimate or "").endswith("_gbps") else 1.0


class _Table(dict[str, MetricFacts]):
    """Metrics by their names."""

    def __missing__(self, name: str) -> MetricFacts:
        raise InputError("metric", "is not one that relayd knows", value=name)


METRICS = _Table(
    (row.name, row)
    for row in (
        MetricFacts(
            name="rtt_ms",
            dimension=TIME,
            estimate="rtt_ms",
            noise=RTT_NOISE,
            has_levels=True,
            has_series=True,
        ),
        MetricFacts(
            name="per_flow_mbps",
            dimension=RATE,
            flows="one",
            estimate="per_flow_mbps",
            noise=REPEAT_ERROR,
            has_levels=True,
            has_series=True,
        ),
        MetricFacts(
            name="aggregate_mbps",
            dimension=RATE,
            flows="many",
            estimate="aggregate_gbps",
            has_levels=True,
            has_series=True,
        ),
        MetricFacts(
            name="loss_pct",
            dimension=SHARE,
            may_be_zero=True,
            noise=1.0,
            counts_events=True,
            has_series=True,
        ),
        MetricFacts(name="jitter_ms", dimension=TIME, may_be_zero=True, has_series=True),
        MetricFacts(name="udp_mbps", dimension=RATE, has_series=True),
        # The duration of one file's transfer; the detail has its volume.
        MetricFacts(name="transfer_s", dimension=DURATION),
        # Routers on the way and the destination itself.
        MetricFacts(name="route_hops", dimension=HOPS),
        MetricFacts(
            name="egress_cap_mbps",
            dimension=RATE,
            cap_of="src",
            estimate="egress_gbps",
            noise=CAP_NOISE,
        ),
        MetricFacts(
            name="ingress_cap_mbps",
            dimension=RATE,
            cap_of="dst",
            estimate="ingress_gbps",
            noise=CAP_NOISE,
        ),
    )
)
"""All metrics, in the order of their numbers in arrays of samples. A name that is not here raises
:class:`~planner.model.errors.InputError`."""
NAMES: tuple[Metric, ...] = tuple(row.name for row in METRICS.values())
assert get_args(Metric) == NAMES  # the same list, for type checkers

THROUGHPUT: tuple[Metric, ...] = tuple(name for name in NAMES if METRICS[name].flows)
"""Steady throughput of TCP between two VMs, with one connection and with many."""
CAPS: tuple[Metric, ...] = tuple(name for name in NAMES if METRICS[name].cap_of)
"""Caps of one VM, what it sends before what it receives."""


def throughput_of(connections: int | None) -> Metric:
    """Return the metric of a throughput test with so many TCP connections."""
    return "per_flow_mbps" if connections == 1 else "aggregate_mbps"


def number_of(name: str) -> int:
    """Return the number of a metric in arrays of samples.

    Raises InputError if it is not one that relayd knows.
    """
    return NAMES.index(METRICS[name].name)
