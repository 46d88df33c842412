"""Is a link up, degraded or down: a state machine fed by light probes and throughput samples.

A link goes *down* after several looks in a row to which nothing came back, and is *degraded* while
round trips take much longer than usual, packets are lost, or throughput has collapsed. Whoever
probes looks again at once where :func:`suspicious` says so, so that one lost packet is nothing and
a real outage is known within seconds. It is as usual again only after it was so for a while
(hysteresis): traffic should not flap with a link that does.

A look asks for a reply, so it needs both directions, as TCP does: a direction that swallows
everything takes its opposite along. What only one direction suffers (a rate that collapses) shows
in throughput samples, which are directed.

Loss is judged packet by packet with Page's test on log-likelihood ratios (E. S. Page, Biometrika
41, 1954) of ``LOSS_USUAL`` against ``LOSS_BAD``. Simulated with three packets a look: half of the
packets lost is noticed after 12 packets (median; 95th percentile 18), a fifth after 27 (51), one in
twenty after 150 (300); at the usual loss there is a false alarm in about 9 million packets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log

from planner.model.link_states import Condition

LOSS_USUAL = 0.005
LOSS_BAD = 0.05
LOSS_ALARM = 11.0
# Losses come in bursts: of one look no more than these count one by one.
MOST_LOSSES_OF_A_LOOK = 2
_LOST = log(LOSS_BAD / LOSS_USUAL)
_KEPT = log((1 - LOSS_BAD) / (1 - LOSS_USUAL))


@dataclass(frozen=True, slots=True)
class Look:
    """What one light probe saw.

    Attributes
    ----------
    at_s : float
        When it was sent, seconds since 1970.
    sent, received : int
        Packets.
    rtt_ms : float | None
        The shortest round trip of those that came back.
    """

    at_s: float
    sent: int
    received: int
    rtt_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """When a link counts as what.

    Attributes
    ----------
    looks : int
        In a row, before a link is down, or slow.
    hold_s : float
        How long all must be well before a link is as usual again.
    slow_factor, slow_ms : float
        Round trips are slow beyond both this times the usual, and the usual plus this.
    low_share : float
        Throughput under this share of the low bound that was expected is a collapse.
    trust_rate_s : float
        How long a throughput sample counts for; a collapse that nobody measures again is
        forgotten then.
    """

    looks: int = 3
    hold_s: float = 150.0
    slow_factor: float = 1.5
    slow_ms: float = 15.0
    low_share: float = 0.5
    trust_rate_s: float = 6 * 3600.0

    def slow_from_ms(self, usual_ms: float) -> float:
        """Return the round-trip time from which a link is slow."""
        return max(usual_ms * self.slow_factor, usual_ms + self.slow_ms)


@dataclass(frozen=True, slots=True)
class Health:
    """What is remembered of a link.

    Attributes
    ----------
    condition : {"up", "degraded", "down"}
    since_s : float
        Since when; for an outage the first look that got no answer.
    reason : str
        Why it is not up, as a clause.
    silent, slow : int
        Looks in a row without a reply, and with a slow one.
    silent_sent, silent_lost : int
        Packets of the silent ones, and how many of them count as lost once there is a reply.
    bad_since_s : float
        The first of these.
    well_since_s : float | None
        Since when all is well again, while it is not yet up.
    rtt_ms : float | None
        Of the latest look that had a reply.
    loss_score : float
        Evidence of loss; an alarm from ``LOSS_ALARM``.
    loss_sent, loss_lost : int
        Packets since there is any.
    rate_share : float
        Throughput over what was expected; 1 where it did not fall.
    rate_at_s : float
        When that was measured.
    """

    condition: Condition = "up"
    since_s: float = 0.0
    reason: str = ""
    silent: int = 0
    silent_sent: int = 0
    silent_lost: int = 0
    slow: int = 0
    bad_since_s: float = 0.0
    well_since_s: float | None = None
    rtt_ms: float | None = None
    loss_score: float = 0.0
    loss_sent: int = 0
    loss_lost: int = 0
    rate_share: float = 1.0
    rate_at_s: float = 0.0

    @property
    def loss_share(self) -> float:
        """Share of packets lost since there is evidence of loss; 0 where there is not enough."""
        if self.loss_score < LOSS_ALARM / 2 or not self.loss_sent:
            return 0.0
        return self.loss_lost / self.loss_sent


def suspicious(health: Health, look: Look, policy: Policy) -> bool:
    """Whether to look again at once rather than at the next interval."""
    if health.condition == "down":
        return False
    almost = 0 < health.silent < policy.looks or 0 < health.slow < policy.looks
    return almost or (health.condition == "up" and look.received < look.sent)


def after_look(
    health: Health,
    look: Look,
    policy: Policy,
    usual_rtt_ms: float | None = None,
    *,
    loaded: bool = False,
) -> Health:
    """Return the health of a link after a light probe.

    Parameters
    ----------
    usual_rtt_ms : float | None
        None where it was never measured: then no round trip is slow.
    loaded : bool
        Whether a throughput probe is filling queues just now: then only silence counts.
    """
    if look.received == 0:
        health = replace(
            health,
            silent=health.silent + 1,
            silent_sent=health.silent_sent + look.sent,
            silent_lost=health.silent_lost + min(look.sent, MOST_LOSSES_OF_A_LOOK),
            bad_since_s=health.bad_since_s if health.silent or health.slow else look.at_s,
            well_since_s=None,
        )
        if health.condition != "down" and health.silent >= policy.looks:
            health = replace(health, loss_score=0.0, loss_sent=0, loss_lost=0)
            return _changed(
                health, "down", health.bad_since_s, f"{health.silent} probes in a row got no reply"
            )
        return health
    if not loaded:
        health = _with_slowness(health, look, policy, usual_rtt_ms)
        health = _with_losses(health, look)
    health = replace(health, silent=0, silent_sent=0, silent_lost=0, rtt_ms=look.rtt_ms)
    return _settled(health, look.at_s, policy, usual_rtt_ms)


def after_throughput(
    health: Health, measured: float, low: float, expected: float, at_s: float, policy: Policy
) -> Health:
    """Return the health of a link after a throughput sample.

    Parameters
    ----------
    measured, low, expected : float
        In one unit; the latter two of the estimate before this sample.
    """
    if at_s < health.rate_at_s or expected <= 0:
        return health
    collapsed = measured < policy.low_share * low
    share = max(measured, 0.0) / expected if collapsed else 1.0
    return _settled(replace(health, rate_share=share, rate_at_s=at_s), at_s, policy, None)


def _with_slowness(health: Health, look: Look, policy: Policy, usual_ms: float | None) -> Health:
    slow = (
        usual_ms is not None
        and look.rtt_ms is not None
        and look.rtt_ms > policy.slow_from_ms(usual_ms)
    )
    if not slow:
        return replace(health, slow=0)
    return replace(
        health, slow=health.slow + 1, bad_since_s=health.bad_since_s if health.slow else look.at_s
    )


def _with_losses(health: Health, look: Look) -> Health:
    lost, sent = look.sent - look.received, look.sent
    counted = min(lost, MOST_LOSSES_OF_A_LOOK)
    if health.condition != "down":
        # Silence that was no outage was loss; that of an outage says nothing of what follows.
        counted += health.silent_lost
        lost += health.silent_sent
        sent += health.silent_sent
    score = health.loss_score + counted * _LOST + look.received * _KEPT
    if score <= 0:
        return replace(health, loss_score=0.0, loss_sent=0, loss_lost=0)
    return replace(
        health,
        # No more than is needed for an alarm twice over: a link must be able to recover.
        loss_score=min(score, 2 * LOSS_ALARM),
        loss_sent=health.loss_sent + sent,
        loss_lost=health.loss_lost + lost,
    )


def _settled(health: Health, at_s: float, policy: Policy, usual_ms: float | None) -> Health:
    """Return the health in the condition that follows, given that the link answers."""
    if health.rate_share < 1 and at_s - health.rate_at_s > policy.trust_rate_s:
        health = replace(health, rate_share=1.0)
    problem = _problem(health, policy, usual_ms)
    if health.condition == "up":
        if not problem:
            return health
        since_s = health.bad_since_s if health.slow >= policy.looks else at_s
        return _changed(health, "degraded", since_s, problem)
    if health.condition == "degraded" and problem:
        return replace(health, well_since_s=None, reason=problem)
    # A link that was down and answers slowly goes on as degraded, once it surely answers.
    well_since_s = at_s if health.well_since_s is None else health.well_since_s
    if at_s - well_since_s < policy.hold_s:
        return replace(health, well_since_s=well_since_s)
    return _changed(health, "degraded" if problem else "up", at_s, problem)


def _problem(health: Health, policy: Policy, usual_ms: float | None) -> str:
    """Return why a link that answers is degraded; empty where it is not."""
    found = []
    if health.slow >= policy.looks or (health.condition == "degraded" and health.slow):
        usual = f" where {usual_ms:.0f} ms are usual" if usual_ms else ""
        found.append(f"round trips take {health.rtt_ms:.0f} ms{usual}")
    # Once lossy, half of the evidence has to go before it is not.
    enough = LOSS_ALARM / 2 if health.condition == "degraded" else LOSS_ALARM
    if health.loss_score >= enough:
        found.append(f"{100 * health.loss_lost / health.loss_sent:.0f} % of packets are lost")
    if health.rate_share < 1:
        found.append(f"throughput fell to {health.rate_share:.0%} of what was expected")
    return ", ".join(found)


def _changed(health: Health, condition: Condition, since_s: float, reason: str) -> Health:
    return replace(health, condition=condition, since_s=since_s, reason=reason, well_since_s=None)
