"""Links go down at once, come back with hysteresis, and shrug off single losses."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.liveness.link_health import (
    HealthPolicy,
    LinkHealth,
    LivenessProbe,
    after_probe,
    after_throughput,
    suspicious,
)
from tests.properties import examples

_POLICY = HealthPolicy(confirmations=3, hold_s=50.0)
_USUAL_MS = 80.0
_EVERY_S = 10.0
GOOD, SILENT, SLOW = "good", "silent", "slow"


def _probe(at_s: float, kind: str, sent: int = 3) -> LivenessProbe:
    if kind == SILENT:
        return LivenessProbe(at_s, sent, 0)
    return LivenessProbe(at_s, sent, sent, _USUAL_MS * (3.0 if kind == SLOW else 1.02))


def _through(
    kinds: list[str], health: LinkHealth | None = None, begin_s: float = 0.0
) -> list[LinkHealth]:
    found = [health or LinkHealth()]
    for number, kind in enumerate(kinds):
        probe = _probe(begin_s + number * _EVERY_S, kind)
        found.append(after_probe(found[-1], probe, _POLICY, _USUAL_MS))
    return found[1:]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.sampled_from([GOOD, GOOD, SILENT, SLOW]), max_size=60))
def test_conditions_follow_runs_of_probes(kinds: list[str]) -> None:
    history = _through(kinds)
    condition = "up"
    for at, health in enumerate(history):
        run = kinds[max(0, at - _POLICY.confirmations + 1) : at + 1]
        if run == [SILENT] * _POLICY.confirmations:
            assert health.condition == "down"
        if health.condition != condition:
            if health.condition == "down":
                assert run == [SILENT] * _POLICY.confirmations
                assert health.since_s <= (at - _POLICY.confirmations + 1) * _EVERY_S
            elif condition == "up":
                assert GOOD not in run or "are lost" in health.reason
            else:
                # What leaves has been well for as long as it must hold.
                held = int(_POLICY.hold_s / _EVERY_S)
                since = kinds[at - held : at + 1]
                assert len(since) == held + 1
                assert SILENT not in since
                assert condition == "down" or SLOW not in since
        condition = health.condition


def test_looking_again_settles_it_and_one_lost_packet_is_nothing() -> None:
    (health,) = _through([SILENT])
    assert suspicious(health, _probe(0, SILENT), _POLICY)
    (health,) = _through([GOOD], health)
    assert (health.condition, health.silent) == ("up", 0)
    partly = LivenessProbe(5.0, 3, 2, _USUAL_MS)
    health = after_probe(health, partly, _POLICY, _USUAL_MS)
    assert suspicious(health, partly, _POLICY)
    assert health.condition == "up"
    down = _through([SILENT] * 3, health, 10.0)[-1]
    assert (down.condition, down.since_s, down.reason) == (
        "down",
        10.0,
        "3 probes in a row got no reply",
    )
    assert not suspicious(down, _probe(0, SILENT), _POLICY)


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.2, 0.3, 0.5]))
def test_loss_degrades_and_its_share_is_known(seed: int, share: float) -> None:
    random = Random(seed)
    health = LinkHealth()
    for number in range(40):
        received = sum(random.random() >= share for _ in range(3))
        probe = LivenessProbe(number * _EVERY_S, 3, received, _USUAL_MS if received else None)
        health = after_probe(health, probe, replace(_POLICY, confirmations=99), _USUAL_MS)
        if health.condition == "degraded":
            break
    assert health.condition == "degraded"
    assert "of packets are lost" in health.reason
    assert 0.05 < health.loss_share < 0.9
    # Without losses it is as usual again, in time.
    for number in range(400):
        health = after_probe(health, _probe(1e4 + number * _EVERY_S, GOOD), _POLICY, _USUAL_MS)
    assert (health.condition, health.loss_share) == ("up", 0.0)


def test_silence_that_is_no_outage_is_loss() -> None:
    kinds = [SILENT, SILENT, GOOD, SILENT, GOOD, SILENT, SILENT, GOOD]
    health = _through(kinds)[-1]
    assert health.condition == "degraded"
    assert health.loss_share == 15 / 24
    # An outage is not: what comes back from one is as good as new.
    recovered = _through([SILENT] * 20 + [GOOD] * 10)[-1]
    assert (recovered.condition, recovered.loss_score) == ("up", 0.0)


@pytest.mark.parametrize("count", [15_000, pytest.param(100_000, marks=pytest.mark.thorough)])
def test_usual_loss_is_no_alarm(count: int) -> None:
    random = Random(5)
    health = LinkHealth()
    for number in range(count):
        received = sum(random.random() >= 0.002 for _ in range(3))
        probe = LivenessProbe(number * _EVERY_S, 3, received, _USUAL_MS if received else None)
        health = after_probe(health, probe, _POLICY, _USUAL_MS)
        assert health.condition == "up"


def test_unknown_round_trips_are_never_slow_and_under_load_only_silence_counts() -> None:
    health = LinkHealth()
    for number in range(10):
        health = after_probe(health, _probe(number, SLOW), _POLICY, None)
    assert health.condition == "up"
    health = LinkHealth()
    for number in range(50):
        probe = LivenessProbe(number * 1.0, 3, 1, 400.0)
        health = after_probe(health, probe, _POLICY, _USUAL_MS, loaded=True)
    assert health.condition == "up"
    for number in range(3):
        health = after_probe(
            health, LivenessProbe(60.0 + number, 3, 0), _POLICY, _USUAL_MS, loaded=True
        )
    assert health.condition == "down"


def test_a_rate_that_collapses_degrades_until_it_is_measured_again_or_forgotten() -> None:
    collapsed = after_throughput(LinkHealth(), 9.0, 90.0, 100.0, 1000.0, _POLICY)
    assert (collapsed.condition, collapsed.rate_share) == ("degraded", 0.09)
    # Good round trips say nothing of the rate.
    assert _through([GOOD] * 30, collapsed, 1010.0)[-1].condition == "degraded"
    healed = after_throughput(collapsed, 97.0, 90.0, 100.0, 2000.0, _POLICY)
    assert healed.condition == "degraded"  # hysteresis
    assert _through([GOOD] * 7, healed, 2010.0)[-1].condition == "up"
    late_s = 1000.0 + _POLICY.trust_rate_s + 1
    assert _through([GOOD] * 7, collapsed, late_s)[-1].condition == "up"
    # What is older than what is known changes nothing; the width of the bounds is allowed for.
    assert after_throughput(healed, 1.0, 90.0, 100.0, 1500.0, _POLICY) == healed
    assert after_throughput(LinkHealth(), 46.0, 90.0, 100.0, 0.0, _POLICY).condition == "up"
