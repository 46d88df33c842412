"""Estimates: what their origins say, in words and in JSON, and how they age."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.document import as_json, link_of
from planner.model.estimate import (
    METHODS,
    SECONDS_PER_DAY,
    Addresses,
    Estimate,
    Figures,
    HeldTo,
    Kind,
    Method,
    Origin,
    Prior,
    RateCut,
    exactly,
)
from planner.model.link import Link

FULL = Figures(
    connections=64,
    peers=3,
    window_kind="inferred",
    rtt_kind="measured",
    held_to="vm-caps",
    error=0.06,
    between=("aws", "gcp"),
    vm_type="aws:m5.8xlarge",
    note="a list",
)
_names = st.sampled_from(["", "aws", "Zürich"])
_kinds = st.sampled_from(get_args(Kind))
_figures = st.builds(
    Figures,
    connections=st.none() | st.integers(1, 256),
    peers=st.none() | st.integers(1, 40),
    window_kind=st.none() | _kinds,
    rtt_kind=st.none() | _kinds,
    held_to=st.none() | st.sampled_from(get_args(HeldTo)),
    error=st.none() | st.floats(0, 9),
    between=st.none() | st.tuples(_names, _names),
    vm_type=st.none() | _names,
    rate_cut=st.none() | st.builds(RateCut, *[st.floats(0.1, 99)] * 4, st.just("time"), st.none()),
    note=st.none() | _names,
)
_times = st.none() | st.sampled_from([0.0, 1.6e9])
# A method with figures that its sentence is not made of would be a fault of who made the origin.
ORIGINS = st.builds(
    Origin,
    kind=_kinds,
    method=st.sampled_from(["opposite-direction", "shifted-law", "fleet-file"]),
    samples=st.integers(0, 9),
    links=st.integers(0, 9),
    newest_s=_times,
    oldest_s=_times,
    address=st.none() | st.sampled_from(get_args(Addresses)),
    figures=st.none() | _figures,
)
ESTIMATES = st.builds(
    Estimate,
    low=st.floats(0, 1),
    expected=st.floats(1, 2),
    high=st.sampled_from([2.0, inf]),
    origin=ORIGINS,
)


def test_every_method_has_a_sentence() -> None:
    assert set(get_args(Method)) == METHODS
    for method in get_args(Method):
        said = Origin("inferred", method, figures=FULL).basis
        assert "None" not in said
        assert bool(said) or method == "stated"
        assert "{" not in Origin("inferred", method).basis


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("median-of-samples", "64 connections"),
        ("window-over-rtt", "receiver's window (inferred) / RTT (measured)"),
        ("provider-pair-law", "aws to gcp law, error up to 6%"),
        ("caps-of-vm-type", "caps of other aws:m5.8xlarge"),
        ("unknown", "a list"),
    ],
)
def test_a_sentence_has_the_figures_of_its_method(method: Method, said: str) -> None:
    assert Origin("inferred", method, figures=FULL).basis == said


@given(rtt=ESTIMATES, flow=ESTIMATES)
def test_an_estimate_is_the_same_after_json(rtt: Estimate, flow: Estimate) -> None:
    aggregate = replace(exactly(3.0), prior=Prior(1.0, 2.0, 4.0, 0.5))
    link = Link("a", "b", rtt, flow, aggregate, limited_by="path")
    text = json.dumps(as_json(link), allow_nan=False)
    assert link_of(json.loads(text)) == link


def test_what_another_version_says_of_an_origin_is_kept_as_a_sentence() -> None:
    measured = Origin("measured", "median-of-samples", 3, 1, 1.6e9, 1.5e9)
    link = Link("a", "b", exactly(1.0), exactly(2.0), Estimate(1.0, 2.0, 3.0, measured))
    row = as_json(link)
    row["aggregate_gbps"]["basis"] = "a new way"
    for origin in (None, {**row["aggregate_gbps"]["origin"], "method": "of-tomorrow"}):
        row["aggregate_gbps"]["origin"] = origin
        found = link_of(row).aggregate_gbps
        assert (found.origin.method, found.basis) == ("unknown", "a new way")
        assert (found.source, found.samples, found.measured_at_s) == ("measured", 3, 1.6e9)
    row["aggregate_gbps"]["origin"] = {"kind": "measured", "method": "stated", "of_tomorrow": 1}
    for limit in (row.pop("limited_by"), "of-tomorrow", None):
        row["limited_by"] = limit
        assert link_of(row).limited_by == "unknown"
    assert link_of(row).aggregate_gbps.origin == Origin("measured", "stated")


def test_samples_age_but_not_a_spread_over_links() -> None:
    measured = Origin("measured", "median-of-samples", 3, 1, 0.0)
    one = Estimate(0.9, 1.0, 1.1, measured, Prior(0.5, 1.0, 2.0, 3.0))
    many = replace(one, origin=Origin("inferred", "shifted-law", 30, 9, 0.0))
    assert one.aged(SECONDS_PER_DAY - 1) == one
    old = one.aged(400 * SECONDS_PER_DAY)
    assert old.low < one.low < one.expected == old.expected < one.high < old.high
    assert old.origin == one.origin
    assert many.aged(400 * SECONDS_PER_DAY) == many
    assert (many.measured_at_s, many.origin.newest_s) == (None, 0.0)
    assert (one.samples, many.samples) == (3, 0)
