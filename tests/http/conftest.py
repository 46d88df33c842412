"""Services that tests share: one that no test changes, and others with settings of their own."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.liveness.link_health import LinkHealth
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.links import LinkStates
from relayd.store.samples.ingest import append
from relayd.store.tokens import SCOPES
from tests.http.running import (
    LIVELY,
    QUICK,
    REGIONS,
    ROOT,
    Served,
    copied,
    fleet_at_port,
    make_store,
    make_token,
    served,
)


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


def serve(**settings: str) -> dict[str, str]:
    """Return settings of a service as it reads them from the environment."""
    return {f"RELAYD_SERVE_{name}": value for name, value in settings.items()}


@pytest.fixture(scope="package")
def service(measured: Path) -> Iterator[Served]:
    """Return a service that nobody changes."""
    with served(measured) as running:
        yield running


@pytest.fixture(scope="package")
def changing(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service with a fleet that may be changed by tests, each of links of its own."""
    store = copied(measured, tmp_path_factory.mktemp("changing"))
    fleet = fleet_at_port(store.parent)
    with served(store, "--fleet", str(fleet), environment=LIVELY) as running:
        yield running


@pytest.fixture(scope="package")
def guarded(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service with a fleet that wants tokens: one of each scope, and some others."""
    store = copied(measured, tmp_path_factory.mktemp("guarded"))
    fleet = fleet_at_port(store.parent)
    tokens = {str(scope): make_token(store, scope, name=scope) for scope in SCOPES}
    tokens["robot"] = make_token(store, "ingest", name="robot")
    tokens["prober"] = make_token(store, "read", "probe", name="prober")
    tokens["slow"] = make_token(store, "plan", name="slow", requests_per_s=0.001)
    tokens["expired"] = make_token(store, "plan", name="expired", expires_at_s=time.time() + 1)
    with served(store, "--fleet", str(fleet), environment=LIVELY, auth=True) as running:
        running.tokens |= tokens
        yield running


@pytest.fixture(scope="package")
def watching(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service that wants tokens and watches hosts that refuse logins."""
    store = copied(measured, tmp_path_factory.mktemp("watching"))
    fleet = store.with_name("fleet.toml")
    fleet.write_text(
        "".join(
            f'[[host]]\nname = "{name}"\nregion = "{region}"\nhost = "login.example"\n'
            f'port = {n}\nuser = "operator"\nkey = "/keys/private"\nknown_hosts = "known"\n'
            f'public_address = "192.0.2.{n}"\nzone = "a"\nvm_type = "m5.8xlarge"\n'
            for n, (name, region) in enumerate(zip(("us", "sa"), REGIONS, strict=False), 1)
        )
    )
    cap = Sample(REGIONS[0], REGIONS[0], "egress_cap_mbps", 4200.0, 1.7e9, "iperf3", 64, 9.0, True)
    vm, detail = "m5.8xlarge", json.dumps({"host": "us"})
    down = {(REGIONS[0], REGIONS[2]): LinkHealth("down", since_s=time.time(), reason="no reply")}
    with open_store(store, mode="write") as opened:
        append(opened, [cap._replace(src_vm=vm, dst_vm=vm, detail=detail)])
        with opened.database.transaction():
            LinkStates(opened.database).keep(down, (), time.time() + 3600)
    tokens = {"read": make_token(store, "read"), "prober": make_token(store, "read", "probe")}
    environment = QUICK | serve(WATCH_DAILY_BUDGET_USD="1", WATCH_INTERVAL_S="2")
    with served(store, "--fleet", str(fleet), environment=environment, auth=True) as running:
        running.tokens |= tokens
        yield running


@pytest.fixture(scope="package")
def bounded(measured: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service that takes few samples."""
    store = copied(measured, tmp_path_factory.mktemp("bounded"))
    environment = serve(
        SAMPLES_MB="0.05",
        MAX_SETUPS="6",
        MAX_SERIES="2",
        SNAPSHOT_MAX_AGE_S="86400",
        CORS_ORIGINS="https://dashboard.example",
    )
    with served(store, environment=environment) as running:
        yield running


@pytest.fixture(scope="package")
def hurried(measured: Path) -> Iterator[Served]:
    """Return a service that nobody changes and that has little time and few turns for a caller."""
    environment = serve(READ_TIMEOUT_S="0.5", IDLE_TIMEOUT_S="1", REQUESTS_PER_S="0.01", BURST="4")
    with served(measured, log=measured.with_name("hurried.log"), environment=environment) as it:
        yield it


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a service on a new store in the environment of the systemd unit."""
    var = tmp_path_factory.mktemp("installed")
    unit = (ROOT / "configs" / "relayd.service").read_text()
    said = re.findall(r"^Environment=(\w+)=(/var/\S+)$", unit, re.MULTILINE)
    environment = {name: path.replace("/var", str(var)) for name, path in said}
    db = Path(environment.pop("RELAYD_DB"))
    db.parent.mkdir(parents=True)
    # Its user has no home.
    with served(db, environment={"HOME": "/proc/none", **environment}, auth=True) as running:
        running.tokens["first"] = (db.parent / "relayd" / "token").read_text().strip()
        yield running


@pytest.fixture
def store(measured: Path, tmp_path: Path) -> Path:
    """Return a store of the test's own."""
    return copied(measured, tmp_path)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a fleet file with two hosts that nobody answers at."""
    return fleet_at_port(tmp_path)
