"""Snapshots that fail: said where operators look, and tried again."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import StoreError
from relayd.http.middleware.logs import Log
from relayd.http.server import snapshot_maker
from relayd.http.server.snapshot_maker import SnapshotMaker


class FailingWorkers:
    """Fails in one way after the other, then makes a snapshot."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    async def ask(self, *_: Any, **__: Any) -> str:
        if self.failures:
            raise self.failures.pop(0)
        return "20261122-abcdef"


def test_failures_are_told_without_paths_until_one_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_maker, "FIRST_AFTER_S", 0.0)
    workers = FailingWorkers(StoreError("/srv/secret.db", "can't be read"), MemoryError())

    async def watched() -> list[str | None]:
        maker = SnapshotMaker(workers, Path("x.db"), 0.02, Log(io.StringIO()))  # type: ignore[arg-type]
        told = [maker.warning()]
        maker.want()
        task = asyncio.create_task(maker.run(lambda: "1"))
        while maker.waiting_s():
            if (warning := maker.warning()) not in told:
                told.append(warning)
            await asyncio.sleep(0.001)
        task.cancel()
        assert maker.failures == 2
        return [*told, maker.warning()]

    first, *told, last = asyncio.run(watched())
    assert (first, last) == (None, None)
    assert all("Snapshots fail since 20" in str(warning) for warning in told)
    assert "can't be read" in str(told[0])
    assert "secret" not in str(told)


def test_one_that_takes_too_long_is_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    maker = SnapshotMaker(FailingWorkers(), Path("x.db"), 60.0, Log(io.StringIO()))  # type: ignore[arg-type]
    maker.want()
    assert maker.warning() is None
    monkeypatch.setattr(snapshot_maker, "LIMIT_S", -61.0)
    assert "wait for a snapshot since 20" in str(maker.warning())
