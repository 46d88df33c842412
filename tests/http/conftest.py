"""One service for all tests that only ask; those that change something start their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.running import Served, make_store, served
from tests.ports import free_port


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep everybody's real store and settings out of it."""
    home = tmp_path_factory.mktemp("home")
    kept = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("RELAYD_")]:
        if name not in ("RELAYD_SHARED_DATA", "RELAYD_WITHOUT_SHARED_DATA"):
            del os.environ[name]
    os.environ.update(
        HOME=str(home),
        XDG_CONFIG_HOME=str(home),
        XDG_DATA_HOME=str(home),
        RELAYD_CACHE_DIR=str(home / "cache"),
    )
    yield
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store that tests copy or only read."""
    return make_store(tmp_path_factory.mktemp("measured"))


@pytest.fixture(scope="session")
def service(measured: Path) -> Iterator[Served]:
    """Return a service that nobody changes."""
    with served(measured) as running:
        yield running


@pytest.fixture(scope="module")
def changing(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service of the module's own, which its tests may change."""
    copy = tmp_path_factory.mktemp("changing") / "relayd.db"
    copy.write_bytes(measured.read_bytes())
    with served(copy, environment={"RELAYD_SERVE_REFRESH_S": "0.1"}) as running:
        yield running


@pytest.fixture
def store(measured: Path, tmp_path: Path) -> Path:
    """Return a store of the test's own."""
    copy = tmp_path / "relayd.db"
    copy.write_bytes(measured.read_bytes())
    return copy


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet file with two hosts that nobody answers at."""
    port = free_port()  # nothing listens there, so logins are refused
    hosts = "".join(
        f'[[host]]\nregion = "{region}"\nhost = "127.0.0.{n}"\nport = {port}\n'
        f'public_address = "127.0.0.{n}"\nuser = "nobody"\nknown_hosts = "known"\n\n'
        for n, region in enumerate(("aws:us-east-1", "aws:sa-east-1"), 1)
    )
    (tmp_path / "known").touch()
    path = tmp_path / "fleet.toml"
    path.write_text(hosts)
    return path
