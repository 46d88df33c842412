"""Every page opens without an error and is usable by everyone, whatever the store holds."""

from __future__ import annotations

from itertools import product

import pytest
from playwright.sync_api import Browser

from relayd.dashboard.pages import DOCS, PAGES, SIGN_IN, Page
from tests.dashboard.browser import settle, watched
from tests.http.running import Served

QUERIES = {"plan": "?src={0}&dst={1}&volume_gb=500"}
PAIR = ("azure:eastus", "aws:sa-east-1")
PAIRS = {"three_hundred": ("aws:place-0", "azure:place-1")}
FIRST_WIDTH = {"grid": 1440, "empty": 390, "three_hundred": 1024}
WIDTHS = (1440, 1024, 390)
# Cells in which words are broken letter by letter, because what is beside them takes all the room.
# The names of a matrix stand upright.
_CRUSHED = """() => [...document.querySelectorAll("main :is(td, th)")]
  .filter((cell) => cell.clientWidth < 40 && cell.clientHeight > 120 && !cell.closest(".matrix")
    && getComputedStyle(cell).writingMode === "horizontal-tb" && cell.rowSpan === 1)
  .map((cell) => cell.textContent)"""

# What is cut off at the right of a sheet of A4, or can be pressed, which paper can't.
_CLIPPED = """() => [...document.querySelectorAll("main *")].filter((each) =>
  each.checkVisibility() && getComputedStyle(each).overflowX !== "visible"
  && each.scrollWidth > each.clientWidth + 1 && !each.closest("svg, .matrix-scroll, .hidden-text"))
  .map((each) => each.outerHTML.slice(0, 120))"""
_PRESSED = """() => [...document.querySelectorAll("button:not(.sort), nav, .skip")]
  .filter((each) => each.checkVisibility()).map((each) => each.outerHTML.slice(0, 120))"""
_MOVING = """() => [...document.querySelectorAll("body, body *")].map(getComputedStyle)
  .filter((style) => parseFloat(style.transitionDuration) > 0 || style.animationName !== "none")
  .length"""
_A4_PX = 794


@pytest.mark.parametrize(
    ("page", "store"),
    [
        *product(PAGES, ("grid", "empty", "three_hundred")),
        *product((SIGN_IN, DOCS), ("grid", "empty")),  # the same whatever is stored
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_has_no_error_and_no_barrier(
    page: Page, store: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    service: Served = request.getfixturevalue(store)
    # Much to show on a wide screen, nothing in the dark on a phone, very much in between.
    with watched(browser, dark=store == "empty", width=FIRST_WIDTH[store]) as seen:
        query = QUERIES.get(page.name, "").format(*PAIRS.get(store, PAIR))
        shown = seen.open(f"{service.url}{page.path}{query}")
        # What is shown may go before it, for tabs and bookmarks.
        assert shown.title().endswith(f"{page.title} - relayd")
        assert shown.locator(".problem").count() == 0
        for width in dict.fromkeys((FIRST_WIDTH[store], *WIDTHS)):
            shown.set_viewport_size({"width": width, "height": 900})
            # Nothing wider than the window, but what scrolls by itself.
            assert shown.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            ), width
            assert shown.evaluate(_CRUSHED) == [], width
            # The same rules hold for more of the same, and for the same with other figures.
            if (store == "grid" and page in PAGES) or (
                store != "three_hundred" and width == FIRST_WIDTH[store]
            ):
                settle(shown)
                assert seen.violations() == [], width
        if store == "grid" and page in PAGES:
            assert shown.evaluate(_MOVING) == 0
            shown.emulate_media(reduced_motion="no-preference")
            assert shown.evaluate(_MOVING) > 0
            shown.set_viewport_size({"width": _A4_PX, "height": 1123})
            shown.emulate_media(media="print")
            assert shown.evaluate(_PRESSED) == []
            assert shown.evaluate(_CLIPPED) == []
