"""``make demo-lab``, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.lab.end_to_end.campaigns import ROOT


def test_from_nothing_to_a_plan_and_back_without_a_hand(machine: None, tmp_path: Path) -> None:
    labs = tmp_path / "labs"
    done = subprocess.run(
        ["scripts/demo_lab.sh", f"{sys.executable} -m relayd", "3", "0.5"],
        cwd=ROOT,
        env={**os.environ, "RELAYD_LAB_DIR": str(labs), "XDG_DATA_HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("$ relayd")]
    expected = [
        "measure lab up",
        "measure fleet check",
        "probe --db",
        "plan --src",
        "measure lab down",
    ]
    for step, words in zip(steps, expected, strict=True):
        assert step.startswith(f"$ relayd {words}"), step
    assert "3 of 3 hosts are fit" in done.stdout
    assert "Rests on" in done.stdout
    assert "(baseline)" not in done.stdout  # what was measured has gone into the plan
    assert not list(labs.glob("demo-*"))
