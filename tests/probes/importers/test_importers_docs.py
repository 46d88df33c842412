"""docs/importing.md names every format, column and reason that the importers know."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from probes.importers import importers
from probes.importers.csv_samples import FIGURES, OTHERS
from probes.importers.kinds import refused

PAGE = (Path(__file__).parents[3] / "docs" / "importing.md").read_text()

_WITH_REASONS = (
    "blackbox",
    "csv_samples",
    "iperf3",
    "parquet",
    "ping",
    "pscheduler",
    "rates",
    "skyplane",
    "tables",
    "tools",
)


def reasons(module: ModuleType) -> list[str]:
    constants = (value for name, value in vars(module).items() if name.isupper())
    return [value for value in constants if isinstance(value, str) and " " in value]


def test_every_format_has_its_section_and_a_command() -> None:
    for name in importers():
        assert f"\n## {name}\n" in PAGE
        assert f"relayd import {name} " in PAGE
    assert set(re.findall(r"relayd import ([a-z0-9-]+) ", PAGE)) == set(importers())


def test_the_table_of_what_is_read_and_refused_is_that_of_the_code() -> None:
    table = PAGE.partition("| is read as, or refused |\n|---|---|\n")[2].partition("\n\n")[0]
    read = [
        f"| {kind.what} | `{one.name}` |"
        for one in importers().values()
        for kind in one.kinds
        if not kind.is_guess
    ]
    others = [f"| {kind.what} | refused: {kind.remedy} |" for kind in refused()]
    assert table.split("\n") == [*others, *read]


@pytest.mark.parametrize("name", _WITH_REASONS)
def test_every_reason_for_skipping_a_row_is_there(name: str) -> None:
    found = reasons(import_module(f"probes.importers.{name}"))
    assert found
    for reason in found:
        assert f"| {reason} |" in PAGE


def test_every_column_of_a_csv_file_is_there() -> None:
    for column in (*FIGURES, *OTHERS):
        assert f"`{column}`" in PAGE


def test_the_csv_example_is_read_without_a_skipped_row() -> None:
    from tests.probes.importers.reading import outcomes, samples

    example = PAGE.partition("## csv\n\n```\n")[2].partition("```")[0]
    assert len(outcomes("csv", example, measured_at_s=None)) == 3
    assert len(samples("csv", example, measured_at_s=None)) == 3
