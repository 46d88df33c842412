"""Every page opens without an error and is usable by everyone, whatever the store holds."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from relayd.dashboard.pages import PAGES, Page
from tests.dashboard.browser import watched
from tests.service.running import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUERIES = {
    # A part of it: each cell is a matter of seconds together, and they are all alike.
    "matrix": "?from=aws&to=gcp",
    "pair": "?src=azure:eastus&dst=aws:sa-east-1",
    "plan": "?src=azure:eastus&dst=aws:sa-east-1&volume_gb=500",
}


@pytest.mark.parametrize(
    ("page", "store"),
    list(product(PAGES, ("grid", "empty"))),
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_has_no_error_and_no_barrier(
    page: Page, store: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    service: Served = request.getfixturevalue(store)
    # Light on a wide screen with much to show, dark on a phone with nothing.
    is_phone = store == "empty"
    with watched(browser, dark=is_phone, width=390 if is_phone else 1440) as seen:
        shown = seen.open(f"{service.url}{page.path}{QUERIES.get(page.name, '')}")
        # What is shown may go before it, for tabs and bookmarks.
        assert shown.title().endswith(f"{page.title} - relayd")
        assert seen.violations() == []
        # Nothing wider than the window, but what scrolls by itself.
        assert shown.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
