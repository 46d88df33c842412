"""Drives Debian's chromium and holds every page to what all pages promise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request

from tests.http.running import ROOT

OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
# A page that loads asks for one thing after the other; one that is used asks at once.
LOADED_MS, SETTLED_MS, STEP_MS = 500, 250, 50
WAIT_MS = 60_000
"""For what a page shows after the service has answered, on however busy a machine."""
_ASKED: dict[Page, set[Request]] = {}
"""Requests of each open page that have no answer yet."""
SIZES: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (390, "light"),
    (1024, "dark"),
    (1440, "light"),
)
"""Widths of windows, and the colour scheme that the reader prefers."""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser with a profile of its own; skips the test where there is none."""
    from playwright.sync_api import sync_playwright

    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield browser
        browser.close()


def settle(page: Page, enough_ms: int = SETTLED_MS) -> None:
    """Wait until a page has had nothing to ask for a moment.

    The browser's own "network idle" comes once for a document, and never while events stream.
    """
    quiet_ms = 0
    while quiet_ms < enough_ms:
        page.wait_for_timeout(STEP_MS)
        quiet_ms = 0 if _ASKED[page] else quiet_ms + STEP_MS


def unfold(page: Page, title: str) -> None:
    """Open a part of an answer, by the id of its title."""
    page.locator(f"summary:has(#{title})").click()


def text_of(page: Page, where: str) -> str:
    """Return the text of the first place of these, on one line."""
    return " ".join(page.locator(where).first.inner_text().split())


def ran(text: str, db: Path, folder: Path) -> str:
    """Return what a copied text prints in a shell that finds ``relayd`` and its store."""
    program = folder / "relayd"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m relayd "$@"\n')
    program.chmod(0o755)
    own = {"PYTHONPATH": str(ROOT), "RELAYD_DB": str(db)}
    path = {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", text], capture_output=True, text=True, env=os.environ | own | path, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def query_of(page: Page) -> dict[str, list[str]]:
    """Return what the address asks for."""
    return parse_qs(urlsplit(page.url).query)


@dataclass
class Watched:
    """A page, and what went wrong on it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def open(self, url: str) -> Page:
        """Open an address and wait until the page has nothing more to ask."""
        self.page.goto(url)
        settle(self.page, LOADED_MS)
        return self.page

    def fits(self) -> bool:
        """Return whether nothing is wider than the window, but what scrolls by itself."""
        return bool(
            self.page.evaluate(
                "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            )
        )

    def violations(self) -> list[str]:
        """Return what axe-core finds that is serious or worse (WCAG 2.1 and 2.2, A and AA)."""
        from axe_playwright_python.sync_playwright import Axe

        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        options = {
            "runOnly": {"type": "tag", "values": rules},
            "resultTypes": ["violations"],  # or every element that passed comes along
        }
        found: list[dict[str, Any]] = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]


def holds_at_all_widths(seen: Watched) -> None:
    """Hold what is shown to what all pages promise, on a screen, in the dark and on a phone."""
    for width, scheme in SIZES:
        seen.page.emulate_media(color_scheme=scheme)
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.violations() == [], width
        assert seen.fits(), width


@contextmanager
def watched(
    browser: Browser,
    *,
    width: int = 1440,
    height: int = 900,
    dark: bool = False,
    allowed: tuple[str, ...] = (),
    **options: Any,
) -> Iterator[Watched]:
    """Open a page that is watched; errors in its console fail at the end, but those allowed.

    More options are Playwright's own for a context.
    """
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(60_000)
    seen = Watched(context.new_page())
    asked = _ASKED[seen.page] = set()
    seen.page.on(
        "request",
        lambda request: None if request.url.endswith("/v1/events") else asked.add(request),
    )
    seen.page.on("requestfinished", lambda request: asked.discard(request))
    seen.page.on("requestfailed", lambda request: asked.discard(request))
    seen.page.on(
        "console",
        lambda said: seen.problems.append(said.text) if said.type in ("error", "warning") else None,
    )
    seen.page.on("pageerror", lambda error: seen.problems.append(str(error)))
    try:
        yield seen
    finally:
        context.close()
        del _ASKED[seen.page]
    left = [text for text in seen.problems if not any(part in text for part in allowed)]
    assert not left, left
