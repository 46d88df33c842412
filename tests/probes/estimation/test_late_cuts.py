"""Links whose rate falls after a while: short tests do not hide it, and steady links have none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from planner.model.baseline.modelled_links import baseline_site
from planner.model.estimate import Estimate, Origin
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.rate_cuts import with_lasting_caps
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from probes.analysis.falls import rate_cut, shows_lasting
from probes.analysis.steady_state import Interval
from probes.campaign.throughput_tests import Findings, steady_sample
from probes.samples import Sample
from probes.tools.interface import Result
from relayd.catalogue.loading import load_catalogue
from tests.probes.estimation.test_estimation import estimated

CATALOGUE = load_catalogue()
START_S = 1_790_000_000.0
SRC, DST = "azure:eastus", "azure:westeurope"


def probe(levels: list[tuple[float, int]], number: int, *, noise: float = 0.03) -> Sample:
    """Return the sample that a campaign keeps of a test with these seconds and rates."""
    generator = np.random.default_rng(number)
    intervals = tuple(
        Interval(1.0, mbps * generator.normal(1, noise))
        for mbps, count in levels
        for _ in range(count)
    )
    mean = float(np.mean([interval.mbps for interval in intervals]))
    at_s = START_S + 600.0 * number
    raw = Sample(SRC, DST, "aggregate_mbps", mean, at_s, "iperf3", 64, float(len(intervals)), True)
    return steady_sample([Result((raw,), 0.0, intervals)], Findings())


def test_long_tests_tell_what_lasts_however_many_short_ones_there_are() -> None:
    by_volume = [
        probe([(mbps, round(72e3 / mbps)), (900, 40)], k)
        for k, mbps in enumerate((1800, 2200, 2600, 3000))
    ]
    short = [probe([(2400, 8)], 10 + k) for k in range(5)]
    cut = rate_cut([*by_volume, *short])
    assert cut is not None
    assert cut.cause == "volume"
    assert cut.after_gb == pytest.approx(9, rel=0.05)
    assert (cut.before_gbps, cut.after_gbps) == pytest.approx((2.4, 0.9), rel=0.05)
    tests = [*by_volume, *short]
    assert [one for one in tests if shows_lasting(one, cut)] == by_volume
    by_time = rate_cut(
        [probe([(mbps, 60), (900, 40)], k) for k, mbps in enumerate((1800, 2400, 3e3))]
    )
    assert by_time is not None
    assert by_time.cause == "time"
    assert by_time.after_s == pytest.approx(60, abs=2)


def test_steady_links_have_no_fall() -> None:
    assert not any(
        rate_cut([probe([(2000, 150)], 100 * k + j, noise=0.1) for j in range(3)])
        for k in range(40)
    )
    # One of five long tests fell: something happened, but it is not how the link is.
    once = [probe([(2000, 100), (900, 50)], 0), *(probe([(2000, 150)], k) for k in range(1, 5))]
    assert rate_cut(once) is None


def test_an_estimate_is_of_what_lasts_and_says_what_goes_before() -> None:
    samples = [probe([(2000, 36), (900, 40)], k) for k in range(3)]
    samples += [probe([(2000, 8)], k) for k in range(3, 6)]
    estimate = estimated(*samples).link(SRC, DST).aggregate_gbps
    assert estimate.expected == pytest.approx(0.9, rel=0.1)
    figures = estimate.origin.figures
    assert figures is not None
    assert figures.rate_cut is not None
    assert figures.rate_cut.after_gb == pytest.approx(9, rel=0.05)
    held = estimated(*(probe([(2000, 80)], k) for k in range(3)))
    steady = held.link(SRC, DST).aggregate_gbps.origin.figures
    assert steady is not None
    assert steady.rate_cut is None


REGIONS = ("aws:us-east-1", "aws:eu-west-1", "aws:ap-southeast-1", "aws:sa-east-1", "gcp:us-east1")


def burstable(
    pauses_s: Sequence[float], *, peak: float = 5000, lasts: float = 1000, depth_gb: float = 20
) -> list[Sample]:
    """Return tests out of one VM, to three others in turn, whose bucket fills at what lasts."""
    at_s, tokens_gb, samples = START_S, depth_gb, []
    for number, pause_s in enumerate(pauses_s):
        full_s = round(8e3 * tokens_gb / (peak - lasts))
        test = probe([(peak, full_s), (lasts, 40)], number)
        dst = REGIONS[1 + number % 3]
        test = test._replace(measured_at_s=at_s, src=REGIONS[0], dst=dst, src_vm="aws:t3.large")
        samples.append(test)
        at_s += full_s + 40 + pause_s
        tokens_gb = min(depth_gb, lasts * pause_s / 8e3)
    return samples


def test_long_transfers_count_on_what_a_burstable_vm_has_for_long() -> None:
    """To one region only short tests were made: its link looks as fast as the VM's bursts."""
    long = burstable([3600.0, 60.0, 80.0, 3600.0, 100.0, 3600.0])
    short = [
        probe([(5000, 8)], 100 + k)._replace(src=REGIONS[0], dst=REGIONS[4], src_vm="t3.large")
        for k in range(3)
    ]
    network = estimated(*long, *short)
    assert network.link(REGIONS[0], REGIONS[4]).aggregate_gbps.expected == pytest.approx(5, rel=0.1)
    cap = network.sites[REGIONS[0]].egress_gbps
    assert cap.expected == pytest.approx(1, rel=0.05)
    cut = cap.origin.rate_cut
    assert cut is not None
    assert (cut.before_gbps, cut.after_gb, cut.refill_gbps) == pytest.approx((5, 25, 1), rel=0.1)
    request = TransferRequest(*REGIONS[::4], volume_gb=1e4, vms=1, objective="time")
    prices = CataloguePrices(CATALOGUE, network)
    plan = recommend(request, network, prices)
    assert plan.throughput_gbps == pytest.approx(1, rel=0.05)
    (said,) = [warning for warning in plan.warnings if "lasts" in warning]
    assert said.startswith(f"A VM at {REGIONS[0]} sends ")
    # After long pauses alone, each link may have a fall of its own: the VM has what is documented.
    undecided = estimated(*burstable([3600.0] * 6), *short)
    assert undecided.sites[REGIONS[0]].egress_gbps.expected == 0.512
    plan = recommend(request, undecided, prices, catalogue=CATALOGUE)
    assert plan.throughput_gbps == pytest.approx(0.512)
    (said,) = [warning for warning in plan.warnings if "t3.large VMs" in warning]
    assert "0.512 Gbit/s for long, and up to 5 while network credits last (5 to 60 minutes" in said
    assert said.endswith("the plan counts on 0.512.")


@pytest.mark.parametrize(
    ("volume_gb", "gbps"), [(100, 5.0), (187.5, 5.0), (1e4, 1e4 / (37.5 + 9812.5 / 0.512))]
)
def test_a_cap_measured_in_a_burst_counts_as_long_as_credits_surely_last(
    volume_gb: float, gbps: float
) -> None:
    """5 minutes at 5 Gbit/s are 187.5 GB; what is left goes at the documented 0.512."""
    cap = Estimate(5.0, 5.0, 5.0, Origin("measured", "median-of-samples", 3))
    site = baseline_site("aws:us-east-1", CATALOGUE, {"aws": "aws:t3.large"})
    sites = {site.region: replace(site, egress_gbps=cap)}
    network = Network(sites, {}, Snapshot("s", "", "measured"))
    lasting = with_lasting_caps(network, CATALOGUE.vm_types, volume_gb).sites["aws:us-east-1"]
    assert lasting.egress_gbps.expected == pytest.approx(gbps, rel=0.06)
    assert lasting.ingress_gbps == site.ingress_gbps


@pytest.mark.parametrize(
    ("mbps", "volume_gb", "gbps"), [(400, 100, 0.4), (400, 4e4, 0.033), (30, 100, 0.03)]
)
def test_a_flow_faster_than_a_lasting_rate_shows_that_there_are_credits(
    mbps: float, volume_gb: float, gbps: float
) -> None:
    """A t3.nano has 0.032 Gbit/s for long, and up to 5 while credits last."""
    src, dst = REGIONS[:2]
    flow = Sample(
        src, dst, "per_flow_mbps", mbps, START_S, "iperf2", 1, 10.0, True, src_vm="t3.nano"
    )
    ping = Sample(src, dst, "rtt_ms", 60.0, START_S, "ping", src_vm="t3.nano")
    network = estimated(flow._replace(dst_vm="t3.nano"), ping._replace(dst_vm="t3.nano"))
    request = TransferRequest(src, dst, volume_gb=volume_gb, connections=1, vms=1, relays="none")
    prices = CataloguePrices(CATALOGUE, network)
    plan = recommend(request, network, prices, catalogue=CATALOGUE)
    assert plan.throughput_gbps == pytest.approx(gbps, rel=0.08)
