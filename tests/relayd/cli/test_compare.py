"""Comparisons from the command line and the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import relayd as library
from tests.relayd.conftest import Outcome

Relayd = Callable[..., Outcome]


def test_people_see_the_order_and_how_sure_it_is(relayd: Relayd) -> None:
    asked = ("compare", "--with", "eu-west-1", "--candidates", "us-east")
    outcome = relayd(*asked, "--most", "3")
    assert outcome.code == 0, outcome.err
    assert "ranks first of" in outcome.out
    assert "Best of each provider".lower() in outcome.out.lower()
    content = json.loads(relayd(*asked, "--json").out)
    assert len(content["candidates"]) == min(10, content["compared"])
    found = library.open().compare_candidates(["eu-west-1"], candidates=["us-east"])
    assert found.plan_id == content["plan_id"]
    shares = [one["probability"] for one in content["candidates"]]
    assert sum(shares) == pytest.approx(1.0)


def test_types_are_compared_where_their_provider_has_them() -> None:
    wan = library.open()
    found = wan.compare_candidates(
        ["eu-west-1"],
        candidates=["aws:us-east-1", "gcp:us-east1", "aws:eu-west-1"],
        types=["m5.large", "m5.8xlarge", "gcp:n2-standard-32"],
        objective="time",
    )
    assert {(one.region, one.vm_type) for one in found.candidates} == {
        ("aws:us-east-1", "aws:m5.large"),
        ("aws:us-east-1", "aws:m5.8xlarge"),
        ("gcp:us-east1", "gcp:n2-standard-32"),
    }
    # A single transfer says the same of each.
    for one in found.candidates:
        plan = wan.plan(
            one.region,
            "aws:eu-west-1",
            vms=1,
            relays="none",
            objective="time",
            vm_types={one.region: one.vm_type},
        )
        assert one.duration_s == pytest.approx(plan.duration_s)
        assert one.cost_usd.egress == pytest.approx(plan.cost_usd.egress)
        # A single transfer's VMs are not paid for while it gets up to speed.
        assert one.cost_usd.total == pytest.approx(plan.cost_usd.total, rel=1e-3)


def test_only_what_is_compared_has_to_be_young_enough(relayd: Relayd, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    now = datetime.now(UTC).isoformat()
    rows.write_text(f"src,dst,measured_at,aggregate_gbps\naws:us-east-1,aws:eu-west-1,{now},4.5\n")
    db = ("--db", str(tmp_path / "links.db"))
    assert relayd("import", "csv", rows, *db).code == 0
    asked = ("compare", "--with", "aws:eu-west-1", *db, "--max-age", "1d")
    places = ("--candidates", "aws:us-east-1", "--candidates", "gcp:us-east1")
    outcome = relayd(*asked, *places, "--types", "m5.large")
    assert outcome.code == 0, outcome.err
    outcome = relayd(*asked, *places)
    assert "gcp:us-east1 -> aws:eu-west-1 has not been measured" in outcome.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "--with: is missing"),
        (("--with", "eu-west-1", "--with", "aws:eu-west-1"), "--with: name a region twice"),
        (("--with", "sa", "--types", "m5.huge"), "--types: has what is not a VM type"),
        (
            ("--with", "sa", "--candidates", "provider:aws", "--types", "gcp:n2-standard-32"),
            "--types: has a VM type of a provider without a candidate",
        ),
        (("--with", "sa", "--candidates", "provider:acme"), "--candidates: "),
        (("--with", "sa", "--most", "0"), "--most: must be 1 or more"),
    ],
)
def test_wrong_words_are_named(options: tuple[str, ...], words: str, relayd: Relayd) -> None:
    outcome = relayd("compare", *options)
    assert outcome.code == 2
    assert words in outcome.err
