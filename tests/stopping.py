"""Processes that are stopped for a while, as a debugger or a hung disk does it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgresql import PostgresqlServer
from tests.waiting import eventually


@contextmanager
def stopped(*processes: int) -> Iterator[None]:
    """Stop processes, and let them go on."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    for process in processes:  # it stops a moment later
        stat = Path(f"/proc/{process}/stat")
        eventually(
            lambda stat=stat: stat.read_text().rpartition(")")[2].split()[0] in "TtZX",
            every_s=0.001,
        )
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def everyone(server: PostgresqlServer) -> list[int]:
    """Return the processes of a database server, its main one first."""
    main = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    return [main, *map(int, children)]
