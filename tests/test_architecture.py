"""The shape of the tree: imports go one way, without circles, and commands load what they need."""

from __future__ import annotations

import ast
import csv
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.module_graph import (
    PACKAGES,
    ROOT,
    circles,
    import_graph,
    imports_of,
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
    "argparse",
    "dataclasses",
    "hashlib",
    "inspect",
    "textwrap",
)

# What a plan for people loads none of, either; JSON and patterns are for others.
SLOW = (
    "datetime",
    "enum",
    "fnmatch",
    "ipaddress",
    "json",
    "pathlib",
    "planner.model.quotas.vcpus",
    "re",
    "relayd.store.regions",
    "relayd.store.samples.waiting",
    "sqlite3",
    "urllib",
)

# Packages that take long to load or that are optional: a function may import them.
HEAVY_IMPORTS = {
    "platformdirs",
    "networkx",
    "pydantic",
    "threadpoolctl",
    "pandas",
    "distributed",
    "fsspec",
    "numpy",
    "ortools",
    "vl_convert",
    "psycopg",
    "argcomplete",
    "argcomplete.shell_integration",
    "pyarrow",
    "pyarrow.parquet",
}
# What functions import of ours or of the standard library, so that a command starts quickly.
DEFERRED = {
    "planner.fields.kinds": {"json"},
    "planner.fields.specified": {"difflib"},
    "planner.hints": {"planner.literals"},
    "planner.model.aliases": {"difflib", "fnmatch", "re", "unicodedata"},
    "planner.model.answer": {"json", "planner.model.notebook"},
    "planner.model.baseline.graph": {"planner.model.baseline.backbone"},
    "planner.model.catalogue": {"difflib", "fnmatch"},
    "planner.model.columns.network": {"planner.model.columns.table"},
    "planner.model.link": {"planner.model.notebook"},
    "planner.model.network": {
        "planner.model.columns.arrays",
        "planner.model.graphs",
        "planner.model.notebook",
    },
    "planner.model.quotas.sites": {"planner.model.quotas.vcpus"},
    "planner.model.units": {"re"},
    "planner.records": {"dataclasses", "inspect", "planner.literals", "typing"},
    "planner.transfer.bottlenecks": {"planner.transfer.optimum"},
    "planner.transfer.decision": {"planner.transfer.infeasibility"},
    "planner.transfer.option_search": {"planner.transfer.optimum"},
    "planner.transfer.recommendation": {
        "planner.transfer.leases.leased_paths",
        "planner.transfer.optimum",
        "planner.transfer.repeated.exploring",
    },
    "planner.transfer.request": {
        "planner.exploring.outcome",
        "planner.transfer.leases.leased_link",
    },
    "planner.transfer.vm_count": {"planner.transfer.optimum"},
    "probes.lab.controller": {"select"},
    "probes.lab.requirements": {"probes.lab.linux"},
    "probes.lab.topology": {"difflib"},
    "relayd.__main__": {"relayd.cli.help.completion", "relayd.cli.running"},
    "relayd.catalogue.overlays": {"pathlib", "re"},
    "relayd.cli.argument_parser": {"difflib"},
    "relayd.cli.help.completion": {"relayd.cli.help.completers"},
    "relayd.catalogue.loading": {
        "pathlib",
        "planner.model.quotas.vcpus",
        "relayd.catalogue.faults",
        "relayd.catalogue.lists",
        "relayd.catalogue.schema",
        "tempfile",
        "tomllib",
    },
    "relayd.cli.data.backtest": {"relayd.backtesting.running"},
    "relayd.cli.data.bench_decisions": {"relayd.backtesting.decisions.running"},
    "relayd.cli.data.importing": {
        "probes.importers.parquet",
        "relayd.history.data_set",
        "relayd.store.samples.data_set",
    },
    "relayd.cli.options": {"relayd.sources.mirror"},
    "relayd.cli.output": {"shlex", "subprocess"},
    "relayd.cli.parser": {
        "relayd.cli.catalogue.commands",
        "relayd.cli.data.commands",
        "relayd.cli.data.import_command",
        "relayd.cli.help.commands",
        "relayd.cli.measuring.commands",
        "relayd.cli.questions.commands",
        "relayd.cli.serving.commands",
    },
    "relayd.cli.questions.asking": {"relayd.cli.questions.reading"},
    "relayd.cli.questions.plan": {"relayd.emitting.formats"},
    "relayd.cli.serving.mcp": {"relayd.mcp.serving"},
    "relayd.cli.running": {"relayd.cli.parser", "relayd.cli.plain_parser", "relayd.cli.wording"},
    "relayd.cli.text": {"re", "shutil", "textwrap"},
    "relayd.client.answers": {"relayd.tables.matrices"},
    "relayd.folders": {"pathlib"},
    "relayd.http.campaigns.fleet_file": {"probes.fleet.file"},
    "relayd.http.campaigns.forecasting": {
        "relayd.campaigns.forecast",
        "relayd.campaigns.inputs",
        "relayd.http.campaigns.fleet_file",
        "relayd.http.campaigns.process",
        "relayd.store",
    },
    "relayd.http.responses.problems": {"aiohttp"},
    "relayd.http.routes.network.link_evidence": {
        "probes.analysis.binning",
        "relayd.store.links.series",
    },
    "relayd.http.routes.network.links": {
        "planner.model.columns.arrays",
        "probes.analysis.geodesic",
    },
    "relayd.http.server.serving": {"relayd.http.monitoring.telemetry"},
    "relayd.http.server.snapshot_maker": {"relayd.snapshots.building", "relayd.store"},
    "relayd.http.server.watcher_supervisor": {
        "probes.fleet.file",
        "relayd.catalogue.loading",
        "relayd.watch.watcher",
    },
    "relayd.questions.ages": {"relayd.questions.newer_samples"},
    "relayd.questions.methods": {"inspect", "textwrap", "typing"},
    "relayd.questions.transfer": {
        "planner.exploring.outcome",
        "planner.model.calibration",
        "relayd.questions.outcomes",
    },
    "relayd.settings": {"pathlib", "relayd.store.location", "tomllib"},
    "relayd.sources.wan": {
        "planner.model.quotas.sites",
        "relayd.sources.memory",
        "relayd.tables.figures",
        "relayd.tables.link_table",
        "relayd.tables.matrices",
    },
    "relayd.sources.opening": {
        "relayd.client.blocking",
        "relayd.client.connection",
        "relayd.sources.mirror",
    },
    "relayd.sources.stored": {
        "probes.fleet.file",
        "probes.fleet.sites",
        "relayd.store.link_blocks",
        "relayd.store.links.states",
        "relayd.store.opening",
        "relayd.store.samples.waiting",
        "relayd.store.verifications",
        "relayd.transfers.register",
    },
    "relayd.store.changes": {"getpass", "socket"},
    "relayd.store.location": {"ipaddress", "pathlib", "re"},
    "relayd.store.opening": {
        "relayd.store.leases",
        "relayd.store.postgresql.opening",
        "relayd.store.samples.reading",
        "relayd.store.sqlite.opening",
    },
    "relayd.store.json_text": {"json"},
    "relayd.store.origins": {"json"},
    "relayd.store.samples.ingest": {"json"},
    "relayd.store.schema": {"pathlib", "relayd.store.link_rows"},
    "relayd.store.snapshots": {
        "planner.model.columns.table",
        "relayd.store.events",
        "relayd.store.regions",
    },
    "relayd.store.sqlite.database": {"pathlib"},
    "relayd.store.sqlite.opening": {"pathlib", "relayd.store.sqlite.kept_copy"},
    "relayd.store.upkeep.backup": {"relayd.store.postgresql.dump"},
    "relayd.store.upkeep.versions": {"relayd.store.postgresql.schema"},
    "relayd.store.verifications": {"relayd.store.samples.writing"},
}

# Class names that still stand for two things.
NAMED_TWICE = {"Region", "Site"}

# Folders of more than 20 files that are to be split.
CROWDED: dict[str, int] = {}


def named_lazily(module: str) -> Iterator[str]:
    """Yield our packages whose modules a file names in text, to import them on first use."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            first, dot, rest = node.value.replace(":", ".").partition(".")
            if dot and first in PACKAGES and (ROOT / first / rest.partition(".")[0]).exists():
                yield first


def package_of(module: str) -> str:
    return module.partition(".")[0]


def outermost_imports(module: str) -> set[str]:
    return {package_of(found.imported) for found in imports_of(module)}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_one_way(package: str) -> None:
    inside = [module for module in sources() if package_of(module) == package]
    assert len(inside) > 3
    for module in inside:
        imported = outermost_imports(module)
        assert (imported & set(PACKAGES)) | set(named_lazily(module)) <= MAY_IMPORT[package], module
        assert not imported & {"tests", "benchmarks", "scripts"}, module


def test_the_planner_does_no_io_and_keeps_no_time() -> None:
    for module in sources():
        if package_of(module) != "planner":
            continue
        itself = {"importlib"} if module == "planner" else set()  # its parts, on first use
        assert not outermost_imports(module) & IMPURE - itself, module
        called = {
            node.func.id
            for node in ast.walk(tree_of(module))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not called & {"open", "print", "input", "exec", "eval", "__import__"}, module


# ---- the tree ---------------------------------------------------------------------------------


def test_modules_import_each_other_in_no_circle() -> None:
    # An import that is deferred, or that only type checkers follow, closes a circle as well.
    assert not list(circles(import_graph()))


def test_rooms_import_each_other_in_no_circle() -> None:
    assert not list(circles(room_graph()))


def test_functions_import_only_for_start_up_time() -> None:
    deferred: dict[str, set[str]] = {}
    for module in sources():
        for found in imports_of(module):
            if found.in_function and package_of(found.imported) not in HEAVY_IMPORTS:
                deferred.setdefault(module, set()).add(found.imported)
    for module in deferred.keys() | DEFERRED.keys():
        found_, listed = deferred.get(module, set()), DEFERRED.get(module, set())
        assert not found_ - listed, f"{module}: import {found_ - listed} at its top"
        assert not listed - found_, f"{module}: no longer defers {listed - found_}"


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, set[str]] = {}
    for module in sources():
        # The API's models are called as in its description, which keeps its names for clients.
        if not module.startswith("relayd.http.models"):
            for node in ast.walk(tree_of(module)):
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


def loaded_by(*arguments: str, home: Path, looked_for: tuple[str, ...] = HEAVY) -> set[str]:
    """Run the command line in a fresh interpreter; return the modules looked for that it loaded."""
    program = (
        "import sys\n"
        "from relayd.__main__ import main\n"
        "code = main(sys.argv[1:])\n"
        f"print(' '.join(m for m in {looked_for!r} if m in sys.modules), file=sys.stderr)\n"
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


def test_a_plan_for_people_loads_no_slow_module(store: Path) -> None:
    home = store.parent
    question = ["plan", "--src", "us-east", "--dst", "aws:sa-east-1", "--volume", "500GB"]
    for where in ([], ["--db", str(store)]):
        assert loaded_by(*question, *where, home=home, looked_for=SLOW) == set()


def test_a_slow_module_would_be_noticed(store: Path) -> None:
    question = ["plan", "--src", "us-east", "--dst", "aws:sa-east-1", "--json"]
    assert {"json", "re"} <= loaded_by(*question, home=store.parent, looked_for=SLOW)


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


def test_workers_load_no_web_server() -> None:
    answers = [module for module in sources() if module.startswith("relayd.http.answers")]
    waiting, loaded = ["relayd.http.server.workers", *answers], set()
    while waiting:
        module = waiting.pop()
        if module not in loaded and module in sources():
            waiting += [
                found.imported
                for found in imports_of(module)
                if not found.in_function and not found.for_typing
            ]
        loaded.add(module)
    assert "orjson" in loaded
    assert not {package_of(module) for module in loaded} & {"aiohttp", "pydantic"}


# Where a network is made from nothing. Anywhere else it is derived, by ``Network.with_``.
MAKE_NETWORKS = {
    "planner.model.baseline.graph",
    "planner.model.document",
    "planner.model.network",
    "probes.estimation.estimator",
    "relayd.backtesting.running",
    "relayd.sources.stored",
}


def test_networks_are_derived_and_not_copied_by_hand() -> None:
    making = {
        module
        for module in sources()
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Network"
    }
    assert making == MAKE_NETWORKS
