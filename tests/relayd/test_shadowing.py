"""Projects with a ``planner`` or ``probes`` of their own: relayd works, or says what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = "import relayd\nrelayd.open().plan('us-east', 'sa')"


def run(folder: Path, *words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with another on PYTHONPATH; a user who has no data of relayd."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder)}
    environment.pop("PYTHONPATH", None)
    if path:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=60,
    )


@pytest.fixture(params=["planner.py", "probes/__init__.py"])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a module of a project that has a package's name."""
    file = tmp_path / str(request.param)
    file.parent.mkdir(exist_ok=True)
    file.touch()
    return file


def test_a_library_names_the_file_that_is_in_the_way(other: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "-c", LIBRARY)
    assert done.returncode == 1
    *_, last = done.stderr.strip().split("\n")
    assert last.startswith("relayd.shadowing.ShadowedPackageError: Python finds another")
    assert str(other) in last
    assert "Rename it" in last
    # One that the project imported before counts, too.
    name = other.relative_to(tmp_path).parts[0].removesuffix(".py")
    imported = run(
        tmp_path,
        "-c",
        f"import {name}\ntry:\n import relayd; relayd.Wan\nexcept ImportError as e: print(e.name)",
    )
    assert imported.stdout == f"{name}\n"
    assert run(tmp_path, "-P", "-c", LIBRARY).returncode == 0


def test_a_command_works_in_any_folder_and_names_what_is_in_its_way(
    other: Path, tmp_path: Path
) -> None:
    words = ("-m", "relayd", "plan", "us-east", "sa")
    assert run(tmp_path, *words).stdout.startswith("Send it direct")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    script = str(Path(sys.executable).with_name("relayd"))
    for command in (words, (script, *words[2:])):
        done = run(elsewhere, *command, path=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("relayd: Python finds another")
        assert str(other) in done.stderr
        assert str(ROOT) in done.stderr
