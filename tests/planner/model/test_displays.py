"""Answers say what they are in one line, and in notebooks as they are printed."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape

import numpy as np
import pytest

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.answer import Answer
from planner.model.estimate import Estimate, Origin
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.placement.reduce import recommend_reduce
from planner.placement.request import Machine, ReduceRequest, TasksRequest
from planner.placement.tasks import recommend_tasks
from planner.replanning.recommendation import replan
from planner.replanning.request import ReplanRequest
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

A, B, C = "<a>", "b", "c"
OTHERS = tuple(f"r{number}" for number in range(12))
REGIONS = (A, B, C, *OTHERS)
NETWORK = Network.from_matrices(REGIONS, np.full((len(REGIONS),) * 2, 2.0))
PRICES = FlatPrices(REGIONS, 0.02, 1.0)


TRANSFER = recommend(TransferRequest(A, B, volume_gb=10), NETWORK, PRICES)
TIMED = (TimedTransfer("t1", A, B, 5.0, deadline_s=3600.0),)
TASKS = TasksRequest(
    {"x": 3, "y": 3}, {("x", "y"): 1.0}, (Machine("vm1", A, 4), Machine("vm2", B, 4))
)
ASK: list[tuple[Callable[..., Answer], object]] = [
    (recommend, TransferRequest(A, B, volume_gb=10)),
    (recommend_shuffle, ShuffleRequest({(A, B): 5.0, (B, C): 1.0})),
    (recommend_broadcast, BroadcastRequest(A, (B, C), volume_gb=10)),
    (recommend_schedule, ScheduleRequest(TIMED)),
    (recommend_reduce, ReduceRequest({A: 10.0, B: 5.0})),
    (recommend_tasks, TASKS),
    (replan, ReplanRequest(TRANSFER, moved_gb=1.0, elapsed_s=5.0)),
]


@pytest.mark.parametrize(("answer", "request_"), ASK, ids=lambda one: type(one).__name__)
def test_an_answer_shows_itself(answer: Callable[..., Answer], request_: object) -> None:
    plan = answer(request_, NETWORK, PRICES)
    line = repr(plan)
    assert line.startswith(f"<{type(plan).__name__} ")
    assert len(line) < 120
    shown = plan._repr_html_()
    assert unescape(shown) == f"<pre>{plan}</pre>"
    assert "<a>" not in shown


def test_an_estimate_says_its_bounds_and_what_it_rests_on() -> None:
    measured = Estimate(4.5, 5.0, 5.25, Origin("measured", "median-of-samples", samples=3))
    assert repr(measured) == "<Estimate 5 (4.5 to 5.25), measured, 3 samples>"
    assert repr(Estimate(1, 2, 3)) == "<Estimate 2 (1 to 3), baseline>"


def test_networks_links_and_sites_describe_themselves() -> None:
    assert repr(NETWORK) == "<Network unsaved: 15 sites, 210 links>"
    shown = NETWORK._repr_html_()
    assert shown.count("<tr>") == 1 + 10 + 1
    assert "&lt;a&gt;" in shown
    link, site = NETWORK.link(A, B), NETWORK.sites[A]
    assert repr(link).startswith("<Link <a> -> b: 2 Gbit/s (2 to 2, ")
    assert repr(site).startswith("<Site <a>: VM type unknown, egress 2 Gbit/s")
    for item in (link, site):
        assert item._repr_html_().count("<tr>") == 1 + 3
        assert "<a>" not in item._repr_html_()
