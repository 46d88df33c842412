"""Imports go one way, the planner does no I/O, and an answer loads only what it needs."""

from __future__ import annotations

import ast
import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planner", "probes", "relayd")
MAY_IMPORT = {
    "planner": {"planner"},
    "probes": {"probes", "planner"},
    "relayd": {"relayd", "probes", "planner"},
}
# What could reach outside, tell the time, or make two runs differ.
IMPURE = {
    "asyncio",
    "concurrent",
    "datetime",
    "fileinput",
    "ftplib",
    "glob",
    "http",
    "importlib",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "platform",
    "random",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "tomllib",
    "urllib",
    "uuid",
}
HEAVY = (
    "numpy",
    "pydantic",
    "networkx",
    "ortools",
    "aiohttp",
    "asyncssh",
    "scipy",
    "pandas",
    "psycopg",
)


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert len(found) > 3, f"no modules in {package}"
    return found


def imported(path: Path) -> Iterator[str]:
    """Yield the first part of every module that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively, which this test can't follow"
            yield (node.module or "").partition(".")[0]


def named_lazily(path: Path) -> Iterator[str]:
    """Yield our packages whose modules a file names in text, to import them on first use."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            first, dot, rest = node.value.replace(":", ".").partition(".")
            if dot and first in PACKAGES and (ROOT / first / rest.partition(".")[0]).exists():
                yield first


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str) -> None:
    outside = {"tests", "benchmarks", "scripts"}
    for path in modules(package):
        ours = {name for name in imported(path) if name in PACKAGES} | set(named_lazily(path))
        assert ours <= MAY_IMPORT[package], path
        assert not set(imported(path)) & outside, path


def test_the_planner_does_no_io_and_keeps_no_time() -> None:
    for path in modules("planner"):
        assert not set(imported(path)) & IMPURE, path
        called = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"open", "print", "input", "exec", "eval", "__import__"}, path


# ---- what an answer loads --------------------------------------------------------------------


def loaded_by(*arguments: str, home: Path) -> set[str]:
    """Run the command line in a fresh interpreter; return the heavy modules that it loaded."""
    program = (
        "import sys\n"
        "from relayd.__main__ import main\n"
        "code = main(sys.argv[1:])\n"
        f"print(' '.join(m for m in {HEAVY!r} if m in sys.modules), file=sys.stderr)\n"
        "sys.exit(code)"
    )
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("RELAYD_")},
        "HOME": str(home),
        "XDG_DATA_HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "PYTHONPATH": str(ROOT),
    }
    run = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    return set(run.stderr.split("\n")[-2].split())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with a snapshot, made by importing a few measurements."""
    folder = tmp_path_factory.mktemp("store")
    table = folder / "measured.csv"
    names = ["aws:us-east-1", "aws:sa-east-1", "azure:eastus", "gcp:us-east1"]
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["src", "dst", "rtt_ms", "aggregate_mbps", "connections", "duration_s", "measured_at"]
        )
        rows.writerows(
            [a, b, 100, 4000, 64, 60, "2024-05-01T00:00Z"] for a in names for b in names if a != b
        )
    db = folder / "relayd.db"
    loaded_by("import", "csv", str(table), "--db", str(db), home=folder)
    return db


@pytest.mark.parametrize("form", [[], ["--json"], ["--frontier"], ["--objective", "time"]])
def test_a_plan_loads_no_heavy_module(store: Path, form: list[str]) -> None:
    # The import has left the validated catalogue in this user's cache.
    home = store.parent
    question = ["plan", "--src", "us-east", "--dst", "aws:sa-east-1", "--volume", "500GB"]
    assert loaded_by(*question, *form, home=home) == set()
    assert loaded_by(*question, *form, "--db", str(store), home=home) == set()


def test_a_heavy_module_would_be_noticed(store: Path) -> None:
    assert "numpy" in loaded_by("matrix", "--db", str(store), home=store.parent)


def test_the_packages_load_no_heavy_module() -> None:
    program = (
        "import sys, planner, probes, relayd\nrelayd.open\n"
        f"sys.exit(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert run.stderr.strip() == ""
