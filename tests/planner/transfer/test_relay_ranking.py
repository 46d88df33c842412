"""The few relays that are shown are the first of all of them put in order."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from planner.transfer.allocation import EQUAL
from planner.transfer.problem import Relay, TransferProblem
from planner.transfer.single_path import (
    AS_FAST,
    greatest_rate_gbps,
    greatest_rates_gbps,
    ranked_relays,
)
from tests.planner.transfer.strategies import patient, transfers


def all_in_order(
    transfer: TransferProblem, at_least_gbps: float, by_price: bool, rtt_ms: list[float]
) -> list[Relay]:
    rate = {relay.region: greatest_rate_gbps(transfer, relay) for relay in transfer.relays}
    able = [r for r in transfer.relays if rate[r.region] >= at_least_gbps * (1 - EQUAL)]
    fastest = max((rate[relay.region] for relay in able), default=inf)

    def key(relay: Relay) -> tuple[float, ...]:
        speed = -rate[relay.region]
        if by_price:
            return (relay.usd_per_gb, speed, rtt_ms[relay.region], relay.region)
        step = int((1 + speed / fastest) / AS_FAST)
        return (step, relay.usd_per_gb, rtt_ms[relay.region], relay.region)

    return sorted(able, key=key)


@patient
@given(
    transfers(most_relays=12),
    st.integers(1, 8),
    st.just(0.0) | st.floats(0.01, 20),
    st.booleans(),
    st.lists(st.sampled_from([1.0, 20.0, 250.0]), min_size=24, max_size=24),
)
def test_the_few_are_the_first_of_all(
    transfer: TransferProblem, most: int, at_least_gbps: float, by_price: bool, rtt_ms: list[float]
) -> None:
    found = ranked_relays(
        transfer.relays,
        greatest_rates_gbps(transfer),
        most,
        rtt_ms=rtt_ms,
        at_least_gbps=at_least_gbps,
        by_price=by_price,
    )
    assert found == all_in_order(transfer, at_least_gbps, by_price, rtt_ms)[:most]
