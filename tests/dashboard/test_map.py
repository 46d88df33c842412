"""The map draws what the tables and the API say, and leads on from there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.dashboard.browser import Watched, watched
from tests.dashboard.conftest import QUICK
from tests.http.running import ROOT, Served, eventually, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SRC = "azure:eastus"
ARCS, POINTS = "#map .layer_2_marks path", "#map .layer_4_marks path"
LAB = """src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at
onprem:lab,aws:us-east-1,50,900,64,60,2024-05-01T00:00Z
aws:us-east-1,onprem:lab,50,700,64,60,2024-05-01T00:00Z
"""


@pytest.fixture(scope="module")
def with_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that knows a region of which nobody said where it is."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "lab.csv").write_text(LAB)
    db = folder / "relayd.db"
    subprocess.run(
        [sys.executable, "-m", "relayd", "import", "csv", str(folder / "lab.csv"), "--db", str(db)],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    with served(db, environment=QUICK) as service:
        yield service


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def links_of(service: Served, src: str) -> dict[str, Any]:
    answer = service.get(f"/v1/links?src={src}&limit=1000").json
    return {link["dst"]: link for link in answer["links"]}


def widths(page: Page) -> list[float]:
    """Return how thick the arcs are, the thickest first."""
    drawn = page.locator(ARCS).evaluate_all(
        "all => all.map(it => +it.getAttribute('stroke-width'))"
    )
    return sorted((float(width) for width in drawn), reverse=True)


def headed(page: Page, text: str) -> None:
    page.locator(".map-heading h2", has_text=text).wait_for()
    page.locator(ARCS).first.wait_for(state="attached")


def test_arcs_are_the_links_of_the_source(page: Watched, grid: Served) -> None:
    links = links_of(grid, SRC)
    shown = page.open(f"{grid.url}/map?src={SRC}")
    headed(shown, f"From {SRC}")
    assert shown.locator(ARCS).count() == len(links)
    rows = shown.locator("tbody tr")
    assert rows.count() == len(links)
    rates = {
        row.get_attribute("data-key"): row.locator("td").nth(1).inner_text()
        for row in rows.all()[:10]
    }
    fastest = sorted(links.values(), key=lambda link: -link["aggregate_gbps"]["expected"])[:10]
    assert rates == {link["dst"]: f"{link['aggregate_gbps']['expected']:.2f}" for link in fastest}
    together = widths(shown)

    # The other figure, by keyboard: thickness and order change, and the address keeps it.
    shown.get_by_role("combobox", name="Thickness").focus()
    shown.keyboard.press("ArrowDown")
    shown.wait_for_url("**metric=per-flow*")
    shown.locator(".legend", has_text="Mbit/s").wait_for()  # old arcs are gone by then
    shown.locator(ARCS).first.wait_for(state="attached")
    per_flow = sorted((link["per_flow_mbps"]["expected"] for link in links.values()), reverse=True)
    # One flow is very uneven where all together are alike.
    alone = widths(shown)
    assert rows.first.get_attribute("data-key") == max(
        links, key=lambda dst: links[dst]["per_flow_mbps"]["expected"]
    )
    assert together[30] / together[0] > 2 * alone[30] / alone[0]
    thinnest = 0.7
    assert (alone[1] - thinnest) / (alone[0] - thinnest) == pytest.approx(
        per_flow[1] / per_flow[0], rel=0.01
    )
    shown.get_by_role("button", name="Round trip").click()
    shown.get_by_role("button", name="Round trip").click()
    times = [float(row.locator("td").nth(5).inner_text()) for row in rows.all()]
    assert times == sorted(times)

    # Another theme, another width: it is drawn again, with as many arcs.
    first = shown.locator(ARCS).first
    stroke = str(first.get_attribute("stroke"))
    shown.get_by_label("Theme").select_option("dark")
    shown.locator(f"{ARCS}:not([stroke='{stroke}'])").first.wait_for(state="attached")
    shown.set_viewport_size({"width": 700, "height": 900})
    drawn = shown.locator("#map svg")
    eventually(lambda: drawn.evaluate("svg => svg.clientWidth") < 700)
    assert shown.locator(ARCS).count() == len(links)


def test_a_region_is_chosen_on_the_map_and_in_the_list(page: Watched, grid: Served) -> None:
    shown = page.open(f"{grid.url}/map?src=us-east&view=europe")  # an alias
    headed(shown, "From aws:us-east-1")
    known = grid.get("/v1/regions").json["regions"]
    regions = [region for region in known if region["in_graph"]]
    assert shown.locator(POINTS).count() == len(regions)
    # Markers lie side by side: each can be met.
    places = [box for point in shown.locator(POINTS).all() if (box := point.bounding_box())]
    centres = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in places]
    nearest = min(
        max(abs(x - u), abs(y - v)) for at, (x, y) in enumerate(centres) for u, v in centres[:at]
    )
    assert nearest > 4

    ids = [region["id"] for region in regions]
    oslo = shown.locator(POINTS).nth(ids.index("azure:norwayeast"))
    oslo.hover()
    link = links_of(grid, "aws:us-east-1")["azure:norwayeast"]
    rate = f"{link['aggregate_gbps']['expected']:.2f} Gbit/s"
    assert rate in shown.locator(".readout").inner_text()
    assert shown.locator(f"#map [title*='{rate}']").count() == 1
    oslo.click()
    headed(shown, "From azure:norwayeast")
    assert query_of(shown) == {"src": ["azure:norwayeast"], "view": ["europe"]}
    shown.get_by_role("combobox", name="From").select_option("gcp:europe-west3")
    headed(shown, "From gcp:europe-west3")
    shown.go_back()
    headed(shown, "From azure:norwayeast")
    assert shown.get_by_role("combobox", name="From").input_value() == "azure:norwayeast"

    shown.get_by_role("combobox", name="View").select_option("world")
    shown.get_by_role("combobox", name="To").select_option("aws:sa-east-1")
    headed(shown, "azure:norwayeast → aws:sa-east-1")


def test_a_plan_is_drawn_beside_direct(browser: Browser, grid: Served) -> None:
    asked = {"src": SRC, "dst": "aws:sa-east-1", "volume_gb": 500, "time_value_usd_per_h": 500}
    plan = grid.get("/v1/plans?" + urlencode(asked)).json
    relays = [path["regions"][1] for path in plan["paths"][1:]]
    assert plan["verdict"] == "split"
    assert plan["paths"][0]["regions"] == [SRC, "aws:sa-east-1"]
    assert plan["best_relay"]["relay"] not in relays
    for dark in (False, True):
        with watched(browser, dark=dark, width=1024) as seen:
            shown = seen.open(f"{grid.url}/map?{urlencode(asked)}")
            headed(shown, "Split it over the direct path")
            # Links that were chosen, with the direct one, and two over the fastest relay: each kind
            # dashed in its own way, and as thick as it is fast.
            lines = shown.locator(ARCS).evaluate_all(
                "all => all.map(it => [it.getAttribute('stroke-dasharray'), "
                "+it.getAttribute('stroke-width')])"
            )
            assert len(lines) == 1 + 2 * len(relays) + 2
            assert len({dash for dash, _ in lines}) == 2
            assert len({dash for dash, width in lines if width == max(w for _, w in lines)}) == 1
            rows = shown.locator("tbody tr").all_inner_texts()
            assert len(rows) == len(plan["paths"]) + 1
            for name, rate in (
                *(("chosen", path["throughput_gbps"]) for path in plan["paths"]),
                ("best relay", plan["best_relay"]["throughput_gbps"]),
            ):
                assert any(row.startswith(name) and f"{rate:.2f}" in row for row in rows)
            assert seen.violations() == []
            # What was asked goes along, to the plan's own page.
            whole = shown.get_by_role("link", name="The plan in full").get_attribute("href")
            assert parse_qs(str(whole).partition("?")[2])["time_value_usd_per_h"] == ["500"]


def test_a_region_without_a_place_is_listed(page: Watched, with_lab: Served) -> None:
    shown = page.open(f"{with_lab.url}/map?src=aws:us-east-1")
    headed(shown, "From aws:us-east-1")
    links = links_of(with_lab, "aws:us-east-1")
    assert shown.locator(ARCS).count() == len(links) - 1
    row = shown.locator("tr[data-key='onprem:lab']")
    assert "0.70" in row.inner_text()
    assert "Not on the map" in shown.locator("p", has_text="onprem:lab").inner_text()
    row.get_by_role("link", name="Plan").click()
    shown.locator("#verdict").wait_for()
    assert query_of(shown) == {"src": ["aws:us-east-1"], "dst": ["onprem:lab"]}


def test_without_measurements_it_draws_the_baseline(page: Watched, empty: Served) -> None:
    shown = page.open(f"{empty.url}/map")
    headed(shown, "From aws:us-east-1")
    assert shown.locator(ARCS).count() == 39
    assert "relayd import" in shown.locator(".empty").inner_text()
    assert "baseline" in shown.locator(".legend").inner_text()


def test_a_wrong_name_is_said(browser: Browser, grid: Served) -> None:
    with watched(browser, allowed=("422",)) as seen:
        shown = seen.open(f"{grid.url}/map?src=us-eas")
        assert "Did you mean" in shown.locator("#message").inner_text()
        shown.get_by_role("combobox", name="From").select_option(SRC)
        headed(shown, f"From {SRC}")
        assert shown.locator("#message").inner_text() == ""
