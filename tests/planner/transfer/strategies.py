"""Random transfers, networks and requests: equal relays, free ones, missing links, odd scales."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from math import inf
from random import Random
from typing import NamedTuple, get_args

import numpy as np
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

from planner.model.errors import DataError, InfeasibleError
from planner.model.estimate import Estimate, Origin, exactly
from planner.model.link import Link, Site
from planner.model.network import Network
from planner.model.pricing import FlatPrices, Prices
from planner.transfer.plan import Plan
from planner.transfer.problem import End, Relays, TransferPath, TransferProblem
from planner.transfer.recommendation import recommend
from planner.transfer.request import Objective, TransferRequest
from tests.properties import examples

patient = settings(
    deadline=None, max_examples=examples(45), suppress_health_check=[HealthCheck.too_slow]
)
"""How busy the machine is must not decide a test."""

# Few values, so that equals are common, beside any value.
RATES = st.sampled_from([0.5, 1.0, 2.0, 5.0, 10.0]) | st.floats(0.05, 20.0).map(
    lambda gbps: round(gbps, 3)
)
FEES = st.sampled_from([0.0, 0.01, 0.02, 0.09]) | st.floats(0.0, 0.2).map(lambda usd: round(usd, 4))
VM_PRICES = st.sampled_from([0.0, 0.1, 1.5]) | st.floats(0.0, 8.0).map(lambda usd: round(usd, 3))
HOURLY = st.sampled_from([0.0, 0.0, 0.0, 0.05, 7.5])
"""Fees of what is used, whatever the VMs: none, of gateways, of interconnects."""
CAPACITIES = st.sampled_from([inf, inf, inf, 0.5, 1.0, 2.5])
"""Capacities of the direct link, as multiples of what one VM pair reaches."""
QUOTAS = st.integers(1, 4)
MOST_RELAYS = 8
# What a VM's connections carry over what its pair reaches.
PLENTY = st.sampled_from([inf, inf, 1.0, 1.0, 1.2, 2.0, 5.0])
# The limit of a VM that receives over that of one that sends; a sender's cap holds no receiver.
RECEIVERS = st.sampled_from([1.0, 1.0, 2.5, inf])
SCALES = st.sampled_from([1.0, 1.0, 1.0, 1e-4, 1e3])
VOLUMES = st.sampled_from([1.0, 100.0, 500.0, 1e-6, 1e6]) | st.floats(0.1, 1e4)


@st.composite
def transfers(draw: st.DrawFn) -> TransferProblem:
    """Return a random transfer with at least one path."""
    scale = draw(SCALES)

    def rate() -> float:
        return draw(RATES) * scale

    def end() -> End:
        return End(rate(), draw(VM_PRICES), draw(QUOTAS))

    direct = None
    if draw(st.integers(0, 5)):
        in_gbps = rate()
        out_gbps = in_gbps * draw(RECEIVERS)
        each = in_gbps * draw(PLENTY), out_gbps * draw(PLENTY)
        in_all_gbps = in_gbps * draw(CAPACITIES)
        direct = TransferPath(None, in_gbps, out_gbps, in_all_gbps, draw(FEES), 0.0, 1, *each)
    relays = []
    for region in range(draw(st.integers(0 if direct else 1, MOST_RELAYS))):
        in_gbps, out_gbps = rate(), rate() * draw(RECEIVERS)
        vm_gbps = min(in_gbps, out_gbps) * draw(st.sampled_from([1.0, 1.0, 0.5, 3.0]))
        relays.append(
            TransferPath(
                region,
                in_gbps,
                out_gbps,
                vm_gbps,
                draw(FEES),
                draw(VM_PRICES),
                draw(QUOTAS),
                in_gbps * draw(PLENTY),
                out_gbps * draw(PLENTY),
                draw(HOURLY),
            )
        )
        if draw(st.integers(0, 4)) == 0:  # its equal
            relays.append(replace(relays[-1], region=MOST_RELAYS + region, quota=draw(QUOTAS)))
    start_s = draw(st.sampled_from([0.0, 60.0, 600.0]))
    problem = TransferProblem(draw(VOLUMES), end(), end(), direct, Relays.of(relays), start_s)
    return replace(problem, usd_per_h=draw(HOURLY))


REGIONS = ("aws:a", "aws:b", "azure:c", "azure:d", "gcp:e", "gcp:f")

# Networks have hundreds of figures: drawn from a seed, they take a tenth of the time.
seeds = st.integers(0, 2**32 - 1)


@st.composite
def networks(draw: st.DrawFn, *, missing: bool = True) -> Network:
    """Return a network of six regions with bounds around its figures; some links may be missing."""
    random, certain = Random(draw(seeds)), draw(st.booleans())

    def around(value: float) -> Estimate:
        if certain:
            return exactly(value)
        below, above = random.choice([0.0, 0.05, 0.3]), random.choice([0.0, 0.1])
        return Estimate(value * (1 - below), value, value * (1 + above), Origin("inferred"))

    def rate() -> float:
        """Return one of few values, so that equals are common, or any value."""
        few = random.choice([0.5, 1.0, 2.0, 5.0, 10.0])
        return few if random.random() < 0.5 else round(0.05 * 400 ** random.random(), 3)

    sites = {
        region: Site(region, "", around(rate()), around(rate()), around(3.0)) for region in REGIONS
    }
    links: dict[str, dict[str, Link]] = {region: {} for region in REGIONS}
    for src, dst in permutations(REGIONS, 2):
        if missing and random.random() < 0.1:
            continue
        rtt_ms = around(random.choice([1.0, 20.0, 100.0, 250.0]))
        links[src][dst] = Link(src, dst, rtt_ms, around(rate() * 100), around(rate()))
    return Network(sites, links)


@st.composite
def prices(draw: st.DrawFn) -> FlatPrices:
    """Return fees by pair and VM prices by region."""
    random = np.random.default_rng(draw(seeds))
    pairs = (len(REGIONS), len(REGIONS))
    few, any_fee = random.choice([0.0, 0.01, 0.02, 0.09], pairs), random.uniform(0.0, 0.2, pairs)
    fees = np.where(random.random(pairs) < 0.5, few, any_fee.round(4))
    return FlatPrices(REGIONS, fees, {region: draw(VM_PRICES) for region in REGIONS})


@st.composite
def requests(draw: st.DrawFn) -> TransferRequest:
    """Return a request of any kind, most of them feasible."""
    src, dst = REGIONS[0], REGIONS[-1]

    def sometimes(values: st.SearchStrategy[float]) -> float | None:
        return draw(values) if draw(st.integers(0, 3)) == 0 else None

    volume_gb = draw(VOLUMES)
    return TransferRequest(
        src,
        dst,
        volume_gb=volume_gb,
        objective=draw(st.sampled_from(get_args(Objective))),
        time_value_usd_per_h=draw(st.sampled_from([0.0, 1.0, 20.0, 500.0])),
        margin=draw(st.sampled_from([0.0, 0.1, 0.5])),
        budget_usd=sometimes(st.floats(0.01, 0.3).map(lambda usd_per_gb: usd_per_gb * volume_gb)),
        deadline_s=sometimes(st.floats(0.5, 20.0).map(lambda s: 5 + s * volume_gb)),
        min_throughput_gbps=sometimes(st.floats(0.01, 10.0)),
        vms=draw(st.none() | QUOTAS),
        vms_in={region: draw(QUOTAS) for region in draw(st.sets(st.sampled_from(REGIONS)))},
        connections=draw(st.sampled_from([1, 4, 64])),
        relays=draw(st.sampled_from(["any", "any", "one", "none", REGIONS[2]])),
        avoid=sorted(draw(st.sets(st.sampled_from(REGIONS[1:-1]), max_size=2))),
        vm_start_s=draw(st.sampled_from([0.0, 60.0])),
    )


class Answered(NamedTuple):
    """A question with its answer."""

    request: TransferRequest
    network: Network
    prices: Prices
    plan: Plan


def answer(request: TransferRequest, network: Network, price_list: Prices) -> Answered:
    """Return a question with its answer, or give the example up where it has none."""
    try:
        plan = recommend(request, network, price_list, now_s=1e9)
    except (InfeasibleError, DataError):
        assume(False)
        raise
    return Answered(request, network, price_list, plan)


answers = st.builds(answer, requests(), networks(), prices())
