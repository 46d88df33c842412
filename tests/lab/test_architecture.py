"""The lab stands on the planner's model alone, and so do its own tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("planner", "probes", "relayd", "tests")


def imported(path: Path) -> Iterator[str]:
    """Yield every module of ours that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "probes":  # `from probes import lab`
                names = [f"probes.{alias.name}" for alias in node.names]
        yield from (name for name in names if name.partition(".")[0] in OURS)


def is_within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_the_lab_imports_nothing_else_of_probes() -> None:
    files = list((ROOT / "probes" / "lab").rglob("*.py"))
    assert len(files) > 10
    for path in files:
        for module in imported(path):
            assert is_within(module, "probes.lab", "planner.model"), (path, module)


def test_its_own_tests_import_nothing_else_either() -> None:
    for path in Path(__file__).parent.glob("*.py"):
        for module in imported(path):
            allowed = (
                "probes.lab",
                "planner.model",
                "tests.lab",
                "tests.properties",
                "tests.waiting",
            )
            assert is_within(module, *allowed), (path, module)
            assert not is_within(module, "tests.lab.end_to_end"), (path, module)
