"""``relayd measure fleet check`` and the questions of ``relayd probe``, with real hosts."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relayd.store import open_store
from tests.probes.fleet.machines import Machine, machines, need
from tests.relayd.building import fleet_file
from tests.relayd.conftest import Relayd
from tests.waiting import eventually

_REGIONS = ["aws:us-east-1", "gcp:us-east1", "azure:eastus"]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[Path, dict[str, Machine]]]:
    """A fleet file, and the sshds by region."""
    need("iperf3", "ping")
    (tmp_path / "programs").mkdir()
    with machines(tmp_path, _REGIONS, programs=tmp_path / "programs") as (members, found):
        blocks = [
            f"[[host]]\nregion = '{host.region}'\nhost = '{host.host}'\nport = {host.port}\n"
            f"public_address = '{host.public_address}'\nkey = 'id'\nknown_hosts = 'known_hosts'\n"
            f"probe_ports = [{host.first_port}, {host.last_port}]\n"
            for host in members
        ]
        (tmp_path / "fleet.toml").write_text("\n".join(blocks))
        yield tmp_path / "fleet.toml", found


def test_a_fleet_that_is_fit(fleet: tuple[Path, dict[str, Machine]], relayd: Relayd) -> None:
    begun_s = time.monotonic()
    done = relayd("measure", "fleet", "check", "--fleet", fleet[0], "--json")
    took_s = time.monotonic() - begun_s
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["fit"], report["total"]) == (3, 3)
    for host in report["hosts"]:
        facts = host["facts"]
        assert facts["probe_port_reachable"] is True
        assert facts["tools"]["iperf3"][0].isdigit()
        assert abs(facts["clock_offset_s"]) < took_s  # it is one clock: all else is delay
        assert 0 <= facts["idle_share"] <= 1
        assert facts["receive_window_bytes"] > 1000
        assert facts["congestion_control"]


def test_a_host_that_hangs_and_one_with_another_key_do_not_hide_the_third(
    fleet: tuple[Path, dict[str, Machine]], relayd: Relayd
) -> None:
    path, found = fleet
    known = path.parent / "known_hosts"
    hanging, changed, well = (found[name] for name in _REGIONS)
    hanging.signal(signal.SIGSTOP)
    known.write_text(known.read_text().replace(changed.public_key, well.public_key))
    done = relayd("measure", "fleet", "check", "--fleet", path)
    assert done.code == 5
    assert "aws:us-east-1: error: no SSH login within" in done.out
    assert "gcp:us-east1: error: its host key is not the one on record" in done.out
    assert "1 of 3 hosts are fit" in done.out


def test_new_keys_are_stored_only_with_a_consent(
    fleet: tuple[Path, dict[str, Machine]], relayd: Relayd
) -> None:
    path, found = fleet
    check = ("measure", "fleet", "check", "--fleet", path)
    known = path.parent / "known_hosts"
    before = known.read_text()
    known.write_text("".join(before.splitlines(keepends=True)[1:]))
    done = relayd(*check)
    assert (done.code, "add --trust-new" in done.err) == (5, True)
    done = relayd(*check, "--trust-new")
    assert (done.code, "needs a consent" in done.err) == (2, True)
    assert found[_REGIONS[0]].public_key not in known.read_text()
    done = relayd(*check, "--trust-new", "--yes")
    assert done.code == 0, done.out + done.err
    assert sorted(known.read_text().split("\n")) == sorted(before.split("\n"))


def test_nothing_is_measured_without_a_consent(
    fleet: tuple[Path, dict[str, Machine]], tmp_path: Path, relayd: Relayd
) -> None:
    common = ("--fleet", fleet[0], "--db", tmp_path / "store.db")
    probe = ("probe", *common, "--phases", "rtt", "--pairs", f"{_REGIONS[0]}>{_REGIONS[1]}")
    forecast = relayd(*probe, "--dry-run", "--json")
    assert forecast.code == 0, forecast.err
    content = json.loads(forecast.out)
    assert content["campaign"]["rounds"] == 1
    assert content["all_pairs"]["rounds"] == 6
    watched = relayd("measure", "watch", *common, "--daily-budget", "1", "--dry-run", "--json")
    assert watched.code == 0, watched.err
    assert json.loads(watched.out)["campaign"]["egress_usd"] > 0
    assert not (tmp_path / "store.db").exists()
    refused = relayd(*probe)
    assert (refused.code, "Add --yes" in refused.err) == (2, True)
    done = relayd(*probe, "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["done"] == 1
    assert "Nothing to resume" in relayd(*probe, "--resume").err


def test_an_interruption_leaves_nothing_and_can_be_resumed(
    fleet: tuple[Path, dict[str, Machine]], tmp_path: Path, relayd: Relayd
) -> None:
    """By either signal; what was resumed can be interrupted again."""
    common = ["--fleet", str(fleet[0]), "--db", str(tmp_path / "store.db"), "--json"]
    # Long enough to be interrupted: the last count is the one that holds.
    lasting = tmp_path / "programs" / "ping"
    lasting.write_text(f'#!/bin/sh\nexec {shutil.which("ping")} "$@" -c 600\n')
    lasting.chmod(0o755)
    for number, more in (
        (signal.SIGINT, ["--phases", "rtt", "--pairs", "*>*", "--yes"]),
        (signal.SIGTERM, ["--resume"]),
    ):
        with subprocess.Popen(
            [sys.executable, "-m", "relayd", "probe", *common, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_interruptible,
        ) as campaign:

            def measures() -> bool:
                assert campaign.poll() is None
                return bool(_children(fleet[1], "ping"))

            eventually(measures)
            campaign.send_signal(number)
            _, said = campaign.communicate(timeout=120)
        assert campaign.returncode == 130
        assert "--resume` goes on" in said
        assert "Traceback" not in said
        assert not _children(fleet[1], "ping")
    lasting.unlink()
    done = relayd("probe", *common, "--resume")
    assert done.code == 0, done.err
    assert json.loads(done.out)["failed"] == []
    with open_store(tmp_path / "store.db", mode="read") as store:
        found = [s for s in store.samples.read() if s.metric == "rtt_ms"]
    assert len(found) == len({(s.src, s.dst) for s in found}) == 6


def _interruptible() -> None:
    """A shell starts what runs in its background with interruptions ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _children(hosts: dict[str, Machine], name: str) -> list[int]:
    """Processes of this name that the sshds have begun."""
    found = []
    for machine in hosts.values():
        for pid in machine.everyone():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    found.append(pid)
    return found


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--phases rtt,speed", "names an unknown phase"),
        ("--pairs aws:us-east-1", "is not a pair"),
        ("--pairs aws:us-east-1>aws:us-west-2", "neither a host nor a region"),
        ("--connections 500", "between 1 and 128"),
        ("--flow-time 1s", "between 4s and 1h"),
        ("--budget -3usd", "is negative"),
        ("--max-minutes soon", "--max-minutes is not a number"),
        ("--parallel 0", "must be at least 1"),
    ],
)
def test_a_wrong_choice_is_explained(
    tmp_path: Path, relayd: Relayd, words: str, problem: str
) -> None:
    # Before anybody is asked: no host is there.
    fleet = fleet_file(tmp_path / "fleet.toml", *_REGIONS)
    usual = {"--phases": "rtt", "--pairs": f"{_REGIONS[0]}>{_REGIONS[1]}"}
    name, value = words.split()
    chosen = [word for option in (usual | {name: value}).items() for word in option]
    asked = ["probe", "--fleet", fleet, "--db", tmp_path / "s.db", "--yes", *chosen]
    refused = relayd(*asked)
    assert refused.code == 2
    assert problem in refused.err
