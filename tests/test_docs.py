"""The docs do what they say: commands print what is shown, examples run, options are described."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.importers import importers
from relayd.cli.commands import build_parser, parse
from relayd.tables.matrices import MATRIX_METRICS
from scripts.console_blocks import PAGES, ROOT, Shell, blocks
from tests.module_graph import entry_points
from tests.ports import free_port
from tests.shared_data import shared

PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What changes from run to run: names of snapshots, and what depends on the age of measurements.
CHANGING = (
    (re.compile(r"Snapshot\s+\d{8}-[0-9a-f]{6}(, as\s+of \d{4}\S+)?"), "Snapshot ID"),
    (re.compile(r"Rests on.*?(?=\n\n|\Z)", re.DOTALL), "Rests on ..."),
    (re.compile(r"\([\d.]+x\s+to\s+[\d.]+x"), "(x to x"),
    (re.compile(r"The best relay\s+carries\s.*?(?=\n\n|\Z)", re.DOTALL), "The odds"),
    (re.compile(r'"plan_id": "\w+"'), '"plan_id": ID'),
)

# Written like modules or files of the repository, but files of a user.
OF_A_USER = {"relayd.example", "relayd.db", "relayd.service", "relayd/config.toml"}


def steady(text: str) -> str:
    for pattern, replacement in CHANGING:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES[1:] if list(blocks(page))],  # the first is the README: see below
    ids=lambda page: page.name,
)
def test_commands_print_what_is_shown(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = list(blocks(page))
    data = None
    if any(block.needs_shared_data for block in shown):
        data = shared("aggregate_2022-01.csv").parent
    shell = Shell(tmp_path, data, tmp_path_factory.getbasetemp() / "cache")
    for block in shown:
        assert steady(shell.output(block)) == steady(block.text), block.commands


@pytest.mark.thorough
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "client.md"],  # needs a service: tests/http/
    ids=lambda page: page.name,
)
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    for code in PYTHON_BLOCK.findall(page.read_text()):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr
        # Comments after print() state what is printed.
        for expected in re.findall(r"^print\(.*\)  # (.+)$", code, re.MULTILINE):
            assert expected in done.stdout


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each command, however deep, with its options."""
    yield name, {o for a in parser._actions for o in a.option_strings if o.startswith("--")}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, inner in action.choices.items():
                yield from commands(inner, f"{name} {word}")


def test_every_command_option_format_and_metric_is_described() -> None:
    words = "\n".join(page.read_text() for page in PAGES)
    for name, options in commands(build_parser(), "relayd"):
        assert name in words, name
        for option in options - {"--help"}:
            assert re.search(rf"{option}(?![\w-])", words), f"{name} {option}"
    for name in (*importers(), *MATRIX_METRICS):
        assert name in words, name


FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.thorough
def test_commands_that_need_more_than_a_page_are_right_as_they_stand() -> None:
    """Of blocks without output, which need fleets, services or root: words and options are ours."""
    seen = 0
    for page in PAGES:
        for language, block in FENCED.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(r"\$\(|[|;&]|(?:^|\s)[<>]", line):
                    if language in ("", "sh") and part.lstrip().startswith("relayd "):
                        try:
                            parse(shlex.split(part, comments=True)[1:])
                        except SystemExit as ended:  # `--print-completion` prints and ends
                            if ended.code:
                                raise
                        seen += 1
    assert seen > 30


def anchor(heading: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def exists(module: str) -> bool:
    """Say whether a dotted name is a module of ours, or a name in one."""
    path = ROOT.joinpath(*module.split("."))
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    home, _, name = module.rpartition(".")
    file = ROOT.joinpath(*home.split("."))
    file = file / "__init__.py" if file.is_dir() else file.with_suffix(".py")
    named = [one for one in (file, file.with_suffix(".pyi")) if one.exists()]
    return any(re.search(rf"\b{name}\b", one.read_text()) for one in named)


def test_modules_and_files_that_pages_name_are_there() -> None:
    files = re.compile(
        r"(?<![\w/.-])(?:planner|probes|relayd|tests|benchmarks|scripts|configs)/[\w./-]+"
    )
    modules = re.compile(r"(?<![\w/.@-])(?:planner|probes|relayd)(?:\.[a-z]\w*)+")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md"]:
        text = page.read_text()
        for name in files.findall(text):
            assert (ROOT / name.rstrip(".")).exists() or name in OF_A_USER, f"{page.name}: {name}"
        for name in modules.findall(text):
            known = exists(name) or name in {*OF_A_USER, *entry_points()}
            assert known, f"{page.name}: {name}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)]+)", page.read_text()):
            name, _, part = target.partition("#")
            other = page.parent / name if name else page
            assert other.exists(), f"{page.name}: {target}"
            if part:
                headings = re.findall(r"^#+ (.+)$", other.read_text(), re.MULTILINE)
                assert part in map(anchor, headings), f"{page.name}: {target}"


def test_the_menu_lists_each_page_once() -> None:
    menu = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    for page in (ROOT / "docs").rglob("*.md"):
        assert menu.count(f": {page.relative_to(ROOT / 'docs')}\n") <= 1, page.name
        assert f"{page.relative_to(ROOT / 'docs')}\n" in menu, page.name


@pytest.mark.service
def test_every_block_of_the_readme_runs_in_a_fresh_copy_as_shown(tmp_path: Path) -> None:
    """With nothing next to it, installed as it says; packages that it needs are there already."""
    copy, python = tmp_path / "clone", tmp_path / "venv" / "bin" / "python"
    leave_out = shutil.ignore_patterns(".*", "build", "dist", "tests", "benchmarks")
    shutil.copytree(ROOT, copy, ignore=leave_out)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    pip = python.with_name("pip")
    pip.write_text(f'#!/bin/sh\nexec {python} -m pip "$@"\n')
    pip.chmod(0o755)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("RELAYD_")},
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p and Path(p) != ROOT),
        "PIP_NO_BUILD_ISOLATION": "0",  # which turns it off, as `--no-build-isolation` does
        "PIP_NO_COMPILE": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
    }
    (copy / ".venv").symlink_to(tmp_path / "venv")
    python.with_name(".runtime").touch()  # as `make setup` leaves it, which needs a network
    port, ran = free_port(), 0
    for language, block in FENCED.findall((copy / "README.md").read_text()):
        said = re.sub(r"^\$ .*\n", "", block, flags=re.MULTILINE)
        lines = "".join(line[2:] for line in block.splitlines(True) if line.startswith("$ "))
        script = {"console": lines, "sh": block}.get(language, "")
        script = script.replace("8080", str(port)).replace("serve ", f"serve --port {port} ")
        words = ["bash", "-ec", f"trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{script}"]
        if language == "python":
            words = [str(python), "-W", "error", "-c", block]
        done = subprocess.run(
            words,
            cwd=copy,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{block}\n{done.stdout}"
        if language == "console":
            assert steady(done.stdout) == steady(said), lines
        for expected in re.findall(r"^print\(.*\)  # (.+)$", block, re.MULTILINE):
            assert expected in done.stdout
        ran += 1
    assert ran >= 6


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_records_of_decisions_that_the_code_names_are_there() -> None:
    named = 0
    for package in ("planner", "probes", "relayd"):
        for path in (ROOT / package).rglob("*.py"):
            for record in re.findall(r"docs/decisions/[\w-]+\.md", path.read_text()):
                assert (ROOT / record).exists(), path
                named += 1
    assert named >= 9
