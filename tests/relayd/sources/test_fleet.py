"""Plans assume the VMs of the user's fleet, measured or not."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import relayd as library
from planner.model.errors import InputError
from planner.transfer.plan import Plan
from tests.relayd.building import fleet_file, imported
from tests.relayd.conftest import Relayd

ENDS = ("aws:us-east-1", "aws:sa-east-1")
SMALL = 'user = "probe"\nvm_type = "t2.micro"\n'


@pytest.fixture
def fleet(tmp_path: Path, environment: MutableMapping[str, str]) -> Path:
    file = fleet_file(tmp_path / "fleet.toml", *ENDS, more=SMALL)
    environment["RELAYD_FLEET"] = str(file)
    return file


def test_a_fleet_of_small_vms_is_not_planned_as_large_ones(
    fleet: Path, tmp_path: Path, environment: MutableMapping[str, str], relayd: Relayd
) -> None:
    with closing(library.open()) as wan:
        site = wan.sites()["aws:us-east-1"]
        assert (site.vm_type, site.vms) == ("aws:t2.micro", 1)
        small = wan.plan("us-east", "sa", volume_gb=100, vms=1)
        link = wan.network.link("aws:us-east-1", "aws:sa-east-1")
        assert small.throughput_gbps <= site.egress_gbps.expected < 1
        assert link.aggregate_gbps.expected <= site.egress_gbps.expected
        # Elsewhere the catalogue's usual VMs stay.
        assert wan.sites()["aws:eu-west-1"].vms is None
    del environment["RELAYD_FLEET"]
    question = ("plan", "--src", "us-east", "--dst", "sa", "--vms", "1", "--json")
    assert json.loads(relayd(*question).out)["throughput_gbps"] > 4
    # The settings file can name the fleet.
    (tmp_path / "config.toml").write_text('fleet = "fleet.toml"\n')
    environment["RELAYD_CONFIG"] = str(tmp_path / "config.toml")
    assert json.loads(relayd(*question).out)["throughput_gbps"] < 1


def test_plans_take_no_more_vms_than_the_fleet_has_unless_told(fleet: Path) -> None:
    def planned(**more: int) -> Plan:
        asked: dict[str, Any] = {"volume_gb": 100, "objective": "time", "relays": "none", **more}
        with closing(library.open()) as wan:
            return wan.plan("us-east", "sa", **asked)

    def said(plan: Plan) -> list[str]:
        return [text for text in plan.warnings if "the fleet has" in text]

    own, told = planned(), planned(vms=3)
    assert set(own.vms.values()) == {1}
    assert not said(own)
    assert told.vms == {"aws:us-east-1": 3, "aws:sa-east-1": 3}
    assert said(told) == [
        f"The plan takes 3 VMs at {region}, where the fleet has 1." for region in told.vms
    ]
    fleet_file(fleet, *ENDS, *ENDS, more=SMALL)
    assert set(planned().vms.values()) == {2}


def test_a_stated_cap_holds_until_it_is_measured(fleet: Path, tmp_path: Path) -> None:
    fleet_file(fleet, *ENDS, more="egress_mbps = 1000\n")
    with closing(library.open()) as wan:
        link = wan.network.link("aws:us-east-1", "aws:eu-west-1")
        assert wan.sites()["aws:us-east-1"].egress_gbps.basis == "the fleet file"
        assert link.aggregate_gbps.expected == 1.0
    head = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
    row = "aws:us-east-1,aws:eu-west-1,80,3000,64,60,2026-01-01"
    with closing(library.open(imported(tmp_path / "relayd.db", head, row))) as wan:
        measured = wan.network.link("aws:us-east-1", "aws:eu-west-1").aggregate_gbps
        assert measured.source == "measured"
        assert measured.expected == pytest.approx(3, rel=0.1)


def test_a_fleet_file_that_is_wrong_is_named(fleet: Path) -> None:
    fleet.write_text("[[host]]\nregion = 7\n")
    with closing(library.open()) as wan, pytest.raises(InputError, match=r"fleet\.toml"):
        wan.plan("us-east", "sa")
