"""The base install: what works without the packages of extras."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from relayd.cli.help.doctor import EXTRAS

RUN = """
import contextlib, io, json, sys
from relayd.cli.help.doctor import EXTRAS
for module in EXTRAS:
    sys.modules[module.partition(".")[0]] = None
from relayd.__main__ import main
found = []
for words in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, \\
         contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words)
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def without_extras(folder: Path, *commands: str) -> list[tuple[int, str, str]]:
    """Run commands in an interpreter that has none of the packages of extras."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RELAYD_")}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([command.split() for command in commands]),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**environment, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)},
    )
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


@pytest.mark.slow
def test_what_most_people_ask_needs_no_extra(tmp_path: Path) -> None:
    (tmp_path / "demands.csv").write_text(
        "src,dst,volume_gb\naws:us-east-1,aws:us-west-2,100\naws:us-east-1,aws:eu-west-1,50\n"
    )
    (tmp_path / "measured.csv").write_text(
        "src,dst,measured_at,aggregate_gbps\naws:us-east-1,aws:eu-west-1,2026-11-01T00:00:00Z,4.2\n"
    )
    found = without_extras(
        tmp_path,
        "plan us-east sa --volume 500GB --json",
        "plan shuffle demands.csv --json",
        "import csv measured.csv --db links.db",
        "data links --db links.db",
        "data matrix --summary",
        "data samples list --db links.db",
        "data doctor",
        "serve --check",
    )
    assert [(code, err) for code, _, err in found if code] == []
    assert json.loads(found[0][1])["verdict"] == "direct"
    assert json.loads(found[1][1])["verdict"] == "direct"
    doctor = found[-2][1]
    for extra, _ in EXTRAS.values():
        assert f"pip install 'relayd[{extra}]'" in " ".join(doctor.split())


def test_the_extra_all_has_every_extra_that_goes_into_one_environment() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (every,) = extras.pop("all")
    named = re.fullmatch(r"relayd\[(.*)\]", every)
    assert named
    assert {*extras} - {*named[1].split(",")} == {"airflow", "ray", "skypilot"}
