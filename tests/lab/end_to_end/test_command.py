"""``relayd measure lab`` as a person types it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from relayd.__main__ import main


@pytest.fixture
def command(
    tmp_path: Path, environment: MutableMapping[str, str], capfd: pytest.CaptureFixture[str]
) -> Iterator[Any]:
    environment["RELAYD_LAB_DIR"] = str(tmp_path / "labs")
    environment["XDG_DATA_HOME"] = str(tmp_path / "data")

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["measure", "lab", *words])
        said = capfd.readouterr()
        return code, said.out, said.err

    yield run
    main(["measure", "lab", "down", "--all"])


def test_a_lab_from_up_to_down(machine: None, command: Any) -> None:
    code, out, _ = command("up", "--regions", "us-east,gcp:us-east1, aws:sa-east-1", "--json")
    assert code == 0
    fleet = tomllib.loads(Path(json.loads(out)["fleet_file"]).read_text())
    regions = [host["region"] for host in fleet["host"]]
    assert regions[1:] == ["gcp:us-east1", "aws:sa-east-1"]
    assert command("up", "--regions", "3")[0] == 2  # other regions, same name
    code, out, _ = command("exec", "aws:sa-east-1", "--", "sh", "-c", "hostname; exit 3")
    assert (code, out) == (3, "aws-sa-east-1\n")
    # Options may also follow the region; what follows `--` is the command's own.
    assert command("exec", "aws:sa-east-1", "--name", "lab", "--", "hostname")[1] == out
    assert command("exec", "aws:sa-east-1", "--", "echo", "--name", "x")[1] == "--name x\n"
    assert command("exec", "aws:sa-east-1", "--name", "other", "hostname")[0] == 2
    assert command("set", "link", regions[0], "sa-east-1", "loss_pct=100", "--one-way")[0] == 0
    assert command("set", "host", "all", "icmp=filtered")[0] == 0
    _, out, _ = command("status", "--json")
    [lab] = json.loads(out)["labs"]
    assert lab["links"] == [
        {"source": regions[0], "destination": "aws:sa-east-1", "loss_pct": 100.0}
    ]
    assert [site["behaviour"] for site in lab["sites"]] == [{"icmp": "filtered"}] * 3
    _, out, _ = command("status")
    assert "aws:sa-east-1" in out
    assert command("set", "clear")[0] == 0
    assert command("down") == (0, "Down: lab.\n", "")
    assert command("status")[1].startswith("No lab runs")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("up", "--profile", "none-such"), "paper, skyplane-2022"),
        (("up", "--regions", "0"), "--regions"),
        (("up", "--regions", "atlantis"), "atlantis"),
        (("up", "--scale", "0"), "--scale"),
        (("up", "--scale", "big"), "--scale"),
        (("up", "--from-store"), "import"),
        (("up", "--name", "../x"), "--name"),
        (("set", "host", "all", "icmp"), "NAME=VALUE"),
        (("exec", "aws:us-east-1"), "COMMAND"),
        (("exec", "aws:us-east-1", "--", "true"), "no lab that is up"),
        (("set", "clear"), "no lab that is up"),
    ],
)
def test_a_wrong_command_is_answered_in_one_paragraph(
    command: Any, words: tuple[str, ...], says: str
) -> None:
    code, out, err = command(*words)
    assert code == 2
    assert says in err
    assert out == ""
    assert len(err.splitlines()) == 1
