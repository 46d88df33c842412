"""A figure rests on the samples of its provenance: without the others it is the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planner.model.network import Network, Snapshot
from probes.estimation import Estimator
from probes.estimation.provenance import FigureProvenance, Provenance, Quantity
from probes.metrics import Metric
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from tests.properties import examples

CATALOGUE = load_catalogue()
# Two of them in one city, of two providers.
REGIONS = ("aws:us-east-1", "azure:eastus", "gcp:asia-east1", "aws:eu-west-1", "azure:northeurope")
WHEN_S = 1.7e9
ALL: tuple[Metric, ...] = ("rtt_ms", "per_flow_mbps", "aggregate_mbps", "loss_pct")
CAPS: tuple[Metric, ...] = ("egress_cap_mbps", "ingress_cap_mbps")
# An estimate of the whole graph takes a while: what fails is not made smaller.
QUICKLY = settings(
    max_examples=examples(12), deadline=None, phases=(Phase.explicit, Phase.generate)
)
# Distances of other links, and the caps of VMs elsewhere, decide which links are alike and which
# flows are slow enough to show a window: these are not named.
NOT_NAMED: dict[Quantity, tuple[Metric, ...]] = {
    "rtt_ms": (),
    "per_flow_mbps": ("rtt_ms", "aggregate_mbps", *CAPS),
    "aggregate_gbps": ("rtt_ms", "aggregate_mbps", *CAPS),
}
SERIES = [(src, dst, metric) for src, dst in permutations(REGIONS, 2) for metric in ALL]
SERIES += [(region, region, metric) for region in REGIONS for metric in CAPS]


def estimated(samples: list[Sample]) -> Network:
    estimator = Estimator(Samples.of(samples), CATALOGUE)
    return estimator.network(Snapshot("t", "", "mixed"))


@st.composite
def measured(draw: st.DrawFn) -> list[Sample]:
    """Return samples of some links; of each as many as chance has it."""
    chosen = draw(st.lists(st.sampled_from(SERIES), min_size=1, max_size=14, unique=True))
    samples = []
    for src, dst, metric in sorted(chosen):
        top = {"rtt_ms": 300.0, "per_flow_mbps": 4e3, "loss_pct": 5.0}.get(metric, 2e4)
        values = draw(st.lists(st.floats(top / 100, top), min_size=1, max_size=4))
        many = 64 if metric != "rtt_ms" else None
        connections = 1 if metric == "per_flow_mbps" else many
        samples += [
            Sample(src, dst, metric, value, WHEN_S + place, "test", connections)
            for place, value in enumerate(values)
        ]
    return samples


def behind(origins: dict[Quantity, FigureProvenance], quantity: Quantity) -> list[FigureProvenance]:
    """Return a figure's origin and those of all that it rests on."""
    found = {quantity: origins[quantity]}
    waiting = [quantity]
    while waiting:
        for further in found[waiting.pop()].rests_on:
            if further not in found:
                found[further] = origins[further]
                waiting.append(further)
    return list(found.values())


@QUICKLY
@given(samples=measured(), pair=st.sampled_from(sorted(permutations(REGIONS, 2))))
def test_without_all_other_samples_a_figure_is_the_same(
    samples: list[Sample], pair: tuple[str, str]
) -> None:
    network = estimated(samples)
    origins = {each.quantity: each for each in Provenance(network, CATALOGUE).of(*pair)}
    has = {(sample.src, sample.dst, sample.metric) for sample in samples}
    for quantity, and_also in NOT_NAMED.items():
        needed = behind(origins, quantity)
        named = {(s.src, s.dst, s.metric) for origin in needed for s in origin.series}
        assert named <= has
        kept = [s for s in samples if s[:3] in named or s.metric in and_also]
        estimate = getattr(network.link(*pair), quantity)
        found = getattr(estimated(kept).link(*pair), quantity)
        if estimate.source == "inferred" and any(o.quantity == "per_flow_mbps" for o in needed):
            # How far flows lie from what windows promise follows from all that were measured,
            # which are not named: with fewer of them, the bounds are others.
            found = replace(found, low=estimate.low, high=estimate.high)
        assert found == estimate, quantity
        assert origins[quantity].estimate == estimate
        assert (origins[quantity].kind == "samples") == (estimate.source == "measured")


def test_a_probe_counts_for_its_type_even_where_a_link_exceeded_it() -> None:
    probed, same_type = "aws:us-east-1", "aws:eu-west-1"
    samples = [
        Sample(probed, probed, "egress_cap_mbps", 5000.0, WHEN_S, "test", 64),
        Sample(probed, "azure:eastus", "aggregate_mbps", 7000.0, WHEN_S, "test", 64),
    ]
    network = estimated(samples)
    assert network.sites[probed].egress_gbps.origin.method == "link-above-cap"
    found = Provenance(network, CATALOGUE).of(same_type, "azure:eastus")
    (cap,) = [each for each in found if each.quantity == "egress_gbps"]
    assert network.sites[same_type].egress_gbps.expected == 5.0
    assert [(s.src, s.metric) for s in cap.series] == [(probed, "egress_cap_mbps")]


@QUICKLY
@given(samples=measured())
def test_every_figure_has_an_origin_of_its_kind(samples: list[Sample]) -> None:
    network = estimated(samples)
    has = {(sample.src, sample.dst, sample.metric) for sample in samples}
    provenance = Provenance(network, CATALOGUE)
    for pair in permutations(REGIONS, 2):
        for origin in provenance.of(*pair):
            assert origin.rule.endswith(".")
            assert {(s.src, s.dst, s.metric) for s in origin.series} <= has
            if origin.estimate is None:
                continue
            if origin.estimate.source == "baseline":
                assert origin.kind in ("model", "stated"), origin
                assert not origin.series
            # An inference names the links that it is from, or the figures.
            elif not origin.series:
                assert origin.rests_on, origin
