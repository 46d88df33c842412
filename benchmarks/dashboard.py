"""Ask, the matrix and Now in a real browser: bytes, time to use, time to switch.

``python -m benchmarks.dashboard``; needs chromium. The reference is the least that the browser can
show of the same service: ``/healthz``. A page can be used once its first figures are there: those
of relays that pay, cells of the matrix, tiles. In brackets is the processor time of the page's main
thread, which is the same on a busy machine.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from random import Random
from typing import NamedTuple

from playwright.sync_api import Browser, CDPSession, Page

from benchmarks.service import make_store
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
METRICS = ("per-flow", "rtt", "aggregate")
# From choosing a figure until it is painted: two frames on, the first is done.
SWITCH = """async (metric) => {
  const began = performance.now();
  document.querySelector(`input[value="${metric}"]`).click();
  while (document.body.dataset.shown !== metric) await new Promise((done) => setTimeout(done));
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}"""
SINCE_NAVIGATION = "() => performance.now()"


class Took(NamedTuple):
    """Elapsed time, and the time that the page's main thread was busy."""

    seconds: float
    busy_s: float


class View(NamedTuple):
    """Cost of opening a page with nothing cached, and of switches between figures."""

    to_use: Took
    transferred: float
    requests: int
    switches: list[Took]


def main() -> int:
    """Print the table."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        own = {"XDG_CONFIG_HOME": name, "XDG_DATA_HOME": name}  # no settings of this user
        with served(make_store(folder)[0], environment=own) as service:
            url = service.url
            bare = [bare_s(browser, f"{url}/healthz") for _ in range(ROUNDS)]
            rows.append(("/healthz", "", "1", written(statistics.median(bare)), "", "", ""))
            rows += figures(browser, url, "63 regions")
        with served(many(folder), environment=own) as service:
            rows += figures(browser, service.url, f"{MANY} regions")
    header = ("", "transferred", "requests", "to use", "a switch", "90th percentile", "goal")
    show("The dashboard in chromium", header, rows)
    return 0


def figures(browser: Browser, url: str, what: str) -> list[tuple[str, ...]]:
    """Return rows of the table."""
    rows: list[tuple[str, ...]] = []
    for name, (path, usable) in PAGES.items():
        views = [first_view(browser, url + path, usable) for _ in range(ROUNDS)]
        switches = [each for view in views for each in view.switches]
        kb = statistics.median(view.transferred for view in views) / 1e3
        to_use_s = statistics.median(view.to_use.seconds for view in views)
        judge(f"{name}, {what}: kB", kb, MOST_KB)
        judge(f"{name}, {what}: fixed loops", to_use_s * 1e3 / reference_ms(), MOST_S[what] * 1e3)
        is_met = kb <= MOST_KB and to_use_s <= MOST_S[what]
        rows.append(
            (
                f"{name}, {what}",
                f"{kb:.0f} kB",
                f"{views[0].requests}",
                both([view.to_use for view in views], 0.5),
                both(switches, 0.5) if switches else "",
                both(switches, 0.9) if switches else "",
                f"{MOST_KB:.0f} kB, {written(MOST_S[what])}: {'met' if is_met else 'missed'}",
            )
        )
    return rows


def both(times: Sequence[Took], part: float) -> str:
    """Return a quantile of times, and of processor time."""
    seconds, busy = (sorted(each)[int(part * len(times))] for each in zip(*times, strict=True))
    return f"{written(seconds)} ({written(busy)})"


def bare_s(browser: Browser, url: str) -> float:
    """Return the time that the browser takes to show a few bytes."""
    with watched(browser) as seen:
        seen.page.goto(url)
        return float(seen.page.evaluate(SINCE_NAVIGATION)) / 1e3


def first_view(browser: Browser, url: str, usable: str) -> View:
    """Open an address with nothing cached, and switch between figures, each at hand by then."""
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
        to_use = Took(float(page.evaluate(SINCE_NAVIGATION)) / 1e3, _busy_s(session))
        settle(page)
        transferred, requests = sum(sizes), len(sizes)
        metrics = METRICS * 4 if "matrix" in url else ()
        switches = [_switch(page, session, metric) for metric in metrics][len(METRICS) :]
        return View(to_use, transferred, requests, switches)


def _switch(page: Page, session: CDPSession, metric: str) -> Took:
    before_s = _busy_s(session)
    seconds = float(page.evaluate(SWITCH, metric)) / 1e3
    return Took(seconds, _busy_s(session) - before_s)


def _busy_s(session: CDPSession) -> float:
    found = session.send("Performance.getMetrics")["metrics"]
    return next(float(each["value"]) for each in found if each["name"] == "TaskDuration")


def many(folder: Path) -> Path:
    """Return a store with measurements between all of many synthetic regions."""
    chance = Random(1)
    names = [f"{('aws', 'azure', 'gcp')[at % 3]}:place-{at}" for at in range(MANY)]
    table = folder / "many.csv"
    with table.open("w") as file:
        print("src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at", file=file)
        for a, b in permutations(names, 2):
            figures = f"{chance.randint(5, 300)},{chance.randint(1000, 9000)}"
            print(f"{a},{b},{figures},64,60,2026-05-01T00:00Z", file=file)
    return imported(table, folder / "many.db")


if __name__ == "__main__":
    sys.exit(main())
