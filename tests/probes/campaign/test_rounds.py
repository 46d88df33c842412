"""Rounds: valid whatever the tasks, and no more than theory says are needed."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.campaign.engine import critical_path_s
from probes.campaign.rounds import Round, schedule
from probes.campaign.tasks import CampaignLimits, Probe, ProbeOutcome, ProbeTask


def probe(src: str, dst: str, duration_s: float = 5.0) -> ProbeTask:
    return ProbeTask("aggregate", ((src, dst),), 64, duration_s, 5.0)


def busiest(tasks: list[ProbeTask]) -> int:
    """Rounds of one phase that its busiest host alone takes."""
    return max(Counter(host for task in tasks for host in task.hosts).values(), default=0)


def duration_s(rounds: list[Round], gap_s: float = 0.0) -> float:
    return sum(r.duration_s + gap_s for r in rounds)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 13, 40, 63])
def test_all_pairs_take_the_least_possible_number_of_rounds(count: int) -> None:
    tasks = [probe(a, b) for a, b in permutations([f"h{i}" for i in range(count)], 2)]
    rounds = schedule(tasks)
    assert len(rounds) == (2 * (count - 1) if count % 2 == 0 else 2 * count)


HOSTS = [f"h{i}" for i in range(8)]
ONE_PAIR = st.builds(
    lambda pair, phase, seconds: ProbeTask(phase, (pair,), 1, seconds, 1.0),
    st.sampled_from(list(permutations(HOSTS, 2))),
    st.sampled_from(["rtt", "per-flow", "aggregate"]),
    st.sampled_from([2.0, 5.0, 10.0, 60.0]),
)
STAR = st.builds(
    lambda hub, others, outward, seconds: ProbeTask(
        "caps",
        tuple((hub, o) if outward else (o, hub) for o in sorted(others - {hub})),
        16,
        seconds,
        1.0,
    ),
    st.sampled_from(HOSTS),
    st.sets(st.sampled_from(HOSTS), min_size=2, max_size=5),
    st.booleans(),
    st.sampled_from([5.0, 20.0]),
)


@given(st.lists(ONE_PAIR | STAR, max_size=60), st.sampled_from([0.0, 3.0]))
def test_every_task_runs_once_and_no_host_is_in_two_at_once(
    tasks: list[ProbeTask], gap_s: float
) -> None:
    rounds = schedule(tasks, gap_s=gap_s)
    assert Counter(task for r in rounds for task in r.tasks) == Counter(tasks)
    for r in rounds:
        assert {task.phase for task in r.tasks} == {r.phase}
        if r.phase != "rtt":
            assert max(Counter(h for task in r.tasks for h in task.hosts).values()) == 1
    order = [("rtt", "per-flow", "aggregate", "caps").index(r.phase) for r in rounds]
    assert order == sorted(order)
    # One after the other is the longest it may take.
    assert duration_s(rounds, gap_s) <= sum(t.duration_s + gap_s for t in tasks) + 1e-9


@given(st.lists(st.sampled_from(list(permutations(HOSTS, 2))), min_size=1, max_size=60))
def test_any_pairs_take_less_than_twice_what_their_busiest_host_does(
    pairs: list[tuple[str, str]],
) -> None:
    tasks = [probe(*pair) for pair in pairs]
    assert busiest(tasks) <= len(schedule(tasks)) < 2 * busiest(tasks)


def test_long_probes_share_rounds() -> None:
    hosts = [f"h{i}" for i in range(10)]
    tasks = [
        probe(a, b, 120.0 if int(a[1:]) % 5 == 0 and int(b[1:]) % 2 else 5.0)
        for a, b in permutations(hosts, 2)
    ]
    long = [task for task in tasks if task.duration_s > 100]
    rounds = schedule(tasks)
    assert sum(r.duration_s > 100 for r in rounds) == busiest(long)
    assert duration_s(rounds) < 120 * busiest(long) + 5 * 18


# ---- the time that tools alone would take --------------------------------------------------------


def outcome(pair: str, busy_s: float, stage: str = "aggregate 1") -> ProbeOutcome:
    phase = "rtt" if stage == "rtt" else "aggregate"
    task = ProbeTask(phase, ((pair[0], pair[1]),), 1, busy_s)  # type: ignore[arg-type]
    return ProbeOutcome(Probe(1, stage, task), busy_s=busy_s)


def test_probes_wait_for_hosts_seats_and_stages() -> None:
    apart = [outcome("AB", 5.0), outcome("CD", 4.0)]
    shared = [*apart, outcome("AC", 3.0)]
    assert critical_path_s([], CampaignLimits()) == 0
    assert critical_path_s(apart, CampaignLimits()) == 5
    assert critical_path_s(shared, CampaignLimits()) == 8
    assert critical_path_s(shared, CampaignLimits(at_once=1)) == 12
    assert critical_path_s([*shared, outcome("EF", 2.0, "aggregate 2")], CampaignLimits()) == 10
    failed = outcome("AB", 0.0)
    assert critical_path_s([failed, *apart], CampaignLimits()) == 5


@pytest.mark.parametrize(("of_host", "at_once", "seconds"), [(4, 64, 4.0), (8, 64, 2.0), (8, 2, 8)])
def test_pings_share_their_sender(of_host: int, at_once: int, seconds: float) -> None:
    pings = [outcome(f"A{peer}", 2.0, "rtt") for peer in "BCDEFGHI"]
    limits = CampaignLimits(pings_of_host=of_host, pings_at_once=at_once)
    assert critical_path_s(pings, limits) == seconds
