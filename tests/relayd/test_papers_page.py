"""docs/papers.md: every command that it names exists, and runs on a small store."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from probes.metrics import Metric
from probes.samples import Sample
from relayd.__main__ import main
from relayd.cli.commands import parse
from relayd.report.sections import SECTIONS
from tests.relayd.building import stored
from tests.relayd.test_report import START_S

HERE, THERE = "aws:us-east-1", "gcp:us-east1"
PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
ROW = re.compile(
    r"^\| (?P<paper>20\d\d[^|]*) \|.*\| `(?P<command>relayd [^`]+)` \| `(?P<key>\w+)` \|$"
)
ROWS = [found for line in PAGE.read_text().splitlines() if (found := ROW.match(line))]
PLANNING = re.findall(r"`(relayd plan[^`]*)`", PAGE.read_text().partition("## Planning")[2])
FILES = {"--tariffs": f"src,dst,rate,per_gb_usd\n{HERE},{THERE},2gbps,0\n"}
MEASURE = ("probe", "fleet", "watch")
"""Commands that need hosts: tests/lab runs them. Of campaigns, the forecast needs none."""


def test_all_papers_and_all_their_sections_are_there() -> None:
    assert {row["paper"] for row in ROWS} == {"2015 Azure", "2015 EC2", "2016", "2018", "2021"}
    # The calibration of our own bounds is no method of theirs.
    assert {row["key"] for row in ROWS} == SECTIONS.keys() - {"calibration"}
    assert len(ROWS) >= 32


def test_every_command_is_one() -> None:
    for command in {row["command"] for row in ROWS}:
        assert parse(shlex.split(command)[1:]).command


@pytest.mark.thorough
def test_every_command_runs_on_a_small_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics: dict[Metric, float] = {"aggregate_mbps": 4800.0, "rtt_ms": 20.0, "loss_pct": 0.0}
    samples = [
        Sample(src, dst, metric, value, START_S + 60.0 * k, "test")
        for src, dst in ((HERE, THERE), (THERE, HERE))
        for metric, value in metrics.items()
        for k in range(3)
    ]
    db = stored(tmp_path / "small.db", samples)
    fleet = tmp_path / "fleet.toml"
    hosts = {"198.51.100.1": HERE, "198.51.100.2": THERE}
    fleet.write_text(
        "".join(f'[[host]]\nhost = "{at}"\nregion = "{where}"\n' for at, where in hosts.items())
    )
    for command in dict.fromkeys(row["command"] for row in ROWS):
        words = shlex.split(command)[1:]
        if words[0] == "measure":
            continue
        if words[0] == "probe":
            words += ["--dry-run", "--fleet", str(fleet)]
        assert main([*words, "--db", str(db)]) == 0, command
        assert capsys.readouterr().out, command


def test_every_command_of_planning_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transfers = tmp_path / "transfers.csv"
    transfers.write_text(f"src,dst,volume,deadline\n{HERE},{THERE},1TB,24h\n")
    ends = {"schedule": [str(transfers)], "plan": [HERE, THERE, "--volume", "1TB"]}
    answers = {"--tariffs": "Tariffs"}
    asked = {word for command in PLANNING for word in command.split()}
    assert asked >= {*FILES, "--disk"}
    for command in dict.fromkeys(PLANNING):
        words = shlex.split(command)[1:]
        told = [answers[option] for option in FILES if option in words]
        for option in FILES:
            if option in words:
                file = tmp_path / f"{option[2:]}.csv"
                file.write_text(FILES[option])
                words[words.index(option) + 1] = str(file)
        assert main([*words, *ends["schedule" if "schedule" in words else "plan"]]) == 0, command
        answer = capsys.readouterr().out
        assert all(word in answer for word in told), command
