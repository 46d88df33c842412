"""The tables on the 2018 paper state what their script finds, and pages count them rightly."""

from __future__ import annotations

import pytest

from scripts.console_blocks import ROOT
from scripts.reproduce.__main__ import PARTS
from scripts.reproduce.causes import causes
from scripts.reproduce.grid import grid_points
from scripts.reproduce.point import PAGE, filled, table

POINTS = {
    "flows": 7,
    "windows": 9,
    "caps": 4,
    "minutes": 8,
    "bursts": 6,
    "round-trips": 5,
    "grid": 21,
}
"""How many each table of points has."""


def test_every_part_has_its_table() -> None:
    assert PARTS.keys() == {*POINTS, "causes"}


def test_the_grid_s_table_is_what_the_script_finds() -> None:
    points, page = grid_points(), PAGE.read_text()
    assert filled(page, "grid", points) == page
    # It can fail, and does: the grid has what the paper had not.
    assert {point.agrees for point in points} == {True, False}


def test_the_causes_are_what_the_script_finds() -> None:
    found, page = causes(), PAGE.read_text()
    assert filled(page, "causes", found) == page
    assert not any("|" in cause for cause in found)


@pytest.mark.parametrize("name", POINTS)
def test_every_row_says_what_it_rests_on(name: str) -> None:
    rows = table(PAGE.read_text(), name)
    assert len(rows) == POINTS[name]
    for row in rows:
        assert len(row) == 6
        assert all(row)
        assert row[4] in {"yes", "**no**"}
        assert any(letter.isdigit() for letter in row[5])


def test_every_difference_on_the_grid_has_a_cause() -> None:
    """By the provider that the point is of, where it is of one."""
    text = PAGE.read_text()
    told = [" ".join(row) for row in table(text, "causes")]
    assert all(len(row) == 3 for row in table(text, "causes"))
    words = {
        "Both directions": "Both directions",
        "one flow through an EC2 relay": "One flow, 1.5x",
        "same VM cap": "one cap",
        "stable over time": "Stable rates",
        "relaying gains little": "little gain",
        "latency by relaying": "latency",
    }
    for claim, _, _, _, agrees, _ in table(text, "grid"):
        if agrees == "yes":
            continue
        (cause,) = (words[part] for part in words if part in claim)
        provider = claim.rpartition(", from ")[2] if ", from " in claim else ""
        assert any(cause in one and provider in one for one in told), claim


def test_pages_count_the_points_that_agree() -> None:
    text = PAGE.read_text()
    agree = {name: sum(row[4] == "yes" for row in table(text, name)) for name in POINTS}
    agree_in_lab = sum(agree.values()) - agree["grid"]
    in_lab = sum(POINTS.values()) - POINTS["grid"]
    model = (ROOT / "docs" / "model.md").read_text()
    assert f"{sum(agree.values())} of {sum(POINTS.values())} points agree" in model
    told = " ".join((ROOT / "docs" / "reproduction.md").read_text().split())
    assert f"In the lab {agree_in_lab} of {in_lab} points agree" in told
    assert f"on the measurements {agree['grid']} of {POINTS['grid']}." in told
