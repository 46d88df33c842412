"""A full disk in every step: the short form of ``python -m benchmarks.full_disk``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]


def test_what_is_said_is_stored_is_and_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.full_disk", "2"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 and not os.environ.get("CI"):
        pytest.skip("may not make a small file system here")
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if "were refused" in line]) == 7
