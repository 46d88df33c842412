"""Links over one kind of address as arrays: what is known of each, and what limits it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.estimate import ADDRESS_KINDS, AddressKind, Figures, Origin
from planner.model.link import AT_LIMIT, LIMITED_BY, Site
from planner.model.link_array import EstimateArrays, LinkArray, Origins
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.flows import MeasuredFlows, Pairs, held_to
from probes.estimation.groups import Bools, Floats, Ints
from probes.estimation.laws import PriorArrays
from probes.estimation.origins import are_measured, changed
from probes.estimation.site_arrays import Bounds, least_caps

NOT_OPENED = -1
"""Connections of a link whose aggregate was not measured."""


class MeasuredLinks(NamedTuple):
    """What was measured of the throughput of some of n x n links.

    Attributes
    ----------
    flows : MeasuredFlows
    pairs : (array, array)
        Links of which many connections were measured.
    aggregates : EstimateArrays
        Of these, in Gbit/s, with what is believed of their class.
    priors : PriorArrays
    connections : array of int
        0 where tests do not say.
    saturated : (array, array)
        Links of which a ramp has shown that more connections bring nothing.
    """

    flows: MeasuredFlows
    pairs: Pairs
    aggregates: EstimateArrays
    priors: PriorArrays
    connections: Ints
    saturated: Pairs


def links_of(
    sites: Collection[Site],
    rtts_ms: EstimateArrays,
    windows: EstimateArrays,
    laws: EstimateArrays,
    measured: MeasuredLinks,
    losses_pct: Floats,
    address: AddressKind,
    origins: Origins,
) -> LinkArray:
    """Return all links of which anything is known.

    Parameters
    ----------
    sites : collection of Site, length n
    rtts_ms, windows, laws : EstimateArrays, shape (n, n)
        Round-trip times; one flow by the window of its receiver, in Mbit/s; and many connections
        without tests, in Gbit/s. The last two are written to.
    measured : MeasuredLinks
    losses_pct : array, shape (n, n)
    address : AddressKind
    origins : Origins
    """
    size = len(sites)
    laws.put(measured.pairs, measured.aggregates)
    flows, aggregates = windows, laws
    tested = np.zeros(size, np.bool_)
    tested[measured.flows.src] = tested[measured.flows.dst] = True
    # No VM type, no law: there is nothing to go by.
    present = rtts_ms.known & (aggregates.known | tested[:, None] | tested)
    np.fill_diagonal(present, val=False)
    src, dst = np.nonzero(present)
    ends = src, dst
    flows.put((measured.flows.src, measured.flows.dst), measured.flows.mbps)
    count = len(src)
    # A place of its own for what is of no link, such as tests of a region with itself.
    place = np.where(present, np.cumsum(present).reshape(present.shape) - 1, count)
    opened = np.full(count + 1, NOT_OPENED)
    opened[place[measured.pairs]] = measured.connections
    has_flow, saturated = np.zeros(count + 1, np.bool_), np.zeros(count + 1, np.bool_)
    has_flow[place[measured.flows.src, measured.flows.dst]] = True
    saturated[place[measured.saturated]] = True
    priors = [np.full(count + 1, np.nan) for _ in measured.priors]
    for column, values in zip(priors, measured.priors, strict=True):
        column[place[measured.pairs]] = values
    opened, has_flow, saturated = opened[:-1], has_flow[:-1], saturated[:-1]
    rtt, flow, aggregate = (one.take(ends) for one in (rtts_ms, flows, aggregates))
    allowed = [bound.copy() for bound in flow[:3]]
    _infer_flows(flow, aggregate, opened, ~has_flow, origins)
    known = aggregate.known
    _of_flows(flow, aggregate, ~known, origins)
    caps = Bounds(*(cap[ends] for cap in least_caps(sites)))
    limits = _limits(aggregate, caps, allowed, opened, known, saturated)
    of_address = np.full(len(known), ADDRESS_KINDS.index(address))
    others = [losses_pct[ends], *(prior[:-1] for prior in priors), limits, of_address]
    names = [site.region for site in sites]
    return LinkArray.of_figures(names, origins, ends, (rtt, flow, aggregate), others)


def _infer_flows(
    flow: EstimateArrays, aggregate: EstimateArrays, opened: Ints, inferred: Bools, origins: Origins
) -> None:
    """Correct single flows by what many flows of the same link carried, where these were measured.

    Parameters
    ----------
    flow : EstimateArrays
        By the receiver's window, in Mbit/s.
    aggregate : EstimateArrays
        In Gbit/s.
    opened : array of int
        With how many connections the latter were measured.
    inferred : array of bool
        Which flows were not measured.
    """
    at = np.flatnonzero(inferred & aggregate.known & are_measured(origins, aggregate.origin))
    low, expected, high = (bound[at] for bound in flow[:3])
    most_mbps = aggregate.expected[at] * MBPS_PER_GBPS
    highest_mbps = aggregate.high[at] * MBPS_PER_GBPS
    # One of the flows can't carry more than all of them together.
    over = expected > most_mbps
    low = np.where(over, np.minimum(low, most_mbps), low)
    high = np.where(over, np.maximum(most_mbps, highest_mbps), high)
    expected = np.where(over, most_mbps, expected)
    flow.origin[at[over]] = held_to("aggregate", origins, flow.origin[at[over]])
    # k connections together carried this much, so one alone carries at least a k-th.
    told = opened[at] > 0
    connections = np.maximum(opened[at], 1)
    least_mbps = most_mbps / connections
    more = told & (least_mbps > expected)
    lowest_mbps = aggregate.low[at] * MBPS_PER_GBPS
    flow.low[at] = np.where(more, np.maximum(low, lowest_mbps / connections), low)
    flow.expected[at] = np.where(more, least_mbps, expected)
    flow.high[at] = np.where(more, np.maximum(high, highest_mbps / connections), high)
    shared, numbers = at[more], connections[more]
    for name in ("samples", "links", "newest_s", "oldest_s"):
        getattr(flow, name)[shared] = getattr(aggregate, name)[shared]
    for count in np.unique(numbers).tolist():
        some = shared[numbers == count]
        figures = Figures(connections=count)

        def share(origin: Origin, figures: Figures = figures) -> Origin:
            return origin._replace(kind="inferred", method="share-of-aggregate", figures=figures)

        flow.origin[some] = changed(origins, aggregate.origin[some], share)


def _of_flows(
    flow: EstimateArrays, aggregate: EstimateArrays, missing: Bools, origins: Origins
) -> None:
    """Fill in what is known of many connections where only one was ever measured.

    As much as one carries; at most as much as the usual number of them.
    """

    def one_connection(origin: Origin) -> Origin:
        return origin._replace(kind="inferred", method="one-connection", figures=None)

    known = flow.take(missing)
    aggregate.put(
        missing,
        known.with_bounds(
            known.low / MBPS_PER_GBPS,
            known.expected / MBPS_PER_GBPS,
            known.high * DEFAULT_CONNECTIONS / MBPS_PER_GBPS,
            changed(origins, known.origin, one_connection),
        ),
    )


def _limits(
    rate: EstimateArrays,
    caps: Bounds,
    windows: Sequence[Floats],
    opened: Ints,
    known: Bools,
    saturated: Bools,
) -> Ints:
    """Return what limits links, as places in LIMITED_BY: a VM, the path, or windows.

    Parameters
    ----------
    rate : EstimateArrays
    caps : Bounds
        The lower of the caps of both VMs.
    windows : (low, expected, high)
        Of a single flow, in Mbit/s.
    opened : array of int
        With how many connections it was measured; 0 where that is not known.
    known : array of bool
        Whether the rate is of many connections.
    saturated : array of bool
    """
    connections = np.where(opened > 0, opened, LAW_CONNECTIONS) / MBPS_PER_GBPS
    at_windows = known & (opened != 0)
    at_windows &= _is_at(rate, windows[0] * connections, windows[1] * connections)
    found = np.where(at_windows, LIMITED_BY.index("window"), LIMITED_BY.index("unknown"))
    found[saturated] = LIMITED_BY.index("path")
    found[_is_at(rate, caps.low, caps.expected)] = LIMITED_BY.index("vm")
    return found


def _is_at(rate: EstimateArrays, low: Floats, expected: Floats) -> Bools:
    return (rate.expected >= AT_LIMIT * expected) & (AT_LIMIT * expected > 0) & (rate.high >= low)
