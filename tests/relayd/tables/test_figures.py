"""A figure that is read from arrays is the one that each link has, whatever was changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.baseline.changed_hosts import with_vm_types
from planner.model.baseline.modelled_links import with_regions
from planner.model.calibration import calibrated
from planner.model.errors import DataError
from planner.model.estimate import BOUNDS, Estimate, Method, Origin, Prior
from planner.model.link import FADING, LINK_FIGURES, Link
from planner.model.link_array import KINDS, rates_gbps
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.rate_cuts import with_first_rates
from relayd.tables.figures import matrix_of, measured_regions, newest_samples_s
from relayd.tables.matrices import MATRIX_METRICS, MatrixMetric
from tests.planner.model.test_network import CATALOGUE, DAY_S, NOW_S, known_networks
from tests.planner.transfer.strategies import REGIONS, patient

_kinds = st.sampled_from(KINDS)
_methods: st.SearchStrategy[Method] = st.sampled_from(["median-of-samples", "shifted-law"])
_times = st.none() | st.floats(NOW_S - 400 * DAY_S, NOW_S)
_priors = st.builds(
    lambda middle, wide, years: Prior(middle / wide, middle, middle * wide, years),
    st.floats(0.01, 100),
    st.floats(1, 3),
    st.floats(0.01, 20),
)


@st.composite
def _aging(draw: st.DrawFn) -> Network:
    """Return a network whose links have priors, and were measured long ago or never."""

    def drawn(estimate: Estimate) -> Estimate:
        origin = Origin(draw(_kinds), draw(_methods), newest_s=draw(_times))
        prior = draw(st.none() | _priors)
        return replace(estimate, origin=origin, prior=prior)

    network = draw(known_networks())
    links = {
        src: {
            dst: replace(
                link,
                per_flow_mbps=replace(drawn(link.per_flow_mbps), prior=None),
                aggregate_gbps=drawn(link.aggregate_gbps),
            )
            for dst, link in row.items()
        }
        for src, row in network.usual.items()
    }
    return network.with_(links=links)


def _calibrated(network: Network) -> Network:
    for seen in network.verified.values():
        network = calibrated(network, seen, NOW_S)
    return network


_CHANGES: list[Callable[[Network], Network]] = [
    lambda network: network.with_(aged_to_s=NOW_S + 20 * DAY_S),
    lambda network: network.with_(aged_to_s=NOW_S + 90 * DAY_S),
    lambda network: network.with_(restricted_to=REGIONS[1:]),
    lambda network: with_regions(network, CATALOGUE, ["aws:us-east-1", "gcp:us-east1", "own:x"]),
    lambda network: with_vm_types(network, CATALOGUE, {"gcp": "gcp:n2-standard-32"}),
    _calibrated,
    lambda network: with_first_rates(network, REGIONS[1], REGIONS[2], 100.0),
    lambda network: network.with_(link_states={}),
]


@patient
@given(_aging(), st.lists(st.sampled_from(_CHANGES), max_size=4), st.sampled_from([1, 3, 64]))
def test_figures_of_arrays_are_those_of_links(
    network: Network, changes: list[Callable[[Network], Network]], connections: int
) -> None:
    for change in changes:
        network = change(network)
    links = {(link.src, link.dst): link for link in network}
    pairs = [(src, dst) for src in network.sites for dst in network.sites]
    prices = CataloguePrices(CATALOGUE, network)
    for metric in MATRIX_METRICS:
        found = matrix_of(network, CATALOGUE, metric, connections)
        if metric in ("age", "relay-gain"):
            continue
        figures = {pair: _figure(link, metric, prices) for pair, link in links.items()}
        expected = [figures.get(pair, (nan, None)) for pair in pairs]
        np.testing.assert_equal(found.values.ravel(), [value for value, _ in expected])
        sources = [source for row in found.sources or () for source in row]
        assert sources == [source for _, source in expected] * bool(found.sources)
    view = pickle.loads(pickle.dumps(network, 5))  # of which no link is made yet
    assert view == network
    newest = [_newest_s(links[pair]) if pair in links else nan for pair in pairs]
    np.testing.assert_equal(newest_samples_s(view.links, view.links.whole).ravel(), newest)
    assert [dst in view.links[src] for src, dst in pairs] == [pair in links for pair in pairs]
    for bound in BOUNDS:
        rates = [links[p].rate_gbps(connections, bound) if p in links else 0.0 for p in pairs]
        square = np.reshape(rates, (len(network.sites), -1))
        for i, (row, column) in enumerate(zip(square, square.T, strict=True)):
            np.testing.assert_equal(rates_gbps(view.links.row(i), connections, bound), row)
            np.testing.assert_equal(rates_gbps(view.links.column(i), connections, bound), column)
    assert measured_regions(view) == {
        end
        for pair, link in links.items()
        if "measured" in {link.aggregate_gbps.source, link.per_flow_mbps.source}
        for end in pair
    }


@patient
@given(_aging(), st.floats(0, 900), st.none() | st.floats(0, 900))
def test_many_links_age_as_one_does(
    network: Network, days: float, since_days: float | None
) -> None:
    to_s = NOW_S + days * DAY_S
    since_s = None if since_days is None else NOW_S + since_days * DAY_S
    aged = network.usual.aged(to_s, since_s)
    for link in network.usual.all_links():
        also = aged[link.src][link.dst]
        for name in LINK_FIGURES:
            first = getattr(link, name).aged(to_s, since_s, FADING[name])
            second = getattr(also, name)
            assert (first.origin, first.prior) == (second.origin, second.prior)
            for bound in BOUNDS:
                assert getattr(first, bound) == pytest.approx(getattr(second, bound), rel=1e-9)


def _figure(link: Link, metric: MatrixMetric, prices: CataloguePrices) -> tuple[float, str | None]:
    estimates = {
        "per-flow": link.per_flow_mbps,
        "aggregate": link.aggregate_gbps,
        "rtt": link.rtt_ms,
    }
    if metric in estimates:
        return estimates[metric].expected, estimates[metric].source
    if metric == "loss":
        return nan if link.loss_pct is None else link.loss_pct, None
    try:
        return prices.egress_usd_per_gb(link.src, link.dst, 1.0), None
    except DataError:
        return nan, None


def _newest_s(link: Link) -> float:
    estimates = (link.rtt_ms, link.per_flow_mbps, link.aggregate_gbps)
    times = [
        estimate.measured_at_s
        for estimate in estimates
        if estimate.source == "measured" and estimate.measured_at_s is not None
    ]
    return max(times, default=nan)
