"""Shuffles: optimal by an independent solver, never worse than no plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats, SiteResources, links_of
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.problem import shuffle_problem
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.solvers.column_generation import GAP, PathColumns, least_fees, least_time
from planner.solvers.max_min_fill import direct_paths, equal_share_finish_s, fill
from tests.planner.grid import january_grid
from tests.planner.worlds import CONNECTIONS, World, world
from tests.properties import examples

WITHIN = 1e-3


def instance(seed: int) -> tuple[World, Floats]:
    """Return six to 14 sites, and how many Gbit each sends to each other."""
    n = 6 + seed % 9
    of, random = world(seed, n, most_vms=3), np.random.default_rng(seed)
    demands = [
        np.full((n, n), 80.0),
        random.pareto(1.2, (n, n)) * 100 + 1,
        np.where(np.arange(n) == 2, 500.0, 5.0) * np.ones((n, n)),
        random.uniform(1, 100, (n, n)) * (random.random((n, n)) < 0.2),
    ][seed % 4]
    demands = np.where(of.rate > 0, demands, 0.0)
    demands[0, 1] = 10.0
    flows = of.rate * random.uniform(1, [2, 40][seed % 2], (n, n))
    return replace(of, flows=flows), demands


def by_all_paths(of: World, demands_gbit: Floats, deadline_s: float | None = None) -> float:
    """Return the least time, or least fees in a time, over every path (HiGHS)."""
    pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(demands_gbit), strict=True)]
    columns = [(number, path) for number, ends in enumerate(pairs) for path in of.paths(*ends)]
    used = [of.loads(path) for _, path in columns]
    entries = [(row, n, load) for n, loads in enumerate(used) for row, load in loads.items()]
    row_of, column_of, loads = zip(*entries, strict=True)
    limits = of.limits
    caps = coo_matrix((loads, (row_of, column_of)), shape=(len(limits), len(columns)))
    owners = [number for number, _ in columns], range(len(columns))
    moved = coo_matrix((np.ones(len(columns)), owners), shape=(len(pairs), len(columns)))
    fees = [sum(of.fees[link] for link in pairwise(path)) / 8 for _, path in columns]
    solved = linprog(
        [0.0] * len(columns) + [1.0] if deadline_s is None else [*fees, 0.0],
        A_ub=hstack([caps, -limits[:, None]]),
        b_ub=np.zeros(len(limits)),
        A_eq=hstack([moved, coo_matrix((len(pairs), 1))]),
        b_eq=[demands_gbit[pair] for pair in pairs],
        bounds=[(0, None)] * len(columns) + [(0, deadline_s)],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


@pytest.mark.parametrize("seed", range(examples(48)))
def test_times_and_fees_are_those_of_a_linear_program_over_all_paths(seed: int) -> None:
    of, demands = instance(seed)
    columns = PathColumns(of.resources(), demands, of.fees / 8)
    fast = least_time(columns, GAP / 2)
    paths = fast.paths_gbit
    assert paths.min() >= 0
    assert paths.sum(axis=1) == pytest.approx(demands)
    reached_s = columns.resources.time_s(links_of(paths))
    assert reached_s == pytest.approx(fast.objective, rel=1e-6)
    least_s = by_all_paths(of, demands)
    assert fast.bound * (1 - 1e-6) <= least_s <= reached_s * (1 + 1e-6)
    assert reached_s <= least_s * (1 + WITHIN)

    deadline_s = 1.1 * reached_s
    cheap = least_fees(columns, deadline_s, fast, GAP / 2)
    links = links_of(cheap.paths_gbit)
    assert columns.resources.time_s(links) <= deadline_s * (1 + 1e-9)
    fees = float((links * of.fees / 8).sum())
    least_usd = by_all_paths(of, demands, deadline_s)
    assert cheap.bound * (1 - 1e-6) <= least_usd <= fees * (1 + 1e-6)
    assert fees <= least_usd * (1 + WITHIN)

    # Taken up with one more VM, it finds that optimum, and columns are still of the first problem.
    more = columns.given.with_vm_at(int(columns.given.row_sites[fast.row_prices.argmax()]))
    before = len(columns.sources)
    again = least_time(columns.with_resources(more), GAP / 2)
    least_s = by_all_paths(replace(of, vms=more.vms), demands)
    assert again.bound * (1 - 1e-6) <= least_s <= again.objective * (1 + 1e-6)
    assert more.time_s(links_of(again.paths_gbit)) <= least_s * (1 + WITHIN)
    assert again.objective <= fast.objective * (1 + GAP)
    assert len(columns.sources) == before


# ---- known answers -------------------------------------------------------------------------


def plan(
    gbps: Sequence[Sequence[float]], demands: dict[tuple[str, str], float], **limits: object
) -> ShufflePlan:
    names = [chr(ord("a") + i) for i in range(len(gbps))]
    caps = {key: limits.pop(key) for key in ("egress_gbps", "ingress_gbps") if key in limits}
    network = Network.from_matrices(names, np.array(gbps), rtt_ms=0.0, **caps)  # type: ignore[arg-type]
    request = ShuffleRequest(demands, **{"vms": 1, "vms_running": True, **limits})  # type: ignore[arg-type]
    return recommend_shuffle(request, network, FlatPrices(names, 0.02, 1.0))


def test_a_hot_destination_is_limited_by_its_ingress_and_relays_do_not_help() -> None:
    five = [[0.0 if i == j else 5.0 for j in range(5)] for i in range(5)]
    demands = {(src, "a"): 100.0 for src in "bcde"}
    found = plan(five, demands, ingress_gbps=[4, 9, 9, 9, 9], egress_gbps=[9] * 5)
    assert found.verdict == "direct"
    assert found.duration_s == pytest.approx(800)
    assert found.bottlenecks[0].region == "a"
    assert found.bottlenecks[0].constraint == "ingress cap"
    (more,) = found.one_more_vm
    assert more.region == "a"
    assert more.saved_s == pytest.approx(800 - 400)


def test_who_waits_for_nobody_ends_sooner() -> None:
    five = [[0.0 if i == j else 5.0 for j in range(5)] for i in range(5)]
    demands = {("a", "b"): 300.0, ("a", "c"): 100.0, ("d", "c"): 100.0, ("e", "d"): 100.0}
    found = {(p.src, p.dst): p for p in plan(five, demands).pairs}
    # a sends 400 GB at 5 Gbit/s; c's other sender gets what is left of c; e is alone.
    assert found["a", "b"].duration_s == pytest.approx(640)
    assert found["a", "b"].throughput_gbps == pytest.approx(3.75)
    assert found["a", "c"].throughput_gbps == pytest.approx(1.25)
    assert found["d", "c"].throughput_gbps == pytest.approx(3.75)
    assert found["e", "d"].duration_s == pytest.approx(160)


def test_limits_that_cannot_be_met_say_what_would_do() -> None:
    two = [[0, 4], [4, 0]]
    with pytest.raises(InfeasibleError, match=r"Allow at least 3 min 20 s \(200 s\)"):
        plan(two, {("a", "b"): 100}, deadline_s=150.0)
    with pytest.raises(InfeasibleError, match="200 s"):
        plan(two, {("a", "b"): 100}, deadline_s=150.0, objective="cost")
    sevenths = [[0, 7], [7, 0]]  # 114.3 s
    with pytest.raises(InfeasibleError, match=r"114\.286 s .* at least 1 min 55 s \(115 s\)"):
        plan(sevenths, {("a", "b"): 100}, deadline_s=114.0)
    assert plan(sevenths, {("a", "b"): 100}, deadline_s=115.0).duration_s == pytest.approx(800 / 7)
    with pytest.raises(InfeasibleError, match=r"1 min 00 s of it until VMs.*260 s.*`vms_runn"):
        plan(two, {("a", "b"): 100}, deadline_s=250.0, vms_running=False)
    with pytest.raises(DataError, match="a to b"):
        plan([[0, 0], [4, 0]], {("a", "b"): 100})
    with pytest.raises(InputError, match="not part of the network"):
        plan(two, {("a", "z"): 100})


@pytest.mark.parametrize(
    ("connections", "duration_s", "needed"), [(10, 2000, 10), (6400, 400, 50), (None, 400, 50)]
)
def test_slow_paths_leave_the_rest_of_a_vm_to_others(
    connections: int | None, duration_s: float, needed: int
) -> None:
    """One source at 10 Gbit/s, five paths of 2 Gbit/s and relays; 200 Mbit/s a flow."""
    n = 7
    gbps = np.full((n, n), 10.0)
    gbps[0, 1:6] = 2.0
    names = [f"r{i}" for i in range(n)]
    network = Network.from_matrices(
        names,
        gbps,
        rtt_ms=0.0,
        per_flow_mbps=np.full((n, n), 200.0),
        egress_gbps=[10.0] * n,
        ingress_gbps=[10.0] * n,
    )
    stated: dict[str, Any] = {} if connections is None else {"connections": connections}
    request = ShuffleRequest(
        {("r0", names[i]): 100.0 for i in range(1, 6)}, vms=1, vms_running=True, **stated
    )
    found = recommend_shuffle(request, network, FlatPrices(names, 0.02, 1.0))
    assert found.duration_s == pytest.approx(duration_s)
    assert found.verdict == "direct"
    assert found.relayed_share == 0
    assert found.connections["r0"] == needed
    assert found.bound_s <= duration_s * (1 + 1e-6)
    assert not found.warnings


def test_of_routings_as_fast_the_cheaper_is_taken() -> None:
    # Sent direct, a's copy pays ten times what it pays through c; both are as fast.
    five = np.full((3, 3), 5.0)
    names = ["a", "b", "c"]
    fees = np.full((3, 3), 0.01)
    fees[0, 1] = 0.1
    network = Network.from_matrices(names, five, rtt_ms=0.0)
    prices = FlatPrices(names, fees, 0.1)
    found = recommend_shuffle(
        ShuffleRequest({("a", "b"): 100.0}, vms=1, vms_running=True), network, prices
    )
    assert found.duration_s == pytest.approx(160, rel=GAP)
    assert found.cost_usd.egress == pytest.approx(2.0, rel=1e-2)
    assert found.verdict == "relayed"
    assert "takes no longer" in found.reason
    # What one more VM costs may be more than what its route saves.
    dear = recommend_shuffle(
        ShuffleRequest({("a", "b"): 1.0}, vms=1), network, FlatPrices(names, fees, 100.0)
    )
    assert dear.verdict == "direct"


# ---- properties ----------------------------------------------------------------------------


@st.composite
def shuffles(draw: st.DrawFn) -> tuple[World, Floats]:
    n, seed = draw(st.integers(2, 6)), draw(st.integers(0, 10_000))
    of = world(3 * seed + 1, n, most_vms=3)  # all links are known
    flows = of.rate * draw(st.sampled_from([1.0, 3.0, 50.0]))
    volumes = np.random.default_rng(seed).choice([0.0, 0.001, 1.0, 10.0, 5000.0], (n, n))
    np.fill_diagonal(volumes, 0.0)
    volumes[0, 1] = max(volumes[0, 1], 1.0)
    return replace(of, flows=flows, may_relay=np.ones(n, dtype=bool)), volumes


@settings(max_examples=examples(45), deadline=None)
@given(shuffles())
def test_filling_leaves_nobody_who_could_go_faster_alone(given: tuple[World, Floats]) -> None:
    resources, demands = given[0].resources(), given[1]
    routing = least_time(PathColumns(resources, demands, np.zeros_like(demands)))
    time_s = resources.paths_time_s(routing.paths_gbit)
    speed = fill(resources, routing.paths_gbit, time_s)
    assert (speed[demands > 0] >= 1).all()
    sent = routing.paths_gbit * speed[:, None, :] / time_s
    resources = resources.as_opened(sent)
    used = resources.loads(links_of(sent))
    assert (used <= resources.row_vms * (1 + 1e-6)).all()
    full = used >= resources.row_vms * (1 - 1e-6)
    for i, j in zip(*np.nonzero(demands), strict=True):
        alone = np.zeros_like(routing.paths_gbit)
        alone[i, :, j] = routing.paths_gbit[i, :, j]
        assert (resources.loads(links_of(alone))[full] > 0).any()


@pytest.mark.parametrize(("seed", "times"), [(259, 1.0), (535, 3.0)])
def test_a_link_that_is_full_before_any_vm_sets_no_price(seed: int, times: float) -> None:
    of = world(seed, 2, most_vms=3)
    of = replace(of, flows=of.rate * times, may_relay=np.ones(2, dtype=bool))
    request = ShuffleRequest({("r0", "r1"): 1.25}, vms_in=of.vms_in, connections=5)
    found = recommend_shuffle(request, of.network(np.full((2, 2), 20.0)), of.prices())
    assert found.verdict == "direct"
    assert found.duration_s == found.direct.duration_s


@settings(max_examples=examples(45), deadline=None)
@given(shuffles(), st.sampled_from([0.0, 0.1]), st.just(CONNECTIONS) | st.integers(5, 40))
def test_never_worse_than_starting_everything_at_once(
    given: tuple[World, Floats], margin: float, connections: int
) -> None:
    """Also where a VM opens as few as one connection a pair."""
    of, demands = given
    names, vms = of.names, of.vms_in
    rtt_ms = (20.0 * np.arange(demands.size) % 170.0).reshape(demands.shape)
    volumes = {
        (names[i], names[j]): demands[i, j] / 8 for i, j in zip(*np.nonzero(demands), strict=True)
    }
    request = ShuffleRequest(volumes, margin=margin, vms_in=vms, connections=connections)
    found = recommend_shuffle(request, of.network(np.asarray(rtt_ms)), of.prices())
    assert found.equal_share.duration_s is not None
    assert found.direct.duration_s is not None
    # Within what times are told apart by, the cheaper routing is taken.
    assert found.duration_s <= found.equal_share.duration_s * (1 + GAP)
    assert found.duration_s <= found.direct.duration_s * (1 + GAP)
    assert found.duration_s_low <= found.duration_s <= found.duration_s_high
    assert set(volumes) == {(pair.src, pair.dst) for pair in found.pairs}
    used = {region for p in found.pairs for path in p.paths for region in path.regions}
    assert set(found.vms) == used  # who takes no part needs none
    for pair in found.pairs:
        assert sum(path.share for path in pair.paths) == pytest.approx(1)
        assert pair.duration_s <= found.duration_s
    assert all(found.vms[name] <= count for name, count in vms.items() if name in found.vms)
    found.model_dump_json()


@pytest.mark.parametrize(
    ("demands", "seed"), [("uniform", 0), ("skewed", 1), ("hot destination", 2)]
)
def test_gains_on_the_january_grid_are_those_of_an_independent_program(
    demands: str, seed: int
) -> None:
    grid = january_grid()
    random = np.random.default_rng(seed)
    names = sorted(random.choice(grid.regions, 12, replace=False).tolist())
    volumes = np.full((12, 12), 10.0)
    if demands == "skewed":
        volumes = 10 * (random.pareto(1.2, (12, 12)) + 0.1)
    elif demands == "hot destination":
        volumes[:, 3] = 300.0
    request = ShuffleRequest(
        {
            (a, b): float(volumes[i, j])
            for i, a in enumerate(names)
            for j, b in enumerate(names)
            if i != j
        },
        margin=0.0,
        vms=1,
        vms_running=True,
    )
    network = grid.network().with_(restricted_to=names)
    problem = shuffle_problem(request, network, grid.prices())
    of = problem.resources
    usd = problem.usd_per_gbit * 8
    as_world = World(
        of.rate_gbps,
        of.connections_gbps,
        of.egress_gbps,
        of.ingress_gbps,
        of.vms,
        usd,
        of.may_relay,
    )
    least_s = by_all_paths(as_world, problem.demands_gbit)
    found: Any = recommend_shuffle(request, network, grid.prices())
    longest_ramp_s = 8.5 * 2 * float(problem.rtt_ms.max()) / 1000
    assert found.bound_s <= least_s * (1 + 1e-6)
    assert least_s * (1 - 1e-6) <= found.duration_s <= least_s * (1 + WITHIN) + longest_ramp_s
    direct_s = of.time_s(links_of(direct_paths(problem.demands_gbit)))
    assert direct_s <= found.direct.duration_s <= direct_s + longest_ramp_s
    if demands == "hot destination":  # its ingress cap decides, whoever relays
        assert direct_s <= least_s * (1 + WITHIN)


@pytest.mark.parametrize("seed", range(3))
def test_no_path_carries_next_to_nothing(seed: int) -> None:
    """Each relay takes a VM: what one would carry fits on paths that are not full."""
    grid, random = january_grid(), np.random.default_rng(seed)
    ends = random.choice(grid.regions, 5, replace=False).tolist()
    pairs = [(a, b) for a in ends for b in ends if a != b]
    chosen = random.choice(len(pairs), 4, replace=False).tolist()
    request = ShuffleRequest({pairs[n]: 100.0 + 100 * n for n in chosen}, margin=0.0)
    found = recommend_shuffle(request, grid.network(), grid.prices())
    assert min(path.share for pair in found.pairs for path in pair.paths) > 0.005


# ---- simulations ---------------------------------------------------------------------------


@pytest.mark.thorough
def test_equal_shares_are_those_of_a_step_by_step_simulation() -> None:
    random = np.random.default_rng(5)
    n = 5
    rate = random.uniform(0.3, 4, (n, n))
    np.fill_diagonal(rate, 0.0)
    flows = random.uniform(4, 12, (n, n))
    volumes = random.uniform(5, 100, (n, n))
    np.fill_diagonal(volumes, 0.0)
    caps = random.uniform(3, 6, (2, n))
    everyone = np.ones(n, dtype=bool)
    resources = SiteResources(rate, flows, caps[0], caps[1], np.ones(n), everyone)
    direct_s = resources.time_s(links_of(direct_paths(volumes)))
    left, now, step_s = volumes.copy(), 0.0, direct_s / 300
    while left.max() > 0:
        flow = np.zeros((n, n))
        growing = left > 0
        parts = 16 / 64  # of a VM's connections: four transfers leave each, and keep theirs
        while growing.any():  # raise everybody's rate a little until something is full
            flow = np.where(growing, flow + 0.01, flow)
            full = (flow >= rate) | (flow >= flows * parts)
            full |= (flow.sum(1) >= caps[0])[:, None] | (flow.sum(0) >= caps[1])
            growing &= ~full
        left = np.maximum(left - flow * step_s, 0.0)
        now += step_s
    found = equal_share_finish_s(resources, volumes, 64)
    assert found.max() == pytest.approx(now, rel=0.03)
    assert found.max() >= direct_s


def test_a_slow_path_and_a_relay_beside_it_fill_the_cap() -> None:
    found = plan([[0, 1, 5], [1, 0, 5], [5, 5, 0]], {("a", "b"): 100})
    assert found.verdict == "relayed"
    assert found.duration_s == pytest.approx(160, rel=WITHIN)
    # The slow path is no part of the VM: it carries its Gbit/s, and saves one fee on it.
    assert found.cost_usd.egress == pytest.approx(2.0 * (0.2 + 2 * 0.8), rel=5e-3)
    assert found.bound_usd == pytest.approx(2.0)  # direct, at leisure
    assert found.vms == {"a": 1, "b": 1, "c": 1}
    (pair,) = found.pairs
    shares = {path.regions: path.share for path in pair.paths}
    assert shares == pytest.approx({("a", "b"): 0.2, ("a", "c", "b"): 0.8}, abs=5e-3)
    assert found.direct.duration_s == pytest.approx(800)
