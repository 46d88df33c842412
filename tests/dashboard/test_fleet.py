"""The fleet page: who measures, what is wrong, what has changed, what VMs do beside their type."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from relayd.http.background import FleetWatch
from relayd.http.settings import ServiceSettings
from tests.dashboard.browser import Watched, text_of, watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.fleets import EU, GCP, SA, US, fleet_file
from tests.http.running import Served, fleet_at_port, served
from tests.probes.fleet.machines import machines, need
from tests.waiting import eventually

LIVE = "p.live[data-state=live]"


def test_what_is_wrong_and_what_has_changed(history: Served, browser: Browser) -> None:
    for dark, width in ((True, 1440), (False, 390)):
        with watched(browser, dark=dark, width=width) as seen:
            page = seen.open(f"{history.url}/now")
            page.wait_for_selector(LIVE)
            wrong = text_of(page, ".incidents tbody")
            for part in (f"{EU} → {SA}", "no reply to 3 looks", "20% of packets are lost"):
                assert part in wrong
            page = seen.open(f"{history.url}/fleet")
            page.wait_for_selector(LIVE)
            first = text_of(page, ".changes tbody tr")
            for part in (f"{US} → {SA}", "Aggregate", "4 Gbit/s", "1 Gbit/s", "0.25×", "worse"):
                assert part in first
            assert "acme:new-1" in text_of(page, ".part.changed")
            assert "aggregate throughput 4 Gbit/s → 1 Gbit/s" in text_of(page, ".shifts")
            cap = text_of(page, f"table.caps tr[data-key='{US}']")
            assert "4.2 (4 to 4.41)" in cap
            assert "16 % below its type" in cap
            assert "as its type" in cap
            assert seen.violations() == []
            if not dark:
                continue
            changed = page.locator(".part.changed")
            # What other links are thought to be changes with what was measured.
            changed.get_by_label("Show").select_option("")
            changed.get_by_role("button", name="Show more").click()
            changed.locator("tbody tr").nth(20).wait_for()
            changed.get_by_label("Show").select_option("inferred")
            changed.get_by_role("rowheader", name=f"{US} → {SA}").wait_for(state="detached")
            assert "measured" not in text_of(page, ".changes tbody tr:nth-child(2) td:nth-child(4)")
            changed.get_by_label("Since").select_option(label="a week ago")
            changed.get_by_text("No snapshot is kept from 7 d ago").wait_for()
            changed.get_by_role("button", name="Compare with the oldest").click()
            changed.get_by_label("Show").select_option("measured")
            changed.get_by_role("rowheader", name=f"{US} → {SA}").wait_for()
            page.get_by_label("Regions").select_option("all")
            page.get_by_text("regions, none measured").nth(1).click()  # of Azure
            assert "westus" in text_of(page, "details.regions[open]")
            changed.get_by_role("link", name=f"{US} → {SA}").first.click()
            page.wait_for_url("**/?src=aws*#open=pair")


def test_hosts_that_cannot_be_reached_say_why_and_what_to_do(
    own_history: Path, tmp_path: Path, browser: Browser
) -> None:
    need("ping")
    watching = {
        "RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": "1",
        "RELAYD_SERVE_WATCH_INTERVAL_S": "2",
        "RELAYD_SERVE_WATCH_QUIET_HOURS": "00:00-23:59",  # looks, but no campaign
    }
    with machines(tmp_path, [US, SA, GCP]) as (fleet, found):
        path = fleet_file(tmp_path, fleet)
        found[GCP].stop()
        environment = {**QUICK, **watching}
        with served(own_history, "--fleet", str(path), environment=environment) as service:

            def has_looked() -> bool:
                watch = service.get("/v1/watch").json["watch"] or {}
                has_ended = watch.get("last_look_age_s") is not None
                return has_ended and GCP in (watch.get("unreachable") or {})

            eventually(has_looked)
            with watched(browser, width=1024) as seen:
                page = seen.open(f"{service.url}/fleet")
                trouble = text_of(page, "table.hosts tr[data-key='gcp-us-east1']")
                assert "unreachable no SSH connection" in trouble
                assert "What to do: Check that it runs" in trouble
                assert "no trouble seen" in text_of(
                    page, "table.hosts tr[data-key='aws-sa-east-1']"
                )
                vm = text_of(page, "table.hosts tr[data-key='aws-us-east-1']")
                assert "egress 4.2 Gbit/s of 5 Gbit/s" in vm
                assert "prober" in text_of(page, ".part.watch")
                assert "of $1.00" in text_of(page, ".part.watch")
                assert "Regions that can't be reached 1" in text_of(page, ".health")
                assert "Hosts with advice 1" in text_of(page, ".health")
                assert "Links 1 down, 1 degraded" in text_of(page, ".health")
                assert page.locator("table.hosts tbody tr").first.get_attribute("data-key") == (
                    "gcp-us-east1"
                )
                assert seen.violations() == []
                page.goto(f"{service.url}/campaigns")
                page.get_by_text("No campaign can be started from here.").wait_for()
                assert "of $1.00" in text_of(page, ".part.watch")


def test_links_that_are_not_watched_are_not_said_to_be_up(tmp_path: Path, browser: Browser) -> None:
    fleet = str(fleet_at_port(tmp_path))
    with served(tmp_path / "relayd.db", "--fleet", fleet) as service, watched(browser) as seen:
        assert service.get("/v1/fleet").json["links_health"] == "unknown"
        said = text_of(seen.open(f"{service.url}/fleet"), ".health")
        links = seen.page.locator(".tile", has_text="Links").locator("strong")
        assert links.get_attribute("class") == "muted"
    assert "Regions that can't be reached unknown" in said
    assert "Links unknown Not watched: no failure would be seen" in said


@pytest.mark.parametrize(
    ("status", "health"),
    [
        (None, "unknown"),
        ({"role": "prober", "last_look_age_s": None}, "unknown"),
        ({"role": "prober", "last_look_age_s": 50.0, "outages_noticed_within_s": 30.0}, "good"),
        ({"role": "prober", "last_look_age_s": 70.0, "outages_noticed_within_s": 30.0}, "stale"),
        ({"role": "standby", "last_look_age_s": None}, "good"),
    ],
)
def test_links_are_good_only_while_somebody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: dict[str, object] | None, health: str
) -> None:
    watch = FleetWatch(ServiceSettings(), tmp_path / "relayd.db", ())
    monkeypatch.setattr(watch, "status", lambda: status)
    assert watch.links_health(()) == health
    assert watch.links_health((object(),)) == "bad"


def test_all_caps_of_the_grid_are_listed(grid: Served, page: Watched) -> None:
    sites = grid.get("/v1/sites").json["sites"]
    measured = sum(
        any(site[cap]["source"] == "measured" for cap in ("egress_gbps", "ingress_gbps"))
        for site in sites
    )
    assert measured > 15
    shown = page.open(f"{grid.url}/fleet")
    assert f"with a measured cap ({measured})" in text_of(shown, ".part.caps")
    assert shown.locator(".caps tbody tr").count() == 15
    shown.get_by_role("button", name=f"Show all {measured}").click()
    assert shown.locator(".caps tbody tr").count() == measured
