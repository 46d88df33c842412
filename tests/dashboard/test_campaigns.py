"""The campaigns page: what runs and ran, as it happens; a dry run, then consent, then a start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from relayd.store import open_store
from relayd.store.campaigns import Campaigns
from relayd.store.events import Events
from tests.dashboard.browser import Watched, watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.fleets import GCP, SA, US, fleet_file, store_with_history
from tests.http.running import Served, run, served
from tests.probes.fleet.machines import machines, need

LIVE, POLLING = "p.live[data-state=live]", "p.live[data-state=polling]"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_with_history(tmp_path_factory.mktemp("campaigns"))


@pytest.fixture(scope="module")
def service(kept: Path) -> Iterator[Served]:
    with served(kept, environment=QUICK) as running:
        yield running


def text_of(page: Any, where: str) -> str:
    return " ".join(page.locator(where).inner_text().split())


def test_all_campaigns_and_one_with_what_failed(service: Served, browser: Browser) -> None:
    for dark, width in ((False, 1440), (True, 390)):
        with watched(browser, dark=dark, width=width) as seen:
            page = seen.open(f"{service.url}/campaigns")
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
        page = seen.open(f"{service.url}/campaigns?id=77")
        assert "There is no campaign '77'" in text_of(page, "#message")


def test_progress_arrives_while_the_page_is_open(tmp_path: Path, browser: Browser) -> None:
    db = store_with_history(tmp_path)
    with (
        served(db, environment=QUICK) as service,
        watched(browser, allowed=("net::ERR", "Failed to load")) as seen,
    ):
        page = seen.page
        page.clock.install()
        page.goto(f"{service.url}/campaigns")
        page.wait_for_selector(LIVE)
        with open_store(db, mode="write") as store:
            campaign = Campaigns(store).begin({"wish": {"phases": ["rtt"]}, "budget_usd": 3.0})
            events = Events(store.database)
            events.add("campaign", "3", {"status": "started"})
            page.wait_for_selector("tr[data-key='3']")
            page.locator("tr[data-key='3'] a").click()
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
            events.add("campaign", "3", progress)
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
                events.add("campaign", "3", {**progress, "usd": 2.5})
                page.clock.fast_forward(11_000)
                spent.get_by_text("$2.50 of $3.00 (83 %)").wait_for()
                assert page.locator(POLLING).count() == 1
                page.unroute("**/v1/events")
                page.clock.fast_forward(4_000)
                page.wait_for_selector(LIVE)
                campaign.finish()
                events.add("campaign", "3", {"status": "done"})
                page.get_by_text("done", exact=True).first.wait_for()
            finally:
                again.stop()


def test_a_campaign_is_started_after_a_dry_run_and_with_consent(
    tmp_path: Path, browser: Browser
) -> None:
    need("ping")
    db = store_with_history(tmp_path)
    with machines(tmp_path, [US, SA, GCP]) as (fleet, found):
        path = fleet_file(tmp_path, fleet)
        with served(db, "--fleet", str(path), environment=QUICK) as service:
            found[US].stop()
            with watched(browser) as seen:
                start_by_hand(seen, service)
            found[US].start()
            with watched(browser) as seen:
                go_on_by_hand(seen, service)
        with served(
            db, "--fleet", str(path), environment=QUICK, auth=True, log=tmp_path / "guarded.log"
        ) as service:
            tokens_decide(browser, service, db)


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
    shown = page.locator(".forecast .aging").all_inner_texts()
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


def tokens_decide(browser: Browser, service: Served, db: Path) -> None:
    """Who may only read is told why nothing can be started; who may measure sees the form."""
    tokens = {
        scope: run(
            "serve", "token", "create", scope, "--scope", "read", "--scope", scope, db=db
        ).stdout.split()[-1]
        for scope in ("plan", "probe")
    }
    with watched(browser, allowed=("401",)) as seen:
        seen.page.clock.install()
        seen.page.goto(f"{service.url}/campaigns")
        seen.page.get_by_label("Token", exact=True).wait_for()
        seen.page.clock.fast_forward(30_000)
        seen.page.wait_for_timeout(300)
        assert text_of(seen.page, "#message") == ""  # nothing is asked for again and again
    for scope, token in tokens.items():
        with watched(browser, allowed=("401",)) as seen:
            page = seen.page
            page.goto(f"{service.url}/campaigns")
            page.get_by_label("Token", exact=True).fill(token)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector("tr[data-key='3']")
            assert page.get_by_text("Start a campaign", exact=True).count() == (scope == "probe")
            assert page.get_by_text("token with the scope").count() == (scope == "plan")


def test_long_lists_come_in_parts(tmp_path: Path, browser: Browser) -> None:
    db = store_with_history(tmp_path)
    with open_store(db, mode="write") as store:
        for _ in range(30):
            Campaigns(store).begin({"wish": {"phases": ["rtt"]}}).finish()
    with served(db, environment=QUICK) as service, watched(browser) as seen:
        page = seen.open(f"{service.url}/campaigns")
        assert page.locator("tr[data-key]").count() == 25
        assert "no budget set" in text_of(page, "tr[data-key='32']")
        page.get_by_role("button", name="Show older ones").click()
        page.wait_for_selector("tr[data-key='1']")
        assert page.locator("tr[data-key]").count() == 32
        assert page.get_by_role("button", name="Show older ones").count() == 0


def test_an_empty_store_says_how_to_begin(empty: Served, browser: Browser) -> None:
    with watched(browser, width=390, dark=True) as seen:
        page = seen.open(f"{empty.url}/campaigns")
        said = page.locator(".empty").inner_text()
        assert "has no fleet" in said
        assert "relayd probe --fleet fleet.toml" in said
        assert seen.violations() == []
