"""Each example of the pages of the API and of its client is run, and answers as the page says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from relayd.http.description import ALL_ROUTES as ROUTES
from relayd.http.problems import _TITLES
from tests.http.running import ROOT, Served

PAGE, CLIENT_PAGE = ROOT / "docs" / "api.md", ROOT / "docs" / "client.md"
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?", re.DOTALL)
SHOWN_AT = "http://127.0.0.1:8080"


def examples() -> Iterator[tuple[str, Any]]:
    """Yield each command with the answer that the page shows for it, if any."""
    for commands, answer in BLOCK.findall(PAGE.read_text()):
        if commands.count("curl ") > 1:
            yield from ((line, None) for line in commands.splitlines())
        else:
            yield commands, json.loads(answer) if answer else None


def holds(shown: Any, found: Any, where: str = "") -> None:
    """Compare keys and types at every depth; figures and ids change."""
    if isinstance(shown, dict):
        assert isinstance(found, dict), where
        for key, value in shown.items():
            assert key in found, f"{where}.{key}"
            holds(value, found[key], f"{where}.{key}")
    elif isinstance(shown, list):
        assert isinstance(found, list), where
        assert len(found) >= len(shown), where
        for number, value in enumerate(shown):
            holds(value, found[number], f"{where}[{number}]")
    elif isinstance(shown, str) and shown:
        assert shown == found, where
    else:
        same = isinstance(found, int | float) if isinstance(shown, int | float) else True
        assert same, where
        assert isinstance(shown, int | float) or type(shown) is type(found), where


def test_examples_answer_as_shown(changing: Served) -> None:
    done = 0
    for command, shown in examples():
        words = command.replace("curl ", "curl -sS ").replace(SHOWN_AT, changing.url)
        ran = subprocess.run(["bash", "-c", words], check=True, capture_output=True, text=True)
        found = json.loads(ran.stdout)
        assert shown is not None or found.get("status") is None, command
        if shown is not None:
            holds(shown, found, command.split()[1])
        done += 1
    assert done >= 14


def test_every_problem_and_path_is_on_the_page() -> None:
    text = PAGE.read_text()
    for kind in _TITLES:
        assert f"`{kind}`" in text, kind
    for route in ROUTES:
        if route.path.startswith("/v1"):
            stem = route.path.replace("{src}/{dst}", "us-east/sa")
            assert stem in text, stem


def test_every_example_of_the_clients_page_runs(
    changing: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", CLIENT_PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block.replace("http://127.0.0.1:8080", changing.url), names)
    names["wan"].close()
    names["mirror"].close()
    said = capsys.readouterr().out
    assert "no plan: src is not a known region" in said
    assert "1000 GB: " in said
    assert "accepted=1" in said
