"""The campaigns page: what runs and ran, as it happens; a dry run, then consent, then a start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from relayd.store import open_store
from relayd.store.campaigns import Campaigns
from relayd.store.events import Events
from tests.dashboard.browser import Watched, text_of, watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.fleets import GCP, SA, US, fleet_file
from tests.http.running import Served, served
from tests.probes.fleet.machines import machines, need

LIVE, POLLING = "p.live[data-state=live]", "p.live[data-state=polling]"


def test_all_campaigns_and_one_with_what_failed(history: Served, browser: Browser) -> None:
    for dark, width in ((False, 1440), (True, 390)):
        with watched(browser, dark=dark, width=width) as seen:
            page = seen.open(f"{history.url}/campaigns")
            page.wait_for_selector(LIVE)
            assert [
                row.get_attribute("data-key") for row in page.locator("tr[data-key]").all()
            ] == ["2", "1"]
            second = text_of(page, "tr[data-key='2']")
            for part in ("3 of 7", "$4.21 of $5.00 (84 %)", "13.5 GB", "unfinished"):
                assert part in second
            assert "by the watcher" in text_of(page, "tr[data-key='1']")
            assert page.get_by_text("Start a campaign").count() == 0  # there is no fleet
            assert seen.violations() == []
            page.get_by_role("link", name="Campaign 2").click()
            page.wait_for_selector(LIVE)
            failures = page.locator("ul.failures > li")
            failures.first.wait_for()
            assert failures.count() == 2
            said = " ".join(failures.first.inner_text().split())
            assert "(Connection refused. Really) 2 probes" in said
            assert "What to do: Check that it runs, and the address and port" in said
            assert "Part of all of them: azure:eastus, gcp:us-east1." in said
            failures.first.locator("summary").click()
            assert "azure:eastus → gcp:us-east1" in failures.first.inner_text()
            assert "`" not in page.locator("main").inner_text()
            assert seen.violations() == []
    with watched(browser, allowed=("404",)) as seen:
        page = seen.open(f"{history.url}/campaigns?id=77")
        assert "There is no campaign '77'" in text_of(page, "#message")


@pytest.mark.thorough
def test_long_lists_come_in_parts_and_progress_as_it_is_made(
    own_history: Path, browser: Browser
) -> None:
    db = own_history
    with open_store(db, mode="write") as store:
        for _ in range(30):
            Campaigns(store).begin({"wish": {"phases": ["rtt"]}}).finish()
    with (
        served(db, environment=QUICK) as service,
        watched(browser, allowed=("net::ERR", "Failed to load")) as seen,
    ):
        page = seen.page
        page.clock.install()
        page.goto(f"{service.url}/campaigns")
        page.wait_for_selector(LIVE)
        listed = page.locator("tr[data-key]")
        assert listed.count() == 25
        assert "no budget set" in text_of(page, "tr[data-key='32']")
        older = page.get_by_role("button", name="Show older ones")
        older.click()
        page.wait_for_selector("tr[data-key='1']")
        assert listed.count() == 32
        assert older.count() == 0
        with open_store(db, mode="write") as store:
            campaign = Campaigns(store).begin({"wish": {"phases": ["rtt"]}, "budget_usd": 3.0})
            events = Events(store.database)
            events.add("campaign", "33", {"status": "started"})
            page.wait_for_selector("tr[data-key='33']")
            page.locator("tr[data-key='33'] a").click()
            page.wait_for_selector(LIVE)
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            progress = {
                "status": "running",
                "stage": "rtt",
                "round": 1,
                "rounds": 2,
                "done": 30,
                "failed": 1,
                "total": 62,
                "sent_gb": 1.5,
                "usd": 1.25,
                "left_s": 75.0,
            }
            # A campaign that another process runs: its events are all that this service hears.
            events.add("campaign", "33", progress)
            spent = page.locator("section[aria-label=Spending]")
            spent.get_by_text("$1.25 of $3.00 (42 %)").wait_for()
            assert "1.5 GB" in spent.inner_text()
            # Nothing is asked for by the clock: only when an event came.
            page.wait_for_timeout(1_000)  # what that event asked for is done
            count = len(asked)
            page.clock.fast_forward(30_000)
            page.wait_for_timeout(300)
            assert len(asked) == count
            # But where the stream is silent for too long, another one is made.
            page.clock.fast_forward(20_000)
            page.wait_for_selector(POLLING)
            page.clock.fast_forward(4_000)
            page.wait_for_selector(LIVE)
            # The stream breaks: the page says so, and asks every ten seconds until it is back.
            page.route("**/v1/events", lambda route: route.abort())
            service.stop()
            page.wait_for_selector(POLLING)
            again = Served(db, "--port", str(service.port), environment=QUICK)
            try:
                events.add("campaign", "33", {**progress, "usd": 2.5})
                page.clock.fast_forward(11_000)
                spent.get_by_text("$2.50 of $3.00 (83 %)").wait_for()
                assert page.locator(POLLING).count() == 1
                page.unroute("**/v1/events")
                page.clock.fast_forward(4_000)
                page.wait_for_selector(LIVE)
                campaign.finish()
                events.add("campaign", "33", {"status": "done"})
                page.get_by_text("done", exact=True).first.wait_for()
            finally:
                again.stop()


def test_a_campaign_is_started_after_a_dry_run_and_with_consent(
    own_history: Path, tmp_path: Path, browser: Browser
) -> None:
    need("ping")
    with machines(tmp_path, [US, SA, GCP]) as (fleet, found):
        path = fleet_file(tmp_path, fleet)
        with served(own_history, "--fleet", str(path), environment=QUICK) as service:
            found[US].stop()
            with watched(browser) as seen:
                start_by_hand(seen, service)
            found[US].start()
            with watched(browser) as seen:
                go_on_by_hand(seen, service)


def start_by_hand(seen: Watched, service: Served) -> None:
    page = seen.open(f"{service.url}/campaigns")
    page.get_by_text("Start a campaign", exact=True).click()
    for phase in ("Single flows", "VM caps", "Aggregates"):
        page.get_by_label(phase).uncheck()
    budget = page.get_by_role("spinbutton", name="Budget")
    budget.fill("2.5")
    dry = page.get_by_role("button", name="Dry run")
    page.get_by_label("End after").fill("soon")
    dry.click()
    assert '"soon" is no time' in text_of(page, "#message")
    page.get_by_label("End after").fill("2h")
    with page.expect_request("**/v1/campaigns/forecast") as asked:
        dry.click()
    assert json.loads(asked.value.post_data or "")["max_minutes"] == 120
    regions = page.get_by_role("region", name="By region")
    regions.wait_for()
    for region in (US, SA, GCP):
        assert region in regions.inner_text()
    # Of prices that no document confirms, and of old ones.
    notes = service.get("/v1/overview").json["knowledge"]["old_prices"]
    assert "relayd data catalogue update" in notes[-1]
    page.locator(".forecast .facts summary", has_text="Prices to check").click()
    shown = page.locator(".forecast .to-check p").all_inner_texts()
    assert shown == [note.replace("`", "") for note in notes]
    assert seen.violations() == []
    # What was agreed to is what was shown: another budget needs another dry run.
    budget.fill("3")
    assert page.get_by_role("button", name="Start and spend").count() == 0
    dry.click()
    start = page.get_by_role("button", name="Start and spend")
    start.wait_for()
    consent = page.get_by_label("Type 3 to agree")
    assert start.is_disabled()
    consent.fill("2.5")
    assert start.is_disabled()
    assert len(service.get("/v1/campaigns").json["campaigns"]) == 2  # nothing was started so far
    consent.fill("3")
    start.click()
    page.wait_for_url("**/campaigns?id=3")
    # Real probes over real SSH; the page follows to the end without being asked to.
    page.locator("h2 .tag").get_by_text("unfinished", exact=True).wait_for()
    assert "What to do: Check that it runs" in text_of(page, "ul.failures")
    found = service.get("/v1/campaigns/3").json
    assert found["campaign"]["options"]["budget_usd"] == 3
    (stage,) = found["stages"]
    assert (stage["stage"], stage["done"] + stage["failed"]) == ("rtt", 3)
    assert stage["failed"] > 0


def go_on_by_hand(seen: Watched, service: Served) -> None:
    """Go on with what failed, once its host is back: again only with consent."""
    page = seen.open(f"{service.url}/campaigns?id=3")
    page.get_by_text("Go on with it").click()
    budget = page.get_by_role("spinbutton", name="Budget in all")
    budget.fill("0")
    page.get_by_text("it needs a larger budget").wait_for()
    budget.fill("4.5")
    page.get_by_label("Type 4.5 to agree").fill("4.50")
    page.get_by_role("button", name="Start and spend").click()
    page.locator("h2 .tag").get_by_text("done", exact=True).wait_for()
    assert "3 of 3 done" in page.locator("section[aria-label=Progress]").inner_text()
    assert page.locator("ul.failures").count() == 0
    assert page.get_by_text("Go on with it").count() == 0
    found = service.get("/v1/campaigns").json["campaigns"]
    assert [campaign["id"] for campaign in found] == [3, 2, 1]
