"""Every page opens without an error and is usable by everyone, whatever the store holds."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from relayd.dashboard.pages import PAGES, SIGN_IN, Page
from tests.dashboard.browser import watched
from tests.http.running import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUERIES = {"pair": "?src={0}&dst={1}", "plan": "?src={0}&dst={1}&volume_gb=500"}
PAIR = ("azure:eastus", "aws:sa-east-1")
PAIRS = {"three_hundred": ("aws:place-0", "azure:place-1")}
WIDTHS = {"grid": 1440, "empty": 390, "three_hundred": 1024}


@pytest.mark.parametrize(
    ("page", "store"),
    list(product((*PAGES, SIGN_IN), ("grid", "empty", "three_hundred"))),
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_has_no_error_and_no_barrier(
    page: Page, store: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    service: Served = request.getfixturevalue(store)
    # Much to show on a wide screen, nothing in the dark on a phone, very much in between.
    with watched(browser, dark=store == "empty", width=WIDTHS[store]) as seen:
        query = QUERIES.get(page.name, "").format(*PAIRS.get(store, PAIR))
        shown = seen.open(f"{service.url}{page.path}{query}")
        # What is shown may go before it, for tabs and bookmarks.
        assert shown.title().endswith(f"{page.title} - relayd")
        assert shown.locator(".problem").count() == 0
        if store != "three_hundred":  # the same rules hold for more of the same
            assert seen.violations() == []
        for width in (WIDTHS[store], *WIDTHS.values()):
            shown.set_viewport_size({"width": width, "height": 900})
            # Nothing wider than the window, but what scrolls by itself.
            assert shown.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            ), width
