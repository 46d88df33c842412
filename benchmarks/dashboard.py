"""The dashboard's first page in a real browser: bytes, time to use, time to switch.

``python -m benchmarks.dashboard``; needs chromium. Beside it stands the least that the browser can
show of the same service: ``/healthz``.
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
from tests.dashboard.browser import chromium, watched
from tests.http.running import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 5
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
            rows.append(("/healthz", "", "1", written(statistics.median(bare)), "", ""))
            rows.append(figures(browser, url, "63 regions", "100 kB, 1 s"))
        with service(hundred(folder), name) as url:
            rows.append(figures(browser, url, "100 regions", "200 ms a switch"))
    header = ("", "transferred", "requests", "to use", "a switch", "target")
    show("The matrix page in chromium", header, rows)
    return 0


def figures(browser: Browser, url: str, what: str, target: str) -> tuple[str, ...]:
    """Return a row of the table."""
    views = [first_view(browser, f"{url}/matrix?measured=1") for _ in range(ROUNDS)]
    return (
        what,
        f"{statistics.median(view[1] for view in views) / 1e3:.0f} kB",
        f"{views[0][2]}",
        written(statistics.median(view[0] for view in views)),
        written(statistics.median(view[3] for view in views)),
        target,
    )


def bare_s(browser: Browser, url: str) -> float:
    """Return how long the browser takes to show a few bytes."""
    with watched(browser) as seen:
        seen.page.goto(url)
        return float(seen.page.evaluate(SINCE_NAVIGATION)) / 1e3


def first_view(browser: Browser, url: str) -> tuple[float, float, int, float]:
    """Return seconds to use, bytes, requests, and seconds of a switch, with nothing cached."""
    with watched(browser) as seen:
        page = seen.page
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        sizes: list[float] = []
        session.on("Network.loadingFinished", lambda event: sizes.append(_size(event)))
        page.goto(url)
        page.wait_for_selector("body[data-shown]")
        to_use_s = float(page.evaluate(SINCE_NAVIGATION)) / 1e3
        page.wait_for_load_state("networkidle")
        transferred = sum(sizes)
        return to_use_s, transferred, len(sizes), switch_s(page)


def switch_s(page: Page) -> float:
    """Return the median of switches, each figure at hand by then."""
    for metric in METRICS:
        page.evaluate(SWITCH, metric)
    times_ms: list[float] = [page.evaluate(SWITCH, metric) for metric in METRICS * 3]
    return statistics.median(times_ms) / 1e3


def _size(event: dict[str, Any]) -> float:
    return float(event["encodedDataLength"])


@contextmanager
def service(db: Path, home: str) -> Iterator[str]:
    """Run the service without anybody's settings."""
    with served(db, environment={"XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home}) as running:
        yield running.url


def hundred(folder: Path) -> Path:
    """Return a store with measurements between 100 synthetic regions."""
    chance = Random(1)
    names = [f"{('aws', 'azure', 'gcp')[at % 3]}:place-{at}" for at in range(100)]
    table, db = folder / "hundred.csv", folder / "hundred.db"
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
