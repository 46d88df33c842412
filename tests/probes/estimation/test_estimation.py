"""From samples to a graph, on planted truth and on real measurements held out."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.baseline.modelled_links import baseline_network
from planner.model.estimate import BOUNDS, AddressKind
from planner.model.link import Link
from planner.model.network import Network, Snapshot
from planner.model.throughput import flow_share_of_steady, steady_rates
from probes.estimation import Estimator
from probes.estimation.current_samples import current_samples
from probes.metrics import Metric
from probes.samples import Sample, Samples
from tests.probes.estimation import survey
from tests.properties import examples
from tests.shared_data import grid_catalogue
from tests.slow_start import bundle_share_of_steady

CATALOGUE = grid_catalogue()
WHEN_S = 1_650_000_000.0
SRC, DST = "aws:us-east-1", "gcp:asia-east1"


def sample(
    value: float,
    metric: Metric,
    src: str = SRC,
    dst: str = DST,
    *,
    connections: int | None = None,
    duration_s: float | None = None,
    at_s: float = WHEN_S,
    src_vm: str = "",
    dst_vm: str = "",
) -> Sample:
    return Sample(
        src, dst, metric, value, at_s, "test", connections, duration_s, src_vm=src_vm, dst_vm=dst_vm
    )


def estimated(*samples: Sample) -> Network:
    return Estimator(Samples.of(samples), CATALOGUE).network(Snapshot("t", "", "mixed"))


def link_of(*samples: Sample) -> Link:
    return estimated(*samples).link(SRC, DST)


def test_measured_beats_inferred_beats_baseline() -> None:
    network = estimated(sample(100.0, "rtt_ms"), sample(3000.0, "aggregate_mbps", connections=64))
    there, back = network.link(SRC, DST), network.link(DST, SRC)
    assert there.rtt_ms.source == "measured"
    assert there.rtt_ms.expected == 100.0
    assert there.aggregate_gbps.source == "measured"
    assert there.aggregate_gbps.expected == 3.0
    assert back.rtt_ms.source == "inferred"
    assert back.rtt_ms.expected == 100.0
    assert back.rtt_ms.high - back.rtt_ms.low > there.rtt_ms.high - there.rtt_ms.low
    assert back.aggregate_gbps.source == "baseline"


@settings(max_examples=examples(30), deadline=None)
@given(st.floats(0.5, 12.0), st.floats(5.0, 400.0), st.sampled_from([5.0, 10.0, 60.0]))
def test_slow_start_is_taken_out_of_a_short_test(
    steady_gbps: float, rtt_ms: float, duration_s: float
) -> None:
    shown_mbps = steady_gbps * 1000 * bundle_share_of_steady(rtt_ms, duration_s)
    ends = ("own:cellar", "own:attic")  # of which there is no law to weigh it against
    network = estimated(
        sample(rtt_ms, "rtt_ms", *ends),
        sample(shown_mbps, "aggregate_mbps", *ends, connections=64, duration_s=duration_s),
    )
    assert network.link(*ends).aggregate_gbps.expected == pytest.approx(steady_gbps, rel=1e-9)


def test_a_window_calibrated_on_one_link_predicts_the_others() -> None:
    window_mb = 1.7
    network = estimated(
        sample(120.0, "rtt_ms"),
        sample(8000 * window_mb / 120.0, "per_flow_mbps", connections=1),
        sample(60.0, "rtt_ms", "gcp:us-east1"),
    )
    assert network.sites[DST].window_mb.source == "measured"
    assert network.sites[DST].window_mb.expected == pytest.approx(window_mb)
    other = network.link("gcp:us-east1", DST).per_flow_mbps
    assert other.source == "inferred"
    assert other.expected == pytest.approx(8000 * window_mb / 60.0)


@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "steps", "limit"),
    [
        (4900.0, 30.0, {}, "vm"),  # m5.8xlarge sends 5 Gbit/s
        (4900.0, 30.0, {32: 4890.0, 64: 4900.0}, "vm"),
        (3000.0, 30.0, {}, "unknown"),
        (3000.0, 30.0, {16: 2000.0, 32: 2950.0, 64: 3000.0}, "path"),
        (3000.0, 30.0, {16: 750.0, 32: 1500.0, 64: 3000.0}, "unknown"),
        (3800.0, 400.0, {}, "window"),  # 64 windows of 3 MB: 3.84 Gbit/s
        (3800.0, 400.0, {32: 3750.0, 64: 3800.0}, "path"),
    ],
)
def test_what_limits_a_link_is_told_by_caps_ramps_and_windows(
    mbps: float, rtt_ms: float, steps: dict[int, float], limit: str
) -> None:
    one = sample(mbps, "aggregate_mbps", connections=64)
    if steps:
        one = one.with_detail(ramp={str(count): step for count, step in steps.items()})
    link = link_of(sample(rtt_ms, "rtt_ms"), one)
    assert link.limited_by == limit
    assert link.per_flow_mbps.expected >= link.rate_gbps(64) * 1000 / 64 * (1 - 1e-9)
    if steps and limit == "path":  # as samples of their own
        apart = [sample(step, "aggregate_mbps", connections=k) for k, step in steps.items()]
        assert link_of(sample(rtt_ms, "rtt_ms"), *apart).limited_by == limit


def test_ramps_tell_a_class_of_links_whether_connections_are_slow() -> None:
    """Rates from AWS to Google do not fall with distance: 1 to 3, which counts as three ramps."""
    others = [("aws:eu-west-1", "gcp:us-east1"), ("aws:us-west-2", "gcp:europe-west1")]

    def tests(*steps: dict[int, float]) -> list[Sample]:
        found = [sample(30.0, "rtt_ms"), sample(3000.0, "aggregate_mbps", connections=64)]
        for (src, dst), ramp in zip(others, steps, strict=False):
            told = {str(count): mbps for count, mbps in ramp.items()}
            one = sample(3000.0, "aggregate_mbps", connections=64).with_detail(ramp=told)
            found += [
                one._replace(src=src, dst=dst),
                sample(30.0, "rtt_ms")._replace(src=src, dst=dst),
            ]
        return found

    grows, ends = {16: 750.0, 32: 1500.0, 64: 3000.0}, {16: 2000.0, 32: 2950.0, 64: 3000.0}

    def of(*steps: dict[int, float]) -> float:
        return estimated(*tests(*steps)).link(SRC, DST).slow_connections

    assert of() == 0.25
    assert of(grows) == pytest.approx((0.75 + 1) / 4)
    assert of(grows, grows) == pytest.approx((0.75 + 2) / 5)
    assert of(ends) == pytest.approx(0.75 / 4)
    network = estimated(*tests(grows, ends))
    grown, ended = (network.link(*pair) for pair in others)
    assert grown.slow_connections == 1.0  # and each connection is as slow as it was seen to be
    assert grown.per_flow_mbps.expected == pytest.approx(3000.0 / 64, rel=0.02)
    assert (ended.limited_by, ended.slow_connections) == ("path", 0.0)
    assert link_of(sample(30.0, "rtt_ms"), sample(4900.0, "aggregate_mbps")).slow_connections == 0.0


def test_transfers_with_fewer_connections_tell_whether_connections_are_slow() -> None:
    """64 have 3 Gbit/s; 16 have as much if the path ends there, and a quarter if each is slow."""
    tests = [sample(30.0, "rtt_ms"), sample(3000.0, "aggregate_mbps", connections=64)]
    other = ("aws:us-west-2", "gcp:europe-west1")
    elsewhere = [one._replace(src=other[0], dst=other[1]) for one in tests]

    def after(*mbps: float, connections: int | None = 16) -> Link:
        done = sample(0.0, "aggregate_mbps", connections=connections)
        limit = '{"limited_by": "network"}'
        done = done._replace(tool="transfer", duration_s=900.0, detail=limit)
        network = estimated(*tests, *elsewhere, *(done._replace(value=one) for one in mbps))
        same = network.link(*other).slow_connections
        link = network.link(SRC, DST)
        assert (same > 0.25, same < 0.25) == (
            link.slow_connections > 0.25,
            link.slow_connections < 0.25,
        )
        return link

    assert after().slow_connections == 0.25
    # One counts for the class as a ramp, and for its link 20 times as much as that.
    slow = after(750.0)
    assert slow.slow_connections == pytest.approx(20 * 1.75 / (20 * 1.75 + 2.25))
    assert slow.rate_gbps(64, "low") == after().rate_gbps(64, "low")
    ended = after(3000.0).slow_connections
    assert ended == pytest.approx(0.75 / (0.75 + 20 * 3.25), rel=1e-3)
    # Several are held, or slow, as one is; and 64 connections still have what they had.
    assert after(750.0, 755.0, 745.0, 750.0).rate_gbps(64, "low") == after().rate_gbps(64, "low")
    assert after(750.0, 755.0, 745.0, 750.0).slow_connections == slow.slow_connections
    # A disk held these: they fit neither reading, or cannot tell them apart.
    assert after(250.0).slow_connections == 0.25
    assert after(1500.0).slow_connections == 0.25
    assert after(750.0, connections=None).slow_connections == 0.25
    assert after(750.0, connections=64).slow_connections == 0.25
    assert after(*[250.0] * 3).aggregate_gbps.expected < 1.0


def test_samples_of_another_vm_type_say_nothing_of_throughput() -> None:
    big = sample(4800.0, "aggregate_mbps", connections=64, src_vm="m5.8xlarge")
    votes = [big, big._replace(value=4810.0), big._replace(value=4790.0)]
    small = big._replace(value=400.0, src_vm="t2.micro")
    network = estimated(*votes, small)
    assert network.sites[SRC].vm_type == "aws:m5.8xlarge"
    assert network.link(SRC, DST).aggregate_gbps.samples == 3
    assert network.link(SRC, DST).aggregate_gbps.expected == pytest.approx(4.8, rel=0.01)


def test_old_samples_give_way_to_new_ones_and_all_pings_lost_is_a_filter() -> None:
    lost = sample(100.0, "loss_pct")
    assert link_of(lost).loss_pct is None
    assert link_of(lost, sample(0.5, "loss_pct", at_s=WHEN_S + 1)).loss_pct == 0.5
    old = sample(8000.0, "aggregate_mbps", connections=64, at_s=WHEN_S - 90 * 86400)
    new = link_of(old, sample(3000.0, "aggregate_mbps", connections=64)).aggregate_gbps
    assert new.expected == pytest.approx(3.0, rel=0.05)  # with a grain of what windows allow there


def test_measurements_fade_to_the_law_and_a_baseline_never_ages() -> None:
    law = estimated().link(SRC, DST).aggregate_gbps
    network = estimated(sample(3000.0, "aggregate_mbps", connections=64))
    aged = network.with_(aged_to_s=WHEN_S + 100 * 86400)
    ancient = network.with_(aged_to_s=WHEN_S + 9000 * 86400)
    fresh, old = network.link(SRC, DST).aggregate_gbps, aged.link(SRC, DST).aggregate_gbps
    assert fresh.expected < old.expected < law.expected
    assert ancient.link(SRC, DST).aggregate_gbps.expected == pytest.approx(law.expected)
    assert ancient.link(SRC, DST).aggregate_gbps.low == pytest.approx(law.low, rel=0.01)
    assert aged.link(DST, SRC).aggregate_gbps == network.link(DST, SRC).aggregate_gbps


def test_a_provider_that_the_catalogue_does_not_know_is_measured_all_the_same() -> None:
    network = estimated(
        sample(20.0, "rtt_ms", "own:cellar"),
        sample(900.0, "aggregate_mbps", "own:cellar", connections=16),
    )
    assert network.link("own:cellar", DST).aggregate_gbps.expected == pytest.approx(0.9)
    assert network.sites["own:cellar"].vm_type == ""
    assert network.link(DST, "own:cellar").aggregate_gbps.source == "baseline"


def test_hosts_of_which_only_single_flows_and_pings_are_known_can_be_asked_about() -> None:
    a, r, b = "our:a", "our:r", "our:b"
    network = estimated(
        sample(200.0, "rtt_ms", a, b),
        sample(100.0, "rtt_ms", a, r),
        sample(110.0, "rtt_ms", r, b),
        sample(110.0, "per_flow_mbps", a, b, duration_s=10),
        sample(90.0, "rtt_ms", "our:silent", "our:never"),
    )
    direct, first, second = network.link(a, b), network.link(a, r), network.link(r, b)
    (steady,) = steady_rates([110.0], 200.0, 10.0, one_flow=True)
    assert direct.per_flow_mbps.expected == pytest.approx(steady)
    assert first.per_flow_mbps.expected == pytest.approx(8000 * 3.0 / 100.0)
    # The receiver's window is what its test shows, over the other way's distance too.
    assert second.per_flow_mbps.expected == pytest.approx(steady * 200.0 / 110.0)
    # What many connections carry is at least that, and says so.
    assert direct.rate_gbps(64, "low") == pytest.approx(direct.per_flow_mbps.low / 1000)
    assert direct.rate_gbps(64, "high") > 60 * direct.rate_gbps(64)
    # Hosts with no flow at all say nothing of throughput.
    assert "our:never" not in network.links["our:silent"]


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["aws:us-east-1", "gcp:asia-east1", "azure:eastus", "own:cellar"]),
            st.sampled_from(["aws:us-west-2", "gcp:us-east1", "azure:westus", "own:attic"]),
            st.sampled_from(["rtt_ms", "per_flow_mbps", "aggregate_mbps", "loss_pct"]),
            st.floats(0.001, 99_000.0),
            st.one_of(st.none(), st.integers(1, 128)),
            st.one_of(st.none(), st.floats(0.1, 600.0)),
        ),
        max_size=20,
    )
)
def test_any_samples_make_a_sound_graph(
    rows: list[tuple[str, str, Metric, float, int | None, float | None]],
) -> None:
    network = estimated(
        *(
            sample(value, metric, src, dst, connections=connections, duration_s=duration_s)
            for src, dst, metric, value, connections, duration_s in rows
        )
    )
    for link in network:
        for estimate in (link.rtt_ms, link.per_flow_mbps, link.aggregate_gbps):
            assert 0 <= estimate.low <= estimate.expected <= estimate.high


def test_single_flows_held_out_are_predicted() -> None:
    """Three probes into each receiver predict its other flows (survey of February 2022)."""
    flows: dict[str, list[survey.FlowTest]] = defaultdict(list)
    for test in survey.tests().values():
        flows[test.dst].append(test)
    choose = random.Random(7)
    probes: list[survey.FlowTest] = []
    for measured in flows.values():
        useful = [flow for flow in measured if 60.0 <= flow.rtt_ms <= 250.0]
        probes += choose.sample(useful, min(3, len(useful)))
    network = survey.network_of(probes)
    errors = []
    for test in {test for of in flows.values() for test in of} - {*probes}:
        if test.rtt_ms >= 60.0:
            window_mb = network.sites[test.dst].window_mb.expected
            # What a 10 s test shows of the steady rate that is predicted.
            shown = network.link(test.src, test.dst).per_flow_mbps.expected
            shown *= flow_share_of_steady(window_mb, test.rtt_ms, 10.0)
            errors.append(abs(shown / test.throughput_mbps - 1))
    errors.sort()
    assert len(errors) > 300
    assert errors[len(errors) // 2] < 0.04
    assert errors[int(0.9 * len(errors))] < 0.12


def test_neighbours_tell_of_a_link_more_than_its_providers_do() -> None:
    """From Europe to the American west it is slow here, from Asia as the law has it."""
    pairs = [
        (src, dst)
        for src in ("azure:westeurope", "azure:koreacentral")
        for dst in ("aws:us-west-1", "aws:sa-east-1")
    ]
    before = estimated()
    measured = [
        sample(
            1000 * before.link(*pair).aggregate_gbps.expected * (0.4 if pair == pairs[0] else 1.0),
            "aggregate_mbps",
            *pair,
            connections=64,
        )
        for pair in pairs
    ]
    after = estimated(*measured)
    for src, dst, least, most in (
        ("azure:northeurope", "aws:us-west-2", 0.5, 0.75),
        ("azure:japaneast", "aws:us-west-2", 0.99, 1.01),
        ("azure:brazilsouth", "aws:ap-south-1", 0.99, 1.01),
    ):
        now, was = (n.link(src, dst).aggregate_gbps for n in (after, before))
        assert now.source == "inferred"
        assert least <= now.expected / was.expected <= most, (src, dst)
    near = after.link("azure:northeurope", "aws:us-west-2").aggregate_gbps
    by_law = before.link("azure:northeurope", "aws:us-west-2").aggregate_gbps
    # Bounds are those of the law about another figure: equal but for rounding, never wider.
    assert near.high / near.low <= by_law.high / by_law.low * (1 + 1e-12)


def test_the_more_links_of_a_class_are_measured_the_more_its_spread_is_theirs() -> None:
    # Of tuned hosts, where no window is the limit.
    first = sample(3000.0, "aggregate_mbps", "azure:westeurope", "aws:us-west-1", connections=64)
    first = first.with_detail(window_mb=512)
    before = estimated(first)
    far = [
        link
        for link in before
        if link.src.startswith("gcp:")
        and link.dst.startswith("aws:")
        and 100 < link.rtt_ms.high < 200
    ]
    widths = []
    for count in (0, 2, 10, 40):
        measured = [
            sample(
                1000 * link.aggregate_gbps.expected,
                "aggregate_mbps",
                link.src,
                link.dst,
                connections=64,
            ).with_detail(window_mb=512)
            for link in far[: -1 : len(far) // max(1, count)][:count]  # of many regions
        ]
        link = estimated(first, *measured).link(far[-1].src, far[-1].dst).aggregate_gbps
        widths.append(link.expected / link.low - 1)
    assert widths[0] == widths[1] > widths[2] > widths[3]
    assert widths[3] < 0.8 * widths[0]  # all of these links are right at the law


@pytest.mark.parametrize("how", ["stated", "measured"])
def test_a_law_holds_in_proportion_for_vms_of_another_size(how: str) -> None:
    src, dst, share = "azure:koreacentral", "aws:us-west-1", 0.02
    full = estimated()
    stated_gbps = {
        name: (share * site.egress_gbps.expected, share * site.ingress_gbps.expected)
        for name, site in full.sites.items()
    }
    sides: tuple[tuple[Metric, str], ...] = (
        ("egress_cap_mbps", "egress_gbps"),
        ("ingress_cap_mbps", "ingress_gbps"),
    )
    samples = [
        sample(1000 * share * getattr(full.sites[name], side).expected, metric, name, name)
        for name, (metric, side) in product((src, dst) if how == "measured" else (), sides)
    ]
    estimator = Estimator(
        Samples.of(samples), CATALOGUE, stated_gbps=stated_gbps if how == "stated" else {}
    )
    link, was = estimator.network(Snapshot("t", "", "")).link(src, dst), full.link(src, dst)
    assert link.aggregate_gbps.expected == pytest.approx(share * was.aggregate_gbps.expected)
    assert link.aggregate_gbps.low == pytest.approx(share * was.aggregate_gbps.low)
    assert link.per_flow_mbps.expected <= share * 1000 * full.sites[src].egress_gbps.expected


def test_a_cap_that_the_peers_held_back_is_a_lower_bound() -> None:
    hub, small = "gcp:us-east1", ("aws:us-east-1", "aws:us-west-2", "aws:eu-west-1")
    towards = dict.fromkeys(small, 440.0)

    def cap(metric: Metric, region: str, mbps: float, peers: dict[str, float]) -> Sample:
        found = sample(mbps, metric, region, region)
        return found._replace(detail=json.dumps({"together_mbps": peers, "high_mbps": 1.05 * mbps}))

    def network_of(*samples: Sample) -> Network:
        estimator = Estimator(Samples.of(samples), CATALOGUE, stated_gbps={hub: (1.0, 1.0)})
        return estimator.network(Snapshot("t", "", ""))

    # What the peers take in was shown by probes from many, which could have sent more.
    caps = [cap("egress_cap_mbps", hub, sum(towards.values()), towards)]
    caps += (
        cap("ingress_cap_mbps", region, 445.0, {hub: 300.0, small[0]: 145.0}) for region in small
    )
    network = network_of(*caps)
    for region in small:
        assert network.sites[region].ingress_gbps.source == "measured"
        assert network.sites[region].ingress_gbps.expected == pytest.approx(0.445)
    held = network.sites[hub].egress_gbps
    assert held.expected == pytest.approx(1.32)  # no less than it carried, whatever was stated
    assert held.source == "inferred"
    assert held.high >= 2 * held.expected

    # Windows hold back too: one connection to each carries far less than the caps.
    few = cap("egress_cap_mbps", hub, 6000.0, towards)._replace(connections=3)
    assert estimated(few).sites[hub].egress_gbps.source != "measured"

    enough = {**towards, "azure:eastus": 440.0, "gcp:us-west1": 440.0}
    more = cap("egress_cap_mbps", hub, 2000.0, dict.fromkeys(enough, 400.0))
    reached = network_of(*caps, more).sites[hub].egress_gbps
    assert reached.source == "measured"
    assert reached.expected == pytest.approx(2.0)


# ---- origins -----------------------------------------------------------------------------------


def test_an_origin_counts_its_samples_and_tells_their_times_and_addresses() -> None:
    kinds: list[AddressKind] = ["public", "public", "private"]
    pings = [
        sample(100.0 + n, "rtt_ms", at_s=WHEN_S + n)._replace(address=kind)
        for n, kind in enumerate(kinds)
    ]
    network = estimated(*pings)
    found = network.link(SRC, DST).rtt_ms.origin
    assert found[:6] == ("measured", "median-of-samples", 2, 1, WHEN_S + 1, WHEN_S)
    assert found.address == "public"
    over_private = network.others[SRC][DST].rtt_ms.origin
    assert over_private[2:7] == (1, 1, WHEN_S + 2, WHEN_S + 2, "private")
    assert link_of(pings[0], sample(101.0, "rtt_ms")).rtt_ms.origin.address is None
    back = network.link(DST, SRC).rtt_ms
    assert back.origin == found._replace(kind="inferred", method="opposite-direction")
    assert back.samples == 0


GCP = ("gcp:us-east1", "gcp:europe-west1", "gcp:asia-east1")


def over(address: AddressKind, mbps: float, pairs: Iterable[tuple[str, str]]) -> list[Sample]:
    """Return pings and tests of 64 connections over a kind of address."""
    return [
        one._replace(address=address, warmed_up=True)
        for src, dst in pairs
        for one in (
            sample(20.0, "rtt_ms", src, dst),
            *(
                sample(mbps + n, "aggregate_mbps", src, dst, connections=64, duration_s=60.0)
                for n in (-5.0, 0.0, 5.0)
            ),
        )
    ]


def test_public_and_private_addresses_are_links_of_their_own() -> None:
    pairs = [(GCP[0], GCP[1]), (GCP[1], GCP[2])]
    public = over("public", 6800.0, [*pairs, (GCP[0], "aws:us-east-1")])
    private = over("private", 28_000.0, pairs)
    network = estimated(*public, *private)
    link, other = network.link(*pairs[0]), network.others[pairs[0][0]][pairs[0][1]]
    assert (link.address, other.address) == ("private", "public")
    assert link.aggregate_gbps.expected == pytest.approx(28.0, rel=0.02)
    assert other.aggregate_gbps.expected == pytest.approx(6.8, rel=0.02)
    # What one VM sent over private addresses is above the cap of public ones, and says nothing of
    # it; until kinds were told apart, all paths were promised the higher one.
    site = network.sites[GCP[0]]
    assert site.egress_gbps.expected == 7.0
    assert site.egress("private").expected == 32.0
    # The third pair was not measured: others of its regions were.
    inferred = network.link(GCP[0], GCP[2])
    assert inferred.address == "private"
    assert inferred.aggregate_gbps.source == "inferred"
    assert network.link(GCP[0], "gcp:us-west1").address == "public"
    assert network.link(GCP[0], "aws:us-east-1").address == "public"


@settings(max_examples=examples(10), deadline=None)
@given(st.floats(100.0, 7000.0), st.floats(100.0, 30_000.0))
def test_samples_of_one_kind_do_not_move_the_other(public_mbps: float, private_mbps: float) -> None:
    pairs = [(GCP[0], GCP[1]), (GCP[1], GCP[2])]
    public, private = over("public", public_mbps, pairs), over("private", private_mbps, pairs)
    both = estimated(*public, *private)
    for kind, alone in (("public", estimated(*public)), ("private", estimated(*private))):
        for src, dst in pairs:
            links = (both.link(src, dst), both.others[src][dst])
            (link,) = (link for link in links if link.address == kind)
            assert link == alone.link(src, dst)
    assert both.sites[GCP[0]].egress_gbps == estimated(*public).sites[GCP[0]].egress_gbps


def test_the_origin_of_an_inference_counts_the_links_behind_it() -> None:
    ends = [("aws:us-east-1", "aws:sa-east-1"), ("aws:eu-west-1", "aws:ap-south-1")]
    tests = [
        sample(4800.0 + n, "aggregate_mbps", src, dst, connections=64, at_s=WHEN_S + n)
        for n, (src, dst) in enumerate(ends)
    ]
    network = estimated(*tests, *tests[:1])
    measured = network.link(*ends[0]).aggregate_gbps.origin
    assert measured.figures is not None
    assert (measured.samples, measured.links, measured.figures.connections) == (2, 1, 64)
    shifted = network.link("aws:us-west-2", "aws:eu-central-1").aggregate_gbps.origin
    assert (shifted.kind, shifted.method) == ("inferred", "shifted-law")
    assert (shifted.samples, shifted.links) == (3, 2)
    assert (shifted.newest_s, shifted.oldest_s) == (WHEN_S + 1, WHEN_S)


def test_without_samples_links_are_those_of_the_baseline() -> None:
    found, baseline = estimated(), baseline_network(CATALOGUE)
    assert found.sites == baseline.sites
    for link, expected in zip(found, baseline, strict=True):
        for figure in ("rtt_ms", "aggregate_gbps"):
            one, other = getattr(link, figure), getattr(expected, figure)
            assert one.origin == other.origin
            for bound in BOUNDS:
                assert getattr(one, bound) == pytest.approx(getattr(other, bound), rel=1e-9)


def test_samples_from_before_a_level_that_was_shown_no_longer_count() -> None:
    series = [
        Sample(SRC, DST, "aggregate_mbps", value, at_s, "iperf3", 64, 5.0, True, new_level=new)
        for at_s, (value, new) in enumerate(
            ((5000.0, False), (5100.0, False), (3000.0, True), (3050.0, True), (3020.0, False))
        )
    ]
    current = current_samples(Samples.of(series))
    assert [sample.value for sample in current.samples] == [3050.0, 3020.0]
    assert current.before == 3
    assert list(current_samples(Samples.of(series[:2])).samples) == series[:2]
