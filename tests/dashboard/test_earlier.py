"""A plan beside the one of yesterday's snapshot: from what changed, and from what if."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser import WAIT_MS, Watched
from tests.dashboard.conftest import QUICK
from tests.dashboard.fleets import SA, US, store_with_history
from tests.http.running import Served, served

ASKED = {"src": US, "dst": SA, "volume_gb": 1000, "vms": 1, "relays": "none"}


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a snapshot of yesterday, when a link carried 4 Gbit/s in place of 1."""
    with served(store_with_history(tmp_path_factory.mktemp("h")), environment=QUICK) as service:
        yield service


def compared(page: Page) -> list[str]:
    """Return throughput before and now, once both stand side by side."""
    row = page.locator(".beside tr", has_text="Throughput")
    row.wait_for(timeout=WAIT_MS)
    return row.locator("td").all_inner_texts()[:2]


def test_an_answer_stands_beside_that_of_an_earlier_snapshot(
    history: Served, page: Watched
) -> None:
    shown = page.open(f"{history.url}/plan?{urlencode(ASKED)}")
    ifs = shown.locator(".what-ifs")
    # What is older than all snapshots, or the same one again, is not offered.
    expect(ifs.get_by_role("link", name="snapshot")).to_have_text(
        ["yesterday's snapshot"], timeout=WAIT_MS
    )
    ifs.get_by_role("link", name="yesterday's snapshot").click()
    now, then = compared(shown)
    assert (now, then) == ("1.00 Gbit/s", "4.00 Gbit/s")
    expect(shown.locator("footer")).to_contain_text("then-129600")
    assert page.violations() == []
    ifs.get_by_role("link", name="the newest snapshot").click()
    expect(shown.locator(".beside tr", has_text="Throughput").locator("td").nth(1)).to_have_text(
        "1.00 Gbit/s", timeout=WAIT_MS
    )


def test_what_changed_leads_to_plans_then_and_now(history: Served, page: Watched) -> None:
    shown = page.open(f"{history.url}/")
    changed = shown.locator(".changed li", has_text=f"{US} → {SA}").filter(has_text="estimate")
    changed.get_by_role("link", name="Plans then and now").first.click()
    then, now = (float(text.split()[0]) for text in compared(shown))
    assert then > 2 * now
