"""What three people come for, in as many steps as docs/dashboard.md says; and all by keyboard."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from probes.liveness.link_health import LinkHealth
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.events import Events
from relayd.store.links import LinkStates
from relayd.store.samples.ingest import append
from tests.dashboard.browser import WAIT_MS, Watched, query_of, watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.fleets import EU, SA, US
from tests.http.running import Served, served
from tests.http.test_fleet import DAY_S, rates, snapshot_then

ASKED = {"src": "azure:eastus", "dst": "aws:ap-northeast-1", "volume_gb": "20TB"}
DEADLINE_S = 8 * 3600
OPACITY = "(part) => getComputedStyle(part).opacity"
PLANS = re.compile(r"/v1/plans\?")


class Person:
    """Somebody before a page, who counts steps: a click, a field, a key that sends."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.steps = 0

    def click(self, where: Locator) -> None:
        self.steps += 1
        where.click()

    def fill(self, where: Locator, text: str) -> None:
        self.steps += 1
        where.fill(text)

    def press(self, key: str) -> None:
        self.steps += 1
        self.page.keyboard.press(key)

    def link(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name).first)


def test_a_data_engineer_moves_20_tb_tonight(grid: Served, page: Watched) -> None:
    asked = {**ASKED, "deadline_s": DEADLINE_S, "frontier": "true"}
    plan = grid.get(f"/v1/plans?{urlencode(asked)}").json
    assert plan["duration_s"] <= DEADLINE_S
    shown = page.open(f"{grid.url}/")
    engineer = Person(shown)
    for name, text in ASKED.items():
        engineer.fill(shown.locator(f"[name={name}]"), text)
    engineer.press("Enter")
    expect(shown.locator("#answer .verdict")).to_contain_text("for 20 TB", timeout=WAIT_MS)
    assert engineer.steps == 4
    engineer.click(shown.get_by_text("More options"))
    engineer.fill(shown.get_by_label("Deadline"), "8h")
    engineer.press("Enter")
    code = shown.locator("section:has(#basis) dl code")
    expect(code).to_have_text(plan["plan_id"], timeout=WAIT_MS)
    assert engineer.steps == 7
    command = shown.get_by_label("CLI command: text", exact=True)
    assert "--volume 20TB" in command.inner_text()
    assert "--deadline 8h" in command.inner_text()


@pytest.mark.thorough
def test_an_author_finds_what_changed_since_monday_and_an_operator_sees_a_link_fail(
    tmp_path: Path, browser: Browser
) -> None:
    db = tmp_path / "relayd.db"
    with open_store(db, mode="create") as store:
        append(store, rates(US, SA, 4000.0, 9 * DAY_S) + rates(EU, SA, 4000.0, 9 * DAY_S))
    for age_days in (8, 1.5):
        snapshot_then(db, age_days * DAY_S)
    with open_store(db, mode="write") as store:
        for hours in range(12):
            append(store, rates(US, SA, 1000.0, 3600.0 * hours))
        make_snapshot(store, load_catalogue())
    with served(db, environment=QUICK) as service, watched(browser) as page:
        shown = page.open(f"{service.url}/now")
        since_monday(shown, service)
        shown.goto(f"{service.url}/now")
        a_link_fails(shown, db)


def since_monday(shown: Page, service: Served) -> None:
    author = Person(shown)
    author.link("All changes")
    changed = shown.locator(".part.changed")
    changed.get_by_label("Since").select_option(label="a week ago")
    author.steps += 1
    first = changed.locator(".changes tbody tr").first
    expect(first).to_contain_text(f"{US} → {SA}", timeout=WAIT_MS)
    assert "4 Gbit/s" in first.inner_text()
    assert "1 Gbit/s" in first.inner_text()
    author.click(first.get_by_role("link", name=f"{US} → {SA}"))
    expect(shown.locator("section[aria-labelledby=evidence]")).to_contain_text(
        "from samples", timeout=WAIT_MS
    )
    assert author.steps == 3

    shown.goto(f"{service.url}/")
    author = Person(shown)
    author.fill(shown.get_by_label("From", exact=True), US)
    author.fill(shown.get_by_label("To", exact=True), SA)
    author.press("Enter")
    author.link("last week's snapshot")
    times = shown.locator(".beside tr", has_text="Throughput").locator("td")
    expect(times.first).to_contain_text("Gbit/s", timeout=WAIT_MS)
    now, then = (float(text.split()[0]) for text in times.all_inner_texts()[:2])
    assert then > 1.5 * now
    assert author.steps == 4


def a_link_fails(shown: Page, db: Path) -> None:
    tile = shown.locator("a.tile", has_text="Links")
    expect(tile).to_contain_text("unknown", timeout=WAIT_MS)
    assert tile.locator(".good").count() == 0  # of which nothing is known
    now_s, reason = time.time(), "no reply to 3 looks"
    with open_store(db, mode="write") as store, store.database.transaction():
        down = LinkHealth("down", since_s=now_s, reason=reason)
        LinkStates(store.database).keep({(US, SA): down}, (), now_s + DAY_S)
        detail = {"src": US, "dst": SA, "from": "up", "to": "down", "reason": reason}
        Events(store.database).add("leg", f"{US}>{SA}", detail)
    expect(tile.locator("strong.bad")).to_have_text("1 down", timeout=WAIT_MS)
    expect(tile).to_contain_text(f"{US} → {SA} went down")
    expect(shown.locator("table.incidents")).to_contain_text(reason, timeout=WAIT_MS)
    operator = Person(shown)
    operator.click(tile)
    assert shown.url.endswith("#wrong")
    operator.click(shown.locator("table.incidents").get_by_role("link").first)
    banner = shown.locator(".pair-state")
    expect(banner).to_contain_text(f"{US} → {SA} is down", timeout=WAIT_MS)
    assert operator.steps == 2


def tab_to(page: Page, name: str) -> None:
    """Press the tab key until what has the focus is called so."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"The tab key does not reach {name!r}.")


def test_asking_comparing_and_cancelling_by_keyboard_alone(grid: Served, browser: Browser) -> None:
    held: list[Route] = []
    plan = grid.get("/v1/plans?" + urlencode(ASKED)).json
    with watched(browser, width=1024, allowed=("net::ERR_ABORTED", "422")) as seen:
        shown = seen.open(f"{grid.url}/")
        source = shown.locator("[name=src]")
        expect(source).to_be_focused(timeout=WAIT_MS)
        completed = shown.locator(f"#{source.get_attribute('list')} option").evaluate_all(
            "all => all.map(each => each.value)"
        )
        assert {ASKED["src"], "us-east"} <= set(completed)
        for key, name in ASKED.items():
            shown.keyboard.type(name)
            for _ in range({"src": 2, "dst": 1}.get(key, 0)):  # past the button that swaps ends
                shown.keyboard.press("Tab")
        shown.keyboard.press("Enter")
        verdict = shown.locator("#answer .verdict")
        verdict.wait_for(timeout=WAIT_MS)
        for text in (plan["reason"], "20 TB", f"${plan['cost_usd']['total']:,.2f}"):
            assert text in verdict.inner_text()
        assert f"{plan['throughput_gbps']:.2f} Gbit/s" in verdict.inner_text()
        assert query_of(shown) == {k: [v] for k, v in ASKED.items()}
        assert seen.violations() == []

        # Under a changed question the answer is dimmed; what is wrong is said at its field.
        source.fill("us-eas")
        expect(shown.locator("#answer")).to_have_class("stale")
        source.press("Enter")
        expect(shown.locator("#option-src-problem")).to_contain_text("us-east", timeout=WAIT_MS)
        expect(source).to_be_focused()
        assert verdict.count() == 0
        shown.go_back()
        verdict.wait_for(timeout=WAIT_MS)
        assert source.input_value() == ASKED["src"]
        expect(shown.locator("#answer")).not_to_have_class("stale")

        tab_to(shown, "no relays")
        shown.keyboard.press("Enter")
        beside = shown.locator(".beside")
        expect(beside).to_contain_text("Relays: any → none", timeout=WAIT_MS)
        tab_to(shown, "Stop comparing")
        shown.keyboard.press("Enter")
        beside.wait_for(state="detached", timeout=WAIT_MS)

        # An answer that takes its time is given up, by Escape or by its button.
        shown.route(PLANS, lambda route: held.append(route))
        ask = shown.get_by_role("button", name="Plan", exact=True)
        for by_button in (False, True):
            ask.focus()
            shown.keyboard.press("Enter")
            expect(shown.locator(".waiting")).to_contain_text("Cancel", timeout=WAIT_MS)
            # What was answered before is dimmed while another answer is on its way.
            assert float(shown.locator("#answer").evaluate(OPACITY)) < 0.5
            if by_button:
                tab_to(shown, "Cancel")
            shown.keyboard.press("Enter" if by_button else "Escape")
            expect(shown.locator("#message")).to_contain_text("Cancelled", timeout=WAIT_MS)
            expect(ask).to_be_focused()
            assert verdict.count() == 0
            assert shown.locator(".waiting").count() == 0
        shown.unroute(PLANS)
        shown.keyboard.press("Enter")
        verdict.wait_for(timeout=WAIT_MS)
        assert shown.locator("#message").inner_text() == ""
