"""For every question and state of knowledge, all surfaces give the same answer, byte for byte."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

from relayd.catalogue.loading import load_catalogue
from relayd.cli.running import _document
from relayd.questions.question import Question
from relayd.questions.registry import QUESTIONS
from tests.law.states import DST, REGIONS, RELAY, SRC, STATES, State, fresh
from tests.law.surfaces import Body, Said, Surfaces, problem_of, surfaces_on

BY_NAME = {question.name: question for question in QUESTIONS}


def between(**asked: Any) -> tuple[str, Body]:
    return "transfer", {"src": SRC, "dst": DST, **asked}


def all_at_once(volume_gb: float, **asked: Any) -> tuple[str, Body]:
    return "shuffle", {"demands": [{"src": SRC, "dst": DST, "volume_gb": volume_gb}], **asked}


def copies(destinations: list[str], **asked: Any) -> tuple[str, Body]:
    return "broadcast", {"src": SRC, "destinations": destinations, **asked}


ALL_TO_ALL = [
    {"src": src, "dst": dst, "volume_gb": 100} for src, dst in permutations(REGIONS[:3], 2)
]
OVER_A_DISK = [
    {"id": "a", "src": SRC, "dst": DST, "volume_gb": 500, "deadline_s": 7200},
    {"id": "b", "src": RELAY, "dst": DST, "volume_gb": 300, "deadline_s": 3600},
]
AMONG_MEASURED = {"regions": [SRC, DST], "volume_gb": 100, "candidates": [*REGIONS], "most": 3}
ASKED: dict[str, tuple[str, Body]] = {
    "transfer": between(),
    "transfer with options": between(
        src="us-east",
        dst="sa",
        volume_gb=500,
        objective="time",
        vms=4,
        vms_in={SRC: 2},
        margin=0.05,
        avoid=["provider:gcp"],
        month_to_date_gb={"aws": 12000},
        frontier=True,
    ),
    "transfer with another VM type": between(vm_types={SRC: "aws:t2.micro"}),
    "transfer over private addresses": between(
        src="gcp:us-east1", dst="gcp:asia-east1", addresses="private"
    ),
    "transfer over what both ends can": between(src="gcp:us-east1", dst="gcp:europe-west1"),
    "transfer from zone to zone": between(src=f"{SRC}a", dst=f"{SRC}b"),
    "transfer within a region": between(dst=SRC),
    "single flow": between(volume_gb=1, connections=1),
    **{
        question.name: (question.name, question.example)
        for question in QUESTIONS
        if question.name not in {"transfer", "replan"}
    },
    "shuffle among those measured": ("shuffle", {"demands": ALL_TO_ALL, "vms": 2}),
    "schedule over a relay with a disk": (
        "schedule",
        {"transfers": OVER_A_DISK, "disk_gb": {RELAY: 200}},
    ),
    "broadcast among those measured": copies([DST, RELAY], volume_gb=50),
    "comparison among those measured": ("comparison", AMONG_MEASURED),
}
LARGE = ("broadcast", "comparison")
"""Of which the gate has one among those measured alone."""


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


# One state is enough while working: each is a store and a service.
@pytest.fixture(
    scope="module",
    params=[
        pytest.param(make, id=make.__name__, marks=() if make is fresh else pytest.mark.thorough)
        for make in STATES
    ],
)
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
    assert isinstance(first, str), first
    for name, answer in answers.items():
        assert answer == first, name
    return first


@pytest.mark.parametrize(
    "asked",
    [pytest.param(asked, marks=pytest.mark.thorough if asked in LARGE else ()) for asked in ASKED],
)
def test_all_surfaces_give_one_answer(surfaces: Surfaces, asked: str) -> None:
    name, body = ASKED[asked]
    the_answer(surfaces, BY_NAME[name], body)


@pytest.mark.parametrize("asked", ["transfer", "shuffle among those measured"])
def test_all_surfaces_re_plan_alike(surfaces: Surfaces, asked: str) -> None:
    name, body = ASKED[asked]
    answer = surfaces.by_name["library"](BY_NAME[name], body)  # that of all surfaces, as above
    assert isinstance(answer, str), answer
    plan = json.loads(answer)
    progress: dict[str, Any] = {"plan": plan, "moved_gb": 20, "elapsed_s": 300}
    the_answer(surfaces, BY_NAME["replan"], progress)


def test_all_surfaces_rest_on_one_network(surfaces: Surfaces, state: State) -> None:
    network = surfaces.networks["library"]
    for name, other in surfaces.networks.items():
        assert other == network, name
        assert list(other.sites) == list(network.sites)
    catalogue = load_catalogue(state.catalogues)
    regions = [region.id for region in catalogue.regions.values() if region.baseline]
    assert set(regions) <= set(network.sites)
    measured = REGIONS if network.snapshot.source != "baseline" else ()
    for src in regions:
        assert set(network.links[src]) >= {*regions, *measured} - {src}


def test_what_runs_have_shown_decides_everywhere(
    surfaces: Surfaces, request: pytest.FixtureRequest
) -> None:
    """No plan counts on a relay for more than it carried, which was half of what was predicted."""
    asked = {"src": SRC, "dst": DST, "objective": "time", "relays": RELAY, "vms": 1}
    other = {**asked, "vm_types": {"aws:eu-west-1": "aws:t2.micro"}}
    transfer, elsewhere = (
        json.loads(the_answer(surfaces, BY_NAME["transfer"], body)) for body in (asked, other)
    )
    for plan in (transfer, elsewhere):
        # A larger type is advised only where the request names none.
        del plan["plan_id"], plan["request"], plan["advice"], plan["offers"]
    assert transfer == elsewhere
    if "verified" in request.node.name:
        relayed = [path for path in transfer["paths"] if len(path["regions"]) == 3]
        assert sum(path["throughput_gbps"] for path in relayed) <= 2.4 * 1.001
        assert transfer["best_relay"]["throughput_gbps"] <= 2.4 * 1.001
        assert any("verified" in warning for warning in transfer["warnings"])
    if "fresh" in request.node.name:
        assert transfer["verdict"] == "relay"  # right if its links end, and if connections are slow


# ---- the same errors -----------------------------------------------------------------------------

NO_ROOM = {
    "tasks": [{"id": "a", "cpus": 64}, {"id": "b", "cpus": 1}],
    "traffic": [{"src": "a", "dst": "b", "volume_gb": 1}],
    "vms": [{"id": "x", "region": SRC, "cpus": 2}],
}
UNMEASURED = {"src": "gcp:us-east1", "dst": "aws:eu-west-1", "max_age_s": 60}
REDUCE = {"input_gb": {SRC: 10, DST: 5}, "selectivity": -1}
WRONG: dict[str, tuple[tuple[str, Body], str, str | None]] = {
    "a volume below 0": (between(volume_gb=-1), "InputError", "volume_gb"),
    "a volume that is no number": (between(volume_gb="much"), "InputError", "volume_gb"),
    "no such objective": (copies([DST], objective="fun"), "InputError", "objective"),
    "an unknown region": (between(src="atlantis"), "UnknownRegionError", "src"),
    "a bucket of the region": (
        between(src=f"s3://some-bucket?region={SRC.partition(':')[2]}", dst=SRC),
        "InputError",
        "dst",
    ),
    "a rule that covers nothing": (between(avoid=["provider:nobody"]), "InputError", "avoid"),
    "an end in a place to avoid": (between(avoid=["provider:aws"]), "InputError", "src"),
    "an unknown VM type": (between(vm_types={"aws": "m9.tiny"}), "InputError", "vm_types"),
    "too many connections": (between(connections=100000), "InputError", "connections"),
    "a deadline that can't be met": (
        between(volume_gb=100000, deadline_s=60),
        "InfeasibleError",
        None,
    ),
    "a budget that nothing meets": (
        between(volume_gb=1000, budget_usd=0.01),
        "InfeasibleError",
        None,
    ),
    "an age that was not measured": (("transfer", UNMEASURED), "DataError", None),
    "no demands": (("shuffle", {"demands": []}), "InputError", "demands"),
    "a demand below 0": (all_at_once(-5), "InputError", None),
    "a deadline of many transfers": (all_at_once(50000, deadline_s=60), "InfeasibleError", None),
    "a copy to the source": (copies([SRC, DST]), "InputError", "destinations"),
    "a selectivity below 0": (("place-reduce", REDUCE), "InputError", "selectivity"),
    "no room for a task": (("place-tasks", NO_ROOM), "InfeasibleError", None),
    "what is no plan": (
        ("replan", {"plan": {"a": 1}, "moved_gb": 1, "elapsed_s": 1}),
        "InputError",
        None,
    ),
}


@pytest.mark.parametrize("state", [fresh], indirect=True, ids=["fresh"])
@pytest.mark.parametrize("wrong", WRONG)
def test_all_surfaces_raise_one_error(surfaces: Surfaces, wrong: str) -> None:
    (name, body), kind, field = WRONG[wrong]
    question = BY_NAME[name]
    outcomes = {surface: ask(question, body) for surface, ask in surfaces.by_name.items()}
    error = outcomes["library"]
    problem = problem_of(error)
    assert problem.kind == kind
    if field:
        assert problem.field is not None
        assert problem.field.split()[0] == field
    assert "--" not in problem.text
    said = _without_value(str(_document(error, question.request, {})["detail"]))  # type: ignore[arg-type]
    for surface, outcome in outcomes.items():
        if isinstance(outcome, Said):
            assert _without_value(json.loads(outcome)["error"]["detail"]) == said, surface
        else:
            assert problem_of(outcome) == problem, surface


def _without_value(text: str) -> str:
    """Return an error without the value, which a person types otherwise than JSON has it."""
    return re.sub(r" \(got .*?\)", "", text)
