"""Plans assume the VMs of the user's fleet, measured or not."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

import relayd
from planner.model.errors import InputError
from relayd.__main__ import main

FLEET = """\
user = "probe"
[[host]]
region = "aws:us-east-1"
host = "198.51.100.1"
vm_type = "t2.micro"
[[host]]
region = "aws:sa-east-1"
host = "198.51.100.2"
vm_type = "t2.micro"
"""


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    monkeypatch.setenv("RELAYD_FLEET", str(file))
    return file


def test_a_fleet_of_small_vms_is_not_planned_as_large_ones(
    fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(relayd.open()) as wan:
        site = wan.sites()["aws:us-east-1"]
        assert (site.vm_type, site.vms) == ("aws:t2.micro", 1)
        small = wan.plan("us-east", "sa", volume_gb=100, vms=1)
        link = wan.network.link("aws:us-east-1", "aws:sa-east-1")
        assert small.throughput_gbps <= site.egress_gbps.expected < 1
        assert link.aggregate_gbps.expected <= site.egress_gbps.expected
        # Elsewhere the catalogue's usual VMs stay.
        assert wan.sites()["aws:eu-west-1"].vms is None
    monkeypatch.delenv("RELAYD_FLEET")
    with closing(relayd.open()) as wan:
        assert wan.plan("us-east", "sa", volume_gb=100, vms=1).throughput_gbps > 4


def test_plans_take_no_more_vms_than_the_fleet_has_unless_told(fleet: Path) -> None:
    def said(warnings: tuple[str, ...]) -> list[str]:
        return [text for text in warnings if "the fleet has" in text]

    with closing(relayd.open()) as wan:
        own = wan.plan("us-east", "sa", volume_gb=100, objective="time", relays="none")
        assert set(own.vms.values()) == {1}
        assert not said(own.warnings)
        told = wan.plan("us-east", "sa", volume_gb=100, objective="time", relays="none", vms=3)
        assert told.vms == {"aws:us-east-1": 3, "aws:sa-east-1": 3}
        assert said(told.warnings) == [
            f"The plan takes 3 VMs at {region}, where the fleet has 1." for region in told.vms
        ]
    extra = FLEET + FLEET.replace("198.51.100.", "203.0.113.")
    fleet.write_text(extra)
    with closing(relayd.open()) as wan:
        both = wan.plan("us-east", "sa", volume_gb=100, objective="time", relays="none")
        assert set(both.vms.values()) == {2}


def test_a_stated_cap_holds_until_it_is_measured(fleet: Path, tmp_path: Path) -> None:
    fleet.write_text(FLEET.replace('vm_type = "t2.micro"', "egress_mbps = 1000"))
    with closing(relayd.open()) as wan:
        link = wan.network.link("aws:us-east-1", "aws:eu-west-1")
        assert wan.sites()["aws:us-east-1"].egress_gbps.basis == "the fleet file"
        assert link.aggregate_gbps.expected == 1.0
    table, db = tmp_path / "measured.csv", tmp_path / "relayd.db"
    table.write_text(
        "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at\n"
        "aws:us-east-1,aws:eu-west-1,80,3000,64,60,2026-01-01\n"
    )
    assert main(["import", "csv", str(table), "--db", str(db)]) == 0
    with closing(relayd.open(db)) as wan:
        measured = wan.network.link("aws:us-east-1", "aws:eu-west-1").aggregate_gbps
        assert measured.source == "measured"
        assert measured.expected == pytest.approx(3, rel=0.1)


def test_the_settings_file_can_name_the_fleet(
    fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RELAYD_FLEET")
    settings = tmp_path / "config.toml"
    settings.write_text('fleet = "fleet.toml"\n')
    monkeypatch.setenv("RELAYD_CONFIG", str(settings))
    assert main(["plan", "--src", "us-east", "--dst", "sa", "--vms", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["throughput_gbps"] < 1


def test_a_fleet_file_that_is_wrong_is_named(fleet: Path) -> None:
    fleet.write_text("[[host]]\nregion = 7\n")
    with closing(relayd.open()) as wan, pytest.raises(InputError, match=r"fleet\.toml"):
        wan.plan("us-east", "sa")
