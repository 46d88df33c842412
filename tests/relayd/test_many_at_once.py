"""Many transfers at once: against flows that were measured at once, and what no one measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations, islice, permutations
from pathlib import Path
from statistics import median

import pytest

import relayd
from planner.shuffle.plan import ShufflePlan
from relayd.sources.wan import Wan
from tests.relayd.building import imported
from tests.shared_data import shared_rows

Rates = Mapping[tuple[str, str], float]
HEADER = "src,dst,per_flow_mbps,duration_s,measured_at,src_vm,dst_vm,at_once"
_NAMES = "ap-northeast-1 ap-south-1 ap-southeast-1 ap-southeast-2 eu-west-1 sa-east-1 us-west-1"
SEVEN = [f"aws:{name}" for name in _NAMES.split()]


def rows(rates: Rates, vm: str, hour: int, at_once: int = 1) -> list[str]:
    at = f"20,2026-11-01T{hour:02}:00Z,{vm},{vm},{at_once}"
    return [f"{src},{dst},{mbps},{at}" for (src, dst), mbps in rates.items()]


def all_at_once(wan: Wan, volumes_gb: Rates, regions: int) -> ShufflePlan:
    """Return the plan of one flow a pair."""
    return wan.shuffle(volumes_gb, connections=regions - 1, relays="none", vms=1, vms_running=True)


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.thorough)])
def test_flows_at_once_take_as_long_as_they_took(tmp_path: Path, every: int) -> None:
    """From tests with two and three regions at once, up to six; each flow until the others end."""
    measured: dict[int, dict[tuple[str, str], float]] = defaultdict(dict)
    for row in shared_rows("simultaneous_flows_wanify_part.csv"):
        rate = float(row["median_received_mbps"])
        measured[int(row["num_dcs"])][row["src"], row["dst"]] = rate
    tests = [line for n in (2, 3) for line in rows(measured[n], "t2.medium", n)]
    wan = relayd.open(imported(tmp_path / "flows.db", HEADER, *tests))
    for count in (2, 3, 4, 6):
        ratios, inside, equal = [], [], []
        for regions in islice(combinations(SEVEN, count), 0, None, every):
            # In 1000 s, at the rates that all had together.
            volumes = {pair: measured[count][pair] / 8 for pair in permutations(regions, 2)}
            plan = all_at_once(wan, volumes, count)
            ratios.append(plan.duration_s / 1000)
            inside.append(plan.duration_s_low <= 1000 <= plan.duration_s_high)
            slowest = min(measured[count][pair] for pair in volumes)
            same = all_at_once(wan, dict.fromkeys(volumes, 10.0), count)
            equal.append(same.duration_s / (80_000 / slowest))
        assert median(ratios) == pytest.approx(1.0, abs=0.06)
        within = sum(abs(ratio - 1) <= 0.15 for ratio in ratios) / len(ratios)
        assert within >= 0.7, count
        # The slowest flow decides: of six regions, it waits in queues of the VMs, too.
        assert median(equal) == pytest.approx(1.0, abs=0.12), count


def flows(mbps: float) -> dict[tuple[str, str], float]:
    return dict.fromkeys(permutations(SEVEN, 2), mbps)


def test_caps_that_nobody_measured_are_named_and_widen_the_bounds(tmp_path: Path) -> None:
    volumes = flows(10.0)
    wan = relayd.open(imported(tmp_path / "a.db", HEADER, *rows(flows(100), "m5.8xlarge", 1)))
    plan = all_at_once(wan, volumes, 7)
    # As seven regions once took; eight took 1.21 to 2.05 times as long as was expected.
    assert plan.duration_s_high >= 1.9 * plan.duration_s
    assert "no one measured how much a VM at" in plan.warnings[len(plan.outdated)]
    # Three links at once are sure to be as fast as alone.
    four = dict.fromkeys(permutations(SEVEN[:4], 2), 10.0)
    few = all_at_once(wan, four, 4)
    assert few.duration_s_high < 1.5 * few.duration_s
    assert not any("no one measured how much" in text for text in few.warnings)


def test_tests_at_once_show_caps_and_do_not_slow_links(tmp_path: Path) -> None:
    """Alone a flow has 100 Mbit/s; six at once have 50 each, so that a VM carries 300."""
    lines = [*rows(flows(100), "m5.8xlarge", 1), *rows(flows(50), "m5.8xlarge", 2, 6)]
    wan = relayd.open(imported(tmp_path / "b.db", HEADER, *lines))
    network = wan.network_of(SEVEN)
    for site in (network.sites[region] for region in SEVEN):
        for cap in (site.egress_gbps, site.ingress_gbps):
            assert cap.origin.method in {"cap-probe", "caps-of-vm-type"}
            assert cap.expected == pytest.approx(0.3)
    assert network.link(SEVEN[0], SEVEN[4]).per_flow_mbps.expected > 90
    plan = all_at_once(wan, flows(1.0), 7)
    assert plan.duration_s == pytest.approx(8 * 6 / 0.3, rel=0.02)
    assert not any("no one measured how much" in text for text in plan.warnings)
    pair = all_at_once(wan, {(SEVEN[0], SEVEN[1]): 1.0}, 2)
    assert pair.duration_s == pytest.approx(8 / 0.1, rel=0.1)


def test_a_file_may_state_caps(tmp_path: Path) -> None:
    header = "src,dst,egress_cap_mbps,ingress_cap_gbps,measured_at,src_vm,dst_vm"
    lines = [f"{SEVEN[0]},{SEVEN[1]},700,0.9,2026-11-01T01:00Z,m5.8xlarge,m5.8xlarge"]
    network = relayd.open(imported(tmp_path / "c.db", header, *lines)).network_of(SEVEN[:2])
    assert network.sites[SEVEN[0]].egress_gbps.expected == pytest.approx(0.7)
    assert network.sites[SEVEN[1]].ingress_gbps.expected == pytest.approx(0.9)


def test_each_link_has_a_connection_of_its_own(tmp_path: Path) -> None:
    """A VM with three connections for three links has one for each, however slow one is."""
    rates = flows(100) | {(SEVEN[0], SEVEN[1]): 10.0, (SEVEN[1], SEVEN[0]): 10.0}
    wan = relayd.open(imported(tmp_path / "d.db", HEADER, *rows(rates, "m5.8xlarge", 1)))
    known = wan.network_of(SEVEN).link(SEVEN[0], SEVEN[1]).per_flow_mbps.expected
    demands = {(SEVEN[0], other): 1.0 for other in SEVEN[1:4]}
    plan = wan.shuffle(demands, connections=3, relays="none", vms=1, vms_running=True)
    assert plan.duration_s >= 8000 / known
