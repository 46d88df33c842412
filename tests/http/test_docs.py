"""Each example of the API's page is run, and answers as the page says."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.http.running import ROOT, served

PAGE = ROOT / "docs" / "api.md"
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


def test_examples_answer_as_shown(store: Path) -> None:
    done = 0
    with served(store) as service:
        for command, shown in examples():
            words = command.replace("curl ", "curl -sS ").replace(SHOWN_AT, service.url)
            ran = subprocess.run(["bash", "-c", words], check=True, capture_output=True, text=True)
            found = json.loads(ran.stdout)
            assert shown is not None or found.get("status") is None, command
            if shown is not None:
                holds(shown, found, command.split()[1])
            done += 1
    assert done >= 14


def test_every_problem_and_path_is_on_the_page() -> None:
    from relayd.http.description import ALL_ROUTES as ROUTES
    from relayd.http.problems import _TITLES

    text = PAGE.read_text()
    for kind in _TITLES:
        assert f"`{kind}`" in text, kind
    for route in ROUTES:
        if route.path.startswith("/v1"):
            stem = route.path.replace("{src}/{dst}", "us-east/sa")
            assert stem in text, stem
