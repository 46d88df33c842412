"""Legs that are down or degraded just now, laid over what is known of the network in the long run.

Estimates move slowly, because one bad minute says little of the next month. A plan is for now: a
leg that is down carries nothing, and one that is degraded carries what it can until it is back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Literal, TypeAlias

from planner.network import Estimate, Leg, Network
from planner.units import BITS_PER_BYTE, BITS_PER_MBIT, MS_PER_S

Condition: TypeAlias = Literal["up", "degraded", "down"]
Pair: TypeAlias = tuple[str, str]

SEGMENT_BYTES = 1448
"""Payload of a full TCP segment with timestamps over Ethernet."""
LOSS_CONSTANT = sqrt(1.5)
"""``C`` of Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion
avoidance algorithm", Computer Communication Review 27(3), 1997."""
LEAST_RATE_SHARE = 1e-6
"""A leg that carries less of its usual rate is as good as down."""
NOTHING = Estimate(0.0, 0.0, 0.0, "measured")


@dataclass(frozen=True, slots=True)
class LegState:
    """A directed leg that is not as usual.

    Attributes
    ----------
    src, dst : str
    condition : {"up", "degraded", "down"}
    since : str
        UTC, ISO 8601.
    reason : str
        What was seen, as a clause.
    rtt_ms : float | None
        Round-trip time now, where it is what degrades the leg.
    loss_share : float
        Share of packets lost now; 0 where loss is as usual.
    rate_share : float
        Throughput now over what was expected; 1 where it was not seen to fall.
    valid_until_s : float | None
        Unix time until which it is to be believed unless it is seen again; None for ever.
    """

    src: str
    dst: str
    condition: Condition
    since: str
    reason: str
    rtt_ms: float | None = None
    loss_share: float = 0.0
    rate_share: float = 1.0
    valid_until_s: float | None = None

    def __str__(self) -> str:
        """Return it as the beginning of a sentence."""
        return f"{self.src} -> {self.dst} is {self.condition} since {self.since} ({self.reason})"


def still_believed(states: Mapping[Pair, LegState], now_s: float) -> dict[Pair, LegState]:
    """Return the states that have not ended."""
    return {
        pair: state
        for pair, state in states.items()
        if state.valid_until_s is None or state.valid_until_s >= now_s
    }


def overlaid(network: Network, states: Mapping[Pair, LegState]) -> Network:
    """Return the network as it is now: legs that are down at rate 0, degraded ones bounded.

    A degraded leg's rates are scaled by ``rate_share``; one flow also falls as the round-trip
    time grows (``W / RTT``) and is bounded by loss (``C MSS / (RTT sqrt(p))``, Mathis 1997).
    States of pairs that the network does not have are left out.
    """
    present = {
        (src, dst): state
        for (src, dst), state in states.items()
        if state.condition != "up" and dst in network.legs.get(src, {})
    }
    if not present:
        return network
    legs = dict(network.legs)
    for src in {src for src, _ in present}:
        legs[src] = dict(legs[src])
    for (src, dst), state in present.items():
        legs[src][dst] = _as_now(legs[src][dst], state)
    return replace(network, legs=legs, states=present, _rates={}, _caps={})


def loss_bound_mbps(loss_share: float, rtt_ms: float) -> float:
    """Return what one flow with loss-based congestion control reaches at a loss rate, at most."""
    if loss_share <= 0:
        return inf
    bits_per_round = LOSS_CONSTANT * SEGMENT_BYTES * BITS_PER_BYTE / sqrt(min(loss_share, 1.0))
    return bits_per_round / max(rtt_ms / MS_PER_S, 1e-6) / BITS_PER_MBIT


def _as_now(leg: Leg, state: LegState) -> Leg:
    if state.condition == "down" or state.rate_share < LEAST_RATE_SHARE:
        nothing = replace(NOTHING, measured_at_s=leg.aggregate_gbps.measured_at_s)
        return replace(leg, per_flow_mbps=nothing, aggregate_gbps=nothing)
    rtt = leg.rtt_ms
    slowdown = 1.0
    if state.rtt_ms is not None and state.rtt_ms > 0:
        slowdown = min(1.0, rtt.expected / state.rtt_ms)
        rtt = _scaled(rtt, state.rtt_ms / rtt.expected) if rtt.expected > 0 else rtt
    flow = _scaled(leg.per_flow_mbps, state.rate_share * slowdown)
    most_mbps = loss_bound_mbps(state.loss_share, rtt.expected)
    flow = replace(
        flow,
        low=min(flow.low, most_mbps),
        expected=min(flow.expected, most_mbps),
        high=min(flow.high, most_mbps),
    )
    loss_pct = max(leg.loss_pct or 0.0, 100 * state.loss_share) if state.loss_share else None
    return replace(
        leg,
        rtt_ms=rtt,
        per_flow_mbps=flow,
        aggregate_gbps=_scaled(leg.aggregate_gbps, state.rate_share),
        loss_pct=leg.loss_pct if loss_pct is None else loss_pct,
    )


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    return replace(
        estimate,
        low=estimate.low * factor,
        expected=estimate.expected * factor,
        high=estimate.high * factor,
    )
