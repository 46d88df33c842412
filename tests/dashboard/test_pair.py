"""The part of Ask on a pair: figures of the API, history, events, evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.dashboard.browser import Watched, settle, unfold, watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.pair_store import DST, OTHERS, ROUND_TRIPS, SRC, make_pair_store
from tests.http.running import Served, served
from tests.waiting import eventually

TIMEOUT_MS = 30_000
GRID = ("azure:eastus", "aws:sa-east-1")


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with four weeks of one pair, and trouble on the way back."""
    db = make_pair_store(tmp_path_factory.mktemp("weeks"))
    with served(db, environment=QUICK) as service:
        yield service


def address(service: Served, src: str, dst: str, more: str = "") -> str:
    return f"{service.url}/?src={src}&dst={dst}#open=pair{more}"


def figure(value: float) -> str:
    """Write a number as pages do."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.3g}'):g}"


def cells(shown: Page, name: str) -> list[str]:
    """Return a row of the table of both directions."""
    row = shown.locator(f'section:has(> #figures) tbody tr:has(th:has-text("{name}"))')
    return [text.strip() for text in row.locator("td").all_inner_texts()]


def test_figures_of_both_directions_are_the_apis_down_to_the_samples(
    page: Watched, grid: Served
) -> None:
    src, dst = GRID
    shown = page.open(address(grid, src, dst))
    shown.locator("section:has(> #figures) tbody tr").first.wait_for()
    there: Any = grid.get(f"/v1/links/{src}/{dst}").json
    back: Any = grid.get(f"/v1/links/{dst}/{src}").json
    for name, end, field in (
        ("Round-trip time", "link", "rtt_ms"),
        ("Per-flow throughput", "link", "per_flow_mbps"),
        ("Aggregate throughput", "link", "aggregate_gbps"),
        ("Sender's egress cap", "sender", "egress_gbps"),
        ("Receiver's ingress cap", "receiver", "ingress_gbps"),
    ):
        ratio = there[end][field]["expected"] / back[end][field]["expected"]
        assert cells(shown, name) == [
            text
            for estimate in (there[end][field], back[end][field])
            for text in (
                figure(estimate["expected"]),
                f"{figure(estimate['low'])} to {figure(estimate['high'])}",
                estimate["source"],
            )
        ] + [f"{ratio:.2f}×"]
    link = there["link"]
    most = -(-link["aggregate_gbps"]["expected"] * 1000 // link["per_flow_mbps"]["expected"])
    assert cells(shown, "Connections that saturate")[0] == str(int(most))
    assert f"{int(most)} or more carry" in shown.locator(".lead").inner_text()
    assert cells(shown, "Egress fee")[0] == "0.0875"
    assert (
        figure(there["light"]["vacuum_ms"]) in shown.locator("section:has(> #light)").inner_text()
    )
    # Evidence goes down to the samples.
    evidence: Any = grid.get(f"/v1/links/{src}/{dst}/evidence").json
    by_name = {each["quantity"]: each for each in evidence["evidence"]}
    # One flow was not measured: its window and its round trip were.
    one_flow = shown.locator("details[data-quantity=per_flow_mbps]")
    one_flow.locator("summary").click()
    one_flow.get_by_text(by_name["per_flow_mbps"]["rule"]).wait_for()
    one_flow.get_by_role("button", name="Round-trip time").click()
    rtt = shown.locator("details[data-quantity=rtt_ms]")
    assert rtt.get_attribute("open") is not None
    (series,) = by_name["rtt_ms"]["series"]
    rtt.get_by_text("The samples that counted").wait_for()
    rows = rtt.locator("table").last.locator("tbody tr")
    assert rows.count() == len(series["samples"]) == 1
    assert str(series["samples"][0]["id"]) in rows.first.inner_text()
    # A single sample: its value is shown, and no shape is made of it.
    unfold(shown, "distribution")
    spread = shown.locator("section[aria-labelledby=distribution]")
    assert "no distribution to speak of" in spread.inner_text()
    # Back and forth: the address says which pair, and the browser's buttons work.
    shown.get_by_role("button", name="Swap").click()
    shown.get_by_role("button", name="Plan", exact=True).click()
    shown.locator(".pair-name", has_text=f"{dst} → {src}").wait_for()
    assert f"src={dst}&dst={src}#open=pair" in shown.url
    settle(shown)
    shown.go_back()
    shown.locator(".pair-name", has_text=f"{src} → {dst}").wait_for()
    settle(shown)


def test_weeks_of_a_pair_are_shown_with_what_happened(browser: Browser, weeks: Served) -> None:
    for dark, width in ((False, 1440), (True, 390)):
        with watched(browser, dark=dark, width=width) as seen:
            shown = seen.open(address(weeks, SRC, DST))
            if width < 640:
                shown.locator(".pair-name").wait_for()
                assert shown.evaluate("document.documentElement.scrollHeight") <= 3000
                for part in ("figures", "light"):
                    unfold(shown, part)
                unfold(shown, "history")
                unfold(shown, "evidence")
            shown.locator("section:has(#history)").last.locator("canvas").wait_for()
            shown.locator("details[data-quantity=per_flow_mbps] summary").click()
            assert seen.violations() == []
            assert seen.fits()
            if dark:
                continue
            walk_through_history(shown, weeks)


def drawn_points(part: Locator) -> int:
    """Points of the chart of a part."""
    found: int = part.locator(".chart").evaluate("(chart) => chart.plot.data[0].length")
    return found


def walk_through_history(shown: Page, weeks: Served) -> None:
    assert f"{DST} → {SRC} is down" in shown.get_by_role("note").inner_text()
    history = shown.locator("section:has(> #history)")
    assert f"{ROUND_TRIPS:,} samples" in history.inner_text()
    # Too many for single points: at most 200 medians, each with its range.
    assert 100 < drawn_points(history) <= 200
    assert history.locator(".chart .rule b").all_text_contents() == [
        "1 degraded",
        "2 down",
        "3 up",
        "4 +11.8 %",
        "6 +20.8 %",
    ]
    events: Any = weeks.get(f"/v1/links/{SRC}/{DST}/events").json["events"]
    told = history.locator("table", has_text="Change").locator("tbody tr")
    assert len(events) == 6
    expect(told).to_have_count(6, timeout=TIMEOUT_MS)
    assert "no reply to 12 packets" in told.nth(4).inner_text()
    unfold(shown, "distribution")
    spread = shown.locator("section[aria-labelledby=distribution]")
    spread.get_by_text("Half of the samples").wait_for()
    expect(shown.get_by_role("img", name="Distribution")).to_have_count(1)
    spread.get_by_text("Figures").click()
    shares = spread.locator("tbody tr")
    shares.first.wait_for()  # a folded part is made once it is opened
    assert shares.all_text_contents()[0].startswith("0 %")
    assert shares.all_text_contents()[-1].startswith("100 %")

    shown.get_by_role("radio", name="Per-flow throughput").check(force=True)
    shown.get_by_text("112 samples").wait_for()
    assert "metric=per_flow_mbps" in shown.url
    expect(history.locator("summary").first).to_be_visible(timeout=TIMEOUT_MS)
    assert drawn_points(history) == 112
    history.locator("select").select_option("7d")
    shown.get_by_text("29 samples").wait_for()
    assert "range=7d" in shown.url
    # What was chosen is in the address, so that it can be shared.
    shown.reload()
    settle(shown)
    shown.get_by_text("29 samples").wait_for()
    assert shown.get_by_role("radio", name="Per-flow throughput").is_checked()

    shown.get_by_role("radio", name="Jitter").check(force=True)
    history.locator("select").select_option("")
    shown.get_by_text("With 5 samples there is no distribution").wait_for()
    settle(shown)


def test_a_page_left_open_says_that_there_is_news(page: Watched, weeks: Served) -> None:
    page.page.clock.install()
    shown = page.open(address(weeks, SRC, DST))
    before = weeks.get("/v1/snapshots").json["snapshot"]["id"]
    sample = {"src": DST, "dst": OTHERS[0], "metric": "rtt_ms", "value": 80, "measured_at_s": 1.7e9}
    assert weeks.ask("POST", "/v1/samples", {"samples": [sample]}).json["accepted"] == 1
    eventually(lambda: weeks.get("/v1/snapshots").json["snapshot"]["id"] != before)
    shown.clock.fast_forward(31_000)
    shown.get_by_role("button", name="Show them").click()
    now = weeks.get("/v1/snapshots").json["snapshot"]["id"]
    shown.locator("#snapshot", has_text=now).wait_for()
    settle(shown)


def test_nothing_measured_and_nothing_sensible_asked_is_said(
    browser: Browser, empty: Served, grid: Served
) -> None:
    with watched(browser) as seen:
        shown = seen.open(address(empty, *GRID))
        pair = shown.locator(".pair")
        assert "never measured" in pair.locator(".never").inner_text()
        assert f"relayd probe --fleet fleet.toml --pairs '{GRID[0]}>{GRID[1]}'" in (
            pair.locator(".never code").inner_text()
        )
        models = pair.locator("section:has(> #evidence) .how", has_text="a model alone")
        assert models.count() == 6
        assert "The model says" in pair.locator("section:has(> #light)").inner_text()
        assert seen.violations() == []
    # An address of before leads here, and so does a question without a plan.
    with watched(browser, allowed=("422",)) as seen:
        shown = seen.open(f"{grid.url}/pair?src={GRID[0]}&dst={GRID[1]}")
        assert shown.url == address(grid, *GRID)
        shown.locator("section:has(> #history)").wait_for()
        settle(shown)
        shown = seen.open(f"{grid.url}/?src={GRID[0]}&dst={GRID[1]}&deadline_s=1#open=pair")
        shown.locator(".no-plan").wait_for()
        shown.locator("section:has(> #history)").wait_for()
        settle(shown)
