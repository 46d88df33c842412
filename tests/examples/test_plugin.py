"""A distribution of its own adds a question, which every surface then has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.module_graph import ROOT

Python = Callable[..., str]
ASKED = ["aws:us-east-1", "aws:sa-east-1"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Run this interpreter where the example was installed."""
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    alone = ["--no-deps", "--no-build-isolation", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*pip, *alone, str(ROOT / "examples/plugin")], check=True)
    path = os.pathsep.join([str(target), str(ROOT)])

    def run(*words: str) -> str:
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=True,
            cwd=target,
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
