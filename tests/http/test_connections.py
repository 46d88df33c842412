"""Connections that do nothing keep nobody else out, and fill no log."""

from __future__ import annotations

import io
import json
import logging
import resource
import socket
import struct
import time
from pathlib import Path

import pytest

from relayd.http.connections import ClientConnection, Connections
from relayd.http.monitoring.logs import log_to
from tests.http.running import Served, served
from tests.waiting import TIMEOUT_S, eventually


class Fake(ClientConnection):
    """A connection that is idle or not, and only says that it was closed."""

    __slots__ = ("is_closed", "is_waiting")

    def __init__(self, is_waiting: bool = False) -> None:
        self.is_waiting, self.is_closed = is_waiting, False

    @property
    def is_idle(self) -> bool:
        return self.is_waiting

    def force_close(self) -> None:
        self.is_closed = True


@pytest.mark.thorough
def test_more_idle_connections_than_files_leave_health_checks_and_the_log_alone(
    store: Path,
) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4000:
        pytest.skip(f"needs 4,000 open files of its own, and may have {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with served(store, within=("prlimit", "--nofile=1024:1024")) as service:
        idle: list[socket.socket] = []
        try:
            for begun in (b"", b"GET /healthz HT"):
                for _ in range(1300):
                    idle.append(socket.create_connection((service.host, service.port), TIMEOUT_S))
                    idle[-1].sendall(begun)
                assert service.get("/readyz").status == 200
                assert service.get("/v1/plans?src=us-east&dst=sa").status == 200
        finally:
            for connection in idle:
                connection.close()
        closed = [line for line in service.lines() if line["event"] == "connection closed"]
    assert closed[0]["why"] == "idle"
    assert 500 < closed[0]["most"] < 1024
    assert service.log.stat().st_size < 20_000


def test_headers_that_drip_are_given_up(hurried: Served) -> None:
    with socket.create_connection((hurried.host, hurried.port), TIMEOUT_S) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.setblocking(False)
        for letter in b"GET /healthz HTTP/1.1\r\nX-Slow: " + 200 * b"x":
            try:
                connection.sendall(bytes([letter]))
                if connection.recv(1) == b"":
                    break
            except BlockingIOError:  # it has not closed it yet
                time.sleep(0.05)
            except OSError:
                break
        else:
            pytest.fail("headers dripped for 10 s")


def test_clients_that_reset_their_connections_leave_no_traceback(service: Served) -> None:
    before = len(service.log.read_text())
    paths = ("/", "/assets/shared/api.js", "/matrix", "/v1/events", "/v1/graph", "/openapi.json")
    for pause_s in (0.0, 0.002, 0.01):
        for path in paths * 5:
            connection = socket.create_connection((service.host, service.port), TIMEOUT_S)
            # Closing sends RST in place of FIN: what is on the way to the client is refused.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            time.sleep(pause_s)
            connection.close()

    # That of the metrics.
    eventually(lambda: service.metric("relayd_http_in_flight") == "1.0")
    said = service.log.read_text()[before:]
    assert "Traceback" not in said
    assert '"fault"' not in said


def test_the_longest_idle_goes_first_and_health_checks_have_connections_of_their_own() -> None:
    connections = Connections(3)
    busy, first, second = (Fake(idle) for idle in (False, True, True))
    for each in (busy, first, second):
        connections.opened(each)
    connections.used(first)
    connections.opened(Fake())
    assert (first.is_closed, second.is_closed, len(connections)) == (False, True, 3)
    connections.opened(Fake())
    assert len(connections) == 3
    more = [Fake() for _ in range(100)]
    for each in more:
        connections.opened(each)
    assert connections.are_too_many
    assert first.is_closed
    refused = [each.is_closed for each in more]
    assert refused == sorted(refused)
    assert 20 < refused.count(False) < 40
    assert not busy.is_closed


def test_lines_that_others_cause_are_sampled_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0] * 4 + [100.5] * 4 + [100.9] * 4 + [101.1] * 4)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    stream = io.StringIO()
    log_to(stream)
    log = logging.getLogger("relayd.http")
    for _ in range(4):
        log.warning("connection closed", extra={"why": "idle"})
        logging.getLogger("aiohttp.server").warning("other")
        log.info("request", extra={"status": 429, "caller": "127.0.0.1"})
        log.info("change", extra={"status": 401, "token": None})
        log.info("change", extra={"status": 200, "token": "ops"})
        log.info("request", extra={"status": 200, "caller": "127.0.0.1"})
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    for event, status in (
        ("connection closed", None),
        ("aiohttp.server", None),
        ("request", 429),
        ("change", 401),
    ):
        of_kind = [x for x in lines if (x["event"], x.get("status")) == (event, status)]
        assert [x.get("left_out") for x in of_kind] == [None, 2]
    assert [x.get("status") for x in lines].count(200) == 8
