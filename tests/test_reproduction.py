"""The page on the 2018 paper states what its script finds."""

from __future__ import annotations

from scripts.console_blocks import ROOT
from scripts.reproduce.grid import grid_points
from scripts.reproduce.point import PAGE, Point, rows

TABLES = ("grid", "flows", "caps")


def table(text: str, name: str) -> list[str]:
    body = text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]
    return body.splitlines()[2:]


def test_the_grid_s_table_is_what_the_script_finds() -> None:
    points = grid_points()
    assert table(PAGE.read_text(), "grid") == rows(points)
    # It can fail, and does: the grid has what the paper had not.
    assert {point.agrees for point in points} == {True, False}


def test_every_row_says_what_it_rests_on() -> None:
    text = PAGE.read_text()
    columns = len(Point.__dataclass_fields__)
    for name in TABLES:
        lines = table(text, name)
        assert len(lines) >= 4
        for line in lines:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == columns
            assert all(cells)
            assert cells[4] in {"yes", "**no**"}
            assert any(letter.isdigit() for letter in cells[5])


def test_the_readme_counts_the_points_that_agree() -> None:
    text = PAGE.read_text()
    lines = [line for name in TABLES for line in table(text, name)]
    agree = sum(" | yes | " in line for line in lines)
    readme = (ROOT / "README.md").read_text()
    assert f"{agree} of {len(lines)} points agree" in readme
