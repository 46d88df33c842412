"""Charts of answers have the answers' figures; the tutorial leads to its decision."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import relayd
from planner.model.errors import InputError
from relayd.notebooks.plots import MEDIA_TYPE, MOST_REGIONS, S_PER_MIN
from tests.relayd.integrations.engines import ROOT, python_of, result_of

TUTORIAL = ROOT / "examples" / "notebooks" / "relay-or-direct.ipynb"
ENDS = ("azure:brazilsouth", "aws:ap-northeast-1")


def test_a_plan_is_drawn_beside_its_options_and_the_frontier(wan: relayd.Wan) -> None:
    plan = wan.plan(*ENDS, volume_gb=500, frontier=True)
    drawn = relayd.plot(plan)
    rows = {row["group"]: row for row in drawn.spec["data"]["values"]}
    assert rows["chosen"]["x"] * S_PER_MIN == pytest.approx(plan.duration_s)
    assert rows["chosen"]["y"] == plan.cost_usd.total
    assert rows.keys() >= {"chosen", "direct", "best relay"}
    line = drawn.spec["layer"][1]["data"]["values"]
    assert [point["y"] for point in line] == [point.cost_usd.total for point in plan.frontier]
    assert relayd.plot(wan.plan(*ENDS, volume_gb=500)).spec["data"] == drawn.spec["data"]


def test_broadcasts_and_placements_are_drawn(wan: relayd.Wan) -> None:
    copies = wan.broadcast(ENDS[0], [ENDS[1], "aws:us-east-1"], volume_gb=50)
    found = {row["group"]: row["y"] for row in relayd.plot(copies).spec["data"]["values"]}
    assert copies.direct is not None
    assert found["direct"] == copies.direct.cost_usd.total
    placed = wan.place_reduce({"aws:us-east-1": 40, "azure:eastus": 60})
    names = {row["group"] for row in relayd.plot(placed).spec["data"]["values"]}
    assert names == {"chosen", *(option.name for option in placed.options)}


def test_a_matrix_is_a_heat_map_unless_of_too_many_regions(wan: relayd.Wan, tmp_path: Path) -> None:
    matrix = wan.matrix("rtt")
    drawn = relayd.plot(matrix)
    cells = drawn.spec["data"]["values"]
    assert len(cells) == len(matrix.regions) * (len(matrix.regions) - 1)
    for cell in cells[:: len(matrix.regions)]:
        assert cell["value"] == matrix[cell["src"], cell["dst"]]
    drawn.save(tmp_path / "rtt.json")
    assert json.loads((tmp_path / "rtt.json").read_text()) == drawn.spec
    with pytest.raises(InputError, match=r"\.svg or \.json"):
        drawn.save(tmp_path / "rtt.pdf")
    with pytest.raises(InputError, match="no chart"):
        relayd.plot(wan.network)  # type: ignore[arg-type]
    count = MOST_REGIONS + 1
    regions = tuple(f"aws:region-{index}" for index in range(count))
    large = replace(matrix, regions=regions, values=np.ones((count, count)), sources=None)
    with pytest.raises(InputError, match=r"at most 200 regions \(got 201\)\. Choose regions"):
        relayd.plot(large)


def test_a_plot_is_vega_lite_and_svg(wan: relayd.Wan, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    drawn = relayd.plot(wan.plan(*ENDS, volume_gb=500))
    bundle = drawn._repr_mimebundle_()
    assert bundle[MEDIA_TYPE] == drawn.spec
    drawn.save(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_text() == bundle["image/svg+xml"]
    texts = {found.text for found in ElementTree.fromstring(bundle["image/svg+xml"]).iter()}
    assert {"chosen", "direct", "cost, USD"} <= texts
    # A change that can't be drawn takes the picture away, and nothing else.
    drawn.spec["layer"][0]["mark"] = 3
    with pytest.raises(InputError, match="spec can't be drawn"):
        drawn.svg()
    assert drawn._repr_mimebundle_().keys() == {MEDIA_TYPE, "text/plain"}


def test_the_tutorial_leads_to_its_decision() -> None:
    cells = json.loads(TUTORIAL.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)  # they would grow old
    known: dict[str, object] = {}
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    exec(compile(ast.parse("\n".join(code)), str(TUTORIAL), "exec"), known)
    plan, soon = known["plan"], known["soon"]
    assert isinstance(plan, relayd.Plan)
    assert isinstance(soon, relayd.Plan)
    assert plan.frontier
    assert plan.advice
    # As its last cell says.
    assert (plan.verdict, soon.verdict) == ("direct", "split")
    assert soon.duration_s <= 3600 < plan.duration_s


@pytest.mark.integrations
def test_a_kernel_shows_the_tutorials_charts(tmp_path: Path) -> None:
    script = f"""
import json, nbformat
from nbclient import NotebookClient
notebook = nbformat.read({str(TUTORIAL)!r}, 4)
NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
shown = [[one.output_type, sorted(one.get("data", {{}}))] for c in notebook.cells
         for one in c.get("outputs", ())]
print("RESULT", json.dumps(shown))
"""
    shown = result_of(script, tmp_path, python_of("plot"))
    charts = [kinds for _, kinds in shown if MEDIA_TYPE in kinds]
    assert charts == [sorted((MEDIA_TYPE, "image/svg+xml", "text/plain"))] * 4
    assert sum("text/html" in kinds for _, kinds in shown) == 2
