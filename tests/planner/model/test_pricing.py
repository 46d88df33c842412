"""Fees: what each pair costs, by tiers and by what the month has billed already."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.catalogue import Catalogue, EgressPrice, Fee, Region, Tier
from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import (
    CataloguePrices,
    FlatPrices,
    average_usd_per_gb,
    metered_usd_per_gb,
    relayed_usd_per_gb,
)
from relayd.catalogue.loading import load_catalogue
from tests.planner.transfer.strategies import patient

# One of each kind of price list, and a site that no list covers.
PRICED = (
    "aws:us-east-1",
    "aws:sa-east-1",
    "azure:eastus",
    "azure:westeurope",
    "gcp:us-east1",
    "gcp:asia-east2",
    "own:rack",
)
# And one that two providers have in common: the month still counts for each by itself.
TIERS = (Tier(0.1, 1000.0), Tier(0.05, inf))
SHARED = EgressPrice("shared", ("aws:*", "gcp:*"), ("*",), TIERS)
BILLED = st.dictionaries(st.sampled_from(["aws", "azure", "gcp", "*"]), st.floats(0, 1e6))


@patient
@given(
    st.booleans(),
    st.permutations(PRICED),
    st.lists(st.tuples(st.floats(1e-6, 1e6), BILLED), min_size=1, max_size=3),
)
def test_rows_hold_what_each_pair_costs(
    sharing: bool, regions: list[str], asked: list[tuple[float, dict[str, float]]]
) -> None:
    catalogue = load_catalogue()
    if sharing:
        catalogue = replace(catalogue, egress_prices=(*catalogue.egress_prices, SHARED))
    network = Network.from_matrices(regions, np.ones((len(regions), len(regions))))
    src, dst = regions[:2]
    for volume_gb, billed in asked:  # one network, several months: nothing may leak
        price_list = CataloguePrices(catalogue, network, billed)
        found = relayed_usd_per_gb(price_list, network, src, dst, volume_gb)
        for region, fee in zip(network.sites, found, strict=True):
            links_gb = {(src, region): volume_gb, (region, dst): volume_gb}
            try:
                expected = sum(metered_usd_per_gb(price_list, links_gb).values())
            except DataError:
                expected = inf
            assert fee == expected


def price_or_none(catalogue: Catalogue, pair: tuple[str, str]) -> EgressPrice | None:
    try:
        return catalogue.egress_price(*pair)
    except DataError:
        return None


_OWN = ("own:a1", "own:a2", "own:b1", "else:a1", "else:b2")
_ANY = ("*", "own:*", "own:a*", "*:a1", "own:a2", "else:b2", "own:* & country:DE", "continent:EU")
_SEEN_FROM = (*_ANY, "same-provider", "other-provider & own:a*", "same-continent", "same-region")


@patient
@given(
    st.lists(st.tuples(st.sampled_from(_ANY), st.sampled_from(_SEEN_FROM)), max_size=6),
    st.sets(st.sampled_from([*_OWN, "own", "rule 1"])),
    st.permutations([(src, dst) for src in _OWN for dst in _OWN]),
)
def test_a_price_is_that_of_its_own_pair(
    rules: list[tuple[str, str]], discounted: set[str], pairs: list[tuple[str, str]]
) -> None:
    prices = tuple(
        EgressPrice(str(number), (source,), (destination,), (Tier(float(number)),))
        for number, (source, destination) in enumerate(rules)
    )
    regions = {name: Region(name, country="DE", continent="EU") for name in _OWN[1:4]}
    discounts = {subject: {"egress": 0.1} for subject in discounted}
    catalogue = Catalogue(regions, {}, {}, {}, prices, discounts=discounts)

    for pair in pairs:  # one has been asked for others before, the other has not
        found = price_or_none(catalogue, pair)
        assert found == price_or_none(replace(catalogue), pair)
        assert not found or ("same-region" in found.destinations) == (pair[0] == pair[1])


_LINKS = [(src, dst) for src in _OWN for dst in _OWN if src != dst]


@patient
@given(
    st.lists(st.tuples(st.sampled_from(_ANY), st.sampled_from(_SEEN_FROM)), max_size=6),
    st.sets(st.sampled_from([*_OWN, "own", "rule 1", "rule own:a1 -> own:b1"])),
    st.dictionaries(st.sampled_from(_LINKS), st.integers(0, 6).map(float)),
    st.booleans(),
)
def test_stated_prices_are_rules_that_follow_all_others(
    rules: list[tuple[str, str]],
    discounted: set[str],
    stated: dict[tuple[str, str], float],
    has_fee: bool,
) -> None:
    listed = Catalogue(
        {name: Region(name, country="DE", continent="EU") for name in _OWN[1:4]},
        *({}, {}, {}),
        tuple(
            EgressPrice(str(number), (source,), (destination,), (Tier(float(number), 9.0), *TIERS))
            for number, (source, destination) in enumerate(rules)
        ),
        discounts={subject: {"egress": 0.5} for subject in discounted},
        fees=(Fee("gateway", at=("own:a*",), usd_per_gb=1.0),) if has_fee else (),
    )
    link_prices = {a: {b: usd for (of, b), usd in stated.items() if of == a} for a, _ in stated}
    found = replace(listed, link_prices=link_prices)
    for pair, usd in stated.items():  # what rules charge for the first GB leaves them as they are
        usual = price_or_none(listed, pair)
        if usual is None or usual.tiers[0].usd_per_gb != usd:
            own = EgressPrice(" -> ".join(pair), pair[:1], pair[1:], (Tier(usd),))
            listed = replace(listed, egress_prices=(*listed.egress_prices, own))
    for src in _OWN:
        for dst in _OWN:
            assert price_or_none(found, (src, dst)) == price_or_none(listed, (src, dst))


def charged_by_the_gb(
    catalogue: Catalogue, links_gb: dict[tuple[str, str], int], billed: dict[str, float]
) -> float:
    """Return the fees of whole GB, billed one by one, all links in turn."""
    sent = dict.fromkeys(links_gb, 0)
    counted: dict[tuple[str, bool], float] = {}
    usd = 0.0
    for step in range(1, max(links_gb.values()) + 1):
        for (src, dst), gb in links_gb.items():
            due = round(gb * step / max(links_gb.values()))
            while sent[src, dst] < due:
                sent[src, dst] += 1
                provider = src.split(":")[0]
                key = (provider, provider == dst.split(":")[0])
                before = counted.get(key, billed.get(provider, billed.get("*", 0.0)))
                tiers = catalogue.egress_price(src, dst).tiers
                usd += next(tier.usd_per_gb for tier in tiers if before < tier.up_to_gb)
                counted[key] = before + 1
    return usd


LINKS = st.tuples(*[st.sampled_from(PRICED[:-1])] * 2).filter(lambda pair: pair[0] != pair[1])


@patient
@given(
    st.booleans(),
    st.dictionaries(LINKS, st.integers(1, 3000), min_size=1, max_size=4),
    st.dictionaries(st.sampled_from(["aws", "gcp", "*"]), st.integers(0, 10_000).map(float)),
)
def test_links_are_charged_what_their_meters_count(
    sharing: bool, links_gb: dict[tuple[str, str], int], billed: dict[str, float]
) -> None:
    catalogue = load_catalogue()
    if sharing:
        catalogue = replace(catalogue, egress_prices=(*catalogue.egress_prices, SHARED))
    network = Network.from_matrices(PRICED, np.ones((len(PRICED), len(PRICED))))
    fees = metered_usd_per_gb(CataloguePrices(catalogue, network, billed), links_gb)
    usd = sum(gb * fees[link] for link, gb in links_gb.items())
    # Where lists of a meter differ, a link's volume is spread evenly over what the meter counts.
    assert usd == pytest.approx(charged_by_the_gb(catalogue, links_gb, billed), rel=5e-3, abs=1.0)


def test_flat_prices_by_pair_and_region() -> None:
    fees = np.array([[0.0, 0.01], [0.02, 0.0]])
    stated = FlatPrices(["a", "b"], fees, {"a": 1.5})
    assert stated.egress_usd_per_gb("b", "a", 5.0) == 0.02
    assert stated.vm_usd_per_h("a") == 1.5
    assert stated.vm_usd_per_h("b") == 0.0
    with pytest.raises(InputError, match=r"egress_usd_per_gb must have shape \(2, 2\)"):
        FlatPrices(["a", "b"], np.zeros((3, 3)))


@st.composite
def tier_lists(draw: st.DrawFn) -> tuple[Tier, ...]:
    ends = sorted(draw(st.sets(st.integers(1, 500), max_size=4)))
    return tuple(Tier(draw(st.integers(0, 20)) / 100, float(end)) for end in (*ends, inf))


@patient
@given(tier_lists(), st.integers(1, 600), st.integers(0, 600))
def test_mean_price_is_the_integral(tiers: tuple[Tier, ...], volume: int, so_far: int) -> None:
    # Ends are whole GB, so the price of each GB is that of its middle.
    middles = np.arange(so_far, so_far + volume) + 0.5
    ends = [tier.up_to_gb for tier in tiers]
    fees = np.array([tier.usd_per_gb for tier in tiers])[np.searchsorted(ends, middles)]
    assert average_usd_per_gb(tiers, volume, so_far) == pytest.approx(fees.mean())


def test_billing_so_far_counts_for_its_provider_alone() -> None:
    catalogue = load_catalogue()
    regions = ["aws:us-east-1", "azure:eastus", "gcp:us-east1"]
    network = Network.from_matrices(regions, np.ones((3, 3)))
    first = CataloguePrices(catalogue, network)
    later = CataloguePrices(catalogue, network, {"aws": 200_000.0})
    aws_out = ("aws:us-east-1", "gcp:us-east1", 100.0)
    azure_out = ("azure:eastus", "gcp:us-east1", 100.0)
    assert later.egress_usd_per_gb(*aws_out) < first.egress_usd_per_gb(*aws_out)
    assert later.egress_usd_per_gb(*azure_out) == first.egress_usd_per_gb(*azure_out)
    anywhere = CataloguePrices(catalogue, network, {"*": 200_000.0})
    assert anywhere.egress_usd_per_gb(*azure_out) < first.egress_usd_per_gb(*azure_out)
