"""Which few of a transfer's relays are worth a closer look, each carrying everything."""

from __future__ import annotations

from planner.transfer.allocation import EQUAL, Relay, Transfer
from planner.transfer.single_path import greatest_rates_gbps

# Relays as fast as the fastest within this share, or within the same step below it, are ranked
# by price.
AS_FAST = 0.01


def ranked_relays(
    transfer: Transfer, most: int, *, at_least_gbps: float = 0.0, by_price: bool = False
) -> list[Relay]:
    """Return the best relays, best first.

    Parameters
    ----------
    transfer : Transfer
    most : int
        How many to return at most.
    at_least_gbps : float
        Relays that can't carry this with all their VMs are left out.
    by_price : bool
        Whether the egress fee alone ranks them, and speed only among equals. Otherwise they are
        ranked by speed in steps of about one percent, then by fee.
    """
    least = at_least_gbps * (1 - EQUAL)
    rates = greatest_rates_gbps(transfer)
    able = [item for item in zip(rates, transfer.relays, strict=True) if item[0] >= least]
    if not able:
        return []
    if by_price:
        by_fee = [(relay.usd_per_gb, -rate, relay.region, relay) for rate, relay in able]
        return [relay for *_, relay in sorted(by_fee)[:most]]
    by_speed = sorted([rate for rate, _ in able], reverse=True)
    fastest, slowest = by_speed[0], by_speed[min(most, len(by_speed)) - 1]

    def step(rate: float) -> int:
        return int((1 - rate / fastest) / AS_FAST)

    # There are some 70 relays: only those in the steps of the fastest few are put in order.
    last = step(slowest)
    below_gbps = min(slowest, fastest * (1 - (last + 1) * AS_FAST)) * (1 - EQUAL)
    ranked = [
        (at, relay.usd_per_gb, -rate, relay.region, relay)
        for rate, relay in able
        if rate >= below_gbps and (at := step(rate)) <= last
    ]
    return [relay for *_, relay in sorted(ranked)[:most]]
