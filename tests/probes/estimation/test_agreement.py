"""Agreement of sources that report the same link: one source alone never moves its level."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES, Link
from planner.model.network import Network, Snapshot
from probes.estimation import Estimator
from probes.estimation.agreement import Agreement, agreed
from probes.estimation.link_samples import CANDIDATE
from probes.metrics import Metric
from probes.samples import FILES, OWN, Sample, Samples
from relayd.catalogue.loading import load_catalogue
from relayd.questions.caveats import disputed_figures
from tests.properties import examples

SRC, DST = "aws:us-east-1", "azure:westeurope"
DAY_S = 86400.0
CATALOGUE = load_catalogue()
FIGURE_OF = {
    "aggregate_mbps": "aggregate_gbps",
    "rtt_ms": "rtt_ms",
    "per_flow_mbps": "per_flow_mbps",
}
AWS = ("aws:us-east-1", "aws:us-west-2", "aws:eu-west-1", "aws:ap-southeast-1")


def _tests(
    values: Sequence[float], *, begin_s: float = 0.0, every_s: float = 3600.0
) -> list[Sample]:
    return [
        Sample(SRC, DST, "aggregate_mbps", value, 1.7e9 + begin_s + number * every_s, "iperf3", 64)
        for number, value in enumerate(values)
    ]


class _From(NamedTuple):
    """The samples of one source."""

    samples: list[Sample]
    source: str
    first_id: int


class _Judged(NamedTuple):
    """Which samples count, and which are disputed."""

    samples: list[Sample]
    disputed: list[Sample]
    found: Agreement


def _noisy(level: float, count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [level * exp(rng.gauss(0.0, 0.02)) for _ in range(count)]


def _of(samples: Sequence[Sample], source: str = OWN, first_id: int = 0) -> _From:
    return _From(list(samples), source, first_id)


def _agreed(*found: _From) -> _Judged:
    samples = [sample for one in found for sample in one.samples]
    rows = np.zeros(len(samples), CANDIDATE)
    rows["place"] = np.arange(len(samples))
    rows["log"] = np.log([sample.value for sample in samples])
    rows["measured_at_s"] = [sample.measured_at_s for sample in samples]
    rows["first_id"] = np.repeat([one.first_id for one in found], [len(one[0]) for one in found])
    parts = np.split(rows, np.cumsum([len(one.samples) for one in found])[:-1])
    judged = agreed({one.source: part for one, part in zip(found, parts, strict=True)}, 0.02)
    disputed = [samples[place] for one in judged.disputed for place in one.rows["place"]]
    return _Judged([samples[place] for place in judged.rows["place"]], disputed, judged)


@settings(max_examples=examples(20))
@given(
    factors=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=64),
    history=st.integers(1, 64),
    begin_s=st.floats(-14 * DAY_S, 14 * DAY_S),
    trusted=st.booleans(),
)
def test_one_source_alone_moves_no_level(
    factors: list[float], history: int, begin_s: float, trusted: bool
) -> None:
    # Whatever it sends, however much of it, and whenever it says that it measured.
    honest = _of(_tests(_noisy(5000.0, history, 1)), OWN if trusted else "token old", 1)
    false = [5000.0 * factor for factor in factors]
    mallory = _of(_tests(false, begin_s=begin_s), "token mallory", 2)
    found = _agreed(honest, mallory)
    if history >= 3:
        assert found.samples == honest.samples
    else:
        allowed = [s for s in found.samples if s not in honest.samples]
        assert len(allowed) <= history
        assert all(0.8 < s.value / 5000.0 < 1.25 for s in allowed)
    held = set(found.disputed)
    assert {s for s in mallory.samples if not 0.8 < s.value / 5000.0 < 1.25} <= held


def test_a_new_level_counts_once_a_second_source_finds_it() -> None:
    own = _of(_tests(_noisy(5000.0, 40, 1)))
    later = 41 * 3600.0
    a = _of(_tests(_noisy(1000.0, 3, 2), begin_s=later), "token a", 50)
    b = _of(_tests(_noisy(1000.0, 3, 3), begin_s=later + 60), "token b", 60)
    assert _agreed(own, a).samples == own.samples
    both = _agreed(own, a, b)
    assert both.found.is_shift
    assert both.found.reported_by == ("token a", "token b")
    assert sorted(s.value for s in both.samples) == sorted(
        s.value for s in (*a.samples, *b.samples)
    )
    # Two that say different things are not two that agree.
    other = _of(_tests(_noisy(9000.0, 3, 3), begin_s=later), "token b", 60)
    assert _agreed(own, a, other).samples == own.samples


def test_the_own_prober_settles_what_others_claim() -> None:
    before, later = _tests(_noisy(5000.0, 40, 1)), 41 * 3600.0
    a = _of(_tests(_noisy(1000.0, 5, 2), begin_s=later), "token a", 50)
    b = _of(_tests(_noisy(1000.0, 5, 3), begin_s=later), "token b", 60)
    # One dip of its own, or three tests of one campaign, confirm nothing.
    for again in (_tests([990.0]), _tests([990.0, 985.0, 995.0], every_s=60.0)):
        own = [*before, *(one._replace(measured_at_s=one[4] + later + 9 * 3600.0) for one in again)]
        assert _agreed(_of(own), a).samples == own
        assert _agreed(_of(own), a, b).found.is_shift  # as both say, not confirmed
    found_it = _of([*before, *_tests([990.0, 985.0, 995.0], begin_s=later + 9 * 3600.0)])
    confirmed = _agreed(found_it, a)
    assert not confirmed.found.is_shift
    assert confirmed.found.reported_by == ()
    assert {round(s.value, -3) for s in confirmed.samples} == {1000.0}
    denied_it = _of([*before, *_tests([5050.0], begin_s=later + 9 * 3600.0)])
    refuted = _agreed(denied_it, a, b)
    assert refuted.samples == denied_it.samples
    assert len(refuted.found.disputed) == 2


def test_as_many_who_still_see_the_old_level_outweigh_a_claim() -> None:
    old = [_of(_tests(_noisy(5000.0, 50, n)), f"token {n}", n) for n in (1, 2)]
    later = 30 * 3600.0  # while the others go on measuring
    new = [_of(_tests(_noisy(900.0, 9, n), begin_s=later), f"token {n}", n) for n in (3, 4)]
    assert _agreed(*old, *new).samples == old[0].samples
    third = _of(_tests(_noisy(900.0, 9, 5), begin_s=later), "token 5", 5)
    assert _agreed(*old, *new, third).found.is_shift


# ---- through the estimator ---------------------------------------------------------------------


def _network(*parts: Samples) -> Network:
    return Estimator(Samples.concat(parts), CATALOGUE).network(Snapshot("t", "", "mixed"))


def _reported(samples: Sequence[Sample], source: str, first_id: int) -> Samples:
    found = Samples.of(samples, source)
    found.rows["id"] = first_id + np.arange(len(found))
    return found


def test_one_token_for_everything_is_estimated_as_ever_and_named() -> None:
    tests = _tests(_noisy(4000.0, 20, 1))
    own, files, token = (
        _network(_reported(tests, source, 1)) for source in (OWN, FILES, "token all")
    )
    assert list(own) == list(files)
    assert own.sites == files.sites == token.sites
    for one, other in zip(own, token, strict=True):
        for name in LINK_FIGURES:
            a, b = getattr(one, name), getattr(other, name)
            assert (a.low, a.expected, a.high) == (b.low, b.expected, b.high)
            of_token = b.origin.figures and b.origin.figures.reported_by
            rests = b.samples or b.origin.method in ("shifted-law", "share-of-aggregate")
            assert of_token == (("token all",) if rests else None), b


@pytest.mark.parametrize(
    ("metric", "model", "factor", "waits"),
    [
        ("aggregate_mbps", 5000.0, 0.001, True),  # of other units
        ("aggregate_mbps", 5000.0, 0.5, False),
        ("aggregate_mbps", 5000.0, 0.1, True),
        ("rtt_ms", 113.8, 8.0, True),
        ("rtt_ms", 113.8, 1.3, False),
        ("per_flow_mbps", 284.0, 0.001, True),
        ("per_flow_mbps", 284.0, 0.5, False),
        ("egress_cap_mbps", 5000.0, 0.004, True),
        ("egress_cap_mbps", 5000.0, 1.4, False),
    ],
)
def test_what_models_hardly_allow_waits_for_a_second_source(
    metric: Metric, model: float, factor: float, waits: bool
) -> None:
    cap = metric == "egress_cap_mbps"
    tests = [
        one._replace(
            metric=metric, connections=64 if metric == "aggregate_mbps" else 1,
            dst=SRC if cap else DST,
        )
        for one in _tests([model * factor] * 4)
    ]  # fmt: skip

    def reported_by(*sources: str) -> tuple[float, Network]:
        """Return the figure and the network, as sources report the same samples."""
        parts = [_reported(tests, source, 10 * n) for n, source in enumerate(sources)]
        network = _network(*parts)
        scale = 1000.0 if cap or metric == "aggregate_mbps" else 1.0
        return scale * figure_of(network).expected, network

    def figure_of(network: Network) -> Estimate:
        link, site = network.link(SRC, DST), network.sites[SRC]
        return site.egress_gbps if cap else getattr(link, FIGURE_OF[metric])

    told = pytest.approx(model * factor, rel=0.15)
    (none, _), (alone, network) = reported_by(), reported_by("token m")
    assert none == pytest.approx(model, rel=0.3)
    if waits:
        assert alone == none
        figures = disputed_figures(network, [(SRC, DST)])
        assert all("for a second source" in one.sentence for one in figures)
        assert [one.sources for one in figures] == [("token m",)]
    else:
        assert alone == told
        behind = figure_of(network).origin.figures
        assert behind
        assert behind.reported_by == ("token m",)
    assert reported_by("token m", "token n")[0] == told
    assert reported_by(FILES)[0] == reported_by(OWN)[0] == told


def test_a_flow_that_the_aggregate_of_its_link_refutes_is_disputed() -> None:
    """64 connections carried 4 Gbit/s: one carries a 64th of that at least, and all at most."""
    many = _reported(_tests(_noisy(4000.0, 5, 1)), OWN, 1)
    honest = _network(many).link(SRC, DST)

    def after(mbps: float, source: str) -> Link:
        flows = [one._replace(metric="per_flow_mbps", connections=1) for one in _tests([mbps] * 3)]
        return _network(many, _reported(flows, source, 50)).link(SRC, DST)

    for false in (1.0, 45.0, 5500.0):
        found = after(false, "token mallory")
        flow = found.per_flow_mbps
        assert replace(flow, origin=honest.per_flow_mbps.origin) == honest.per_flow_mbps
        assert flow.origin.figures
        assert flow.origin.figures.disputed_by == ("token mallory",)
        assert found.aggregate_gbps == honest.aggregate_gbps
        assert after(false, OWN).per_flow_mbps.expected == false  # the prober's own stays
    for possible in (70.0, 300.0, 900.0):  # 3900.0 waits: models expect 280
        assert after(possible, "token other").per_flow_mbps.expected == pytest.approx(possible)


def _achieved(values: Sequence[float], begin_s: float = 0.0) -> list[Sample]:
    tests = _tests(values, begin_s=begin_s)
    limited = '{"limited_by": "network"}'
    return [
        one._replace(connections=None, duration_s=900.0, tool="transfer", detail=limited)
        for one in tests
    ]


def test_transfers_as_fast_as_tests_and_those_of_months_ago_change_nothing() -> None:
    tests = _tests(_noisy(4000.0, 5, 1), begin_s=12 * 3600.0)

    def gbps(*more: Samples) -> float:
        return _network(_reported(tests, OWN, 1), *more).link(SRC, DST).aggregate_gbps.expected

    usual = gbps()
    assert gbps(_reported(_achieved([3950.0] * 12), OWN, 50)) == usual
    assert gbps(_reported(_achieved([2000.0] * 12, -60 * DAY_S), OWN, 50)) == usual
    # Tests of the prober that came later outweigh them, and those after these count.
    assert gbps(_reported(_achieved([2000.0] * 12), OWN, 50)) == usual
    assert gbps(_reported(_achieved([2000.0] * 12, 18 * 3600.0), OWN, 50)) < 0.6 * usual


def test_what_held_transfers_teaches_nothing_of_other_links() -> None:
    links = [(src, dst) for src in AWS for dst in ("azure:eastus", "azure:japaneast")]
    slow = [one._replace(src=src, dst=dst) for src, dst in links for one in _achieved([300.0] * 4)]
    before, after = _network(), _network(_reported(slow, OWN, 1))
    assert after.link(*links[0]).aggregate_gbps.expected < 0.4
    assert after.link(*links[0]).aggregate_gbps.origin.method == "median-of-transfers"
    assert after.link(SRC, DST).aggregate_gbps == before.link(SRC, DST).aggregate_gbps


def test_caps_vm_types_and_classes_are_held_like_links() -> None:
    own = [_reported(_tests(_noisy(4900.0, 20, 1)), OWN, 1)]
    cap = Sample(SRC, SRC, "egress_cap_mbps", 5000.0, 1.7e9, "iperf3", 64)
    caps = [cap, cap._replace(value=5010.0), cap._replace(value=4990.0)]
    own.append(_reported(caps, OWN, 30))
    honest = _network(*own)
    later = 1.7e9 + 30 * 3600.0
    false = [cap._replace(value=9000.0, measured_at_s=later + n) for n in range(50)]
    # Links that no other source has measured, far above the measured cap and class, with VM types
    # that no other source names.
    false += [
        sample._replace(dst="azure:eastus", value=9900.0, src_vm="c7gn.16xlarge")
        for sample in _tests([1.0] * 200, begin_s=30 * 3600.0)
    ]
    attacked = _network(*own, _reported(false, "token mallory", 100))
    assert attacked.sites[SRC].vm_type == honest.sites[SRC].vm_type
    assert attacked.sites[SRC].egress_gbps.expected == honest.sites[SRC].egress_gbps.expected
    assert attacked.sites[SRC].egress_gbps.high == honest.sites[SRC].egress_gbps.high
    for dst in (DST, "azure:francecentral"):
        was, now = honest.link(SRC, dst), attacked.link(SRC, dst)
        assert now.aggregate_gbps.expected == was.aggregate_gbps.expected
    figures = attacked.sites[SRC].egress_gbps.origin.figures
    assert figures is not None
    assert (figures.disputed, figures.disputed_by) == (50, ("token mallory",))
