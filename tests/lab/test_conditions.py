from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.lab.behaviours import BLACKHOLE, RESET, Impairment, LinkBehaviour
from probes.lab.conditions import Conditions
from probes.lab.topology import SEGMENT_BYTES, Site, Topology
from tests.lab.shapes import star


def test_link_and_hosts_together_make_what_a_pair_does() -> None:
    conditions = Conditions(star([10, 20], cap_mbps=100, window_bytes=100_000))
    assert conditions.impairment(0, 1) == Impairment()
    conditions.set_link("lab:0", "lab:1", {"loss_pct": "1", "rate_mbps": 8}, one_way=True)
    assert conditions.impairment(0, 1) == Impairment(loss=0.01, rate=1e6)
    assert conditions.impairment(1, 0) == Impairment()
    conditions.set_host("lab:1", {"state": "reset", "icmp": "filtered"})
    assert conditions.impairment(0, 1).state == RESET
    conditions.set_link("all", "lab:1", {"state": BLACKHOLE})
    assert conditions.impairment(2, 1).state == BLACKHOLE  # being silent goes before answering
    assert conditions.impairment(2, 1).icmp_filtered
    assert conditions.impairment(2, 0) == Impairment()
    conditions.set_link("lab:0", "lab:1", {"loss_pct": "default"})
    assert conditions.impairment(0, 1).loss == 0
    conditions.clear()
    assert conditions.impairment(0, 1) == Impairment()


def test_windows_rates_and_distances_take_the_nearest_setting() -> None:
    conditions = Conditions(star([10, 20], window_bytes=100_000))
    whole = round(100_000 / SEGMENT_BYTES) * SEGMENT_BYTES
    assert conditions.window_bytes(1, 0) == whole
    conditions.set_host("lab:1", {"window_kb": 14.48})
    assert conditions.window_bytes(1, 0) == 14_480
    conditions.set_link("lab:0", "lab:1", {"window_kb": 28.96, "rtt_ms": 50}, one_way=True)
    assert conditions.window_bytes(1, 0) == 28_960  # of the receiver, for what comes this way
    assert conditions.window_bytes(0, 1) == whole
    assert (conditions.delay_s(0, 1), conditions.delay_s(1, 0)) == (0.025, 0.005)
    conditions.set_host("lab:0", {"egress_mbps": 5, "flow_mbps": 4, "ingress_mbps": 8})
    assert conditions.impairment(0, 2).flow_rate == 4e6 / 8
    assert conditions.ingress_s_per_byte(0) == pytest.approx(1e-6)
    conditions.set_host("lab:0", {"flow_mbps": 6})
    assert conditions.impairment(0, 2).flow_rate == math.inf  # the VM's cap is below it


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"loss_pct": "101"}, "loss_pct"),
        ({"loss_pct": "nan"}, "loss_pct"),
        ({"loss_pct": "-1"}, "loss_pct"),
        ({"lossy": "1"}, "lossy"),
        ({"state": "gone"}, "state"),
        ({"rate_mbps": "0"}, "rate_mbps"),
        ({"burst_mb": "1"}, "burst_mb"),
        ({"cut_after_s": "3"}, "cut_mbps"),
        ({"cut_mbps": "3"}, "cut_mbps"),
        ({"rtt_ms": "inf"}, "rtt_ms"),
    ],
)
def test_a_wrong_setting_is_named_and_changes_nothing(settings: dict[str, Any], named: str) -> None:
    conditions = Conditions(star([10]))
    with pytest.raises(InputError) as caught:
        conditions.set_link("lab:0", "lab:1", settings)
    assert caught.value.field == named
    assert conditions.link(0, 1) == LinkBehaviour()


def test_unknown_regions_name_near_ones() -> None:
    conditions = Conditions(star([10]))
    with pytest.raises(InputError, match="lab:1"):
        conditions.set_host("lab:11", {"icmp": "filtered"})
    with pytest.raises(InputError, match="both ends"):
        conditions.set_link("lab:0", "lab:0", {"loss_pct": 1})


rates = st.floats(0.01, 100_000)
links = st.builds(
    LinkBehaviour,
    loss_pct=st.floats(0, 100),
    jitter_ms=st.floats(0, 5000),
    rate_mbps=st.none() | rates,
    window_kb=st.none() | st.floats(3, 1e6),
    rtt_ms=st.none() | st.floats(0, 10_000),
)


@given(st.lists(st.tuples(rates, rates, st.integers(3000, 2**30)), min_size=2, max_size=5), links)
def test_a_topology_survives_being_written_and_read(
    figures: list[tuple[float, float, int]], link: LinkBehaviour
) -> None:
    sites = tuple(Site(f"a:{i}", e, i_, w) for i, (e, i_, w) in enumerate(figures))
    matrix = tuple(tuple(float(abs(i - j)) for j in range(len(sites))) for i in range(len(sites)))
    topology = Topology(sites, matrix, {(0, 1): link}, "p", 0.5)
    assert Topology.from_json(topology.to_json()) == topology
    with pytest.raises(FormatError):
        Topology.from_json(topology.to_json()[:-9])


def test_wrong_sites_are_refused() -> None:
    good = Site("a:b", 1, 1, 3000)
    wrong: tuple[dict[str, Any], ...] = (
        {"egress_mbps": 0},
        {"ingress_mbps": math.nan},
        {"window_bytes": 100},
        {"region": "a b"},
        {"flow_mbps": -1},
    )
    for changes in wrong:
        with pytest.raises(InputError):
            replace(good, **changes)
    with pytest.raises(InputError, match="twice"):
        Topology((good, good), ((0.0, 1.0), (1.0, 0.0)))
    with pytest.raises(InputError, match="both directions"):
        Topology((good, Site("a:c", 1, 1, 3000)), ((0.0, 1.0), (2.0, 0.0)))
