"""Every behaviour that can be set while a lab runs, by its measured effect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from benchmarks.lab_measuring import Transfer, echo_rtts_ms, goodputs_mbps, iperf3_reports
from planner.model.errors import InputError
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE
from tests.lab.quiet import undisturbed
from tests.lab.shapes import star

pytestmark = pytest.mark.alone

PAIR = [(0, 1)]


@pytest.fixture(scope="module")
def running_lab(lab_of: Callable[..., Lab]) -> Lab:
    return lab_of(star([20, 40, 20, 20, 20], cap_mbps=50, window_bytes=500_000), "faults")


@pytest.fixture
def lab(running_lab: Lab) -> Iterator[Lab]:
    yield running_lab
    running_lab.clear()


def echoes(lab: Lab, count: int) -> list[float]:
    return echo_rtts_ms(lab, PAIR, count)[0, 1]


def seconds_mbps(report: dict[str, Any]) -> list[float]:
    """Goodput in each interval as the receiver of a reversed test saw it."""
    return [interval["sum"]["bits_per_second"] / 1e6 for interval in report["intervals"]]


def test_loss_takes_its_share_of_packets_and_of_segments(lab: Lab) -> None:
    lab.set_link("lab:0", "lab:1", {"loss_pct": 20}, one_way=True)
    answered = len(echoes(lab, 500))
    assert 330 <= answered <= 460  # 400 +- 6.7 standard deviations
    lab.set_link("lab:0", "lab:1", {"loss_pct": 1}, one_way=True)
    report = iperf3_reports(lab, [Transfer(0, 1)], 4)[0]
    sent = report["end"]["sum_sent"]
    retransmitted = sent["retransmits"] * 1448 / sent["bytes"]
    assert 0.005 <= retransmitted <= 0.02
    assert report["end"]["sum_received"]["bits_per_second"] < 30e6  # it slows a flow down


def test_jitter_spreads_round_trip_times_over_its_range(lab: Lab) -> None:
    lab.set_link("lab:0", "lab:1", {"jitter_ms": 10}, one_way=True)
    times = sorted(undisturbed(lab, lambda: echo_rtts_ms(lab, PAIR, 100, interval_s=0.02)[0, 1]))
    assert times[0] >= 19.8
    assert times[len(times) // 10] < 24
    assert times[len(times) * 9 // 10] > 26
    assert times[len(times) * 9 // 10] < 31


def test_a_capped_path_holds_its_rate_and_leaves_others_alone(lab: Lab) -> None:
    lab.set_link("lab:0", "lab:1", {"rate_mbps": 5}, one_way=True)
    capped, other, back = undisturbed(
        lab,
        lambda: goodputs_mbps(lab, [Transfer(0, 1, 4), Transfer(0, 2, 4), Transfer(1, 0, 4)], 5, 3),
    )
    assert 0.9 <= capped / (5 * GOODPUT_SHARE) <= 1.02
    # Six times what the capped path brings, however busy the machine is.
    assert other > 6 * capped
    assert back > 6 * capped  # its acknowledgements take the capped direction


def test_a_rate_changes_with_tokens_seconds_or_bytes(lab: Lab) -> None:
    """A bucket of tokens lets flows begin fast; others are cut after seconds or bytes."""
    # At the same time: the pairs have no host in common.
    settings: list[tuple[int, dict[str, str | float]]] = [
        (0, {"rate_mbps": 5, "burst_mb": 8}),
        (2, {"cut_after_s": 2, "cut_mbps": 5}),
        (4, {"cut_after_mb": 10, "cut_mbps": 5}),
    ]
    for site, one in settings:
        lab.set_link(f"lab:{site}", f"lab:{site + 1}", one, one_way=True)
    transfers = [Transfer(site + 1, site, 2, ("-R",)) for site, _ in settings]
    bucket, *cut = iperf3_reports(lab, transfers, 6)
    rates = seconds_mbps(bucket)
    assert rates[0] > 25
    assert median(rates[3:]) < 6
    # What passed is the bucket and what came into it since.
    total_mb = bucket["end"]["sum_received"]["bytes"] / 1e6 / GOODPUT_SHARE
    assert abs(total_mb - (8 + 6 * 5 / 8)) < 1.2
    for rates in map(seconds_mbps, cut):
        assert max(rates[:2]) > 35
        assert median(rates[4:]) < 6


def test_a_burstable_vm_has_one_bucket_for_all_it_sends_to(lab: Lab) -> None:
    lab.set_host("lab:0", {"egress_mbps": 4, "burst_mb": 2})
    time.sleep(4)  # until it is full
    burst, short, lasting = (
        goodputs_mbps(lab, [Transfer(0, 1, 2), Transfer(0, 2, 2)], seconds, omitted_s)
        for seconds, omitted_s in ((3, 0), (1, 0), (3, 1))
    )
    # In 3 s, the bucket and what came into it since.
    assert sum(burst) * 3 / 8 / GOODPUT_SHARE == pytest.approx(2 + 4 * 3 / 8, rel=0.15)
    # In the seconds between tests, next to nothing came in.
    assert sum(short) < 4 * 4 * GOODPUT_SHARE
    assert sum(lasting) == pytest.approx(4 * GOODPUT_SHARE, rel=0.1)
    with pytest.raises(InputError, match="egress_mbps"):
        lab.set_host("lab:1", {"burst_mb": 4})
    with pytest.raises(InputError, match="at most 30"):
        lab.set_host("lab:1", {"egress_mbps": 4, "burst_mb": 40})


def test_an_unlucky_vm_has_lower_caps_and_a_single_connection_one_of_its_own(lab: Lab) -> None:
    # At the same time: VMs of one have nothing to do with those of the other.
    for name in ("lab:0", "lab:4"):
        lab.set_host(name, {"egress_mbps": 10, "ingress_mbps": 20})
    lab.set_host("lab:2", {"flow_mbps": 8})
    transfers = [Transfer(0, 1, 4), Transfer(5, 4, 4), Transfer(2, 3, 1), Transfer(2, 3, 4)]
    out, into, one, four = undisturbed(lab, lambda: goodputs_mbps(lab, transfers, 4, 2))
    assert abs(out / (10 * GOODPUT_SHARE) - 1) <= 0.03
    assert abs(into / (20 * GOODPUT_SHARE) - 1) <= 0.03
    assert abs(one / (8 * GOODPUT_SHARE) - 1) <= 0.05
    assert abs(four / (32 * GOODPUT_SHARE) - 1) <= 0.05


def test_windows_can_differ_by_receiver_and_by_peer(lab: Lab) -> None:
    lab.set_host("lab:0", {"window_kb": 28.96})
    lab.set_link("lab:0", "lab:1", {"window_kb": 57.92}, one_way=True)
    lab.set_link("lab:0", "lab:2", {"window_kb": 115.84}, one_way=True)
    transfers = [Transfer(0, 1), Transfer(1, 0), Transfer(0, 2)]

    def windows_kb() -> list[float]:
        # By the round-trip time that TCP itself saw, to which a slow machine may add a millisecond.
        ends = [report["end"] for report in iperf3_reports(lab, transfers, 4, 2)]
        bits_per_s = [end["sum_received"]["bits_per_second"] for end in ends]
        rtts_us = [end["streams"][0]["sender"]["mean_rtt"] for end in ends]
        return [rate * rtt / 8e9 for rate, rtt in zip(bits_per_s, rtts_us, strict=True)]

    assert undisturbed(lab, windows_kb) == pytest.approx([57.92, 28.96, 115.84], rel=0.05)


def test_a_slow_link_is_far_and_narrow(lab: Lab) -> None:
    lab.set_link("lab:0", "lab:1", {"rtt_ms": 300, "rate_mbps": 1, "queue_ms": 1000})
    assert abs(median(undisturbed(lab, lambda: echoes(lab, 10))) - 300) < 0.6
    rate = goodputs_mbps(lab, [Transfer(0, 1)], 6, 3)[0]
    assert 0.8 <= rate / GOODPUT_SHARE <= 1.2  # it takes a second for what is queued to leave


def test_everything_can_be_taken_back(lab: Lab) -> None:
    lab.set_link("all", "all", {"rtt_ms": 5, "loss_pct": 50})
    lab.set_host("all", {"icmp": "filtered", "egress_mbps": 1})
    assert len(lab.status()["links"]) == 30
    lab.clear()
    status = lab.status()
    assert status["links"] == []
    assert all(site["behaviour"] == {} for site in status["sites"])
    assert abs(median(echoes(lab, 20)) - 20) < 0.5
    assert undisturbed(lab, lambda: goodputs_mbps(lab, [Transfer(0, 1, 4)], 3, 2)[0]) > 45
