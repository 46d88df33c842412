"""Buckets of keys are in proportion to the fractions that relayd places."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

import pytest

import relayd
from examples.words import DATA, buckets, place


def test_buckets_are_in_proportion_to_the_fractions(
    tmp_path: Path, environment: MutableMapping[str, str]
) -> None:
    environment["XDG_DATA_HOME"] = str(tmp_path)  # not what this user has measured
    placement = place(relayd.open(), DATA)
    found = buckets(placement.fractions, 200)
    for region, fraction in placement.fractions.items():
        assert found.count(region) / 200 == pytest.approx(fraction, abs=0.01)
