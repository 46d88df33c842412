"""The map that pages share draws what tables and the API say, and follows the path."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from tests.dashboard.browser import Watched, query_of, unfold, watched
from tests.http.running import Served

SRC = "azure:eastus"
LINES = ".world-map .line"
WIDTHS = (1440, 1024, 390)


def links_of(service: Served, src: str) -> dict[str, Any]:
    answer = service.get(f"/v1/links?src={src}&limit=1000").json
    return {link["dst"]: link for link in answer["links"]}


def widths(page: Page) -> list[float]:
    """Return how thick the lines are, the thickest first."""
    drawn = page.locator(f"{LINES} .stroke").evaluate_all(
        "all => all.map(it => +it.getAttribute('stroke-width'))"
    )
    return sorted((float(width) for width in drawn), reverse=True)


def headed(page: Page, text: str) -> None:
    page.locator("#answer h2", has_text=text).first.wait_for()
    page.locator(LINES).first.wait_for(state="attached")


def drawn_links(page: Page) -> set[str]:
    found = page.locator(LINES).evaluate_all("all => all.map(it => it.dataset.link)")
    return {str(name).split(" ")[1] for name in found}


def test_lines_are_the_links_of_the_source(page: Watched, grid: Served) -> None:
    links = links_of(grid, SRC)
    shown = page.open(f"{grid.url}/?src={SRC}#show=all")
    headed(shown, f"From {SRC}")
    assert drawn_links(shown) == set(links)
    rows = shown.locator("section:has(> #figures) tbody tr")
    assert rows.count() == 20
    shown.get_by_role("button", name=f"Show all {len(links)}").click()
    assert rows.count() == len(links)
    rates = {
        row.get_attribute("data-key"): row.locator("td").nth(1).inner_text()
        for row in rows.all()[:10]
    }
    fastest = sorted(links.values(), key=lambda link: -link["aggregate_gbps"]["expected"])[:10]
    assert rates == {link["dst"]: f"{link['aggregate_gbps']['expected']:.2f}" for link in fastest}
    # What colours tell, thickness does not tell again.
    legend = shown.locator(".world-legend")
    assert "Colour: Aggregate" in legend.inner_text()
    assert "Thickness" not in legend.inner_text()
    assert len(set(widths(shown))) == 1

    # Another figure, by keyboard: colour and order change, thickness is the rate, and the address
    # keeps it.
    shown.get_by_role("combobox", name="Colour").focus()
    shown.keyboard.press("ArrowUp")
    shown.wait_for_url("**metric=per-flow*")
    legend.filter(has_text="Colour: Per-flow").filter(has_text="Thickness: Gbit/s").wait_for()
    assert shown.evaluate("document.activeElement.name") == "metric"  # it keeps the focus
    assert rows.first.get_attribute("data-key") == max(
        links, key=lambda dst: links[dst]["per_flow_mbps"]["expected"]
    )
    together = sorted((link["aggregate_gbps"]["expected"] for link in links.values()), reverse=True)
    thick, thinnest = widths(shown), 1.1
    assert (thick[30] - thinnest) / (thick[0] - thinnest) == pytest.approx(
        together[30] / together[0], rel=0.02
    )
    shown.get_by_role("button", name="Round trip").click()
    shown.get_by_role("button", name="Round trip").click()
    times = [float(row.locator("td").nth(5).inner_text()) for row in rows.all()]
    assert times == sorted(times)


def test_a_fan_of_links_is_limited_to_the_best_or_the_worst(page: Watched, grid: Served) -> None:
    links = links_of(grid, SRC)
    by_time = sorted(links, key=lambda dst: links[dst]["rtt_ms"]["expected"])
    shown = page.open(f"{grid.url}/?src={SRC}#metric=rtt")
    headed(shown, f"From {SRC}")
    assert drawn_links(shown) == set(by_time[:20])
    shown.get_by_role("combobox", name="Links").select_option("worst")
    shown.locator(f".world-map .line[data-link$='{by_time[-1]}']").first.wait_for(state="attached")
    assert drawn_links(shown) == set(by_time[-20:])


def test_a_path_over_the_pacific_is_turned_zoomed_and_fitted(
    browser: Browser, grid: Served
) -> None:
    for width in WIDTHS:
        with watched(browser, width=width, dark=width == 1024) as seen:
            shown = seen.open(f"{grid.url}/map?src={SRC}&dst=aws:ap-northeast-1")
            shown.wait_for_url("**/?src=*#open=world-map")
            shown.locator(LINES).first.wait_for(state="attached")
            marked = shown.locator(".world-map .region.marked")
            # Every end has its name; no name lies on another.
            labels = shown.locator(".world-map .label text")
            assert labels.count() == marked.count() >= 2
            boxes = [box for label in labels.all() if (box := label.bounding_box())]
            for at, a in enumerate(boxes):
                assert a["x"] >= 0
                assert a["x"] + a["width"] <= width
                for b in boxes[:at]:
                    assert not (_meet(a, b, "x", "width") and _meet(a, b, "y", "height"))
            assert seen.violations() == []
            assert seen.fits()
            first = _where(shown)
            shown.get_by_role("button", name="Zoom in").click()
            assert _where(shown) != first
            shown.get_by_role("button", name="Fit").click()
            assert _where(shown) == first
            shown.locator(".world-map .world").evaluate("it => it.scrollIntoView()")
            box = shown.locator(".world-map svg").first.bounding_box()
            assert box
            shown.mouse.move(box["x"] + 150, box["y"] + 120)
            shown.mouse.down()
            shown.mouse.move(box["x"] + 190, box["y"] + 120, steps=4)
            shown.mouse.up()
            assert _where(shown) != first
            # And back, turned and zoomed by keyboard alone.
            shown.locator(".world-map .world").focus()
            shown.keyboard.press("0")
            assert _where(shown) == first
            shown.keyboard.press("ArrowRight")
            turned = _where(shown)
            assert turned != first
            shown.keyboard.press("+")
            assert _where(shown) != turned


def _meet(a: Any, b: Any, start: str, size: str) -> bool:
    return bool(a[start] < b[start] + b[size] and b[start] < a[start] + a[size])


def _where(page: Page) -> list[str]:
    found = page.locator(".world-map .line .stroke").evaluate_all(
        "all => all.map(it => it.getAttribute('d'))"
    )
    return [str(path) for path in found]


def test_a_broadcast_shows_its_trees_on_the_map(browser: Browser, grid: Served) -> None:
    asked = {"src": "aws:us-east-1", "volume_gb": 50}
    destinations = ["azure:westeurope", "azure:northeurope"]
    body = {**asked, "destinations": destinations}
    plan = grid.ask("POST", "/v1/broadcasts", body).json
    links_of_trees = [leg for tree in plan["trees"] for leg in tree["legs"]]
    expected = {f"{leg['src']} {leg['dst']}" for leg in links_of_trees}
    forwarders = {leg["src"] for leg in links_of_trees} - {asked["src"]}
    assert forwarders
    with watched(browser, width=390) as seen:
        query = urlencode({"question": "broadcast", **body}, doseq=True)
        shown = seen.open(f"{grid.url}/?{query}")
        unfold(shown, "world-map")
        lines = shown.locator(".world-map .line")
        lines.first.wait_for(state="attached")
        links = lines.evaluate_all("all => all.map(it => it.dataset.link)")
        assert sorted(links) == sorted(expected)
        said = shown.locator(".world-map .label text").all_text_contents()
        assert {asked["src"], *destinations} <= set(said)
        unfold(shown, "compared")
        row = shown.locator(".compared tr", has_text="Forwarded by")
        assert set(row.locator("td.of-chosen").inner_text().split(", ")) == forwarders
        assert seen.violations() == []


def test_a_destination_is_chosen_on_the_map_and_in_the_list(page: Watched, grid: Served) -> None:
    shown = page.open(f"{grid.url}/?src=us-east#show=all")  # an alias
    headed(shown, "From aws:us-east-1")
    oslo = shown.locator(".world-map [data-region='azure:norwayeast']")
    oslo.hover()
    link = links_of(grid, "aws:us-east-1")["azure:norwayeast"]
    rate = f"{link['aggregate_gbps']['expected']:.2f} Gbit/s"
    assert rate in shown.locator(".world-map .readout").inner_text()
    assert shown.locator(".world-map .line title", has_text=rate).count() >= 1
    oslo.click()
    shown.locator("#verdict").wait_for()
    assert query_of(shown) == {"src": ["us-east"], "dst": ["azure:norwayeast"]}
    shown.go_back()
    headed(shown, "From aws:us-east-1")
    shown.locator("section:has(> #figures) tbody a").first.click()
    shown.locator("#verdict").wait_for()


def test_a_plan_is_drawn_beside_direct(browser: Browser, grid: Served) -> None:
    src, dst = "azure:koreacentral", "aws:sa-east-1"
    asked = {"src": src, "dst": dst, "volume_gb": 500, "time_value_usd_per_h": 500}
    plan = grid.get("/v1/plans?" + urlencode(asked)).json
    relays = [path["regions"][1] for path in plan["paths"][1:]]
    assert plan["verdict"] == "split"
    assert plan["paths"][0]["regions"] == [src, dst]
    assert plan["best_relay"]["relay"] not in relays
    with watched(browser, width=1024) as seen:
        shown = seen.open(f"{grid.url}/?{urlencode(asked)}")
        headed(shown, "Split it over the direct path")
        chosen = shown.locator(f"{LINES}[data-kind=chosen]")
        links = chosen.evaluate_all("all => all.map(it => it.dataset.link)")
        paths = [path["regions"] for path in plan["paths"]]
        assert sorted(links) == sorted(f"{a} {b}" for path in paths for a, b in pairwise(path))
        # Next to links that were chosen, two over the fastest relay and those of other ways, which
        # are dashed; each as thick as it is fast.
        lines = shown.locator(LINES).evaluate_all(
            "all => all.map(it => [it.dataset.kind, it.querySelector('.stroke')"
            ".getAttribute('stroke-dasharray'), "
            "+it.querySelector('.stroke').getAttribute('stroke-width')])"
        )
        drawn = {pair for one in plan["offers"] for path in one["paths"] for pair in pairwise(path)}
        assert len(lines) == len(drawn)
        assert {(kind, bool(dash)) for kind, dash, _ in lines} == {
            ("chosen", False),
            ("best relay", True),
            ("other", True),
        }
        assert sum(kind == "best relay" for kind, _, _ in lines) == 2
        # Colours tell kinds of paths, or another figure than thickness does.
        legend = shown.locator(".world-legend")
        assert "Colour and dashes: path" in legend.inner_text()
        assert "Thickness: Gbit/s" in legend.inner_text()
        shown.locator(".offers .recommended summary").first.click()
        rows = shown.locator(".offers .recommended ul.paths li")
        for row, path in zip(rows.all_inner_texts(), plan["paths"], strict=True):
            assert f"{path['throughput_gbps']:.2f} Gbit/s" in row
        for dark in (False, True):
            shown.emulate_media(color_scheme="dark" if dark else "light")
            direct, relayed = (
                shown.locator(f"{LINES}[data-kind='{kind}'] .stroke").first.evaluate(
                    "it => getComputedStyle(it).stroke"
                )
                for kind in ("chosen", "best relay")
            )
            assert direct != relayed
            assert seen.violations() == []


def test_a_region_without_a_place_is_listed(page: Watched, three_hundred: Served) -> None:
    shown = page.open(f"{three_hundred.url}/?src=aws:us-east-1")
    headed(shown, "From aws:us-east-1")
    links = links_of(three_hundred, "aws:us-east-1")
    assert shown.locator(LINES).count() == min(20, len(links) - 1)
    if (rest := shown.get_by_role("button", name="Show all")).count():
        rest.click()
    row = shown.locator("tr[data-key='onprem:lab']")
    assert "0.70" in row.inner_text()
    missing = shown.locator("#answer details", has_text="onprem:lab").inner_text()
    assert "301 not on the map, because their place is not known" in missing
    row.get_by_role("link", name="onprem:lab").click()
    shown.locator("#verdict").wait_for()
    assert query_of(shown) == {"src": ["aws:us-east-1"], "dst": ["onprem:lab"]}
    # A map without the path says so.
    readout = shown.locator(".world-map .readout")
    readout.get_by_text("Links of onprem:lab are not drawn: its place is not known.").wait_for()


def test_a_wrong_name_and_land_that_did_not_come_are_said_and_asked_for_again(
    browser: Browser, grid: Served
) -> None:
    with watched(browser, allowed=("422", "503")) as seen:
        seen.page.route("**/land.json", lambda route: route.fulfill(status=503, body="busy"))
        shown = seen.open(f"{grid.url}/?src=us-eas")
        assert "Did you mean" in shown.locator("#option-src-problem").inner_text()
        shown.get_by_role("combobox", name="From").fill(SRC)
        shown.keyboard.press("Enter")
        shown.locator("#answer h2", has_text=f"From {SRC}").first.wait_for()
        assert shown.locator("#option-src-problem").inner_text() == ""
        readout = shown.locator(".world-map .readout")
        readout.get_by_text("503").wait_for()
        assert shown.locator(".world .land").count() == 0
        shown.unroute("**/land.json")
        readout.get_by_role("button", name="Try again").click()
        shown.locator(".world .land").wait_for()
        assert "503" not in readout.inner_text()
