"""The cause of what a plan in progress lacks: what is known, and in which order it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.model.link_states import LinkState
from planner.model.network import Network
from planner.model.verification import AchievedShare
from planner.replanning.causes import OtherTransfer
from planner.replanning.plan import Replan
from planner.replanning.recommendation import replan
from planner.replanning.request import ReplanRequest
from tests.planner.replanning.test_replanning import PRICES, flat, network, transfer

NET = network(flat(5.0))
PLAN = transfer(NET)
OTHERS = (
    OtherTransfer("one", "a", 2.0),
    OtherTransfer("two", "a", 1.5),
    OtherTransfer("two", "b", 1.5),
)


def asked(moved_gb: float, net: Network = NET, others: Any = (), **more: Any) -> Replan:
    request = ReplanRequest(PLAN, moved_gb=moved_gb, elapsed_s=120.0, **more)
    return replan(request, net, PRICES, others)


def test_each_cause_goes_before_those_after_it() -> None:
    state = LinkState("a", "b", "degraded", "2026-01-02T03:04:05Z", "it loses 5 %", rate_share=0.2)
    elsewhere = replace(state, dst="c", condition="down")
    degraded = NET.with_(link_states={("a", "b"): state, ("a", "c"): elsewhere})
    known: dict[str, Any] = {"net": degraded, "others": OTHERS, "slow_s": 70, "silent_s": 200}
    said = []
    for less in ("", "silent_s", "net", "others", "slow_s"):
        known.pop(less, None)
        answer = asked(10, **known)  # 0.67 Gbit/s, where 5 were planned
        assert answer.cause is not None
        said.append((answer.cause.kind, answer.cause.text))
        assert f"Probable cause: {answer.cause.text}" in " ".join(str(answer).split())
    assert said == [
        ("silent", "Its program has not reported it for 3 min 20 s."),
        ("link", "a -> b is degraded since 2026-01-02T03:04:05Z (it loses 5 %)."),
        ("others", "Since it began, 2 other transfers take 3.50 Gbit/s of the VMs at a."),
        (
            "slow",
            "It has been slower than planned for 1 min 10 s: at 0.669 Gbit/s, where at least 4.85 "
            "of 5.00 Gbit/s were planned.",
        ),
        (
            "slow",
            "It has been slower than planned since it began: at 0.669 Gbit/s, where at least 4.85 "
            "of 5.00 Gbit/s were planned.",
        ),
    ]


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (
            AchievedShare("a", "b", "", 1.1, 1.05, 1.2, 9),
            "of the last 9, 95 % reached at least 1.05",
        ),
        (AchievedShare("a", "b", "", 1.1, 1.05, 1.2, 8), None),  # too few to tell
        (AchievedShare("a", "b", "", 0.9, 0.5, 1.0, 20), None),
        (AchievedShare("", "", "nightly", 1.1, 1.05, 1.2, 20), None),
    ],
)
def test_as_planned_it_may_yet_be_slower_than_ever(before: AchievedShare, text: str | None) -> None:
    cause = asked(75, NET.with_(achieved=(before,)), OTHERS).cause
    assert (cause and cause.text) == (text and f"It runs at 1.00 of its plan's rate: {text}.")


def test_nothing_is_said_before_it_is_up_to_speed() -> None:
    request = ReplanRequest(PLAN, moved_gb=0, elapsed_s=0.1)
    assert replan(request, NET, PRICES, OTHERS).cause is None
    assert asked(75, rate_gbps=1.0).cause is not None  # the moment counts, not the mean
    assert asked(10, rate_gbps=5.0).cause is None
