"""Every page opens without an error and is usable by everyone, whatever the store holds.

Where its service answers slowly, or is dead, it says so.
"""

from __future__ import annotations

import re
from itertools import product

import pytest
from playwright.sync_api import Browser, Route, expect
from playwright.sync_api import Page as Shown

from relayd.dashboard.pages import DOCS, PAGES, SIGN_IN, Page
from tests.dashboard.browser import LOADED_MS, WAIT_MS, Watched, settle, watched
from tests.http.running import Served

QUERIES = {"plan": "?src={0}&dst={1}&volume_gb=500"}
PAIR = ("azure:eastus", "aws:sa-east-1")
PAIRS = {"three_hundred": ("aws:place-0", "azure:place-1")}
FIRST_WIDTH = {"grid": 1440, "empty": 390, "three_hundred": 1024}
WIDTHS = (1440, 1024, 390)
OF_REGIONS = ("plan", "matrix", "now", "fleet")
"""Pages that show the more, the more regions there are."""
SAYS = {
    ("campaigns", "empty"): ("has no fleet", "relayd probe --fleet fleet.toml"),
    ("fleet", "grid"): ("This service has no fleet", "No snapshot is kept from"),
    ("fleet", "empty"): (
        "This service has no fleet",
        "There is no snapshot yet, so nothing to compare",
        "No cap was measured yet",
    ),
}
API = re.compile("/v1/(?!events)")
WAITING = re.compile("Waiting for the|Asking the service")
DEAD = "The service does not answer."
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
        *product((*PAGES, SIGN_IN), ("grid", "empty")),
        # The same whatever is stored.
        pytest.param(DOCS, "empty", marks=pytest.mark.thorough),
        *(
            pytest.param(page, "three_hundred", marks=pytest.mark.thorough)
            for page in PAGES
            if page.name in OF_REGIONS
        ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_page_has_no_error_and_no_barrier(
    page: Page, store: str, browser: Browser, request: pytest.FixtureRequest
) -> None:
    service: Served = request.getfixturevalue(store)
    is_whole = store == "grid" and page in PAGES
    failing = ("net::ERR", "Failed to load") if is_whole else ()
    # Much to show on a wide screen, nothing in the dark on a phone, very much in between.
    with watched(browser, dark=store == "empty", width=FIRST_WIDTH[store], allowed=failing) as seen:
        query = QUERIES.get(page.name, "").format(*PAIRS.get(store, PAIR))
        address = f"{service.url}{page.path}{query}"
        shown = opened_slowly(seen, address) if is_whole else seen.open(address)
        # What is shown may go before it, for tabs and bookmarks.
        assert shown.title().endswith(f"{page.title} - relayd")
        assert shown.locator(".problem").count() == 0
        said = shown.locator("main").inner_text()
        for text in SAYS.get((page.name, store), ()):
            assert text in said
        assert page is DOCS or "`" not in said
        for width in dict.fromkeys((FIRST_WIDTH[store], *WIDTHS)):
            shown.set_viewport_size({"width": width, "height": 900})
            assert seen.fits(), width
            assert shown.evaluate(_CRUSHED) == [], width
            # The same rules hold for more of the same, and for the same with other figures.
            if is_whole or (store != "three_hundred" and width == FIRST_WIDTH[store]):
                settle(shown)
                assert seen.violations() == [], width
        assert seen.problems == []
        if is_whole:
            moves_and_prints(shown)
            says_that_nothing_comes(seen, address, PAGES.index(page))


def opened_slowly(seen: Watched, address: str) -> Shown:
    """Open a page whose answers come late: until then it says that it waits."""
    held: list[Route] = []
    holds = True
    shown = seen.page
    shown.route(API, lambda route: held.append(route) if holds else route.continue_())
    shown.goto(address)
    expect(shown.locator("main")).to_contain_text(WAITING, timeout=WAIT_MS)
    holds = False
    for route in held:
        route.continue_()
    expect(shown.locator("main")).not_to_contain_text(WAITING, timeout=WAIT_MS)
    settle(shown, LOADED_MS)
    shown.unroute(API)
    return shown


def moves_and_prints(shown: Shown) -> None:
    """Nothing moves for those who don't like it; paper has all, and nothing to press."""
    assert shown.evaluate(_MOVING) == 0
    shown.emulate_media(reduced_motion="no-preference")
    assert shown.evaluate(_MOVING) > 0
    shown.set_viewport_size({"width": _A4_PX, "height": 1123})
    shown.emulate_media(media="print")
    assert shown.evaluate(_PRESSED) == []
    assert shown.evaluate(_CLIPPED) == []
    shown.emulate_media(media="screen", reduced_motion="reduce")


def says_that_nothing_comes(seen: Watched, address: str, at: int) -> None:
    shown = seen.page
    shown.set_viewport_size({"width": WIDTHS[at % 3], "height": 900})
    shown.emulate_media(color_scheme="dark" if at % 2 else "light")
    shown.route("**/v1/**", lambda route: route.abort())
    shown.goto(address)
    expect(shown.locator(".problem").first).to_contain_text(DEAD, timeout=WAIT_MS)
    assert seen.violations() == []
    assert seen.fits()
