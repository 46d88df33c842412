"""What plans read of links and caps again and again, worked out once a network.

Rates at the bounds, and spreads of what is drawn: they depend on neither volume nor VMs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, sqrt
from typing import NamedTuple, TypeAlias

from planner.model.estimate import BOUNDS, Bound, Estimate
from planner.model.network import MOST_RATES_KEPT, Network
from planner.model.units import MBPS_PER_GBPS
from planner.solvers.joint import multiples, quantiles, spread

# Dimensions of the draws; relay number k has three of its own behind them.
SRC_CAP, DST_CAP, DST_WINDOW, DIRECT_LINK, RELAYS = range(5)

Rates: TypeAlias = tuple[float, float]
"""What one VM pair reaches with all its connections, and with one of them, Gbit/s."""
Spreads: TypeAlias = tuple[float, float]
"""Of a factor's logarithm, below and above what is expected."""


class Factor(NamedTuple):
    """How what is expected of a limit is spread in draws.

    Attributes
    ----------
    spreads : Spreads
        Its own.
    least, greatest : float
        Its own draws are not below, nor above these multiples of what is expected.
    window : Spreads | None
        Of the destination's window, where that holds a link back: its draws are shared.
    window_least, window_greatest : float
        Likewise.
    """

    spreads: Spreads
    least: float
    greatest: float
    window: Spreads | None = None
    window_least: float = 1.0
    window_greatest: float = 1.0


def factor(spreads: Spreads, window: Spreads | None = None) -> Factor:
    """Return how a limit with these spreads is drawn."""
    most, (below, above) = quantiles()[-1], spreads
    found = Factor(spreads, exp(-most * below), exp(most * above))
    if window is None:
        return found
    shared = multiples(*window, DST_WINDOW)
    return found._replace(window=window, window_least=min(shared), window_greatest=max(shared))


def factor_of(estimate: Estimate) -> Factor:
    """Return how a limit that is an estimate is drawn."""
    return factor(spreads_of(estimate))


def spreads_of(estimate: Estimate) -> Spreads:
    """Return the spreads of an estimate."""
    expected = estimate.expected
    return spread(expected, estimate.low), spread(expected, estimate.high)


class LinkFigures(NamedTuple):
    """Figures of one link with some number of connections.

    Attributes
    ----------
    rates : mapping of Bound to Rates
    alone : Factor
        Of what one VM pair reaches.
    into_end : Factor
        The same where the link enters the destination, whose window may hold it back.
    """

    rates: Mapping[Bound, Rates]
    alone: Factor
    into_end: Factor


class LinkFiguresTable(dict[tuple[str, str], LinkFigures]):
    """Source and destination to the figures of a link, made when first asked for.

    Rates are 0 where nothing is known of a link.
    """

    def __init__(self, network: Network, connections: int) -> None:
        super().__init__()
        self._network, self._connections = network, connections

    def __missing__(self, pair: tuple[str, str]) -> LinkFigures:
        src, dst = pair
        link, count = self._network.links.get(src, {}).get(dst), self._connections
        if link is None:
            none, never = (0.0, 0.0), factor((0.0, 0.0))
            return LinkFigures(dict.fromkeys(BOUNDS, none), never, never)
        rates = {b: (link.rate_gbps(count, b), link.rate_gbps(1, b)) for b in BOUNDS}
        gbps = rates["expected"][0]
        below, above = spread(gbps, rates["low"][0]), spread(gbps, rates["high"][0])
        alone = into_end = factor((below, above))
        flow = link.per_flow_mbps
        by_window = flow.origin.method == "window-over-rtt"
        if by_window and count * flow.expected <= gbps * MBPS_PER_GBPS:
            window = spreads_of(self._network.sites[dst].window_mb)
            shared_below, shared_above = min(below, window[0]), min(above, window[1])
            own = sqrt(below**2 - shared_below**2), sqrt(above**2 - shared_above**2)
            into_end = factor(own, (shared_below, shared_above))
        return self.setdefault(pair, LinkFigures(rates, alone, into_end))


def link_figures(network: Network, connections: int) -> LinkFiguresTable:
    """Return the figures of a network's links with so many connections of one VM."""
    tables: dict[int, LinkFiguresTable] = network.kept.setdefault("link figures", {})
    if connections not in tables:
        if len(tables) >= MOST_RATES_KEPT:  # a service may be asked for any number
            tables.clear()
        return tables.setdefault(connections, LinkFiguresTable(network, connections))
    return tables[connections]
