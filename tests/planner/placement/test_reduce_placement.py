"""Where to reduce: equal to an independent program, known answers, and limits kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats
from planner.placement.plan import ReducePlacement
from planner.placement.reduce import recommend_reduce
from planner.placement.request import ReduceRequest
from tests.planner.worlds import CONNECTIONS, World, even, world
from tests.properties import examples


def place(of: World, volumes: Floats, **more: Any) -> ReducePlacement:
    inputs = dict(zip(of.names, volumes.tolist(), strict=True))
    asked = {"vms_in": of.vms_in, "connections": CONNECTIONS, "vms": 1, "vms_running": True, **more}
    request = ReduceRequest(inputs, **asked)
    return recommend_reduce(request, of.network(), of.prices())


def by_program(
    of: World,
    volumes: Floats,
    *,
    links: str = "hose",
    fees_in_s: float | None = None,
    budget_usd: float | None = None,
) -> float:
    """Return the least time, or the least fees in a time (HiGHS)."""
    n = len(volumes)
    gbit = 8 * volumes
    columns = []
    for j in range(n):
        sent = np.zeros((n, n))
        sent[:, j] = np.where(np.arange(n) == j, 0.0, gbit)
        columns.append(of.loads_of(sent) / of.limits)
    rows = np.array(columns).T[0 if links == "hose" else 3 * n :]
    a_ub = np.column_stack([rows, -np.ones(len(rows))])
    fees = np.array([sum(volumes[i] * of.fees[i, j] for i in range(n) if i != j) for j in range(n)])
    b_ub = np.zeros(len(rows))
    if budget_usd is not None:
        a_ub = np.vstack([a_ub, np.append(fees, 0.0)])
        b_ub = np.append(b_ub, budget_usd)
    cost = np.append(np.zeros(n), 1.0) if fees_in_s is None else np.append(fees, 0.0)
    bounds = [(0.0, None)] * n + [(0.0, fees_in_s)]
    solved = linprog(
        cost,
        A_ub=a_ub,
        b_ub=b_ub,
        A_eq=[[*np.ones(n), 0.0]],
        b_eq=[1.0],
        bounds=bounds,
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


def complete(seed: int) -> tuple[World, Floats]:
    of = world(seed)
    random = np.random.default_rng(seed)
    rate, flows = (
        np.where(of.rate > 0, known, most) for known, most in ((of.rate, 2), (of.flows, 5))
    )
    volumes = random.pareto(1.2, len(rate)) * 20 * (random.random(len(rate)) < 0.8)
    volumes[:2] += 5
    inside = np.eye(len(rate), dtype=bool)
    rate, flows = np.where(inside, 0.0, rate), np.where(inside, 0.0, flows)
    return replace(of, rate=rate, flows=flows), volumes


@pytest.mark.parametrize("seed", range(examples(120)))
def test_times_and_fees_are_those_of_an_independent_program(seed: int) -> None:
    of, volumes = complete(seed)
    found = place(of, volumes)
    least_s = by_program(of, volumes)
    assert sum(found.fractions.values()) == pytest.approx(1)
    assert found.duration_s == pytest.approx(least_s, rel=1e-6)
    fees = by_program(of, volumes, fees_in_s=least_s * (1 + 1e-9))
    assert found.cost_usd.egress == pytest.approx(fees, rel=1e-4)
    option = next(o for o in found.options if o.name == "heterogeneous")
    promised_s = by_program(of, volumes, links="heterogeneous")
    assert option.promised_s == pytest.approx(promised_s, rel=1e-6)
    # What it really takes is never less than the best under the real limits.
    assert option.duration_s >= found.duration_s * (1 - 1e-6)
    assert all(found.duration_s <= o.duration_s * (1 + 1e-6) for o in found.options)

    cheap = place(of, volumes, objective="cost", deadline_s=1.3 * least_s)
    assert cheap.duration_s <= 1.3 * least_s * (1 + 1e-6)
    fees = by_program(of, volumes, fees_in_s=1.3 * least_s)
    assert cheap.cost_usd.egress == pytest.approx(fees, rel=1e-6)
    budget_usd = (cheap.cost_usd.egress + found.cost_usd.egress) / 2
    thrifty = place(of, volumes, budget_usd=budget_usd)
    assert thrifty.cost_usd.egress <= budget_usd * (1 + 1e-6)
    assert thrifty.duration_s == pytest.approx(
        by_program(of, volumes, budget_usd=budget_usd), rel=1e-6
    )


def test_caps_alone_give_the_answer_of_the_paper_by_hand() -> None:
    # Rates of pairs far above the caps: nothing but caps binds, as in the paper.
    of = even([[0.0, 100.0], [100.0, 0.0]], cap_gbps=1.0)
    # a sends 100 (1 - r), b sends 50 r: with 1 Gbit/s each way both ways end together.
    found = place(of, np.array([100.0, 50.0]))
    # Up of a: 100 (1 - r); down of a: 50 r. Equal at r = 2/3: 266.7 s.
    assert found.fractions["r0"] == pytest.approx(2 / 3)
    assert found.duration_s == pytest.approx(8 * 100 / 3)
    assert found.moved_gb == pytest.approx(200 / 3)
    assert found.cost_usd.egress == pytest.approx(0.02 * 200 / 3)


def test_links_of_their_own_promise_what_shared_caps_do_not_give() -> None:
    # Five equal regions: each pair alone could carry the whole cap, all together a quarter of it.
    found = place(even(np.full((5, 5), 4.0)), np.full(5, 100.0), links="heterogeneous")
    assert found.links == "heterogeneous"
    assert found.promised_s == pytest.approx(8 * 20 / 4)
    assert found.duration_s == pytest.approx(4 * found.promised_s)
    assert "promise 40 s" in found.reason


def test_a_region_without_input_may_reduce_if_named() -> None:
    names = ["a", "b", "c"]
    network = Network.from_matrices(
        names, np.array([[0, 1, 9], [1, 0, 9], [9, 9, 0]], dtype=float), rtt_ms=0.0
    )
    request = ReduceRequest({"a": 100, "b": 100}, vms=1, vms_running=True)
    prices = FlatPrices(names, 0.02, 1.0)
    assert set(recommend_reduce(request, network, prices).fractions) == {"a", "b"}
    more = recommend_reduce(replace(request, reduce_in=("a", "b", "c")), network, prices)
    assert "c" in more.fractions
    assert more.duration_s < recommend_reduce(request, network, prices).duration_s
    alone = recommend_reduce(replace(request, reduce_in=("c",)), network, prices)
    assert alone.fractions == {"c": 1.0}
    start = recommend_reduce(replace(request, vms_running=False), network, prices)
    assert start.vm_start_s == 60
    assert start.duration_s == pytest.approx(
        60 + recommend_reduce(request, network, prices).duration_s
    )
    half = recommend_reduce(replace(request, selectivity=0.5), network, prices)
    assert half.duration_s == pytest.approx(
        recommend_reduce(request, network, prices).duration_s / 2
    )


def test_limits_that_cannot_be_met_name_a_remedy_that_does() -> None:
    of, volumes = complete(3)
    with pytest.raises(InfeasibleError, match="Allow at least") as caught:
        place(of, volumes, deadline_s=0.5 * place(of, volumes).duration_s)
    seconds = float(caught.value.remedy.split("at least ")[1].split(" s")[0])
    assert place(of, volumes, deadline_s=seconds).duration_s <= seconds
    with pytest.raises(InfeasibleError, match="Allow at least") as caught:
        place(of, volumes, budget_usd=0.0)
    usd = float(caught.value.remedy.split("at least $")[1].rstrip("."))
    assert place(of, volumes, budget_usd=usd).cost_usd.egress <= usd * (1 + 1e-9)


def test_wrong_questions_are_named() -> None:
    with pytest.raises(InputError, match="nothing to reduce"):
        ReduceRequest({"a": 0.0})
    with pytest.raises(InputError, match="selectivity"):
        ReduceRequest({"a": 1.0}, selectivity=0.0)
    names = ["a", "b"]
    network = Network.from_matrices(names, np.array([[0.0, 1], [0, 0]]))
    prices = FlatPrices(names)
    with pytest.raises(InputError, match="already in the region"):
        recommend_reduce(ReduceRequest({"a": 1.0}), network, prices)
    with pytest.raises(DataError, match="lacks a link"):
        recommend_reduce(ReduceRequest({"b": 1.0}, reduce_in=("a",)), network, prices)
    with pytest.raises(InputError, match="not part of the network"):
        recommend_reduce(ReduceRequest({"z": 1.0, "a": 1.0}), network, prices)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 2), st.sampled_from([1e-6, 1.0, 1e4]))
def test_one_more_vm_never_makes_it_slower(seed: int, where: int, scale: float) -> None:
    of, volumes = complete(seed)
    one = place(of, volumes * scale)
    more = place(of.with_vms({of.names[where]: 1}), volumes * scale)
    assert more.duration_s <= one.duration_s * (1 + 1e-6)
    promised = {m.region: m.duration_s for m in one.one_more_vm}
    if of.names[where] in promised:
        assert more.duration_s == pytest.approx(promised[of.names[where]], rel=1e-6)
    one.model_dump_json()
