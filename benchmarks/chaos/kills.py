"""``kill -9`` at random moments of services, importers and PostgreSQL, while samples come in.

What was acknowledged must be stored, once; of a file all or nothing; and processes that were not
killed answer again by themselves.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from itertools import permutations
from pathlib import Path
from typing import Self

from relayd.store import open_store
from tests.http.running import REGIONS, ROOT, Answer, Served
from tests.postgresql import PostgresqlServer
from tests.stopping import everyone
from tests.waiting import eventually

BATCH = 8
"""Samples of one request."""
SENDERS = 4
FILE_ROWS = 3000
AGAIN_S = 90.0
"""Longest wait for an answer after a kill; a busy machine takes most of it to start a service."""
_SENT = {"metric": "rtt_ms", "value": 114.25}
_LINKS = [{"src": src, "dst": dst} for src, dst in permutations(REGIONS, 2)]


@dataclass
class Outcome:
    """Results of kills and other faults."""

    kills: int = 0
    acknowledged: int = 0  # samples, or files
    unavailable: int = 0  # requests that were answered 503
    wrong: list[str] = field(default_factory=list)  # what must not happen
    # From each fault to the next acknowledgement, or until another service has taken over
    again_s: list[float] = field(default_factory=list)


class Senders:
    """Send samples to a service during a ``with`` block, each of another time; know which it took.

    Parameters
    ----------
    first : int
    pause_s : float
        Of each sender, after what was taken.
    is_killed : bool
        Whether the service is, so that requests may break off.
    """

    def __init__(
        self,
        first: int,
        pause_s: float = 0.0,
        *,
        service: Served | None = None,
        is_killed: bool = True,
    ) -> None:
        self._pause_s, self._is_killed, self.service = pause_s, is_killed, service
        self.acknowledged: set[float] = set()
        self.unavailable = 0
        self.wrong: list[str] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(first + 10_000_000 * number,))
            for number in range(SENDERS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the last answers."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, least: int = 1) -> None:
        """Wait until so many more samples are acknowledged."""
        known = len(self.acknowledged)
        eventually(lambda: len(self.acknowledged) >= known + least, AGAIN_S)

    def settle(self, seen: Outcome, where: str) -> None:
        """Compare the acknowledgements with the stored samples."""
        self.__exit__()
        with open_store(where, mode="read") as store:
            # Not what a service that watches has measured meanwhile, several figures at a time.
            rows = store.database.rows(
                "SELECT measured_at_s, count(*) FROM samples WHERE value = ? GROUP BY 1",
                (_SENT["value"],),
            )
        if lost := self.acknowledged - {at_s for at_s, _ in rows}:
            seen.wrong.append(f"{len(lost)} acknowledged samples are lost")
        if twice := [at_s for at_s, count in rows if count > 1]:
            seen.wrong.append(f"{len(twice)} samples are stored twice")
        seen.acknowledged += len(self.acknowledged)
        seen.unavailable += self.unavailable
        seen.wrong += self.wrong

    def _send(self, first: int) -> None:
        while not self._stop.is_set():
            service = self.service
            if service is None:
                time.sleep(0.005)
                continue
            values = [1.6e9 + first + number for number in range(BATCH)]
            first += BATCH
            link = _LINKS[first // BATCH % len(_LINKS)]
            samples = [{**_SENT, **link, "measured_at_s": at_s} for at_s in values]
            body = "".join(json.dumps(sample) + "\n" for sample in samples).encode()
            try:
                answer = service.ask(
                    "POST", "/v1/samples", body, {"Content-Type": "application/x-ndjson"}
                )
            except (OSError, HTTPException) as error:
                if not self._is_killed:  # else it may be stored or not
                    self.wrong.append(f"no answer: {error!r}")
                continue
            if answer.status == 200:
                self.acknowledged |= set(values)
                self._stop.wait(self._pause_s)
            elif is_clear(answer):
                self.unavailable += 1
                time.sleep(max(0.02, self._pause_s))
            else:
                self.wrong.append(f"{answer.status} {answer.content[:200]!r}")


def is_clear(answer: Answer) -> bool:
    """Tell whether an answer is a 503 that says why, and when to ask again."""
    if answer.status != 503 or "Retry-After" not in answer.headers:
        return False
    return answer.json["kind"] in ("store", "unavailable")


def begun(
    words: Sequence[str], stdout: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """Start Python with arguments."""
    environment, command = {**os.environ, "PYTHONPATH": str(ROOT)}, [sys.executable, *words]
    return subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr, text=True)


def kill(process: subprocess.Popen[str], seen: Outcome) -> None:
    """Kill a process that may have ended by itself."""
    process.kill()
    seen.kills += process.wait() == -signal.SIGKILL


def kill_services(where: str, folder: Path, kills: int) -> Outcome:
    """Kill a service again and again while it takes samples."""
    chance, seen = random.Random(1), Outcome()
    with Senders(0) as sending:
        for number in range(kills):
            began_s = time.monotonic()
            service = sending.service = Served(where, log=folder / f"service-{number % 5}.log")
            sending.wait_for_more()
            if number:
                seen.again_s.append(time.monotonic() - began_s)
            time.sleep(chance.uniform(0.0, 0.4))
            service.kill()
            seen.kills += 1
            sending.service = None
    sending.settle(seen, where)
    return seen


def kill_databases(server: PostgresqlServer, folder: Path, kills: int) -> Outcome:
    """Kill PostgreSQL as a whole and single sessions of it, in turn, under a service."""
    chance, seen = random.Random(2), Outcome()
    where = server.new_store()
    service = Served(where, log=folder / "service.log")
    try:
        with Senders(0, service=service) as sending:
            sending.wait_for_more()
            for number in range(kills):
                time.sleep(chance.uniform(0.0, 0.4))
                if number % 2:
                    # The server restarts all of its sessions after one was killed.
                    eventually(lambda: _kill_a_session(server, chance), AGAIN_S)
                else:
                    server.crash()
                    server.start()
                killed_s = time.monotonic()
                seen.kills += 1
                sending.wait_for_more()
                seen.again_s.append(time.monotonic() - killed_s)
    finally:
        service.stop()
    sending.settle(seen, where)
    return seen


def _kill_a_session(server: PostgresqlServer, chance: random.Random) -> bool:
    """Kill a client's session, if there is one that does not end by itself meanwhile."""
    sessions = []
    for process in everyone(server)[1:]:
        with suppress(OSError):
            words = Path(f"/proc/{process}/cmdline").read_bytes()
            if b"relayd" in words and b"postgres:" in words:
                sessions.append(process)
    with suppress(ProcessLookupError):
        if sessions:
            os.kill(chance.choice(sessions), signal.SIGKILL)
            return True
    return False


def kill_imports(where: str, folder: Path, kills: int) -> Outcome:
    """Kill ``relayd import`` of several files again and again, then let it finish."""
    chance, seen = random.Random(3), Outcome()
    names = [_file(folder / f"{number}.csv", number) for number in range(kills // 2 + 2)]
    open_store(where, mode="create").close()
    whole_s = 0.0
    for number in range(-1, kills + 1):
        began_s = time.monotonic()
        new = names[: seen.acknowledged + 3]
        words = ("-m", "relayd", "import", "csv", *new, "--db", where)
        process = begun(words, stderr=subprocess.PIPE)
        if 0 <= number < kills:
            # Of three new files: most of the time passes until the first.
            time.sleep(whole_s * chance.uniform(0.3, 1.0))
            kill(process, seen)
        elif process.wait():
            seen.wrong.append(f"an import ended with {process.returncode}")
        else:
            whole_s = time.monotonic() - began_s
        if "Traceback" in (said := process.communicate()[1]):
            seen.wrong.append(said[-500:])
        with open_store(where, mode="read") as store:
            sizes = store.database.rows("SELECT src_id, count(*) FROM samples GROUP BY 1")
        if broken := [size for _, size in sizes if size != FILE_ROWS]:
            seen.wrong.append(f"files stored in part or twice: {broken}")
        seen.acknowledged = len(sizes)
    return seen


def _file(path: Path, number: int) -> str:
    rows = (f"x:{number},x:to,{100 + row / 8},{1.6e9 + row}" for row in range(FILE_ROWS))
    path.write_text("\n".join(("src,dst,rtt_ms,measured_at", *rows)) + "\n")
    return str(path)
