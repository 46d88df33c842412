"""docs/architecture.md against the code: its tree, its types and its walks."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.module_graph import PACKAGES, ROOT, entry_points

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def walks() -> dict[str, list[str]]:
    """Return the files of every walk in their order."""
    whole = PAGE.partition("## Four walks")[2].partition("## Rules")[0]
    found = {}
    for part in whole.split("### ")[1:]:
        title, _, text = part.partition("\n")
        steps = re.findall(r"^\d+\. (.*?)(?=^\d+\. |^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        found[title] = [name for step in steps for name in re.findall(r"`([\w/]+\.py)`", step)]
    return found


def modules_named_in(path: Path) -> set[str]:
    """Return the modules that a file imports, or names in text to import them later."""
    names: set[str] = set()
    package = ".".join(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            names |= {name, f"{package}.{name}"}
    return names


def module_of(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def test_the_tree_lists_every_room_and_no_other() -> None:
    listed: dict[str, set[str]] = {}
    package = ""
    for line in section("The tree").partition("```\n")[2].partition("```")[0].splitlines():
        name = line.split("/")[0]
        if line.startswith("  "):
            listed[package].add(name.strip())
        else:
            package = name
            listed[package] = set()
    there = {
        name: {path.parent.name for path in (ROOT / name).glob("*/__init__.py")}
        for name in PACKAGES
    }
    assert listed == there


def test_the_central_types_are_where_the_page_says() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| `([\w/.]+)` \|", PAGE, re.MULTILINE)
    assert len(rows) >= 6
    for names, place in rows:
        tree = ast.parse((ROOT / place).read_text(encoding="utf-8"))
        classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        assert set(re.findall(r"\w+", names)) <= classes, place


def test_there_are_four_walks() -> None:
    assert len(walks()) == 4
    assert all(len(files) >= 6 for files in walks().values())


@pytest.mark.parametrize("title", walks())
def test_every_step_of_a_walk_leads_to_the_next(title: str) -> None:
    files = walks()[title]
    assert len(set(files)) == len(files), "a file is entered twice"
    before: set[str] = set()
    for here, there in pairwise(files):
        # A step may also return to a caller that was passed before and go on from there.
        before |= modules_named_in(ROOT / here)
        if "relayd.questions.registry" in before:  # loads the questions by their entry points
            before |= set(entry_points()["relayd.questions"])
        called_back = module_of(here) in modules_named_in(ROOT / there)
        assert module_of(there) in before or called_back, f"{here} -> {there}"


def test_a_volume_passes_few_files() -> None:
    assert len(walks()["A volume, from the command line to the plan"]) <= 7


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[\w.]+/)+[\w.]+\.\w+)`", PAGE))))
def test_files_that_the_page_names_exist(name: str) -> None:
    assert (ROOT / name).is_file()
