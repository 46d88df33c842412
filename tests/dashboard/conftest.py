"""A browser, and services with much, little and nothing to show."""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Callable, Iterator
from fcntl import LOCK_EX, flock
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser

from tests.dashboard.browser import Watched, chromium, watched
from tests.dashboard.fleets import store_with_history
from tests.http.running import Served, imported, served
from tests.shared_data import shared

# Looks at the store often, so that tests that change it need not wait.
QUICK = {"RELAYD_SERVE_REFRESH_S": "0.2"}


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's chromium, headless; a page of a context of its own for each test.

    Playwright's synchronous interface runs an event loop in this thread as long as it lives, and
    none of the tests of other folders could run their own.
    """
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Watched]:
    """A page on which anything said in the console as an error fails the test."""
    with watched(browser) as seen:
        yield seen


def made_once(folders: pytest.TempPathFactory, name: str, make: Callable[[Path], Path]) -> Path:
    """Return a store that the first worker to need it makes for all."""
    own = folders.getbasetemp()
    common = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    kept = common / f"{name}.db"
    with (common / f"{name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not kept.exists():
            make(folders.mktemp(name)).rename(kept)
    return kept


def copy_of_grid(folders: pytest.TempPathFactory) -> Path:
    """Return a store with the January grid of 63 regions."""
    kept = made_once(folders, "grid", _grid_store)
    return Path(shutil.copy(kept, folders.mktemp("grid") / "relayd.db"))


@pytest.fixture(scope="session")
def grid_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the January grid, which nobody changes."""
    return copy_of_grid(tmp_path_factory)


def _grid_store(folder: Path) -> Path:
    db = folder / "relayd.db"
    for kind, name in (
        ("skyplane-throughput", "throughput_2022-01.csv"),
        ("skyplane-latency", "latency_2022-04.csv"),
    ):
        imported(shared("skyplane") / name, db, kind)
    return db


@pytest.fixture(scope="session")
def grid(grid_store: Path) -> Iterator[Served]:
    """A service with the January grid."""
    with served(grid_store) as service:
        yield service


@pytest.fixture
def own_history(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the test alone, with campaigns, failures, snapshots and links in trouble."""
    kept = made_once(tmp_path_factory, "history", store_with_history)
    return Path(shutil.copy(kept, tmp_path / "relayd.db"))


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose links fail, whose campaign failed, and whose estimates were wrong."""
    kept = made_once(tmp_path_factory, "history", store_with_history)
    db = Path(shutil.copy(kept, tmp_path_factory.mktemp("history") / "relayd.db"))
    with served(db, environment=QUICK) as service:
        yield service


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a store without any measurement."""
    with served(tmp_path_factory.mktemp("empty") / "relayd.db") as service:
        yield service


@pytest.fixture(scope="session")
def three_hundred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with 300 regions that lie nowhere known, and a laboratory with a link to one."""
    kept = made_once(tmp_path_factory, "three-hundred", _store_of_three_hundred)
    db = Path(shutil.copy(kept, tmp_path_factory.mktemp("three-hundred") / "relayd.db"))
    with served(db) as service:
        yield service


def _store_of_three_hundred(folder: Path) -> Path:
    """Return a store in which each region was measured to four others."""
    chance = Random(1)
    names = [f"{['aws', 'azure', 'gcp'][at % 3]}:place-{at}" for at in range(300)]
    common = (64, 60, "2026-05-01T00:00Z")
    rows: list[tuple[object, ...]] = [
        (names[at], names[(at + step) % 300], "", chance.randint(1000, 9000), *common)
        for at in range(300)
        for step in (1, 2, 7, 100)
    ]
    lab, known = "onprem:lab", "aws:us-east-1"
    rows += [(lab, known, 50, 900, *common), (known, lab, 50, 700, *common)]
    table = folder / "measured.csv"
    with table.open("w", newline="") as file:
        header = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
        csv.writer(file).writerows([header.split(","), *rows])
    return imported(table, folder / "relayd.db")
