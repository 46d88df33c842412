"""A distribution of its own adds a question, which every surface then has."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import relayd
from planner.fields.specified import Specified, specified
from planner.model.answer import Recommendation
from probes.importers import ImportOptions
from probes.samples import Sample, SkippedRow
from relayd.questions.registry import QUESTIONS
from tests.dashboard.browser import chromium, watched
from tests.http.running import served
from tests.module_graph import ROOT

Python = Callable[..., str]
ASKED = ["aws:us-east-1", "aws:sa-east-1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where an interpreter finds the example, installed, and relayd."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    alone = ["--no-deps", "--no-build-isolation", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *alone, str(ROOT / "examples/plugin")], check=True)
    return os.pathsep.join([str(target), str(ROOT)])


@pytest.fixture(scope="module")
def python(path: str) -> Python:
    """Run this interpreter where the example was installed."""

    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=path.partition(os.pathsep)[0],
            env={**os.environ, "PYTHONPATH": path},
        ).stdout

    return run


def test_the_command_line_has_the_question(python: Python) -> None:
    assert "aws:sa-east-1 has the least carbon." in python("-m", "relayd", "plan", "carbon", *ASKED)
    found = json.loads(python("-m", "relayd", "plan", "carbon", *ASKED, "--json"))
    assert [one["region"] for one in found["regions"]] == ASKED[::-1]
    assert "`relayd plan carbon`" in python("-m", "relayd", "help", "regions")


def test_the_library_the_service_and_assistants_have_the_question(python: Python) -> None:
    shown = python(
        "-c",
        """if True:
            import asyncio, inspect, json, pathlib, relayd
            from relayd.http.description import document
            from relayd.http.routes.plans import get_questions
            from relayd.mcp.tools import tools
            names = ["aws:us-east-1", "aws:sa-east-1"]
            network = relayd.Network.from_matrices(names, [[0, 5], [5, 0]], rtt_ms=120)
            answer = relayd.open(network).rank_by_carbon(names)
            api = json.loads(document())
            form = asyncio.run(get_questions.handler(None))["questions"]
            print(json.dumps([
                answer.regions[0].region,
                str(answer).splitlines()[0],
                inspect.iscoroutinefunction(relayd.AsyncWan.rank_by_carbon),
                callable(relayd.RemoteWan.rank_by_carbon),
                "post" in api["paths"]["/v1/carbon"],
                "CarbonQuestion" in api["components"]["schemas"],
                [one["name"] for one in form][-1],
                "rank_by_carbon" in [tool.name for tool in tools(pathlib.Path("x.db"), None)],
            ]))""",
    )
    best = "aws:sa-east-1"
    assert json.loads(shown) == [
        *(best, f"{best} has the least carbon.", True, True, True, True, "carbon", True)
    ]


@pytest.mark.service
def test_a_service_answers_the_question_in_full(path: str, python: Python, tmp_path: Path) -> None:
    found = json.loads(python("-m", "relayd", "plan", "carbon", *ASKED, "--json"))
    with served(tmp_path / "relayd.db", environment={"PYTHONPATH": path}) as service:
        answer = service.ask("POST", "/v1/carbon", {"regions": ASKED})
        assert (answer.status, answer.json) == (200, found)
        remote = python(
            "-c",
            f"import relayd; print(relayd.open({service.url!r}).rank_by_carbon({ASKED}).plan_id)",
        )
        assert remote.strip() == found["plan_id"]


@pytest.mark.browser
def test_a_page_has_the_form_and_shows_the_answer(path: str, tmp_path: Path) -> None:
    with (
        served(tmp_path / "relayd.db", environment={"PYTHONPATH": path}) as service,
        chromium() as browser,
        watched(browser) as seen,
    ):
        shown = seen.open(f"{service.url}/?question=carbon")
        shown.get_by_role("link", name="An example").click()
        shown.locator("#verdict").wait_for()
        assert "The grid at aws:sa-east-1 emits 100 g CO2e a kWh." in shown.inner_text("main")
        rows = shown.locator("section:has(#regions) tbody tr")
        assert rows.first.inner_text().split() == ["aws:sa-east-1", "100"]
        assert seen.violations() == []


def test_the_code_of_the_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands there: a question with prices, and an importer of files that name regions."""
    page = (ROOT / "docs/extend.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "extending.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path)
    mine: Any = import_module("extending")
    answer = mine.cheapest(relayd.open(), mine.CheapestRequest("us-east", "500GB"))
    assert answer.prices[0].usd == 10.0
    assert str(answer).startswith(f"Send it to {answer.prices[0].region}.")
    lines = b"2026-11-20T10:00:00Z aws:us-east-1 aws:sa-east-1 812.4 Mbit/s\nnone\n"
    sample, skipped = mine.read(BytesIO(lines), ImportOptions())
    assert isinstance(sample, Sample)
    assert (sample.dst, sample.value) == ("aws:sa-east-1", 812.4)
    assert skipped == SkippedRow(2, "no test in this line")


def test_what_surfaces_can_t_show_is_refused() -> None:
    @dataclass(frozen=True)
    class Slotless(Recommendation):
        pass

    ours = QUESTIONS[0]
    with pytest.raises(ValueError, match="begins with /v1/, and 'plans' does not"):
        replace(ours, path="plans")
    with pytest.raises(ValueError, match="Slotless needs @dataclass"):
        replace(ours, answer=Slotless)
    with pytest.raises(TypeError, match="the field amount states no kind or no help"):

        @specified
        class _Request(Specified):
            amount: float
