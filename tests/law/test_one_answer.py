"""For every question and state of knowledge, all surfaces give the same answer, byte for byte."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from relayd.questions.registry import QUESTIONS, Question
from tests.law.states import DST, REGIONS, RELAY, SRC, STATES, State
from tests.law.surfaces import Body, Problem, Surfaces, surfaces_on

BY_NAME = {question.name: question for question in QUESTIONS}
ASKED: dict[str, tuple[str, Body]] = {
    "transfer": ("transfer", {"src": SRC, "dst": DST}),
    "transfer with options": (
        "transfer",
        {
            "src": "us-east",
            "dst": "sa",
            "volume_gb": 500,
            "objective": "time",
            "vms": 4,
            "vms_in": {SRC: 2},
            "margin": 0.05,
            "avoid": ["provider:gcp"],
            "month_to_date_gb": {"aws": 12000},
            "frontier": True,
        },
    ),
    "transfer with another VM type": (
        "transfer",
        {"src": SRC, "dst": DST, "vm_types": {SRC: "aws:t2.micro"}},
    ),
    "transfer with another VM type elsewhere": (
        "transfer",
        {"src": SRC, "dst": DST, "vm_types": {"aws:eu-west-1": "aws:t2.micro"}},
    ),
    "single flow": ("transfer", {"src": SRC, "dst": DST, "volume_gb": 1, "connections": 1}),
    **{
        question.name: (question.name, question.example)
        for question in QUESTIONS
        if question.name not in {"transfer", "replan"}
    },
    "shuffle among those measured": (
        "shuffle",
        {
            "demands": [
                {"src": src, "dst": dst, "volume_gb": 100}
                for src in REGIONS[:3]
                for dst in REGIONS[:3]
                if src != dst
            ],
            "vms": 2,
        },
    ),
    "broadcast among those measured": (
        "broadcast",
        {"src": SRC, "destinations": [DST, RELAY], "volume_gb": 50},
    ),
}


@pytest.fixture(scope="module", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep everybody's real store and settings out of it."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        for name in [name for name in os.environ if name.startswith("RELAYD_")]:
            patch.delenv(name)
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, str(home))
        patch.setenv("RELAYD_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(scope="module", params=STATES, ids=lambda make: make.__name__)
def state(
    request: pytest.FixtureRequest, own_folders: None, tmp_path_factory: pytest.TempPathFactory
) -> State:
    made: State = request.param(tmp_path_factory.mktemp(request.param.__name__))
    return made


@pytest.fixture(scope="module")
def surfaces(state: State, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Surfaces]:
    with surfaces_on(state, tmp_path_factory.mktemp("asked")) as found:
        yield found


def the_answer(surfaces: Surfaces, question: Question, body: Body) -> str:
    """Return the answer that all surfaces give."""
    answers = {name: ask(question, body) for name, ask in surfaces.by_name.items()}
    first = answers["library"]
    assert not isinstance(first, Problem), first
    for name, answer in answers.items():
        assert answer == first, name
    return first


@pytest.mark.parametrize("asked", ASKED)
def test_all_surfaces_give_one_answer(surfaces: Surfaces, asked: str) -> None:
    name, body = ASKED[asked]
    the_answer(surfaces, BY_NAME[name], body)


@pytest.mark.parametrize("asked", ["transfer", "shuffle among those measured"])
def test_all_surfaces_re_plan_alike(surfaces: Surfaces, asked: str) -> None:
    name, body = ASKED[asked]
    plan = json.loads(the_answer(surfaces, BY_NAME[name], body))
    progress: dict[str, Any] = {"plan": plan, "moved_gb": 20, "elapsed_s": 300}
    the_answer(surfaces, BY_NAME["replan"], progress)
