"""Home and the matrix in a real browser: bytes, time to use, time to switch.

``python -m benchmarks.dashboard``; needs chromium. Beside it stands the least that the browser can
show of the same service: ``/healthz``. Home can be used once its tiles and relays are there, the
matrix once its cells are.
"""

from __future__ import annotations

import csv
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.service import make_store
from benchmarks.table import show, written
from tests.dashboard.browser import chromium, settle, watched
from tests.http.running import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
MANY = 300
PAGES = {"home": ("/", "table.gains"), "matrix": ("/matrix?measured=1", "body[data-shown]")}
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


def main() -> int:
    """Print the table."""
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        with service(make_store(folder)[0], name) as url:
            bare = [bare_s(browser, f"{url}/healthz") for _ in range(ROUNDS)]
            rows.append(("/healthz", "", "1", written(statistics.median(bare)), "", "", ""))
            rows += figures(browser, url, "63 regions", "150 kB, 1 s, 100 ms")
        with service(many(folder), name) as url:
            rows += figures(browser, url, f"{MANY} regions", "1.5 s")
    header = ("", "transferred", "requests", "to use", "a switch", "90th percentile", "target")
    show("The dashboard in chromium", header, rows)
    return 0


def figures(browser: Browser, url: str, what: str, target: str) -> list[tuple[str, ...]]:
    """Return rows of the table."""
    rows: list[tuple[str, ...]] = []
    for name, (path, usable) in PAGES.items():
        views = [first_view(browser, url + path, usable) for _ in range(ROUNDS)]
        switches = [time_s for view in views for time_s in view[3]]
        rows.append(
            (
                f"{name}, {what}",
                f"{statistics.median(view[1] for view in views) / 1e3:.0f} kB",
                f"{views[0][2]}",
                written(statistics.median(view[0] for view in views)),
                written(statistics.median(switches)) if switches else "",
                written(sorted(switches)[int(0.9 * len(switches))]) if switches else "",
                target,
            )
        )
    return rows


def bare_s(browser: Browser, url: str) -> float:
    """Return how long the browser takes to show a few bytes."""
    with watched(browser) as seen:
        seen.page.goto(url)
        return float(seen.page.evaluate(SINCE_NAVIGATION)) / 1e3


def first_view(browser: Browser, url: str, usable: str) -> tuple[float, float, int, list[float]]:
    """Return seconds to use, bytes, requests, and seconds of each switch, with nothing cached."""
    with watched(browser) as seen:
        page = seen.page
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        sizes: list[float] = []
        session.on("Network.loadingFinished", lambda event: sizes.append(_size(event)))
        page.goto(url)
        page.wait_for_selector(usable)
        to_use_s = float(page.evaluate(SINCE_NAVIGATION)) / 1e3
        settle(page)
        switches = switches_s(page) if "matrix" in url else []
        return to_use_s, sum(sizes), len(sizes), switches


def switches_s(page: Page) -> list[float]:
    """Return how long switches take, each figure at hand by then."""
    for metric in METRICS:
        page.evaluate(SWITCH, metric)
    return [page.evaluate(SWITCH, metric) / 1e3 for metric in METRICS * 3]


def _size(event: dict[str, Any]) -> float:
    return float(event["encodedDataLength"])


@contextmanager
def service(db: Path, home: str) -> Iterator[str]:
    """Run the service without anybody's settings."""
    with served(db, environment={"XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}) as running:
        yield running.url


def many(folder: Path) -> Path:
    """Return a store with measurements between all of many synthetic regions."""
    chance = Random(1)
    names = [f"{('aws', 'azure', 'gcp')[at % 3]}:place-{at}" for at in range(MANY)]
    table, db = folder / "many.csv", folder / "many.db"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["src", "dst", "rtt_ms", "aggregate_mbps", "connections", "duration_s", "measured_at"]
        )
        rows.writerows(
            [a, b, chance.randint(5, 300), chance.randint(1000, 9000), 64, 60, "2026-05-01T00:00Z"]
            for a, b in permutations(names, 2)
        )
    subprocess.run(
        [sys.executable, "-m", "relayd", "import", "csv", str(table), "--db", str(db)],
        check=True,
        capture_output=True,
    )
    return db


if __name__ == "__main__":
    sys.exit(main())
