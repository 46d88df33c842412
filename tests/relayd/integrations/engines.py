"""Runs a script with an engine in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]


def python_of(engine: str) -> Path:
    """Return the interpreter of an environment with one extra alone, or skip."""
    # `make test-integrations` makes it inside of the one that runs tests.
    python = Path(sys.prefix) / "engines" / engine / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs an environment with relayd[{engine}] (make test-integrations)")
    return python


def example_of(page: str, replaced: Mapping[str, str]) -> str:
    """Return the only example in Python of a page, with what a test has in place of its own."""
    text = (ROOT / "docs" / page).read_text()
    (example,) = re.findall(r"^```py\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for theirs, ours in replaced.items():
        assert example.count(theirs) == 1
        example = example.replace(theirs, ours)
    return str(example)


def result_of(
    script: str,
    folder: Path,
    python: Path | str = sys.executable,
    environment: Mapping[str, str] = {},
) -> list[Any]:
    """Run a script beside the tests, where engines may leave threads and warnings behind."""
    done = subprocess.run(
        [python, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"^RESULT (.*)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    result: list[Any] = json.loads(found[1])
    return result
