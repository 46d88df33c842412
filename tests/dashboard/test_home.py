"""The first page answers in place; Now says how far that can be relied on, and what happens."""

from __future__ import annotations

import re
import time
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.browser import WAIT_MS, Watched, query_of, watched
from tests.dashboard.fleets import SA, US
from tests.http.running import Served

DIRECT = {"src": US, "dst": SA, "volume_gb": 1000, "vms": 1, "relays": "none"}
ASKED = {"src": "azure:eastus", "dst": "aws:ap-northeast-1", "volume_gb": "20TB"}
ANSWER = "#verdict"


def tile(page: Page, name: str) -> str:
    """Return the text of a tile, once it is there."""
    found = page.locator("a.tile", has_text=name)
    found.wait_for(timeout=WAIT_MS)
    return found.inner_text()


def test_tiles_say_what_the_store_knows_and_what_changed_leads_to_plans_then_and_now(
    history: Served, page: Watched
) -> None:
    found = history.get("/v1/overview").json
    assert {state["condition"] for state in found["leg_states"]} == {"down", "degraded"}
    shown = page.open(f"{history.url}/now")
    assert "1 down, 1 degraded" in tile(shown, "Links")
    measured = found["knowledge"]["measured"]
    assert measured == 12
    never = f"{found['knowledge']['unsampled']:,}"
    said = tile(shown, "Age of knowledge")
    assert re.search(
        rf"Of [\d,]+ pairs, {never} were never measured; throughput was of {measured}\.", said
    )
    # The campaigns of that store ran today, or yesterday if midnight has passed since.
    today = history.get("/v1/overview").json["measuring"]
    assert f"{today['done']} probes" in tile(shown, "Measured today")
    assert (today["done"], today["failed"]) in {(6, 3), (0, 0)}
    # Yesterday 4 Gbit/s were expected of the link that brings 1 Gbit/s today.
    assert found["prediction"]["samples"] == 1
    assert found["prediction"]["median_error"] == pytest.approx(0.75, abs=0.02)
    assert found["prediction"]["inside_share"] == 0
    assert "75 %" in tile(shown, "Prediction error")
    assert found["snapshot"]["id"] in tile(shown, "Snapshot")
    changed = shown.locator(".changed")
    expect(changed).to_contain_text("changes of level", timeout=WAIT_MS)
    assert "4 Gbit/s → 1 Gbit/s" in changed.inner_text()
    assert page.violations() == []
    link = changed.locator("tr", has_text=f"{US} → {SA}")
    link.get_by_role("link", name="Plans then and now").first.click()
    then, now = (float(text.split()[0]) for text in compared(shown))
    assert then > 2 * now


def test_relays_that_pay_lead_to_their_plans(grid: Served, page: Watched) -> None:
    shown = page.open(f"{grid.url}/")
    for worth, words in ((20, "at $20 an hour"), ("inf", "where time alone counts")):
        found = grid.get(f"/v1/relay-gains?time_value_usd_per_h={worth}").json
        best = found["relays"][0]
        gains = [each["gain"] for each in found["relays"]]
        assert gains == sorted(gains, reverse=True)
        shown.get_by_label("An hour is worth").last.select_option(str(worth))
        # The settings stand beside the figures.
        expect(shown.locator("table.gains caption")).to_contain_text(words, timeout=WAIT_MS)
        table = shown.locator("table.gains tbody tr")
        expect(table).to_have_count(len(gains), timeout=WAIT_MS)
        first = table.first.inner_text()
        for text in (f"{best['gain']:.3g}×", best["relay"], f"${best['relay_usd']:,.2f}"):
            assert text in first
    # Whoever is given the address sees the same.
    shown.reload()
    expect(shown.locator("table.gains caption")).to_contain_text(words, timeout=WAIT_MS)
    assert shown.get_by_label("An hour is worth").last.input_value() == "inf"
    table.first.get_by_role("link").click()
    shown.locator("#verdict", has_text=best["relay"]).wait_for(timeout=WAIT_MS)


def test_an_empty_store_shows_three_ways_to_begin_and_answers_by_the_baseline(
    empty: Served, browser: Browser
) -> None:
    granted = ["clipboard-read", "clipboard-write"]
    with watched(browser, width=390, permissions=granted) as seen:
        shown = seen.open(f"{empty.url}/")
        beginnings = shown.locator(".beginnings > li")
        expect(beginnings).to_have_count(3, timeout=WAIT_MS)
        for beginning, command in zip(
            beginnings.all(), ("probe", "import", "measure lab up"), strict=True
        ):
            text = beginning.locator("code").inner_text()
            assert text.startswith(f"relayd {command}")
            beginning.get_by_role("button").click()
            expect(beginning.locator(".copied")).to_have_text("copied", timeout=WAIT_MS)
            assert shown.evaluate("navigator.clipboard.readText()") == text
        assert shown.locator("a.tile").count() == 0
        assert "no measurement" in shown.locator("#snapshot").inner_text()
        assert shown.get_by_text("Nothing is measured yet").count() == 1
        shown.get_by_role("link", name="500 GB").click()
        shown.locator(ANSWER).wait_for()
        asked = {name: value for name, (value,) in query_of(shown).items()}
        plan = empty.get("/v1/plans?" + urlencode({**asked, "frontier": "true"})).json
        shown.get_by_text(plan["plan_id"]).wait_for(state="attached")
        assert "Nothing is measured yet" in shown.locator(".modelled").inner_text()
        assert shown.locator(".offers .recommended", has_text="baseline").count() == 1
        shown.set_viewport_size({"width": 1440, "height": 900})
        seen.open(f"{empty.url}/?src=aws:us-east-1")
        shown.locator("#answer h2", has_text="From aws:us-east-1").first.wait_for()
        shown.locator(".world-map .line").first.wait_for(state="attached")
        assert shown.locator(".world-map .line").count() == 20
        assert "Nothing is measured yet" in shown.locator(".modelled").inner_text()
        assert "baseline" in shown.locator(".world-legend").inner_text()


def test_ages_beyond_what_links_keep_are_stale(grid: Served, page: Watched) -> None:
    asked = f"{grid.url}/?{urlencode(ASKED)}#row=0"
    shown = page.open(asked)
    measured = shown.locator(".offers .inside td.number", has_text="ago")
    measured.first.wait_for(timeout=WAIT_MS)
    assert "too old" not in measured.first.inner_text()
    assert measured.first.locator(".warn, .bad").count() == 0
    later_s = time.time() + 30 * 365.25 * 86400
    page.page.clock.set_fixed_time(later_s * 1000)  # of the page alone
    page.open(asked)
    expect(measured.first).to_contain_text("years ago, too old to rely on", timeout=WAIT_MS)
    assert measured.first.locator(".warn").count() == 1


def test_old_prices_are_said_at_the_cost(grid: Served, page: Watched) -> None:
    asked = {"src": SA, "dst": US, "volume_gb": 500}
    plan = grid.get("/v1/plans?" + urlencode(asked)).json
    (old,) = [text for text in plan["outdated"] if text.startswith("The egress price")]
    shown = page.open(f"{grid.url}/?{urlencode(asked)}")
    cost = shown.locator(".headline > li", has_text="Cost")
    cost.get_by_text("Prices to check").click()
    assert old.replace("`", "") in " ".join(cost.inner_text().split())
    assert shown.locator("[role=alert]").count() == 0
    assert page.violations() == []


# ---- a plan of now, and of an earlier snapshot -------------------------------------------------


def compared(page: Page) -> list[str]:
    """Return throughput before and now, once both stand side by side."""
    row = page.locator(".beside tr", has_text="Throughput")
    row.wait_for(timeout=WAIT_MS)
    return [text.strip() for text in row.locator("td").all_inner_texts()]


def test_an_answer_stands_beside_that_of_an_earlier_snapshot(
    history: Served, page: Watched
) -> None:
    shown = page.open(f"{history.url}/?{urlencode(DIRECT)}")
    ifs = shown.locator(".what-ifs")
    # What is older than all snapshots, or the same one again, is not offered.
    expect(ifs.get_by_role("link", name="snapshot")).to_have_text(
        ["yesterday's snapshot"], timeout=WAIT_MS
    )
    ifs.get_by_role("link", name="yesterday's snapshot").click()
    now, then = compared(shown)
    assert (now, then) == ("1.00 Gbit/s", "4.00 Gbit/s")
    expect(shown.locator("footer")).to_contain_text("then-129600")
    assert page.violations() == []
    ifs.get_by_role("link", name="the newest snapshot").click()
    expect(shown.locator(".beside tr", has_text="Throughput").locator("td").nth(1)).to_have_text(
        "1.00 Gbit/s", timeout=WAIT_MS
    )
