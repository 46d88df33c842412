"""Ask, the matrix and Now in a real browser: bytes, and time to use.

``python -m benchmarks.dashboard``; needs chromium. The reference is the least that the browser can
show of the same service: ``/healthz``. A page can be used once its first figures are there: those
of relays that pay, cells of the matrix, tiles. In brackets is the processor time of the page's main
thread, which is the same on a busy machine.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser

from benchmarks.service import make_store
from benchmarks.snapshots import write_samples
from benchmarks.table import judge, reference_ms, show, written
from tests.dashboard.browser import chromium, settle, watched
from tests.http.running import imported, served

ROUNDS = 5
MANY = 300
PAGES = {
    "ask": ("/", "table.gains"),
    "matrix": ("/matrix?measured=1", "body[data-shown]"),
    "now": ("/now", "a.tile strong"),
}
MOST_KB = 300.0
MOST_S = {"63 regions": 1.0, f"{MANY} regions": 1.5}
"""Until a page can be used."""


class View(NamedTuple):
    """Cost of opening a page with nothing cached: until it can be used, and all it loads."""

    seconds: float
    busy_s: float
    transferred: float
    requests: int

    def __str__(self) -> str:
        """Return both times in words."""
        return f"{written(self.seconds)} ({written(self.busy_s)})"


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder, rows = Path(name), []
        own = {"XDG_CONFIG_HOME": name, "XDG_DATA_HOME": name}  # no settings of this user
        write_samples(folder / "many.csv", MANY, MANY * (MANY - 1))
        stores = (make_store(folder)[0], imported(folder / "many.csv", folder / "many.db"))
        for (what, most_s), db in zip(MOST_S.items(), stores, strict=True):
            with served(db, environment=own) as service:
                bare = middle(browser, f"{service.url}/healthz", "body")
                rows.append((f"/healthz, {what}", "", "1", str(bare), ""))
                for page, (path, usable) in PAGES.items():
                    view = middle(browser, service.url + path, usable)
                    kb = view.transferred / 1e3
                    judge(f"{page}, {what}: kB", kb, MOST_KB)
                    loops = view.seconds * 1e3 / reference_ms()
                    judge(f"{page}, {what}: fixed loops", loops, most_s * 1e3)
                    figures = f"{kb:.0f} kB", f"{view.requests}", str(view)
                    goal = f"{MOST_KB:.0f} kB, {written(most_s)}"
                    rows.append((f"{page}, {what}", *figures, goal))
    header = ("", "transferred", "requests", "to use", "goal")
    show("The dashboard in chromium", header, rows)
    return 0


def middle(browser: Browser, url: str, usable: str) -> View:
    """Open an address several times; return the medians."""
    views = [first_view(browser, url, usable) for _ in range(ROUNDS)]
    seconds, busy_s, transferred = (median(view[at] for view in views) for at in range(3))
    return View(seconds, busy_s, transferred, views[0].requests)


def first_view(browser: Browser, url: str, usable: str) -> View:
    """Open an address with nothing cached."""
    with watched(browser) as seen:
        page = seen.page
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        sizes: list[float] = []
        session.on(
            "Network.loadingFinished", lambda event: sizes.append(float(event["encodedDataLength"]))
        )
        page.goto(url)
        page.wait_for_selector(usable)
        seconds = float(page.evaluate("() => performance.now()")) / 1e3
        found = session.send("Performance.getMetrics")["metrics"]
        busy_s = next(float(each["value"]) for each in found if each["name"] == "TaskDuration")
        settle(page)
        return View(seconds, busy_s, sum(sizes), len(sizes))


if __name__ == "__main__":
    sys.exit(main())
