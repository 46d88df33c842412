"""Tests by several VMs at once: the rate of each, and bounds of plans that use as many."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import relayd
from planner.transfer.plan import Plan
from tests.relayd.building import imported

SRC, DST = "azure:westeurope", "aws:us-east-1"
NOW = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() - 7200))
HEAD = "src,dst,rtt_ms,aggregate_gbps,connections,duration_s,measured_at,vms"


def plan_after(db: Path, tests: list[tuple[float, int]], vms: int) -> Plan:
    """Return the plan for so many VMs after tests: a rate of all together, by so many VMs."""
    imported(db, HEAD, *(f"{SRC},{DST},90,{gbps},64,60,{NOW},{count}" for gbps, count in tests))
    return relayd.open(db).plan(SRC, DST, volume_gb=5000, vms=vms, relays="none", objective="time")


def test_bounds_of_several_vms_are_those_of_one_once_as_many_were_tried(tmp_path: Path) -> None:
    alone, four = [(3.0 + n / 1e3, 1) for n in range(6)], [(12 + n / 1e3, 4) for n in range(3)]
    untried = plan_after(tmp_path / "untried.db", alone, 4)
    tried = plan_after(tmp_path / "tried.db", [*alone[:3], *four], 4)
    one = plan_after(tmp_path / "one.db", alone, 1)
    for plan in (untried, tried):
        assert plan.throughput_gbps == pytest.approx(12.0, rel=0.02)
    share_of_one = one.throughput_gbps_low / one.throughput_gbps
    assert tried.throughput_gbps_low / 12 == pytest.approx(share_of_one, rel=0.03)
    assert untried.throughput_gbps_low / 12 < 0.85 * share_of_one
    warned = [any("further VM" in text for text in plan.warnings) for plan in (untried, tried)]
    assert warned == [True, False]


def test_vms_that_got_less_together_or_are_fewer_prove_nothing(tmp_path: Path) -> None:
    alone = [(3.0 + n / 1e3, 1) for n in range(4)]
    for name, more, vms in (("less", [(6.0, 4)], 4), ("fewer", [(6.0, 2)], 4)):
        plan = plan_after(tmp_path / f"{name}.db", [*alone, *more], vms)
        assert any("further VM" in text for text in plan.warnings)
    wide = plan_after(tmp_path / "untried.db", alone, 4)
    assert plan.throughput_gbps_low > wide.throughput_gbps_low  # two of four were tried


def test_a_bad_count_of_vms_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = tmp_path / "a.db"
    imported(db, HEAD, f"{SRC},{DST},90,3,64,60,{NOW},many", f"{SRC},{DST},90,3,64,60,{NOW},")
    assert "vms is not a count" in capsys.readouterr().out


def test_relays_are_compared_with_no_more_vms_than_a_direct_plan_takes() -> None:
    """Where cost alone counts, one VM a region is enough, and eight are no dearer for a relay."""
    ends = "s3://data?region=us-east-1", "gs://copy?region=europe-west1"
    plan = relayd.open().plan(*ends, volume_gb=20_000, objective="cost", deadline_s=43_200)
    assert (plan.verdict, max(plan.vms.values())) == ("direct", 1)
    assert plan.best_relay is not None
    for relay in (plan.best_relay, *plan.alternatives):
        assert max(relay.vms.values()) == 1
        assert relay.gain == pytest.approx(1.0, abs=0.1)
