"""Snapshots of what was sent: beside questions, and told and tried again where they fail."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import StoreError
from relayd.http import background
from relayd.http.background import SnapshotMaker, forever
from tests.http.running import Served, settled, workers_of
from tests.waiting import eventually


class FailingWorkers:
    """Fails in one way after the other, then makes a snapshot."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked_s: list[float] = []

    async def ask_apart(self, *_: Any, **__: Any) -> str:
        self.asked_s.append(time.monotonic())
        if self.failures:
            raise self.failures.pop(0)
        return "20261122-abcdef"


def _tried(workers: FailingWorkers, most_times_later: int = 1) -> list[str | None]:
    """Want a snapshot until one is made; return the warnings by the way, and the last."""

    async def watched() -> list[str | None]:
        maker = SnapshotMaker(workers, Path("x.db"))  # type: ignore[arg-type]
        failures = len(workers.failures)
        told = [maker.warning(60.0)]
        maker.want()
        make = forever(
            "snapshot",
            lambda: maker.make("1"),
            0.02,
            asyncio.Event(),
            most_times_later=most_times_later,
        )
        task = asyncio.create_task(make)
        while maker.waiting_s():
            if (warning := maker.warning(60.0)) not in told:
                told.append(warning)
            await asyncio.sleep(0.001)
        task.cancel()
        assert maker.failures == failures
        return [*told, maker.warning(60.0)]

    return asyncio.run(watched())


def test_failures_are_told_without_paths_until_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_AFTER_S", 0.0)
    workers = FailingWorkers(StoreError("/srv/secret.db", "can't be read"), MemoryError())
    first, *told, last = _tried(workers)
    assert (first, last) == (None, None)
    assert all("Snapshots fail since 20" in str(warning) for warning in told)
    assert "can't be read" in str(told[0])
    assert "secret" not in str(told)


def test_failures_in_a_row_are_tried_again_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "FIRST_AFTER_S", 0.0)
    workers = FailingWorkers(*[MemoryError()] * 4)
    _tried(workers, most_times_later=4)
    waited_s = [after - before for before, after in pairwise(workers.asked_s)]
    at_least_s = (0.02, 0.04, 0.08, 0.08)
    assert all(s > least - 0.005 for s, least in zip(waited_s, at_least_s, strict=True))


def test_one_that_takes_too_long_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = SnapshotMaker(FailingWorkers(), Path("x.db"))  # type: ignore[arg-type]
    maker.want()
    assert maker.warning(60.0) is None
    monkeypatch.setattr(background, "LIMIT_S", -61.0)
    assert "wait for a snapshot since 20" in str(maker.warning(60.0))


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_snapshot_keeps_no_worker_from_questions(changing: Served) -> None:
    """There is one worker, and the process that makes a snapshot stands still."""
    demands = {"demands": [{"src": "us-east", "dst": "sa", "volume_gb": 100}]}
    settled(changing)
    snapshot = changing.get("/v1/snapshots").json["snapshots"][0]["id"]
    # The worker is there once it has answered: what comes later makes snapshots.
    assert changing.ask("POST", "/v1/shuffles", demands).status == 200
    others = workers_of(changing)

    def halted() -> int | None:
        ends = {"src": "gcp:us-east1", "dst": "aws:us-east-1"}
        sample = {**ends, "metric": "rtt_ms", "value": 110.0, "measured_at_s": time.time()}
        assert changing.ask("POST", "/v1/samples", {"samples": [sample]}).status == 200
        pid: int = eventually(lambda: workers_of(changing) - others).pop()
        with suppress(OSError):  # it may have ended meanwhile
            os.kill(pid, signal.SIGSTOP)
            eventually(lambda: _state(pid) in "TZX", every_s=0.01)
            return pid if _state(pid) == "T" else None
        return None

    pid = eventually(halted)
    try:
        assert changing.ask("POST", "/v1/shuffles", demands).status == 200
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: changing.get("/v1/snapshots").json["snapshots"][0]["id"] != snapshot)
