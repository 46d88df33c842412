"""Pages whose service answers slowly, and whose service is dead, say so."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Route, expect

from relayd.dashboard.pages import PAGES, Page
from tests.dashboard.browser import WAIT_MS, settle, watched
from tests.http.running import Served

PAIR = "src=azure:eastus&dst=aws:sa-east-1"
QUERIES = {"plan": f"?{PAIR}"}
WIDTHS = (1440, 1024, 390)
API = re.compile("/v1/(?!events)")
WAITING = re.compile("Waiting for the|Asking the service")
DEAD = "The service does not answer."


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_that_it_waits_and_that_nothing_comes(
    page: Page, grid: Served, browser: Browser
) -> None:
    address = f"{grid.url}{page.path}{QUERIES.get(page.name, '')}"
    at = PAGES.index(page)
    held: list[Route] = []
    with watched(
        browser, width=WIDTHS[at % 3], dark=at % 2 == 1, allowed=("net::ERR", "Failed to load")
    ) as seen:
        shown = seen.page
        holds = True
        shown.route(API, lambda route: held.append(route) if holds else route.continue_())
        shown.goto(address)
        main = shown.locator("main")
        expect(main).to_contain_text(WAITING, timeout=WAIT_MS)
        holds = False
        for route in held:
            route.continue_()
        expect(main).not_to_contain_text(WAITING, timeout=WAIT_MS)
        settle(shown)
        assert shown.locator(".problem").count() == 0

        shown.route("**/v1/**", lambda route: route.abort())
        shown.goto(address)
        expect(shown.locator(".problem").first).to_contain_text(DEAD, timeout=WAIT_MS)
        assert seen.violations() == []
        assert shown.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
