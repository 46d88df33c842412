"""Relays laid out as an array say what each of them says alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from planner.fields.shared import MOST_VMS
from planner.model.baseline.modelled_links import baseline_network
from planner.model.catalogue import Hosts
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, FlatPrices
from planner.transfer.allocation import greatest_rate_gbps
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from planner.transfer.search import TransferSearch
from relayd.catalogue.loading import load_catalogue
from tests.planner.independent import near
from tests.planner.transfer.strategies import networks, patient, prices, requests

CATALOGUE = load_catalogue()
BASELINE = baseline_network(CATALOGUE)


@patient
@given(st.data())
def test_all_relays_together_are_as_fast_as_each(data: st.DataObject) -> None:
    network = data.draw(networks())
    price_list = data.draw(prices())
    search = TransferSearch(data.draw(requests()), network, price_list, MOST_VMS)
    relays, rates = search.transfer.relays, search._relay_rates_gbps
    assert len(relays) == len(rates)
    for relay, rate in zip(relays, rates.tolist(), strict=True):
        assert rate == near(greatest_rate_gbps(search.transfer, relay))
        region = list(network.sites)[relay.region or 0]
        assert relay.vm_usd_per_h == price_list.vm_usd_per_h(region)


def test_only_regions_that_may_relay_are_asked_for_a_price() -> None:
    class Prices(FlatPrices):
        def vm_usd_per_h(self, region: str) -> float:
            assert region != "d:4"
            return super().vm_usd_per_h(region)

    network = Network.from_matrices(["a:1", "b:2", "c:3", "d:4"], 5 * np.ones((4, 4)))
    price_list = Prices(list(network.sites), 0.05, 1.0)
    for request in (
        TransferRequest("a:1", "b:2", avoid=("d:4",)),
        TransferRequest("a:1", "b:2", relays="c:3"),
    ):
        assert recommend(request, network, price_list).verdict == "direct"


def test_what_is_kept_of_a_link_is_of_one_catalogue_and_one_kind_of_hosts() -> None:
    types = CATALOGUE.vm_types.items()
    slower = replace(
        CATALOGUE, vm_types={n: replace(vm, egress_gbps=0.9 * vm.egress_gbps) for n, vm in types}
    )
    hosts: tuple[Hosts, ...] = ("as they come", "tuned")
    for catalogue, of_hosts in [*product((CATALOGUE, slower), hosts), (CATALOGUE, hosts[0])]:
        request = TransferRequest(
            "aws:us-east-1", "aws:sa-east-1", volume_gb=5000, hosts=of_hosts, vms=2
        )
        kept, fresh = (
            recommend(request, network, CataloguePrices(catalogue, network), catalogue=catalogue)
            for network in (BASELINE, baseline_network(CATALOGUE))
        )
        assert kept.advice == fresh.advice
        assert any(one.action.startswith("Use ") for one in kept.advice)
