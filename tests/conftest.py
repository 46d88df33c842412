"""Tiers of tests, Hypothesis profiles, the environment, and a PostgreSQL server.

Every test is marked by what it needs beyond this package, so that ``make quick`` can leave out
what takes long (see ``markers`` in pyproject.toml).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator, MutableMapping
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgresql import PostgresqlServer, running_server

# At home new examples on every run; in CI the same ones and a third as many; few while working.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, max_examples=33, derandomize=True, print_blob=True)
settings.register_profile("quick", deadline=None, max_examples=5)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "home")

# What is imported and collected stays until the end, and is not searched for garbage all the time.
gc.disable()

# What was imported on this machine counts in no test.
os.environ["RELAYD_CATALOGUE_DIR"] = os.devnull

_MARKERS_BY_PLACE = {
    "dashboard": {"browser", "service"},
    "examples": {"engines"},
    "http": {"service"},
    "probes/importers/test_importers_live.py": {"service"},
    "probes/fleet/test_many_hosts.py": {"service"},
    "relayd/store/test_store_durability.py": {"service"},
}
_MARKERS_BY_FIXTURE = {"machine": "lab", "postgresql_server": "postgresql"}
_MARKERS_BY_HELPER = {"tests.http.running": "service", "tests.probes.fleet.machines": "service"}


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark each test by where it is, the fixtures it uses, and the helpers its module imports.

    Of those that are chosen then, slow ones come first: what runs last should end together.
    """
    moved = [place for place in _MARKERS_BY_PLACE if not (Path(__file__).parent / place).exists()]
    assert not moved, f"no such place in tests/: {moved}"
    for item in items:
        for marker in sorted(_markers_of(item)):
            item.add_marker(marker)
    yield
    items[:] = _slow_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def _slow_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return tests with slow ones first in what each worker begins with (``--dist worksteal``)."""
    ordered: list[pytest.Item] = []
    for left in range(workers, 0, -1):
        share = items[len(ordered) :][: (len(items) - len(ordered)) // left]
        ordered += sorted(share, key=lambda item: item.get_closest_marker("slow") is None)
    return ordered


def pytest_collection_finish() -> None:
    """Let garbage be collected again, of what tests make."""
    gc.freeze()
    gc.enable()


def _markers_of(item: pytest.Item) -> set[str]:
    path = item.path.relative_to(Path(__file__).parent)
    found = {
        marker
        for place in (path, *path.parents)
        for marker in _MARKERS_BY_PLACE.get(str(place), ())
    }
    if isinstance(item, pytest.Function):
        chosen = item.callspec.params.values() if hasattr(item, "callspec") else ()
        uses = {*item.fixturenames, *(f"{word}_server" for word in chosen if word == "postgresql")}
        found |= {marker for name, marker in _MARKERS_BY_FIXTURE.items() if name in uses}
        helpers = {getattr(value, "__module__", None) for value in vars(item.module).values()}
        found |= {marker for name, marker in _MARKERS_BY_HELPER.items() if name in helpers}
    return found


@pytest.fixture
def environment() -> Iterator[MutableMapping[str, str]]:
    """Yield the environment, which a test may change: it is as before afterwards."""
    before = dict(os.environ)
    yield os.environ
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgresqlServer]:
    """Run a server for the session; its tests make databases of their own."""
    with running_server() as server:
        yield server
