"""The short form of ``python -m benchmarks.poisoning``: one seed, a few pairs, two attacks."""

from __future__ import annotations

import pytest

from benchmarks.poisoning import MOST_MOVED, attacked, attacked_alone, flagged, followed_after
from probes.samples import OWN
from relayd.catalogue.loading import load_catalogue

CATALOGUE = load_catalogue()


def test_a_tenth_of_all_samples_changes_no_verdict() -> None:
    names = ("everywhere, at any time", "one level on 20 links, ahead of time")
    for outcome in attacked(3, CATALOGUE, 6, names).values():
        assert outcome.verdicts == 0
        assert outcome.moved < MOST_MOVED


@pytest.mark.parametrize("plans", [10, pytest.param(25, marks=pytest.mark.thorough)])
def test_what_one_token_alone_has_measured_moves_no_plan_without_a_word(plans: int) -> None:
    outcomes = attacked_alone(2, CATALOGUE, plans)
    assert {name: one.silent for name, one in outcomes.items() if one.silent} == {}
    for name in (
        "throughput in Gbit/s where Mbit/s are meant",
        "round trips of 900 ms",
        "caps of VMs of 20 Mbit/s",
        "half of all packets are lost",
    ):
        assert outcomes[name].moved == 0
    named = outcomes["half of each rate and cap, twice each round trip"]
    assert named.moved > plans // 5  # and so not held back


def test_two_tokens_together_are_flagged_in_one_snapshot() -> None:
    claimed, named = flagged(3, CATALOGUE)
    assert named == claimed == 20


@pytest.mark.parametrize(
    "sources", [[OWN], ["token a", "token b"]], ids=["own prober", "two tokens"]
)
def test_a_new_level_is_followed_as_fast_as_one_source_shows_it(sources: list[str]) -> None:
    assert followed_after(3, CATALOGUE, sources) <= 6
