"""Really running services for tests: a process of its own on a free port of loopback."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from http.client import HTTPMessage
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from relayd.__main__ import main
from relayd.store import open_store
from relayd.store.tokens import Tokens
from tests.ports import free_port
from tests.relayd.building import complete
from tests.relayd.building import imported as lines_imported
from tests.waiting import TIMEOUT_S, eventually

ROOT = Path(__file__).resolve().parents[2]
REGIONS = ("aws:us-east-1", "aws:sa-east-1", "azure:eastus", "gcp:us-east1")
QUICK = {"RELAYD_SERVE_REFRESH_S": "0.1"}
"""For a service that is to hear soon of what the test stores."""
LIVELY = {**QUICK, "RELAYD_SERVE_SNAPSHOT_EVERY_S": "0.1"}
"""For one that is to answer soon from what was sent to it, too."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: HTTPMessage
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Served:
    """A service in a process of its own.

    Parameters
    ----------
    db : Path or str
        A file, or the address of a database.
    log : Path, optional
        Beside the file unless given.
    auth : bool
        Whether it needs tokens, as outside of tests.
    within : sequence of str
        Command and arguments that the service runs under, such as ``prlimit``.
    """

    def __init__(
        self,
        db: Path | str,
        *options: str,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
        auth: bool = False,
        within: Sequence[str] = (),
    ) -> None:
        self.db = db
        self.log = log or Path(db).with_suffix(".log")
        self.tokens: dict[str, str] = {}
        with self.log.open("ab") as file:
            self.process = subprocess.Popen(
                [
                    *within,
                    sys.executable,
                    "-m",
                    "relayd",
                    "serve",
                    *(() if "--port" in options else ("--port", "0")),
                    *("--db", str(db)),
                    *(() if "--workers" in options else ("--workers", "1")),
                    *(() if auth else ("--no-auth",)),
                    *options,
                ],
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            )
        assert self.process.stdout
        said = self.process.stdout.readline()
        assert "serves at" in said, self.log.read_text()
        self.url = said.split()[3]
        parts = urlsplit(self.url)
        assert parts.hostname
        assert parts.port
        self.host, self.port = parts.hostname, parts.port

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask once, over a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def by(self, name: str) -> dict[str, str]:
        """Return the header of a caller who has one of ``tokens``."""
        return bearer(self.tokens[name])

    def metric(self, name: str) -> str:
        """Return the value of a metric, given with its labels."""
        text = self.get("/metrics").content.decode()
        return text.split(f"\n{name} ")[1].partition("\n")[0]

    def lines(self) -> list[dict[str, Any]]:
        """Return the log so far, without a line that is still being written."""
        whole = self.log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in whole if line[:1] == "{"]

    def stop(self) -> int:
        """End it as a service manager does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT_S)
        assert self.process.stdout
        self.process.stdout.close()
        return code

    def kill(self) -> None:
        """End it as a loss of power does."""
        self.process.kill()
        self.stop()


@contextmanager
def served(db: Path | str, *options: str, **more: Any) -> Iterator[Served]:
    """Run a service, as :class:`Served` does, for a while; a fault in its log fails the test."""
    service = Served(db, *options, **more)
    try:
        yield service
    finally:
        if service.process.returncode is None:
            service.stop()
    faults = [line for line in service.lines() if line["level"] == "error"]
    assert not faults, faults
    others = "\n".join(line for line in service.log.read_text().split("\n") if line[:1] != "{")
    assert "Traceback" not in others, others


def make_store(folder: Path) -> Path:
    """Return a store with measurements among four regions and a snapshot."""
    head = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
    return lines_imported(
        folder / "relayd.db", head, *complete(REGIONS, "100,4000,64,60,2024-05-01T00:00Z")
    )


def copied(store: Path, folder: Path) -> Path:
    """Return a copy of a store in another folder."""
    copy = folder / "relayd.db"
    copy.write_bytes(store.read_bytes())
    return copy


def fleet_at_port(folder: Path, port: int | None = None) -> Path:
    """Write a fleet file with two hosts at a port, such as one that refuses logins."""
    port = port or free_port()
    hosts = "".join(
        f'[[host]]\nregion = "{region}"\nhost = "127.0.0.{n}"\nport = {port}\n'
        f'public_address = "127.0.0.{n}"\nuser = "nobody"\nknown_hosts = "known"\n\n'
        for n, region in enumerate(REGIONS[:2], 1)
    )
    (folder / "known").touch()
    path = folder / "fleet.toml"
    path.write_text(hosts)
    return path


def imported(table: Path, db: Path, kind: str = "csv") -> Path:
    """Import a file into a store, which is made if it is not there; return the store."""
    run("import", kind, str(table), db=db).check_returncode()
    return db


def make_token(db: Path, *scopes: str, name: str = "test", **limits: float) -> str:
    """Make a token of a store."""
    with open_store(db, mode="write") as opened:
        return Tokens(opened.database).create(name, scopes, **limits)  # type: ignore[arg-type]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def run(*words: str, db: Path | str) -> subprocess.CompletedProcess[str]:
    """Run a command on a store, in this process."""
    arguments = [*words, "--db", str(db)]
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as leaving:  # argparse
            code = int(leaving.code or 0)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def run_apart(*words: str, db: Path | str) -> subprocess.CompletedProcess[str]:
    """Run a command on a store in a process of its own, such as one that may begin to serve."""
    return subprocess.run(
        [sys.executable, "-m", "relayd", *words, "--db", str(db)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def settled(service: Served) -> None:
    """Wait until a service has a snapshot of all that was sent to it."""
    eventually(lambda: service.metric("relayd_snapshot_waiting_seconds") == "0.0")
    newest = service.get("/v1/snapshots").json["snapshots"][0]["id"]
    eventually(lambda: service.get("/v1/snapshots/current").json["snapshot"]["id"] == newest)


def with_limit(
    module: str, name: str, value: float, *more: tuple[str, str, float]
) -> tuple[str, ...]:
    """Return what runs a service with another limit, or with several."""
    limits = [(module, name, value), *more]
    changed = "".join(f"import {where} as it; it.{of} = {to}; " for where, of, to in limits)
    return (
        sys.executable,
        "-c",
        f"import runpy, sys; {changed}sys.argv = sys.argv[3:]; "
        "runpy.run_module('relayd', run_name='__main__')",
    )


def workers_of(service: Served) -> set[int]:
    """Return the processes that a service has started to answer or to make snapshots.

    A child that doesn't run its own program yet halts its parent if it is halted (vfork).
    """
    found = set()
    for task in Path(f"/proc/{service.process.pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                if b"multiprocessing.spawn" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.add(int(child))
    return found


def read_events(
    service: Served, path: str, count: int, of: Mapping[str, str] | None = None, after: int = 0
) -> list[dict[str, Any]]:
    """Return the first events of a stream, or the first that have such values."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Last-Event-ID": str(after)} if after else {})
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "text/event-stream"
        found: list[dict[str, Any]] = []
        while len(found) < count:
            line = response.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                event = json.loads(line[6:])
                found += [event] if (of or {}).items() <= event.items() else []
        return found
    finally:
        connection.close()
