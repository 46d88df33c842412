"""Each test has folders of its own, so that no real store or settings take part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from relayd.__main__ import main
from relayd.sources.wan import Wan
from relayd.store import Store, leases, open_store
from tests.postgresql import PostgresqlServer
from tests.relayd.building import modelled
from tests.relayd.store.engines import QUICK_LEASES, PostgresqlSpot, Spot, SqliteSpot


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


Relayd = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def own_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for variable in ("RELAYD_DB", "RELAYD_CATALOGUES", "RELAYD_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # The catalogue's cache is shared: it is keyed by content, and making it takes a while.
    cache = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("RELAYD_CACHE_DIR", str(cache))


@pytest.fixture
def relayd(capsys: pytest.CaptureFixture[str]) -> Relayd:
    """Run a command in this process, as ``relayd`` would be run in a shell."""

    def run(*words: object) -> Outcome:
        try:
            code = main([str(word) for word in words])
        except SystemExit as leaving:  # argparse
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def wan() -> Wan:
    """Return a source that knows the baseline alone."""
    return modelled()


@pytest.fixture
def quick_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is held run out soon."""
    for name, value in QUICK_LEASES.items():
        monkeypatch.setattr(leases, name, value)


@pytest.fixture
def spot(request: pytest.FixtureRequest, tmp_path: Path) -> Spot:
    """Return a place without a store: an empty folder, or an empty database on a server.

    Tests that hold on a server as well have the mark ``tests.relayd.store.engines.ON_BOTH``.
    """
    if getattr(request, "param", "sqlite") == "sqlite":
        return SqliteSpot(tmp_path)
    server: PostgresqlServer = request.getfixturevalue("postgresql_server")
    return PostgresqlSpot(server)


@pytest.fixture
def store(spot: Spot) -> Iterator[Store]:
    """Return an empty store, open for writing."""
    with open_store(spot.where, mode="create") as opened:
        yield opened


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Return an empty store in a file, closed."""
    path = tmp_path / "relayd.db"
    open_store(path, mode="create").close()
    return path


@pytest.fixture
def postgresql_spot(postgresql_server: PostgresqlServer) -> PostgresqlSpot:
    """Return an empty database on a server."""
    return PostgresqlSpot(postgresql_server)
