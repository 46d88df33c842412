"""Runs a script with an engine in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]


def result_of(script: str, folder: Path) -> list[Any]:
    """Run a script beside the tests, where engines may leave threads and warnings behind."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
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
