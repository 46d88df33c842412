"""Partitions of providers: networks of their own, which others reach over the internet."""

from __future__ import annotations

import time
from itertools import permutations, product
from typing import Any

import pytest

import relayd
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import DataError, InputError
from planner.model.estimate import WANTED_ADDRESSES
from planner.model.network import Snapshot
from planner.shuffle.request import ShuffleRequest
from planner.transfer.request import TransferRequest
from probes.estimation import Estimator
from probes.metrics import Metric
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from relayd.sources.wan import Wan

CATALOGUE = load_catalogue()
BEIJING, NINGXIA, VIRGINIA = "aws:cn-north-1", "aws:cn-northwest-1", "aws:us-east-1"
GOVERNMENT = ("aws:us-gov-west-1", "aws:us-gov-east-1")
OREGON, IRELAND = "aws:us-west-2", "aws:eu-west-1"


def measured(*pairs: tuple[str, str], metric: Metric = "aggregate_mbps") -> Wan:
    """Return a source of the baseline and of measured links."""
    samples = [Sample(*pair, metric, 50.0, time.time(), "iperf3") for pair in pairs]
    estimator = Estimator(Samples.of(samples), CATALOGUE)
    return Wan(CATALOGUE, estimator.network(Snapshot("t", "", "")))


WAN = measured(*permutations((BEIJING, VIRGINIA), 2), (BEIJING, OREGON), (GOVERNMENT[0], BEIJING))


def test_a_partition_is_a_part_of_a_provider() -> None:
    partitions = {region.partition for region in CATALOGUE.regions.values()}
    assert partitions == {*("aws", "azure", "gcp", "aws china", "aws government", "aws sovereign")}
    apart = [*GOVERNMENT, "aws:eusc-de-east-1", BEIJING, NINGXIA]
    assert CATALOGUE.apart == set(apart)
    assert CATALOGUE.region("azure:norwaywest").partition == "azure"  # on request, and no more


@pytest.mark.parametrize("pair", [(BEIJING, NINGXIA), GOVERNMENT, (BEIJING, VIRGINIA)])
def test_nothing_outside_a_partition_relays(pair: tuple[str, str]) -> None:
    plan = WAN.plan(*pair, volume_gb=100, candidates=100, frontier=True)
    assert plan.verdict == "direct"
    assert (plan.best_relay, plan.alternatives) == (None, ())
    (said,) = [warning for warning in plan.warnings if "partition" in warning]
    assert all(end in said for end in pair)
    for addresses in WANTED_ADDRESSES:
        network = WAN.network_of(pair, {}, addresses)
        kind = network.link(*pair).address
        assert kind == ("private" if addresses == "private" and VIRGINIA not in pair else "public")


def test_from_beijing_to_virginia_is_the_internet_across_a_border() -> None:
    """No model, no private addresses, prices to the internet, and the answer says so."""
    plan = WAN.plan(BEIJING, VIRGINIA, volume_gb=100)
    (said,) = [warning for warning in plan.warnings if "partition" in warning]
    assert said.startswith(f"{BEIJING} -> {VIRGINIA}: into or out of a partition")
    assert "over the public internet across China's border, which no model crosses, at" in said
    assert "Models rest on no measurement of such paths" in said
    price = CATALOGUE.egress_price(BEIJING, VIRGINIA)
    assert (price.name, price.unconfirmed) == ("aws-internet-china", True)
    assert plan.cost_usd.egress == pytest.approx(100 * price.tiers[0].usd_per_gb)
    assert any("not confirmed by a document" in warning for warning in plan.outdated)
    assert CATALOGUE.egress_price(VIRGINIA, BEIJING).name == "aws-internet-us-ca-eu"
    assert CATALOGUE.egress_price(BEIJING, NINGXIA).name == "aws-regions-china"


@pytest.mark.parametrize("pair", [(BEIJING, VIRGINIA), ("gcp:asia-east2", NINGXIA)])
def test_what_is_not_measured_across_the_border_is_not_known(pair: tuple[str, str]) -> None:
    """Hong Kong is beyond it. Measured links tell nothing of others, nor of the way back."""
    said = rf"Measure or import.*No model crosses China's border \({pair[0]} -> {pair[1]}\)"
    others = measured(pair[::-1], (OREGON, BEIJING)), measured(pair[::-1], metric="per_flow_mbps")
    for wan in (relayd.open(), *others):
        assert wan.network_of(pair).links.get(pair[0], {}).get(pair[1]) is None
        requests = (
            TransferRequest(*pair),
            TransferRequest(*pair, relays="any"),
            ShuffleRequest({pair: 10.0}),
            BroadcastRequest(pair[0], [pair[1]]),
        )
        for request in requests:
            with pytest.raises(DataError, match=said) as fault:
                wan.ask(request)
            assert fault.value.exit_code == 4
        with pytest.raises(DataError, match="but for links across China's border"):
            wan.network_of(pair).link(*pair)


@pytest.mark.parametrize(
    "asked",
    [{}, {"hosts": "tuned"}, {"vm_types": {BEIJING: "c6in.2xlarge", VIRGINIA: "m5.8xlarge"}}],
)
def test_a_measured_link_across_the_border_stays_as_it_was_measured(asked: dict[str, Any]) -> None:
    plan = WAN.plan(BEIJING, VIRGINIA, volume_gb=100, vms=1, **asked)
    assert plan.throughput_gbps == pytest.approx(0.05)
    with pytest.raises(DataError, match="Nothing is known"):
        WAN.plan(BEIJING, IRELAND, volume_gb=100, **asked)


def test_no_relay_of_a_shuffle_crosses_into_a_partition() -> None:
    ends = (VIRGINIA, IRELAND, BEIJING)
    every = measured(*permutations(ends, 2))
    network = every.network_of(ends)
    for src, dst in permutations(network.sites, 2):
        if src in network.links and dst in network.links[src]:
            apart = BEIJING in {src, dst}
            assert not apart or {src, dst} <= {*ends}
    demands = dict.fromkeys(permutations(ends, 2), 10.0)
    plan = every.shuffle(demands)
    (said,) = [warning for warning in plan.warnings if "partition" in warning]
    assert "and 1 more links: into or out of" in said  # to and from Beijing
    commercial = [name for name in network.sites if name not in CATALOGUE.apart]
    assert all(dst in network.links[src] for src, dst in product(commercial[:9], commercial[9:]))


CHINA, GOVERNED, STANDARD = (
    f"the {name} partition" for name in ("aws china", "aws government", "standard")
)


@pytest.mark.parametrize(
    ("pair", "relays", "crossing"),
    [
        ((BEIJING, VIRGINIA), "aws:us-west-2", (CHINA, STANDARD)),
        ((VIRGINIA, BEIJING), "aws:us-west-2", (STANDARD, CHINA)),
        ((BEIJING, VIRGINIA), NINGXIA, (CHINA, STANDARD)),
        ((BEIJING, NINGXIA), "any", (CHINA, STANDARD)),
        ((GOVERNMENT[0], BEIJING), "one", (GOVERNED, CHINA)),
    ],
)
def test_the_reason_names_the_border_that_a_relay_would_cross(
    pair: tuple[str, str], relays: str, crossing: tuple[str, str]
) -> None:
    plan = WAN.plan(*pair, volume_gb=100, relays=relays)
    who = "A relay" if relays in {"any", "one"} else relays
    assert plan.verdict == "direct"
    assert plan.reason.startswith(f"{who} would cross from {crossing[0]} to {crossing[1]}, ")
    assert "`access` in the catalogue" in plan.reason
    assert "plan each of its two links as a transfer of its own" in plan.reason


def test_a_relay_that_crosses_no_border_is_refused_for_what_it_is() -> None:
    assert "partition" not in WAN.plan(VIRGINIA, "aws:eu-west-1", relays="any").reason
    # The remedy can be followed: both links are transfers that can be planned.
    for link in ((BEIJING, OREGON), (OREGON, VIRGINIA)):
        assert WAN.plan(*link, volume_gb=100, relays="none").verdict == "direct"


def test_a_relay_in_a_partition_serves_its_own_alone() -> None:
    with pytest.raises(InputError, match=r"relays is in a partition of its own \(aws china\)"):
        WAN.plan(VIRGINIA, "aws:eu-west-1", relays=BEIJING)
