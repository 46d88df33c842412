"""The matrix page: its colours say what the API says, for eyes, pointers, keys and fingers."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browser import WAIT_MS, Watched, settle, watched
from tests.dashboard.conftest import QUICK
from tests.http.running import Served, run, served
from tests.waiting import eventually

LEVELS = 9
GRID = "?measured=1"  # the 63 regions that were measured
CELLS = """() => {
  const ids = (place) => [...document.querySelectorAll(place)].map((head) => head.title);
  const columns = ids(".matrix .names th");
  return [...document.querySelectorAll(".matrix tbody tr")].flatMap((line) => {
    const src = line.querySelector("th.name").title;
    return [...line.querySelectorAll("td.cell")].map((cell, at) => ({
      src, dst: columns[at], kinds: [...cell.classList], says: cell.getAttribute("aria-label"),
    }));
  });
}"""


class Cell(NamedTuple):
    """A cell as it is shown: its class of nine, None where it has no colour."""

    level: int | None
    kinds: frozenset[str]
    says: str


def cells(page: Page) -> dict[tuple[str, str], Cell]:
    """Return all cells by source and destination, in the order in which they stand."""
    where = ".matrix-scroll:not([aria-busy]) table.matrix"
    page.wait_for_selector(where, state="attached", timeout=WAIT_MS)
    found: list[dict[str, Any]] = page.evaluate(CELLS)
    shown = {}
    for each in found:
        level = next((int(k[1:]) for k in each["kinds"] if re.fullmatch(r"l\d", k)), None)
        shown[each["src"], each["dst"]] = Cell(level, frozenset(each["kinds"]), each["says"])
    assert len(shown) == len(found)
    return shown


def shown_names(page: Page) -> tuple[list[str], list[str]]:
    """Return the regions of the rows and of the columns."""
    rows, columns = (
        page.locator(place).evaluate_all("heads => heads.map((head) => head.title)")
        for place in ("th.name", ".names th")
    )
    return rows, columns


def show(page: Page, metric: str, title: str) -> None:
    """Choose a figure by its radio button."""
    page.get_by_role("radio", name=title, exact=True).check()
    page.wait_for_selector(f"body[data-shown={metric}]")
    settle(page)


def answer(service: Served, metric: str, more: str = "&measured_only=true&digits=4") -> Any:
    return service.get(f"/v1/matrix?metric={metric}{more}").json


def spread(matrix: Any, provider: str) -> float:
    """Return how far the 10th and the 90th percentile within a provider are apart."""
    at = [i for i, name in enumerate(matrix["regions"]) if name.startswith(provider)]
    values = [matrix["values"][a][b] for a, b in permutations(at, 2)]
    low, high = np.percentile(values, [10, 90])
    return float(high / low)


def limits(page: Page) -> list[float]:
    """Return the lower limits of the classes from the second on, as the legend says them."""
    texts = page.locator(".legend .scale li").all_inner_texts()
    assert 2 <= len(texts) <= LEVELS
    said = [re.findall(r"[\d.]+", text.replace(",", "")) for text in texts]
    lows = [float(numbers[0]) for numbers in said[1:]]
    highs = [float(numbers[-1]) for numbers in said[:-1]]
    assert lows == highs  # no gap between a class and the next
    return lows


def test_sixty_three_regions_fit_and_say_how_much_one_flow_varies_and_many_do_not(
    grid: Served, page: Watched
) -> None:
    shown = page.open(f"{grid.url}/matrix{GRID}&metric=per-flow")
    assert shown.locator(".groups th").all_inner_texts() == ["AWS", "Azure", "GCP"]
    flows, rates = answer(grid, "per-flow"), answer(grid, "aggregate")
    assert spread(flows, "azure") > 5 * spread(rates, "azure")
    finding = shown.locator(".finding").inner_text()
    for title in ("AWS", "Azure", "GCP"):
        found = re.search(
            rf"{title} to {title}: per-flow varies ([\d.]+)×, aggregate ([\d.]+)×", finding
        )
        assert found, finding
        said = [float(part) for part in found.groups()]
        expected = [spread(of, title.lower()) for of in (flows, rates)]
        assert said == [pytest.approx(figure, rel=0.01) for figure in expected]
    # The window has room for all of it, and no frame scrolls.
    frame = shown.locator(".matrix-scroll")
    assert frame.evaluate("frame => getComputedStyle(frame).overflow") == "clip visible"
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    assert shown.locator("table.matrix").evaluate("table => table.offsetHeight") <= 900
    frame.evaluate("frame => scrollTo(0, frame.getBoundingClientRect().top + scrollY + 300)")
    box = shown.locator(".matrix thead").bounding_box()
    assert box
    assert box["y"] == pytest.approx(0, abs=1)


@pytest.mark.thorough
def test_every_cell_is_what_the_api_says_in_the_class_that_the_legend_names(
    grid: Served, page: Watched
) -> None:
    shown = page.open(f"{grid.url}/matrix?metric=fee")
    # Of prices that no document confirms, and of old ones.
    notes = grid.get("/v1/overview").json["knowledge"]["old_prices"]
    assert "relayd data catalogue update" in notes[-1]
    # At the legend of prices, and nowhere as a banner.
    assert shown.locator("[role=alert]").count() == 0
    shown.get_by_text("Prices to check").click()
    told = shown.locator(".to-check p").all_inner_texts()
    assert told == [note.replace("`", "") for note in notes]
    for metric, title, kinds in (
        ("per-flow", "Per-flow", {"inferred"}),  # many flows were measured, never one
        ("aggregate", "Aggregate", {"measured", "inferred"}),
        ("rtt", "RTT", {"measured", "inferred", "baseline"}),
        ("relay-gain", "Relay gain", {"measured", "inferred"}),
    ):
        show(shown, metric, title)
        known = answer(grid, metric, "&digits=4")
        lows, seen = limits(shown), cells(shown)
        regions = known["regions"]
        assert len(seen) == len(regions) ** 2
        counts: Counter[str] = Counter()
        for i, src in enumerate(regions):
            for j, dst in enumerate(regions):
                cell, value = seen[src, dst], known["values"][i][j]
                if value is None:
                    assert cell.level is None
                    assert ("self" if src == dst else "unknown") in cell.kinds
                    continue
                # The stronger the colour, the better: near and clean are strong, as fast is.
                at = sum(value >= low for low in lows)
                shade = int((LEVELS - 1) * at / len(lows) + 0.5)
                shade = LEVELS - 1 - shade if metric == "rtt" else shade
                assert cell.level == shade, (metric, src, dst)
                source = known["sources"][i][j] if known["sources"] else "measured"
                assert source in cell.kinds
                counts[source] += 1
                figure = float(re.match(r"[\d.,]+", cell.says)[0].replace(",", ""))  # type: ignore[index]
                assert figure == pytest.approx(value, rel=0.006, abs=0.006)
        assert set(counts) == kinds
        legend = shown.locator(".legend .kinds").inner_text().replace(",", "")
        # How often each kind occurs is said where there are several.
        assert len(counts) == 1 or all(str(count) in legend for count in counts.values())
        # Medians of the first row and column, of what is shown.
        values = np.array(known["values"], dtype=float)
        first = regions.index(shown.locator("th.name").first.get_attribute("title"))
        for place, row in ((".median", values[first]), (".medians td", values[:, first])):
            said = shown.locator(place).first.inner_text()
            if np.isnan(row).all():
                assert said == "–"
            else:
                assert float(said.replace(",", "")) == pytest.approx(np.nanmedian(row), rel=0.03)
    # What no pair has is said in a sentence, not by thousands of empty cells.
    show(shown, "loss", "Loss")
    count = len(regions)
    assert cells(shown) == {}
    assert not shown.locator(".legend").is_visible()
    assert "no pair has a sample" in shown.locator(".finding").inner_text()
    left_out = shown.locator(".zoom")
    assert f"{count} rows and {count} columns without a figure" in left_out.inner_text()
    left_out.get_by_role("button", name="Show them").click()
    assert len(cells(shown)) == count**2
    assert "empty=1" in shown.url


def test_keys_move_and_open_and_the_address_keeps_what_is_shown(
    grid: Served, page: Watched
) -> None:
    shown = page.open(f"{grid.url}/matrix{GRID}&metric=rtt&from=azure")
    shown.locator("td.cell").first.wait_for()
    regions = answer(grid, "rtt")["regions"]
    rows = shown.locator("th.name").evaluate_all("heads => heads.map((head) => head.title)")
    columns = shown.locator(".names th").evaluate_all("heads => heads.map((head) => head.title)")
    assert sorted(rows) == sorted(name for name in regions if name.startswith("azure:"))
    assert sorted(columns) == sorted(regions)
    assert shown.locator("td.cell[tabindex]").count() == 1
    shown.locator("td.cell[tabindex]").focus()
    title = shown.locator(".pointed-at strong")
    for keys, (row, column) in (
        (["Control+Home"], (0, 0)),
        (["ArrowRight", "ArrowDown"], (1, 1)),
        (["End"], (1, -1)),
        (["ArrowRight"], (1, -1)),
        (["Home"], (1, 0)),
        (["PageDown"], (11, 0)),
        (["Control+End"], (-1, -1)),
        (["ArrowUp", "ArrowLeft"], (-2, -2)),
    ):
        for key in keys:
            shown.keyboard.press(key)
        assert title.inner_text() == f"{rows[row]} → {columns[column]}"
        assert shown.locator("td.cell[tabindex]").count() == 1
        assert shown.evaluate("document.activeElement.tabIndex") == 0
    src, dst = rows[-2], columns[-2]
    # The figure and what it rests on.
    rtt = answer(grid, "rtt")
    place = regions.index(src), regions.index(dst)
    said = shown.locator(".pointed-at").inner_text()
    assert f"RTT: {rtt['values'][place[0]][place[1]]:.3g} ms" in said
    assert rtt["sources"][place[0]][place[1]] in said
    # The place under the keys lasts while the figure changes.
    show(shown, "relay-gain", "Relay gain")
    assert "Relay gain: " in shown.locator(".pointed-at").inner_text()
    assert title.inner_text() == f"{src} → {dst}"
    shown.get_by_label("Connections").select_option("8")
    settle(shown)
    gain = answer(grid, "relay-gain", "&measured_only=true&digits=4&connections=8")
    value = gain["values"][regions.index(src)][regions.index(dst)]
    assert cells(shown)[src, dst].says.startswith(f"{value:.2f}×")
    # More regions come between, and the place is the same pair still.
    for is_chosen in (False, True):
        shown.get_by_label("Measured regions only").set_checked(is_chosen)
        settle(shown)
        pointed = shown.locator("td.cell[tabindex]").locator("xpath=..")
        assert pointed.locator("th.name").get_attribute("title") == src
        assert title.inner_text() == f"{src} → {dst}"
    address = shown.url
    assert {"metric=relay-gain", "from=azure", "connections=8", "measured=1"} == set(
        address.partition("?")[2].split("&")
    )
    shown.locator("td.cell[tabindex]").focus()
    shown.keyboard.press("Enter")
    pair = f"src={src}&dst={dst}".replace(":", "%3A")
    shown.wait_for_url(f"**/?{pair}#open=pair")
    shown.go_back()
    shown.wait_for_selector("body[data-shown=relay-gain]")
    assert shown.url == address
    assert shown.get_by_label("Connections").input_value() == "8"


def test_regions_are_grouped_sorted_and_filtered(grid: Served, page: Watched) -> None:
    shown = page.open(f"{grid.url}/matrix{GRID}&group=none")
    matrix = answer(grid, "aggregate")
    regions, values = matrix["regions"], np.array(matrix["values"], dtype=float)

    def order() -> list[str]:
        settle(shown)
        rows, columns = shown_names(shown)
        assert rows == columns
        assert sorted(rows) == sorted(regions)
        return rows

    assert order() == sorted(regions)
    shown.get_by_label("Sort by").select_option("median")
    medians = [float(np.nanmedian(values[regions.index(name)])) for name in order()]
    assert medians == sorted(medians, reverse=True)
    shown.get_by_label("Group by").select_option("continent")
    grouped = order()
    groups = shown.locator(".groups th").evaluate_all("heads => heads.map((head) => head.title)")
    assert {"Europe", "North America", "Asia"} <= set(groups)
    facts = {region["id"]: region for region in grid.get("/v1/regions").json["regions"]}
    kept = [facts[name]["continent"] for name in grouped]
    assert len([1 for a, b in pairwise(kept) if a != b]) == len(groups) - 1
    shown.reload()
    assert order() == grouped

    country = facts["azure:eastus"]["country"]
    shown.locator("select[name=from]").select_option(f"country:{country}")
    shown.locator("select[name=to]").select_option("gcp")
    shown.get_by_label("To, by name").fill("asia")
    shown.keyboard.press("Enter")
    shown.wait_for_url("**dst=asia*")
    settle(shown)
    rows, columns = shown_names(shown)
    assert sorted(rows) == sorted(name for name in regions if facts[name]["country"] == country)
    assert sorted(columns) == sorted(name for name in regions if re.match("gcp:.*asia", name))
    city = facts["azure:eastus"]["city"]
    shown.get_by_label("From, by name").fill(city.upper())
    shown.keyboard.press("Enter")
    shown.wait_for_url("**src=*")
    settle(shown)
    assert set(shown_names(shown)[0]) == {name for name in regions if facts[name]["city"] == city}
    shown.reload()
    settle(shown)
    assert shown_names(shown)[1] == columns
    shown.get_by_label("From, by name").fill("no such place")
    shown.keyboard.press("Enter")
    shown.wait_for_url("**src=no*")
    settle(shown)
    assert cells(shown) == {}


def test_only_pairs_that_deserve_a_look(grid: Served, page: Watched) -> None:
    shown = page.open(f"{grid.url}/matrix{GRID}")
    everything = set(cells(shown))
    for kind in ("relayed", "old"):
        shown.locator("select[name=only]").select_option(kind)
        shown.wait_for_url(f"**only={kind}*")
        settle(shown)
        found = grid.get(f"/v1/pairs?kind={kind}").json
        wanted = {
            (found["regions"][src], found["regions"][dst])
            for src, targets in enumerate(found["targets"])
            for dst in targets
        } & everything
        if wanted:
            assert {ends for ends, cell in cells(shown).items() if cell.level is not None} == wanted
        count = "1 pair is" if len(wanted) == 1 else f"{len(wanted):,} pairs are"
        assert f"{count} shown" in shown.locator(".zoom").inner_text()
        assert page.violations() == []
    shown.reload()
    settle(shown)
    assert shown.locator("select[name=only]").input_value() == "old"
    shown.get_by_role("button", name="Show all pairs").click()
    settle(shown)
    assert set(cells(shown)) == everything
    # From a cell to the question.
    shown.locator("td.cell.measured").first.hover()
    src, dst = shown.locator(".pointed-at strong").inner_text().split(" → ")
    shown.locator(".pointed-at").get_by_role("link", name="Ask").click()
    shown.locator("#answer .verdict").wait_for(timeout=WAIT_MS)
    assert shown.locator("[name=src]").input_value() == src
    assert shown.locator("[name=dst]").input_value() == dst


def test_where_nothing_is_known_is_one_figure_and_its_pairs(grid: Served, page: Watched) -> None:
    never = grid.get("/v1/overview").json["knowledge"]["unsampled"]
    shown = page.open(f"{grid.url}/matrix?metric=age")
    assert f"{never} pairs were never measured" in shown.locator(".zoom").inner_text()
    assert f"never measured {never}" in " ".join(shown.locator(".kinds").inner_text().split())
    shown.get_by_role("button", name="Where nothing is known yet").click()
    shown.wait_for_url("**only=unsampled*")
    settle(shown)
    unknown = [cell for cell in cells(shown).values() if "unknown" in cell.kinds]
    assert len(unknown) == never
    assert {(cell.level, cell.says) for cell in unknown} == {(None, "never measured")}
    assert "Nothing was measured of these pairs" in shown.locator(".finding").inner_text()
    assert page.violations() == []
    # Other pairs have no throughput, and a round-trip time: these are said otherwise.
    shown.locator("select[name=only]").select_option(label="throughput not measured")
    shown.wait_for_url("**only=unmeasured*")
    settle(shown)
    without = grid.get("/v1/overview").json["knowledge"]
    pairs = without["inferred"] + without["baseline"]
    assert pairs > never
    assert f"{pairs:,} pairs are shown" in shown.locator(".zoom").inner_text()
    # Of the measured regions all were measured, which is not to say that nothing is known.
    shown.get_by_label("Measured regions only").check()
    settle(shown)
    finding = shown.locator(".finding").inner_text()
    assert "no such pair among the measured regions: throughput not measured" in finding
    assert "Nothing is known" not in finding


def test_each_colour_has_a_like_number_of_pairs(grid: Served, page: Watched) -> None:
    shown = page.open(f"{grid.url}/matrix{GRID}&metric=rtt")
    counts = Counter(cell.level for cell in cells(shown).values() if cell.level is not None)
    assert len(counts) == LEVELS
    assert max(counts.values()) < 2 * min(counts.values())


def test_a_part_is_brushed_by_pointer_and_by_keys(grid: Served, browser: Browser) -> None:
    for width in (1440, 820):
        with watched(browser, width=width) as seen:
            shown = seen.open(f"{grid.url}/matrix{GRID}")
            rows, columns = shown_names(shown)

            def cell(row: int, column: int, shown: Page = shown) -> Any:
                return shown.locator("tbody tr").nth(row).locator("td.cell").nth(column)

            cell(2, 1).scroll_into_view_if_needed()
            cell(2, 1).hover()
            shown.mouse.down()
            cell(6, 4).hover()
            assert shown.locator("td[data-brushed]").count() == 5 * 4
            shown.mouse.up()
            shown.wait_for_url("**rows=*")
            settle(shown)
            assert shown_names(shown) == (rows[2:7], columns[1:5])
            assert "/matrix" in shown.url  # the click that ended it opened no pair
            assert "5 × 4 of 63 × 63 pairs" in shown.locator(".zoom").inner_text()
            assert seen.violations() == []
            if width < 1440:
                continue
            # On within that part, by keyboard alone, and out again.
            shown.locator("td.cell[tabindex]").focus()
            shown.keyboard.press("Control+Home")
            for key in ("Shift+ArrowRight", "Shift+ArrowDown", "Shift+ArrowDown"):
                shown.keyboard.press(key)
            assert shown.locator("td[data-brushed]").count() == 6
            shown.keyboard.press("Escape")
            assert shown.locator("td[data-brushed]").count() == 0
            shown.keyboard.press("Control+Home")
            for key in ("Shift+ArrowRight", "Shift+ArrowDown", "Shift+ArrowDown", "Enter"):
                shown.keyboard.press(key)
            settle(shown)
            assert shown_names(shown) == (rows[2:5], columns[1:3])
            shown.reload()
            settle(shown)
            assert shown_names(shown) == (rows[2:5], columns[1:3])
            shown.locator("td.cell[tabindex]").focus()
            shown.keyboard.press("Escape")
            settle(shown)
            assert shown_names(shown) == (rows, columns)


def test_a_phone_shows_one_region_at_a_time(grid: Served, browser: Browser) -> None:
    rtt = answer(grid, "rtt")
    with watched(browser, width=390, height=844) as seen:
        shown = seen.open(f"{grid.url}/matrix{GRID}&metric=rtt")
        assert not shown.locator(".matrix-scroll").is_visible()
        src = rtt["regions"][3]
        shown.get_by_role("combobox", name="From").last.select_option(src)
        shown.wait_for_url("**one=*")
        rows = shown.locator("table.sorted").first.locator("tbody tr")
        expect(rows.first).to_contain_text("ms", timeout=WAIT_MS)
        told = dict(zip(rtt["regions"], rtt["values"][3], strict=True))
        known = sum(value is not None for value in told.values())
        assert rows.count() == 12
        shown.get_by_role("button", name=f"Show all {known}").click()
        assert rows.count() == known
        nearest = min((value, name) for name, value in told.items() if value is not None)
        assert nearest[1] in rows.first.inner_text()
        assert f"{nearest[0]:.3g} ms" in rows.first.inner_text()
        assert seen.fits()
        assert seen.violations() == []


def test_a_finger_shows_first_and_opens_then(grid: Served, browser: Browser) -> None:
    with watched(browser, width=820, height=1180, has_touch=True) as seen:
        shown = seen.open(f"{grid.url}/matrix{GRID}&from=gcp")
        cell = shown.locator("td.cell").nth(2)
        box = cell.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 24  # WCAG 2.5.8
        cell.tap()
        shown.locator(".pointed-at strong", has_text=" → ").wait_for()
        assert "open=pair" not in shown.url
        cell.tap()
        shown.wait_for_url("**/?*#open=pair")


def test_an_empty_store_says_that_all_is_baseline(empty: Served, page: Watched) -> None:
    shown = page.open(f"{empty.url}/matrix")
    said = shown.locator(".modelled").inner_text()
    assert "figures are models, with wide bounds" in said
    assert "no measurement" in shown.locator("#snapshot").inner_text()
    seen = cells(shown)
    assert len(seen) == 40 * 40
    assert all("baseline" in cell.kinds for ends, cell in seen.items() if ends[0] != ends[1])
    show(shown, "age", "Age")
    assert cells(shown) == {}
    shown.get_by_role("button", name="Show them").click()
    assert {cell.level for cell in cells(shown).values()} == {None}
    assert "no pair" in shown.locator(".finding").inner_text()
    shown.get_by_label("Measured regions only").check()
    settle(shown)
    assert "No region has a throughput measurement" in shown.locator(".empty").inner_text()
    assert cells(shown) == {}
    shown.get_by_role("button", name="Show all regions").click()
    settle(shown)
    assert not shown.get_by_label("Measured regions only").is_checked()
    assert len(cells(shown)) == 40 * 40


def test_an_open_page_looks_for_news(browser: Browser, tmp_path: Path) -> None:
    db = tmp_path / "relayd.db"
    with served(db, environment=QUICK) as service, watched(browser) as page:
        page.page.clock.install()
        shown = page.open(f"{service.url}/matrix?metric=rtt")
        assert shown.locator(".modelled").count() == 1
        pair = ("aws:us-east-1", "aws:sa-east-1")
        assert "baseline" in cells(shown)[pair].kinds
        table = tmp_path / "rtt.csv"
        table.write_text(
            "src,dst,rtt_ms,measured_at\n" + ",".join(pair) + ",77,2026-05-01T00:00Z\n"
        )
        assert run("import", "csv", str(table), db=db).returncode == 0
        before = shown.locator("#snapshot").inner_text()
        eventually(lambda: service.get("/v1/regions").json["snapshot"]["source"] != "baseline")
        page.page.clock.fast_forward(61_000)
        shown.locator("td.cell.measured").wait_for()
        seen = cells(shown)[pair]
        assert seen.says == "77 ms, measured"
        assert shown.locator(".modelled").count() == 0
        assert shown.locator("#snapshot").inner_text() != before


def test_of_many_regions_the_first_stay_usable_until_they_are_filtered(
    three_hundred: Served, page: Watched
) -> None:
    # By area at first: medians, in classes of like numbers. One is opened in place.
    shown = page.open(f"{three_hundred.url}/matrix{GRID}")
    areas = shown.locator("th.name button.area")
    areas.first.wait_for()
    rows, columns = shown_names(shown)
    assert rows == columns
    assert {"AWS, elsewhere", "North America"} <= set(rows)
    america = int(areas.filter(has_text="North America").inner_text().split(": ")[1])
    areas.filter(has_text="North America").click()
    shown.wait_for_url("**areas=North*America*")
    shown.locator("th.name", has_text="us-east-1").first.wait_for()
    assert len(shown_names(shown)[0]) == len(rows) - 1 + america
    assert page.violations() == []
    shown.locator("th.group button.area", has_text="North America").click()
    areas.filter(has_text="North America").wait_for()
    # What is chosen by name is shown by region.
    shown = page.open(f"{three_hundred.url}/matrix{GRID}&src=place&dst=place")
    shown.get_by_text("Only the first 120 rows and columns are shown").wait_for()
    assert [len(names) for names in shown_names(shown)] == [120, 120]
    assert shown.locator("td.cell[tabindex]").count() == 1
    # Headings stay in sight of whoever goes to the far corner, and are names, not stubs.
    shown.locator("td.cell[tabindex]").focus()
    shown.keyboard.press("Control+End")
    place = shown.locator(".matrix-scroll").bounding_box()
    for head in (shown.locator("th.name").last, shown.locator(".names th").last):
        box = head.bounding_box()
        assert box
        assert place
        assert place["x"] <= box["x"]
        assert place["y"] <= box["y"]
        assert box["x"] + box["width"] <= place["x"] + place["width"] + 1
        assert 0 <= box["y"] <= box["y"] + box["height"] <= min(900, place["y"] + place["height"])
        assert head.evaluate("head => head.scrollWidth <= head.clientWidth")
    assert "→" not in shown.locator(".pointed-at").inner_text()  # the corner is a region itself
    shown.get_by_label("From, by name").fill("place-29")
    shown.keyboard.press("Enter")
    shown.locator(".matrix tbody th", has_text="place-299").first.wait_for()
    assert len(shown_names(shown)[0]) == 11
    # Nobody knows coordinates of these regions, so nothing is known of them and the usual ones; the
    # page knows that without asking for what is not there, which would be an error in the console.
    of_aws = "metric=age&from=aws&to=aws&dst=us-east&group=none&empty=1"
    shown = page.open(f"{three_hundred.url}/matrix?{of_aws}")
    ends = list(cells(shown))
    src, dst = next((a, b) for a, b in ends if ":place-" in a and ":place-" not in b)
    assert "unknown" in cells(shown)[src, dst].kinds
    shown.locator("td.cell").nth(ends.index((src, dst))).hover()
    assert "never measured" in shown.locator(".pointed-at").inner_text()
    assert shown.locator(".pointed-at strong").inner_text() == f"{src} → {dst}"
    # On paper, all of it: nothing is cut off by what scrolls on a screen.
    shown.emulate_media(media="print")
    assert (
        shown.locator(".matrix-scroll").evaluate("box => getComputedStyle(box).maxHeight") == "none"
    )
