"""Partitions of providers: networks of their own, which others reach over the internet."""

from __future__ import annotations

from itertools import permutations, product

import pytest

import relayd
from planner.model.errors import InputError
from planner.model.estimate import WANTED_ADDRESSES
from relayd.catalogue.loading import load_catalogue

CATALOGUE = load_catalogue()
WAN = relayd.open()
BEIJING, NINGXIA, VIRGINIA = "aws:cn-north-1", "aws:cn-northwest-1", "aws:us-east-1"
GOVERNMENT = ("aws:us-gov-west-1", "aws:us-gov-east-1")


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
    """No backbone, no private addresses, prices to the internet, and the answer says so."""
    plan = WAN.plan(BEIJING, VIRGINIA, volume_gb=100)
    (said,) = [warning for warning in plan.warnings if "partition" in warning]
    assert said.startswith(f"{BEIJING} -> {VIRGINIA}: into or out of a partition")
    assert "over the public internet across China's border, at internet prices" in said
    assert "Models rest on no measurement of such paths" in said
    price = CATALOGUE.egress_price(BEIJING, VIRGINIA)
    assert (price.name, price.unconfirmed) == ("aws-internet-china", True)
    assert plan.cost_usd.egress == pytest.approx(100 * price.tiers[0].usd_per_gb)
    assert any("not confirmed by a document" in warning for warning in plan.outdated)
    assert CATALOGUE.egress_price(VIRGINIA, BEIJING).name == "aws-internet-us-ca-eu"
    assert CATALOGUE.egress_price(BEIJING, NINGXIA).name == "aws-regions-china"


def test_no_relay_of_a_shuffle_crosses_into_a_partition() -> None:
    ends = (VIRGINIA, "aws:eu-west-1", BEIJING)
    network = WAN.network_of(ends)
    for src, dst in permutations(network.sites, 2):
        if src in network.links and dst in network.links[src]:
            apart = BEIJING in {src, dst}
            assert not apart or {src, dst} <= {*ends}
    demands = dict.fromkeys(permutations(ends, 2), 10.0)
    plan = WAN.shuffle(demands)
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
    for link in ((BEIJING, "aws:us-west-2"), ("aws:us-west-2", VIRGINIA)):
        assert WAN.plan(*link, volume_gb=100, relays="none").verdict == "direct"


def test_a_relay_in_a_partition_serves_its_own_alone() -> None:
    with pytest.raises(InputError, match=r"relays is in a partition of its own \(aws china\)"):
        WAN.plan(VIRGINIA, "aws:eu-west-1", relays=BEIJING)
