"""The shape of the tree: imports go one way, without circles, and commands load what they need."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.module_graph import (
    PACKAGES,
    ROOT,
    circles,
    import_graph,
    imports_of,
    nodes_of,
    room_graph,
    sources,
    tree_of,
)

MAY_IMPORT = {
    "planner": {"planner"},
    "probes": {"probes", "planner"},
    "relayd": {"relayd", "probes", "planner"},
}
# What could reach outside, tell the time, or make two runs differ.
IMPURE = """asyncio concurrent datetime fileinput ftplib glob http importlib io logging
    multiprocessing os pathlib platform random secrets select shutil signal socket sqlite3 ssl
    subprocess sys tempfile threading time tomllib urllib uuid"""
# Class names that still stand for two things.
NAMED_TWICE = {"Region", "Site"}

# Folders of more than 20 files that are to be split.
CROWDED: dict[str, int] = {}


def named_lazily(module: str) -> Iterator[str]:
    """Yield our packages whose modules a file names in text, to import them on first use."""
    for node in nodes_of(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            first, dot, rest = node.value.replace(":", ".").partition(".")
            if dot and first in PACKAGES and (ROOT / first / rest.partition(".")[0]).exists():
                yield first


def package_of(module: str) -> str:
    return module.partition(".")[0]


def outermost_imports(module: str) -> set[str]:
    return {package_of(found.imported) for found in imports_of(module)}


def test_packages_import_one_way() -> None:
    assert {package_of(module) for module in sources()} == set(PACKAGES)
    for module in sources():
        imported, may = outermost_imports(module), MAY_IMPORT[package_of(module)]
        assert (imported & set(PACKAGES)) | set(named_lazily(module)) <= may, module
        assert not imported & {"tests", "benchmarks", "scripts"}, module


def test_the_planner_does_no_io_and_keeps_no_time() -> None:
    for module in sources():
        if package_of(module) != "planner":
            continue
        itself = {"importlib"} if module == "planner" else set()  # its parts, on first use
        assert not outermost_imports(module) & set(IMPURE.split()) - itself, module
        called = {
            node.func.id
            for node in nodes_of(module)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"open", "print", "input", "exec", "eval", "__import__"}, module


# ---- the tree ---------------------------------------------------------------------------------


def test_modules_import_each_other_in_no_circle() -> None:
    # An import that is deferred, or that only type checkers follow, closes a circle as well.
    assert not list(circles(import_graph()))


def test_rooms_import_each_other_in_no_circle() -> None:
    assert not list(circles(room_graph()))


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, set[str]] = {}
    for module in sources():
        # The API's models are called as in its description, which keeps its names for clients.
        if not module.startswith(("relayd.http.models", "relayd.http.routes")):
            for node in nodes_of(module):
                if isinstance(node, ast.ClassDef):
                    homes.setdefault(node.name, set()).add(module)
    twice = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    assert set(twice) == NAMED_TWICE, twice


def test_no_folder_is_crowded() -> None:
    crowded = {}
    for folder in {path.parent for path in sources().values()}:
        files = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(files) > 20:
            crowded[folder.relative_to(ROOT).as_posix()] = len(files)
    assert crowded == CROWDED


def test_every_folder_says_what_it_is() -> None:
    for module, path in sources().items():
        if path.name == "__init__.py":
            told = ast.get_docstring(tree_of(module))
            assert told, module


# ---- what an answer loads --------------------------------------------------------------------


def test_starting_loads_nothing_large() -> None:
    # What only some commands need, and takes longer to load than a plan takes to make.
    large = {"networkx", "ortools", "asyncssh", "pandas", "psycopg", "pyarrow", "scipy"}
    program = "import sys, relayd.cli.commands as p\np.build_parser()\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert not large & set(run.stdout.split())


# Where a network is made from nothing. Anywhere else it is derived, by ``Network.with_``.
MAKE_NETWORKS = {
    "planner.model.baseline.modelled_links",
    "planner.model.document",
    "planner.model.network",
    "probes.estimation.estimator",
    "relayd.backtesting.replay",
}


def test_networks_are_derived_and_not_copied_by_hand() -> None:
    making = {
        module
        for module in sources()
        for node in nodes_of(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Network"
    }
    assert making == MAKE_NETWORKS
