"""Health of links: a state machine fed by liveness probes and throughput samples.

A link goes *down* after several liveness probes in a row without a reply, and is *degraded* while
round trips take much longer than usual, packets are lost, or throughput has collapsed. The prober
repeats a probe at once where :func:`suspicious` says so: one lost packet changes nothing, and a
real outage is known within seconds. A link is up again only after it has been well for a while
(hysteresis), so that traffic does not flap with it.

A liveness probe asks for a reply, so it needs both directions, as TCP does: a direction that drops
everything takes its opposite down too. A fault of one direction only (a rate that collapses) shows
in throughput samples, which are directed.

Loss is judged packet by packet with Page's test on log-likelihood ratios (E. S. Page, Biometrika
41, 1954) of ``LOSS_USUAL`` against ``LOSS_BAD``. Simulated with three packets a probe: half of the
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
# Losses come in bursts: at most this many of one probe count separately.
MOST_LOSSES_PER_PROBE = 2
_LOST = log(LOSS_BAD / LOSS_USUAL)
_KEPT = log((1 - LOSS_BAD) / (1 - LOSS_USUAL))


@dataclass(frozen=True, slots=True)
class LivenessProbe:
    """The result of one liveness probe."""

    at_s: float  # time at which it was sent, seconds since 1970
    sent: int  # packets
    received: int
    rtt_ms: float | None = None  # the shortest round trip of those that came back


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """The thresholds between a link's conditions."""

    confirmations: int = 3  # probes in a row without a reply until it is down, or slow until it is
    hold_s: float = 150.0  # for which a link must be well before it is up again
    slow_factor: float = 1.5  # round trips are slow beyond both this times the usual,
    slow_ms: float = 15.0  # and the usual plus this
    low_share: float = 0.5  # of the expected low bound, under which throughput has collapsed
    trust_rate_s: float = 6 * 3600.0  # for which a sample counts, unless it is measured again


@dataclass(slots=True)
class LinkHealth:
    """The condition of a link and the evidence for it; times are in seconds since 1970.

    Nothing changes one that was handed out: what follows from a measurement is a copy.
    """

    condition: Condition = "up"
    since_s: float = 0.0  # for an outage the first probe without a reply
    reason: str = ""  # why it is not up, as a clause
    silent: int = 0  # probes in a row without a reply
    silent_sent: int = 0  # packets of these
    silent_lost: int = 0  # and the number that counts as lost once there is a reply
    slow: int = 0  # probes in a row with a slow reply
    bad_since_s: float = 0.0  # the first of the silent or slow ones
    well_since_s: float | None = None  # since when all is well again, while it is not yet up
    rtt_ms: float | None = None  # of the latest probe with a reply
    loss_score: float = 0.0  # evidence of loss; an alarm from LOSS_ALARM
    loss_sent: int = 0  # packets since there is any
    loss_lost: int = 0
    rate_share: float = 1.0  # throughput over the expected one; 1 where it did not fall
    rate_at_s: float = 0.0  # time of its measurement

    @property
    def loss_share(self) -> float:
        """Share of packets lost since there is evidence of loss; 0 where there is not enough."""
        if self.loss_score < LOSS_ALARM / 2 or not self.loss_sent:
            return 0.0
        return self.loss_lost / self.loss_sent


def suspicious(health: LinkHealth, probe: LivenessProbe, policy: HealthPolicy) -> bool:
    """Tell whether to probe again at once rather than at the next interval."""
    if health.condition == "down":
        return False
    almost = 0 < health.silent < policy.confirmations or 0 < health.slow < policy.confirmations
    return almost or (health.condition == "up" and probe.received < probe.sent)


def after_probe(
    health: LinkHealth,
    probe: LivenessProbe,
    policy: HealthPolicy,
    usual_rtt_ms: float | None = None,
    *,
    loaded: bool = False,
) -> LinkHealth:
    """Return the health of a link after a liveness probe.

    Parameters
    ----------
    usual_rtt_ms : float | None
        None where it was never measured: then no round trip is slow.
    loaded : bool
        Whether a throughput probe is filling queues now: then only silence counts.
    """
    health = replace(health)
    if probe.received == 0:
        if not health.silent and not health.slow:
            health.bad_since_s = probe.at_s
        health.silent += 1
        health.silent_sent += probe.sent
        health.silent_lost += min(probe.sent, MOST_LOSSES_PER_PROBE)
        health.well_since_s = None
        if health.condition != "down" and health.silent >= policy.confirmations:
            health.loss_score, health.loss_sent, health.loss_lost = 0.0, 0, 0
            reason = f"{health.silent} probes in a row got no reply"
            _change(health, "down", health.bad_since_s, reason)
        return health
    if not loaded:
        _count_slowness(health, probe, policy, usual_rtt_ms)
        _count_losses(health, probe)
    health.silent = health.silent_sent = health.silent_lost = 0
    health.rtt_ms = probe.rtt_ms
    _settle(health, probe.at_s, policy, usual_rtt_ms)
    return health


def after_throughput(
    health: LinkHealth,
    measured: float,
    low: float,
    expected: float,
    at_s: float,
    policy: HealthPolicy,
) -> LinkHealth:
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
    health = replace(health, rate_share=share, rate_at_s=at_s)
    _settle(health, at_s, policy, None)
    return health


def _count_slowness(
    health: LinkHealth, probe: LivenessProbe, policy: HealthPolicy, usual_ms: float | None
) -> None:
    if (
        usual_ms is None
        or probe.rtt_ms is None
        or probe.rtt_ms <= max(usual_ms * policy.slow_factor, usual_ms + policy.slow_ms)
    ):
        health.slow = 0
        return
    if not health.slow:
        health.bad_since_s = probe.at_s
    health.slow += 1


def _count_losses(health: LinkHealth, probe: LivenessProbe) -> None:
    lost, sent = probe.sent - probe.received, probe.sent
    counted = min(lost, MOST_LOSSES_PER_PROBE)
    if health.condition != "down":
        # Silence that was no outage was loss; that of an outage does not count afterwards.
        counted += health.silent_lost
        lost += health.silent_sent
        sent += health.silent_sent
    score = health.loss_score + counted * _LOST + probe.received * _KEPT
    # No more than is needed for an alarm twice over: a link must be able to recover.
    health.loss_score = min(max(0.0, score), 2 * LOSS_ALARM)
    health.loss_sent = health.loss_sent + sent if score > 0 else 0
    health.loss_lost = health.loss_lost + lost if score > 0 else 0


def _settle(health: LinkHealth, at_s: float, policy: HealthPolicy, usual_ms: float | None) -> None:
    """Give a link that answers the condition that follows from the evidence."""
    if health.rate_share < 1 and at_s - health.rate_at_s > policy.trust_rate_s:
        health.rate_share = 1.0
    problem = _problem(health, policy, usual_ms)
    if health.condition == "up":
        if problem:
            since_s = health.bad_since_s if health.slow >= policy.confirmations else at_s
            _change(health, "degraded", since_s, problem)
    elif health.condition == "degraded" and problem:
        health.well_since_s, health.reason = None, problem
    else:
        # A link that was down and answers slowly goes on as degraded, once it surely answers.
        health.well_since_s = at_s if health.well_since_s is None else health.well_since_s
        if at_s - health.well_since_s >= policy.hold_s:
            _change(health, "degraded" if problem else "up", at_s, problem)


def _problem(health: LinkHealth, policy: HealthPolicy, usual_ms: float | None) -> str:
    """Explain why a link that answers is degraded; empty where it is not."""
    problems = []
    if health.slow >= policy.confirmations or (health.condition == "degraded" and health.slow):
        usual = f" where {usual_ms:.0f} ms are usual" if usual_ms else ""
        problems.append(f"round trips take {health.rtt_ms:.0f} ms{usual}")
    # Once lossy, half of the evidence has to go before it is not.
    enough = LOSS_ALARM / 2 if health.condition == "degraded" else LOSS_ALARM
    if health.loss_score >= enough:
        problems.append(f"{100 * health.loss_lost / health.loss_sent:.0f} % of packets are lost")
    if health.rate_share < 1:
        problems.append(f"throughput fell to {health.rate_share:.0%} of what was expected")
    return ", ".join(problems)


def _change(health: LinkHealth, condition: Condition, since_s: float, reason: str) -> None:
    health.condition, health.since_s, health.reason = condition, since_s, reason
    health.well_since_s = None
