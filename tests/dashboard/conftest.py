"""A browser, and services with much, little and nothing to show."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Iterable, Iterator
from fcntl import LOCK_EX, flock
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import Watched, chromium, watched
from tests.http.running import Served, imported, served
from tests.shared_data import shared

# Looks at the store often, so that tests that change it need not wait.
QUICK = {"RELAYD_SERVE_REFRESH_S": "0.2"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium, headless; a page of a context of its own for each test.

    Playwright's synchronous interface runs an event loop in this thread as long as it lives, and
    none of the tests that follow could run their own.
    """
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Watched]:
    """A page on which anything said in the console as an error fails the test."""
    with watched(browser) as seen:
        yield seen


@pytest.fixture(scope="session")
def grid_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the January grid of 63 regions."""
    own = tmp_path_factory.getbasetemp()
    # Those who run tests beside each other have folders in one, and the first imports for all.
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (common / "grid.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not (common / "grid.db").exists():
            for kind, name in (
                ("skyplane-throughput", "throughput_2022-01.csv"),
                ("skyplane-latency", "latency_2022-04.csv"),
            ):
                imported(shared("skyplane") / name, common / "new.db", kind)
            (common / "new.db").rename(common / "grid.db")
    return Path(shutil.copy(common / "grid.db", tmp_path_factory.mktemp("grid") / "relayd.db"))


@pytest.fixture(scope="session")
def grid(grid_store: Path) -> Iterator[Served]:
    """A service with the January grid."""
    with served(grid_store) as service:
        yield service


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a store without any measurement."""
    with served(tmp_path_factory.mktemp("empty") / "relayd.db") as service:
        yield service


@pytest.fixture(scope="session")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with measurements between 100 regions."""
    db = synthetic_store(tmp_path_factory.mktemp("hundred"), 100, permutations(range(100), 2))
    with served(db) as service:
        yield service


@pytest.fixture(scope="session")
def three_hundred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with 300 regions, each measured to four others."""
    pairs = [(a, (a + step) % 300) for a in range(300) for step in (1, 2, 7, 100)]
    db = synthetic_store(tmp_path_factory.mktemp("three-hundred"), 300, pairs)
    with served(db) as service:
        yield service


def synthetic_store(folder: Path, count: int, pairs: Iterable[tuple[int, int]]) -> Path:
    """Return a store with a measurement of each pair of so many regions."""
    chance = Random(1)
    names = [f"{['aws', 'azure', 'gcp'][at % 3]}:place-{at}" for at in range(count)]
    table = folder / "measured.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["src", "dst", "aggregate_mbps", "connections", "duration_s", "measured_at"])
        rows.writerows(
            [names[a], names[b], chance.randint(1000, 9000), 64, 60, "2026-05-01T00:00Z"]
            for a, b in pairs
        )
    return imported(table, folder / "relayd.db")
