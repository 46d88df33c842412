"""Rounds: valid whatever the tasks, and no more than theory says are needed."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.campaign.edge_colouring import colour_edges, fewest_colours
from probes.campaign.rounds import fewest_rounds, schedule, schedule_s
from probes.campaign.tasks import ProbeTask

EDGES = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1]), max_size=70
)
BIPARTITE = st.lists(st.tuples(st.integers(0, 7), st.integers(10, 17)), max_size=70)


def assert_proper(edges: list[tuple[int, int]], colours: list[int]) -> None:
    seen = Counter((v, c) for edge, c in zip(edges, colours, strict=True) for v in edge)
    assert all(count == 1 for count in seen.values())
    assert set(colours) == set(range(max(colours, default=-1) + 1))


def greatest_degree(edges: list[tuple[int, int]]) -> int:
    return max(Counter(v for edge in edges for v in edge).values(), default=0)


@given(EDGES)
def test_any_multigraph_is_coloured_within_vizings_bound(edges: list[tuple[int, int]]) -> None:
    colours = colour_edges(edges)
    assert_proper(edges, colours)
    parallel = max(Counter(tuple(sorted(edge)) for edge in edges).values(), default=0)
    used = max(colours, default=-1) + 1
    assert fewest_colours(edges) <= used
    assert used <= max(fewest_colours(edges), greatest_degree(edges) + parallel)


@given(BIPARTITE)
def test_bipartite_multigraphs_need_no_more_than_their_degree(edges: list[tuple[int, int]]) -> None:
    colours = colour_edges(edges)
    assert_proper(edges, colours)
    assert max(colours, default=-1) + 1 == greatest_degree(edges)


def probe(src: str, dst: str, duration_s: float = 5.0) -> ProbeTask:
    return ProbeTask("aggregate", ((src, dst),), 64, duration_s, 5.0)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 13, 40, 63])
def test_all_pairs_take_the_least_possible_number_of_rounds(count: int) -> None:
    tasks = [probe(a, b) for a, b in permutations([f"h{i}" for i in range(count)], 2)]
    rounds = schedule(tasks)
    assert len(rounds) == (2 * (count - 1) if count % 2 == 0 else 2 * count)
    assert len(rounds) == fewest_rounds(tasks)


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
    assert len(rounds) >= fewest_rounds(tasks)
    # One after the other is the longest it may take.
    assert schedule_s(rounds, gap_s=gap_s) <= sum(t.duration_s + gap_s for t in tasks) + 1e-9


def test_long_probes_share_rounds() -> None:
    hosts = [f"h{i}" for i in range(10)]
    tasks = [
        probe(a, b, 120.0 if int(a[1:]) % 5 == 0 and int(b[1:]) % 2 else 5.0)
        for a, b in permutations(hosts, 2)
    ]
    long = [task for task in tasks if task.duration_s > 100]
    rounds = schedule(tasks)
    assert sum(r.duration_s > 100 for r in rounds) == fewest_rounds(long)
    assert schedule_s(rounds) < 120 * fewest_rounds(long) + 5 * 18
