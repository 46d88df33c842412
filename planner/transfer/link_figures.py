"""What plans read of links again and again, worked out once a network.

Rates at the bounds, and spreads of what is drawn: they depend on neither volume nor VMs.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import NamedTuple, TypeAlias

from planner.model.estimate import BOUNDS, Bound, Estimate
from planner.model.network import MOST_RATES_KEPT, Network
from planner.model.units import MBPS_PER_GBPS
from planner.solvers.joint import spread_of

Rates: TypeAlias = tuple[float, float]
"""What one VM pair reaches with all its connections, and with one of them, Gbit/s."""
Spreads: TypeAlias = tuple[float, float]
"""Of a factor's logarithm, below and above what is expected."""
EXACT: Spreads = (0.0, 0.0)


def spreads_of(estimate: Estimate) -> Spreads:
    """Return the spreads of an estimate."""
    expected = estimate.expected
    return spread_of(expected, estimate.low), spread_of(expected, estimate.high)


class LinkFigures(NamedTuple):
    """Figures of one link with some number of connections.

    Attributes
    ----------
    rates : mapping of Bound to Rates
    alone : Spreads
        Of what one VM pair reaches.
    own, window : Spreads
        The same where the link enters the destination, whose window may hold it back: what is
        the link's own, and what all links into the destination share.
    """

    rates: Mapping[Bound, Rates]
    alone: Spreads
    own: Spreads
    window: Spreads


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
            return LinkFigures(dict.fromkeys(BOUNDS, (0.0, 0.0)), EXACT, EXACT, EXACT)
        rates = {b: (link.rate_gbps(count, b), link.rate_gbps(1, b)) for b in BOUNDS}
        gbps = rates["expected"][0]
        below, above = spread_of(gbps, rates["low"][0]), spread_of(gbps, rates["high"][0])
        own, window = (below, above), EXACT
        flow = link.per_flow_mbps
        by_window = flow.origin.method == "window-over-rtt"
        if by_window and count * flow.expected <= gbps * MBPS_PER_GBPS:
            of_receiver = spreads_of(self._network.sites[dst].window_mb)
            window = min(below, of_receiver[0]), min(above, of_receiver[1])
            own = sqrt(below**2 - window[0] ** 2), sqrt(above**2 - window[1] ** 2)
        return self.setdefault(pair, LinkFigures(rates, (below, above), own, window))


def link_figures(network: Network, connections: int) -> LinkFiguresTable:
    """Return the figures of a network's links with so many connections of one VM."""
    tables: dict[int, LinkFiguresTable] = network.kept.setdefault("link figures", {})
    if connections not in tables:
        if len(tables) >= MOST_RATES_KEPT:  # a service may be asked for any number
            tables.clear()
        return tables.setdefault(connections, LinkFiguresTable(network, connections))
    return tables[connections]
