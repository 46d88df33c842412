"""A service of two processes: one address, one answer, one limit, one set of figures."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from relayd.http.middleware.rate_limits import RateLimits
from relayd.http.monitoring.summing import lasting, summed
from relayd.http.processes.folder import shared_folder
from relayd.http.processes.peers import Peers, SharedState
from relayd.store import open_store
from relayd.store.tokens import Tokens
from tests.http.running import ROOT, TIMEOUT_S, Answer, Served, eventually, served
from tests.http.test_samples import LINES, SAMPLE, lines
from tests.stopping import stopped

PLAN = "/v1/plans?src=us-east&dst=sa&volume_gb=77"
SHUFFLE = {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 5}]}
QUICK = {"RELAYD_SERVE_REFRESH_S": "0.1", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "0.1"}
BATCHES = 5

SHARING = """
import os, signal
from relayd.http.middleware.rate_limits import RateLimits
from relayd.http.processes.board import Board

limits, board = RateLimits(1e-6, 300), Board(2)
begin, passed = os.pipe(), os.pipe()
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        os.close(begin[1])
        os.read(begin[0], 1)
        os.write(passed[1], bytes([sum(limits.wait_s("a", 0.0) == 0 for _ in range(250))]))
        while True:
            limits.wait_s("b", 0.0, 1e-9)
    children.append(child)
os.close(begin[0])
os.close(begin[1])
print(sum(os.read(passed[0], 1)[0] for _ in children))
for child in children:  # each may hold a lock just then
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
assert limits.wait_s("b", 0.0) == 0
assert limits.wait_s("a", 0.0) > 0

last = 0
for _ in range(8):
    child = os.fork()
    if not child:
        while True:
            last += 1
            board.post(1, b"%d " % last * (last % 5000))
    for reads in range(8):
        while not (words := board.read(1).split()) or int(words[0]) <= last:
            pass
        last = int(words[0])
        assert len(set(words)) == 1 and len(words) == last % 5000
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    words = board.read(1).split()
    assert not words or len(words) == int(words[0]) % 5000
print(last)
"""


class Caller:
    """A connection that stays open, so that always the same process answers."""

    def __init__(self, service: Served, headers: Mapping[str, str]) -> None:
        self._connection = http.client.HTTPConnection(service.host, service.port, timeout=TIMEOUT_S)
        self._headers = headers

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = {**self._headers, **headers}
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        self._connection.request(method, path, body, sent)
        response = self._connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def close(self) -> None:
        self._connection.close()


def processes(service: Served) -> dict[int, int]:
    """Return the processes of a service by their places, as its log says."""
    return {
        line["process"]: line["pid"]
        for line in service.lines()
        if line["event"] == "process started"
    }


@contextmanager
def caller_of(place: int, service: Served, headers: Mapping[str, str]) -> Iterator[Caller]:
    """Connect to one process: it alone accepts while the others are stopped."""
    others = [pid for other, pid in processes(service).items() if other != place]
    with ExitStack() as stack:
        with stopped(*others):
            caller = Caller(service, headers)
            stack.callback(caller.close)
            assert caller.get("/healthz").status == 200
        yield caller


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def descendants(pid: int) -> list[int]:
    """Return the processes below one, workers included."""
    try:
        found = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return found + [below for child in found for below in descendants(child)]


def mapped_columns(pid: int) -> set[str]:
    """Return which files of columns a process has mapped, by their inodes."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    return {line.split()[4] for line in lines if ".columns" in line}


def figure(text: bytes, name: str) -> float:
    """Return the sum of a metric over its labels."""
    values = re.findall(rf"^{name}(?:\{{[^\n]*\}})? (\S+)$", text.decode(), re.MULTILINE)
    assert values, name
    return sum(map(float, values))


def plans_counted(text: bytes) -> float:
    label = (
        r'relayd_http_request_duration_seconds_count\{method="GET",route="/v1/plans",status="200"\}'
    )
    found = re.search(rf"^{label} (\S+)$", text.decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_limits_and_posts_are_shared_and_outlive_who_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHARING],
        check=False,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    passed, posts = map(int, done.stdout.split())
    assert passed == 300
    assert posts >= 8 * 8


def test_who_replaces_a_process_goes_on_with_its_count_and_with_nothing_else() -> None:
    shared = SharedState(2, RateLimits(1.0, 1.0))
    leader, follower = (Peers(shared, place) for place in (0, 1))
    follower.tell({"batches": 3})
    leader.tell({"batches": 0, "watch": {"role": "active"}})
    assert follower.news()["watch"]
    assert leader.batches() == [3]
    assert Peers(shared, 1).earlier_batches == 3
    assert leader.batches() == [3]
    Peers(shared, 0)
    assert "watch" not in follower.news()
    shared.ran([0], restarts=0)
    assert leader.batches() == [3]
    assert leader.news(1) == {}


def test_figures_of_processes_become_those_of_a_service() -> None:
    def of_one(counted: float, held: float, silent_s: float | None, began_s: float) -> list[Any]:
        return [
            ["plans", "counter", "", [["plans_total", {"from": "cache"}, counted]]],
            ["open", "gauge", "", [["open", {}, held]]],
            ["silent_seconds", "gauge", "", [["silent_seconds", {}, silent_s]]],
            [
                "process_start_time_seconds",
                "gauge",
                "",
                [["process_start_time_seconds", {}, began_s]],
            ],
        ]

    one, other = of_one(5, 2, None, 1000), of_one(7, 3, 0.5, 990)
    assert summed([one, other]) == summed([other, one]) == of_one(12, 5, 0.5, 990)
    # A process that ended leaves what it counted, and since when.
    assert [family[0] for family in lasting(other)] == ["plans", "process_start_time_seconds"]
    assert sorted(summed([lasting(other), of_one(5, 2, 0.1, 1000)])) == sorted(
        of_one(12, 2, 0.1, 990)
    )


def test_two_processes_answer_as_one(
    store: Path, tmp_path: Path, fleet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(store, mode="write") as opened:
        tokens = Tokens(opened.database)
        anything = {"Authorization": f"Bearer {tokens.create('any', ['admin'])}"}
        slow = {"Authorization": f"Bearer {tokens.create('slow', ['plan'], requests_per_s=1e-6)}"}
    with ExitStack() as stack:
        alone = stack.enter_context(
            served(store, "--fleet", str(fleet), auth=True, log=tmp_path / "alone.log")
        )
        shared = tmp_path / "shared"
        shared.mkdir()
        environment = {**QUICK, "TMPDIR": str(shared)}
        pair = Served(
            store, "--processes", "2", "--fleet", str(fleet), environment=environment, auth=True
        )
        stack.callback(pair.kill)
        # Both, and the workers of both, have the links of the snapshot from the same pages.
        below = descendants(pair.process.pid)
        assert sum(map(len, map(mapped_columns, below))) == 4
        assert len({inode for pid in below for inode in mapped_columns(pid)}) == 1
        first, second = (stack.enter_context(caller_of(place, pair, anything)) for place in (0, 1))

        # The same question has the same answer, byte for byte, whoever answers.
        for method, path, body in (
            ("GET", PLAN, None),
            ("GET", "/v1/links", None),
            ("GET", "/v1/matrix?metric=aggregate", None),
            ("GET", "/v1/graph", None),
            ("POST", "/v1/shuffles", SHUFFLE),
            ("POST", "/v1/plans", {"src": "us-east", "dst": "mars"}),
        ):
            named = {"X-Request-ID": "the-same"}
            expected = alone.ask(method, path, body, {**anything, **named})
            for caller in (first, second):
                answer = caller.ask(method, path, body, **named)
                assert (answer.status, answer.content) == (expected.status, expected.content)
                assert answer.headers["ETag"] == expected.headers["ETag"]
        assert (
            len({caller.get(PLAN).headers["X-Request-ID"][:8] for caller in (first, second)}) == 2
        )

        # A token's rate is of the service.
        assert first.get(PLAN, **slow).status == 200
        assert [caller.get(PLAN, **slow).status for caller in (second, first)] == [429, 429]

        # Either knows what both counted.
        for _ in range(10):
            first.get(PLAN)
            second.get(PLAN)
        total = 2 + 2 + 1 + 20
        for caller in (first, second):
            eventually(lambda caller=caller: plans_counted(caller.get("/metrics").content) == total)
            text = caller.get("/metrics").content
            assert figure(text, "relayd_processes") == 2
            assert figure(text, "relayd_http_connections") >= 2
            assert text.count(b"\nrelayd_campaign_egress_usd_total ") == 1

        # What one takes in, the leader makes a snapshot of, and both answer from it.
        before = first.get(PLAN).json["snapshot"]["id"]
        for number in range(BATCHES):
            sample = {**SAMPLE, "measured_at_s": 1.7e9 + number}
            sent = second.ask("POST", "/v1/samples", lines(sample), **LINES)
            assert sent.json["accepted"] == 1
        for caller in (first, second):
            eventually(lambda caller=caller: caller.get(PLAN).json["snapshot"]["id"] != before)
        made = eventually(
            lambda: {line["process"] for line in pair.lines() if line["event"] == "made snapshot"}
        )
        assert made == {0}
        # Both went on to the same pages of the new one.
        serving = [processes(pair)[place] for place in (0, 1)]
        eventually(lambda: len(set.union(*map(mapped_columns, serving))) == 1)

        # A campaign that one started, the other shows.
        asked = {"budget_usd": 1.0, "phases": ["rtt"]}
        number = second.ask("POST", "/v1/campaigns", asked).json["campaign"]["id"]
        assert first.get(f"/v1/campaigns/{number}").json["campaign"]["id"] == number

        # Killed as by a loss of power, the parent takes everybody with it, the campaign too.
        below = descendants(pair.process.pid)
        assert len(below) >= 4
        pair.kill()
        eventually(lambda: all(map(is_gone, below)))
    # What they leave behind, the next service on the machine removes.
    left_over = list(shared.iterdir())
    assert [path.stat().st_mode & 0o777 for path in left_over] == [0o700]
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    with shared_folder() as folder, shared_folder() as other:
        assert sorted(shared.iterdir()) == sorted([folder, other])
    assert not list(shared.iterdir())
    assert not [line for line in pair.lines() if line["level"] == "error"]


class Asking:
    """Asks one process all the time, and keeps what went wrong."""

    def __init__(self, caller: Caller, path: str, seen: Callable[[Answer], None]) -> None:
        self.answered = 0
        self.wrong: list[object] = []
        self._stop = threading.Event()
        self._arguments = caller, path, seen
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        caller, path, seen = self._arguments
        while not self._stop.is_set():
            try:
                answer = caller.get(path)
                assert answer.status == 200, answer
                seen(answer)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.wrong.append(repr(error))
                return
            self.answered += 1
            self._stop.wait(0.01)


# What a killed process has started falls to this one, as to the first process of a container:
# PR_SET_CHILD_SUBREAPER (https://man7.org/linux/man-pages/man2/PR_SET_CHILD_SUBREAPER.2const.html).
AS_IN_A_CONTAINER = (
    sys.executable,
    "-c",
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])",
)


def test_a_process_that_is_killed_is_replaced_and_the_others_do_not_notice(store: Path) -> None:
    counted = [0.0]

    def never_less(answer: Answer) -> None:
        counted.append(plans_counted(answer.content))
        assert counted[-1] >= counted[-2], counted

    with ExitStack() as stack:
        pair = Served(
            store,
            "--processes",
            "2",
            environment={"RELAYD_SERVE_SHUTDOWN_S": "300"},
            within=AS_IN_A_CONTAINER,
        )
        stack.callback(pair.kill)
        staying, scraping, dying = (
            stack.enter_context(caller_of(place, pair, {})) for place in (0, 0, 1)
        )
        leaving = Asking(dying, PLAN, lambda _: None)
        others = [Asking(staying, PLAN, lambda _: None), Asking(scraping, "/metrics", never_less)]
        for one in (leaving, *others):
            stack.callback(one.stop)
        eventually(lambda: counted[-1] > 50 and leaving.answered > 20)
        killed = processes(pair)[1]
        os.kill(killed, signal.SIGKILL)
        eventually(lambda: any(line["event"] == "process ended" for line in pair.lines()))
        before = [one.answered for one in others]
        # Connections that are new are answered at once, by the one that is left.
        assert {pair.get(PLAN).status for _ in range(20)} == {200}
        eventually(lambda: processes(pair)[1] != killed)
        back = stack.enter_context(caller_of(1, pair, {}))
        known = counted[-1]
        assert back.get(PLAN).status == 200
        assert plans_counted(back.get("/metrics").content) >= known
        for name, value in (("relayd_process_restarts_total", 1), ("relayd_processes", 2)):
            eventually(
                lambda name=name, value=value: figure(back.get("/metrics").content, name) == value
            )
        for one, answered in zip(others, before, strict=True):
            eventually(lambda one=one, answered=answered: one.answered > answered + 20)
            one.stop()
            assert not one.wrong
        eventually(lambda: leaving.wrong)

        # Told to stop, all finish what they have begun, and go.
        below = descendants(pair.process.pid)
        head = b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        body = b'{"src":"us-east","dst":"sa"}'
        started = []
        for place in (0, 1):
            with stopped(*(pid for other, pid in processes(pair).items() if other != place)):
                connection = stack.enter_context(
                    socket.create_connection((pair.host, pair.port), 60)
                )
                connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
                # The same process accepts in turn: it has that one when it answers this one.
                assert pair.get("/healthz").status == 200
            started.append(connection)
        pair.process.send_signal(signal.SIGTERM)
        eventually(lambda: len([x for x in pair.lines() if x["event"] == "stopping"]) == 3)
        for connection in started:
            connection.sendall(body[5:])
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert pair.stop() == 0
        eventually(lambda: all(map(is_gone, below)))
    assert not [line for line in pair.lines() if line["level"] == "error"]
