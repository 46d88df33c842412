"""Where to reduce: the best shares by an independent linear program, and a better shuffle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import relayd
from examples.reduce_placement import place_reduce, reduce_shares
from tests.properties import examples

figure = st.floats(0.2, 20)


def time_s(
    shares: dict[str, float], data: dict[str, float], caps: dict[str, tuple[float, float]]
) -> float:
    total = sum(data.values())
    return max(
        max(data[r] * (1 - shares[r]) / caps[r][0], shares[r] * (total - data[r]) / caps[r][1])
        for r in data
    )


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0, 10.0, 300.0]), figure, figure), min_size=2, max_size=6
    )
)
def test_shares_are_those_of_a_linear_program(sites: list[tuple[float, float, float]]) -> None:
    data = {f"r{i}": gb for i, (gb, _, _) in enumerate(sites)}
    data["r0"] = max(data["r0"], 1.0)
    caps = {f"r{i}": (out, into) for i, (_, out, into) in enumerate(sites)}
    shares = reduce_shares(data, caps)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0
    n, total = len(data), sum(data.values())
    rows, limits = [], []
    for i, (region, gb) in enumerate(data.items()):
        out, into = np.zeros(n + 1), np.zeros(n + 1)
        out[i], out[n] = -gb, -caps[region][0]
        into[i], into[n] = total - gb, -caps[region][1]
        rows += [out, into]
        limits += [-gb, 0.0]
    solved = linprog(
        [0.0] * n + [1.0], A_ub=rows, b_ub=limits, A_eq=[[1.0] * n + [0.0]], b_eq=[1.0]
    )
    assert time_s(shares, data, caps) == pytest.approx(solved.fun, rel=1e-5, abs=1e-9)


def test_placing_by_caps_shortens_the_shuffle_that_relayd_plans() -> None:
    data = {"azure:eastus": 42.0, "aws:us-east-1": 6.0, "aws:ap-northeast-1": 3.0}
    placement = place_reduce(relayd.open(), data)
    assert placement.plan.duration_s < placement.evenly.duration_s
    buckets = placement.buckets(200)
    for region, share in placement.shares.items():
        assert buckets.count(region) / 200 == pytest.approx(share, abs=0.01)
