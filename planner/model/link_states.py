"""Links that are down or degraded just now, applied to the network's long-run estimates.

Estimates move slowly, because one bad minute says little of the next month. A plan is for now: a
link that is down carries nothing, and one that is degraded carries what it can until it is back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Literal, TypeAlias

from planner.model.estimate import BOUNDS, Figures, Origin, exactly
from planner.model.link import Link
from planner.model.units import BITS_PER_BYTE, BITS_PER_MBIT, MS_PER_S

Condition: TypeAlias = Literal["up", "degraded", "down"]
Health: TypeAlias = Literal["good", "bad", "unknown", "stale"]
"""Of links and of transfers: ``unknown`` if not watched, ``stale`` if no news comes."""
Pair: TypeAlias = tuple[str, str]

SEGMENT_BYTES = 1448
"""Payload of a full TCP segment with timestamps over Ethernet."""
LOSS_CONSTANT = sqrt(1.5)
"""``C`` of Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion
avoidance algorithm", Computer Communication Review 27(3), 1997."""
LEAST_RATE_SHARE = 1e-6
"""A link that carries less of its usual rate is as good as down."""


@dataclass(frozen=True, slots=True)
class LinkState:
    """A directed link that is not as usual.

    Attributes
    ----------
    since : str
        UTC, ISO 8601.
    reason : str
        What was seen, as a clause.
    rtt_ms : float | None
        Round-trip time now, where it is what degrades the link.
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

    def applied_to(self, link: Link) -> Link:
        """Return the link as it is now: at rate 0 where it is down, bounded where degraded.

        A degraded link's rates are scaled by ``rate_share``; one flow also falls as the round-trip
        time grows (``W / RTT``) and is bounded by loss (``C MSS / (RTT sqrt(p))``, Mathis 1997).
        """
        if self.condition == "down" or self.rate_share < LEAST_RATE_SHARE:
            at_s, note = link.aggregate_gbps.measured_at_s, Figures(note=self.reason)
            nothing = exactly(0.0, Origin("measured", "link-state", newest_s=at_s, figures=note))
            return replace(link, per_flow_mbps=nothing, aggregate_gbps=nothing)
        rtt = link.rtt_ms
        slowdown = 1.0
        if self.rtt_ms is not None and self.rtt_ms > 0:
            slowdown = min(1.0, rtt.expected / self.rtt_ms)
            rtt = rtt.scaled(self.rtt_ms / rtt.expected) if rtt.expected > 0 else rtt
        flow, loss_pct = link.per_flow_mbps.scaled(self.rate_share * slowdown), link.loss_pct
        most_mbps = loss_bound_mbps(self.loss_share, rtt.expected)
        low, expected, high = (min(flow.at(bound), most_mbps) for bound in BOUNDS)
        flow = replace(flow, low=low, expected=expected, high=high)
        if self.loss_share:
            loss_pct = max(loss_pct or 0.0, 100 * self.loss_share)
        aggregate = link.aggregate_gbps.scaled(self.rate_share)
        return replace(
            link, rtt_ms=rtt, per_flow_mbps=flow, aggregate_gbps=aggregate, loss_pct=loss_pct
        )


def still_believed(states: Mapping[Pair, LinkState], now_s: float) -> dict[Pair, LinkState]:
    """Return the states that have not ended."""
    return {
        pair: state
        for pair, state in states.items()
        if state.valid_until_s is None or state.valid_until_s >= now_s
    }


def loss_bound_mbps(loss_share: float, rtt_ms: float) -> float:
    """Return the greatest rate of one flow with loss-based congestion control at a loss rate."""
    if loss_share <= 0:
        return inf
    bits_per_round = LOSS_CONSTANT * SEGMENT_BYTES * BITS_PER_BYTE / sqrt(min(loss_share, 1.0))
    return bits_per_round / max(rtt_ms / MS_PER_S, 1e-6) / BITS_PER_MBIT
