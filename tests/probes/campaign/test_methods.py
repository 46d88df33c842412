"""Methods of campaigns: ramps once a kind of sender, windows of UDP, slow VMs, wrong options."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.estimate import Estimate
from planner.model.link import Link
from probes.analysis.fleet_caps import vm_caps
from probes.analysis.ramp import fit_ramp, next_connections
from probes.analysis.steady_state import Interval, steady_state
from probes.campaign.costing import task_volume_gb
from probes.campaign.probing import Prober
from probes.campaign.ramping import UDP_S, UDP_STEP_S, Saturation, with_ramps
from probes.campaign.specification import AS_ASKED, Method
from probes.campaign.tasks import ProbeTask
from probes.campaign.throughput_tests import Findings, ThroughputTester
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.sessions import Sessions
from probes.samples import Sample
from probes.tools.interface import Result, Test
from relayd.catalogue.loading import load_catalogue
from relayd.cli.measuring.probe import window_bytes

_NAMES = ("aws:a", "aws:b", "gcp:c", "gcp:d")


def _fleet() -> Fleet:
    return Fleet(
        {
            name: Host(name, name, f"192.0.2.{number}", 22, "u", None, Path("k"))
            for number, name in enumerate(_NAMES, start=1)
        }
    )


def _link(src: str, dst: str) -> Link:
    def sure(value: float) -> Estimate:
        return Estimate(value, value, value)

    return Link(src, dst, sure(100.0), sure(500.0), sure(4.0))


def _tasks() -> list[ProbeTask]:
    pairs = [(a, b) for a in _NAMES for b in _NAMES if a != b]
    return [ProbeTask("aggregate", (pair,), 64, 5.0, 4.0) for pair in pairs]


@given(
    flow_mbps=st.floats(1, 500),
    knee=st.floats(1, 40),
    rtt_ms=st.floats(5, 300),
    other_ms=st.floats(5, 300),
    window=st.floats(0.5, 2),
    share=st.floats(0.3, 1),
)
def test_what_a_ramp_has_shown_saturates_other_links_too(
    flow_mbps: float, knee: float, rtt_ms: float, other_ms: float, window: float, share: float
) -> None:
    """Also where the other receiver has another window, or its path carries less."""
    most = 128

    def climb(
        flow: float, saturated: float, start: int, known: Saturation | None, ms: float
    ) -> dict[int, float]:
        rates: dict[int, float] = {}
        count: int | None = start
        while count is not None:
            rates[count] = min(count * flow, saturated)
            if known and count == start and known.suffices(count, rates[count], ms):
                break
            count = next_connections(rates, most=most)
        return rates

    ramp = fit_ramp(climb(flow_mbps, knee * flow_mbps, 1, None, rtt_ms))
    if not ramp.saturated:
        return
    known = Saturation(ramp, rtt_ms)
    flow = flow_mbps * window * rtt_ms / other_ms
    saturated = knee * flow_mbps * share
    rates = climb(flow, saturated, known.connections(other_ms, most), known, other_ms)
    assert max(rates.values()) >= 0.9 * min(saturated, most * flow)


def test_the_first_link_of_each_kind_of_sender_is_ramped_and_reckoned_with() -> None:
    fleet, tasks = _fleet(), _tasks()
    shaped = with_ramps(tasks, Method(), fleet, _link, (), lambda _: 1.0)
    ramped = [task for task in shaped if task.ramp]
    assert [task.pairs[0][0] for task in ramped] == ["aws:a", "gcp:c"]
    # 1, 2, 4, 8, 16 connections of 0.5 Gbit/s under a cap of 4, four seconds each.
    assert ramped[0].duration_s == 5 * 4.0
    assert task_volume_gb(ramped[0]) == pytest.approx((0.5 + 1 + 2 + 4 + 4) * 4 / 8)
    assert [t for t in shaped if not t.ramp] == [
        t for t in tasks if t.pairs not in {r.pairs for r in ramped}
    ]
    assert with_ramps(tasks, Method(), fleet, _link, ramped, lambda _: 1.0) == tasks
    assert with_ramps(tasks, Method(ramp="never"), fleet, _link, (), lambda _: 1.0) == tasks
    every = with_ramps(tasks, Method(ramp="every", udp=True), fleet, _link, (), lambda _: 1.0)
    assert all(task.ramp and task.udp_s == UDP_S for task in every)
    assert task_volume_gb(every[0]) > task_volume_gb(ramped[0])
    swept = with_ramps(tasks, Method(udp=True, udp_rates=10), fleet, _link, ramped, lambda _: 1.0)
    assert {(task.udp_rates, task.udp_s) for task in swept} == {(10, 10 * UDP_STEP_S)}
    # Ten rates, up to a quarter more than TCP: 0.6875 of it in the mean.
    for before, task in zip(tasks, swept, strict=True):
        more_gb = task_volume_gb(task) - task_volume_gb(before)
        assert more_gb == pytest.approx(0.6875 * before.expected_gbps * task.udp_s / 8)


def test_one_flow_comes_first_with_a_time_and_a_volume_of_its_own() -> None:
    shaped = with_ramps(_tasks(), Method(), _fleet(), _link, (), lambda _: 1.0)
    for before, task in zip(
        shaped,
        with_ramps(_tasks(), Method(), _fleet(), _link, (), lambda _: 1.0, flow_s=10.0),
        strict=True,
    ):
        one, many = task.in_turn
        assert (one.phase, one.connections, one.duration_s) == ("per-flow", 1, 10.0)
        assert (many.phase, many.connections, many.ramp) == ("aggregate", 64, before.ramp)
        assert many.duration_s == before.duration_s
        assert one.expected_gbps == 0.5
        assert many.expected_gbps == pytest.approx(before.expected_gbps)
        # One flow of 0.5 Gbit/s for 10 s.
        assert task_volume_gb(task) == pytest.approx(task_volume_gb(before) + 5.0 / 8)
        assert before.in_turn == (before,)


def test_a_part_that_ended_is_kept_and_not_measured_again() -> None:
    (task, *_) = with_ramps(_tasks(), Method(), _fleet(), _link, (), lambda _: 1.0, flow_s=10.0)
    ran: list[str] = []

    class FailsOnce(Prober):
        async def _one_flow(self, task: ProbeTask, findings: Findings) -> None:
            ran.append(task.phase)
            findings.samples.append(Sample("aws:a", "gcp:c", "per_flow_mbps", 500.0, 1e9, "test"))

        async def _many_flows(self, task: ProbeTask, findings: Findings) -> None:
            ran.append(task.phase)
            findings.samples.append(Sample("aws:a", "gcp:c", "aggregate_mbps", 4e3, 1e9, "test"))
            if ran.count("aggregate") == 1:
                raise ProbeError("aws:a", "unreachable", "is gone")

    prober, findings = FailsOnce(Sessions(_fleet(), "test"), lambda *_: 100.0), Findings()
    with pytest.raises(ProbeError):
        asyncio.run(prober.probe(task, findings))
    again = findings.again(most_gb=5.0)
    assert [sample.metric for sample in again.samples] == ["per_flow_mbps"]
    assert again.left_gb == 5.0
    asyncio.run(prober.probe(task, again))
    assert ran == ["per-flow", "aggregate", "aggregate"]
    assert [s.metric for s in again.samples] == ["per_flow_mbps", "aggregate_mbps"]
    assert again.kept == 2


@given(
    parts=st.lists(st.floats(3.4, 4.6), min_size=5, max_size=5),
    level=st.sampled_from([1.0, 0.3, 2.5]),
    spread=st.sampled_from([1.05, 1.5]),
)
def test_a_first_measurement_is_enough_where_it_agrees_with_itself_and_with_what_is_known(
    parts: list[float], level: float, spread: float
) -> None:
    def link(src: str, dst: str) -> Link:
        wide = Estimate(4.0 / spread, 4.0, 4.0 * spread)
        return Link(src, dst, Estimate(50.0, 50.0, 50.0), Estimate(900.0, 900.0, 900.0), wide)

    (task, *_) = with_ramps(_tasks(), AS_ASKED, _fleet(), link, (), lambda _: 1.0, first_s=1.0)
    assert (task.first_s, task.duration_s) == (2.0, 7.0)
    ran: list[Test] = []

    class Tester(ThroughputTester):
        async def run(self, task: ProbeTask, findings: Findings, test: Test) -> Result:
            ran.append(test)
            rates = [1e3 * level * part for part in parts] if len(ran) == 1 else [4e3] * 4
            sample = Sample("aws:a", "aws:b", "aggregate_mbps", fmean(rates), 1e9, "test", 64)
            return Result((sample,), 1.0, tuple(Interval(1.0, mbps) for mbps in rates))

    sessions, findings = Sessions(_fleet(), "test"), Findings()
    prober = Prober(sessions, lambda *_: 50.0, AS_ASKED)
    prober.tester = Tester(sessions, AS_ASKED)
    asyncio.run(prober.probe(task, findings))
    assert (ran[0].duration_s, ran[0].omit_s, ran[0].interval_s) == (1, 1, 0.2)
    assert [test.duration_s for test in ran[1:]] in ([], [4])  # as without a first one
    steady = steady_state([Interval(1.0, level * part) for part in parts], warmed_up=True)
    assert steady
    found = steady.mbps  # the mean, where it is not the median
    agrees = max(parts) - min(parts) <= 0.1 * (max(parts) + min(parts))
    likely = 4.0 / spread**3 <= found <= 4.0 * spread**3
    assert (len(ran) == 1) == (agrees and likely)
    (sample,) = findings.samples
    assert sample.value == pytest.approx(1e3 * found if len(ran) == 1 else 4e3)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(())


def _cap(host: str, mbps: float, at_s: float = 1.0, **changes: object) -> Sample:
    sample = Sample(
        "aws:us-east-1",
        "aws:us-east-1",
        "egress_cap_mbps",
        mbps,
        at_s,
        "iperf3 3.12",
        src_vm="t2.micro",
        dst_vm="t2.micro",
        detail=json.dumps({"host": host, "high_mbps": mbps}),
    )
    return sample._replace(**changes)  # type: ignore[arg-type]


def test_a_slow_vm_stands_out_once_enough_others_are_known(catalogue: Catalogue) -> None:
    caps = [_cap(f"vm{number}", 400 + number) for number in range(5)]
    slow = _cap("slow", 200)
    assert not any(cap["recreate"] for cap in vm_caps(caps, catalogue))
    assert all(cap["odds"] is None for cap in vm_caps([*caps[:4], slow], catalogue))
    first, *others = vm_caps([*caps, slow], catalogue)
    assert (first["host"], first["recreate"], first["catalogue_mbps"]) == ("slow", True, 430.0)
    assert not any(cap["recreate"] for cap in others)
    # A newer measurement replaces an older one; a lower bound is no cap.
    newer = _cap("slow", 405, at_s=2.0)
    assert not any(cap["recreate"] for cap in vm_caps([newer, *caps, slow], catalogue))
    bound = _cap("slow", 200, detail=json.dumps({"host": "slow", "high_mbps": 500}))
    assert len(vm_caps([*caps, bound], catalogue)) == 5


def test_a_published_distribution_stands_in_for_others(catalogue: Catalogue) -> None:
    sample = _cap("vm", 200, src="azure:northeurope", dst="azure:northeurope", src_vm="A2")
    (cap,) = vm_caps([sample], catalogue)
    assert cap["odds"] == pytest.approx(0.3)
    assert "GLOBECOM" in cap["text"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"window_bytes": 100}, "--tcp-window"),
        ({"congestion_control": "cubic; reboot"}, "--congestion-control"),
        ({"udp": True, "udp_rates": 7}, "--udp-rates"),
        ({"udp": True, "udp_bytes": 70_000}, "--udp-packet"),
    ],
)
def test_what_a_tool_cannot_do_is_told_before_anything_runs(
    spec: dict[str, object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        replace(Method(), **spec)  # type: ignore[arg-type]


def test_only_what_a_socket_cannot_ask_for_is_changed() -> None:
    asked = Method(window_bytes=2**23, congestion_control="bbr")
    assert asked.sysctls == {}
    allowed = replace(asked, change_sysctls=True).sysctls
    assert allowed == {
        "net.core.rmem_max": "8388608",
        "net.core.wmem_max": "8388608",
        "net.ipv4.tcp_congestion_control": "bbr",
    }


def test_windows_are_read_as_iperf3_does_and_as_volumes() -> None:
    assert [window_bytes(text) for text in ("8M", "64k", "8MB", "4096")] == [
        2**23,
        2**16,
        8_000_000,
        4096,
    ]
