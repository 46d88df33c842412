"""Worker processes, each of which reads the network, that answer questions.

Why it is so: docs/decisions/07-no-processes-of-our-own.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, RelaydError
from planner.model.network import Network
from relayd.http.fair_queue import FairQueue
from relayd.http.problems import ProblemError, problem_of
from relayd.sources.wan import Wan

T = TypeVar("T")
_CHECK_PARENT_EVERY_S = 1.0
_ENDS_WITHIN_S = 1.0
VERSIONS_KEPT = 4
"""Questions in flight may still name a version before the newest."""
MOST_WAITING, MOST_OF_ONE = 1000, 250
"""Questions that may wait at a time, of all callers and of one."""


class OutOfTimeError(Exception):
    """A question took longer than it may."""


class Workers:
    """A pool of processes that answer questions on a given network. Callers take turns.

    Each holds a core while it answers, for at most `limit_s`.
    """

    def __init__(self, count: int, limit_s: float) -> None:
        self.count = count
        self._limit_s = limit_s
        # One more than there are processes, so that none waits for the event loop.
        self.turns = FairQueue(count + 1, MOST_WAITING, MOST_OF_ONE, "an answer")
        self._folder = tempfile.TemporaryDirectory(prefix="relayd-")
        self._written: dict[str, Path] = {}
        self._pool = _new_pool(count)

    def give(self, version: str, catalogue: Catalogue, network: Network) -> None:
        """Let questions of a version be answered from a network; takes some 50 ms."""
        path = Path(self._folder.name) / f"{len(self._written)}-{time.monotonic_ns()}.pickle"
        with path.open("wb") as file:
            pickle.dump((catalogue, network), file, 5)
        self._written[version] = path
        for old in list(self._written)[:-VERSIONS_KEPT]:
            self._written.pop(old).unlink(missing_ok=True)

    async def warm(self, version: str) -> None:
        """Start all processes and let them read the network."""
        # Each sleeps, so that none answers for another.
        await asyncio.gather(*(self.ask(version, _nap, 0.2) for _ in range(self.count)))

    async def ask(self, version: str, question: Callable[..., T], *arguments: Any) -> T:
        """Answer ``question(wan, *arguments)`` in a worker.

        Raises ProblemError: 429 if too many of this caller wait already, 503 if too many of all, if
        it took too long, or if the worker died. Or the problem that a RelaydError of the question
        is.
        """
        async with self.turns.turn():
            return await self._ask(self._pool, version, question, arguments, self._limit_s)

    async def ask_apart(
        self, version: str, question: Callable[..., T], *arguments: Any, limit_s: float
    ) -> T:
        """Answer in a process that ends with it: it keeps no worker from questions, and no memory.

        Raises ProblemError: 503 if it took too long or if the process died, or see :meth:`ask`.
        """
        pool = _new_pool(1)
        try:
            return await self._ask(pool, version, question, arguments, limit_s)
        finally:
            pool.kill()

    async def _ask(
        self,
        pool: _Pool,
        version: str,
        question: Callable[..., T],
        arguments: tuple[Any, ...],
        limit_s: float,
    ) -> T:
        path = str(self._written.get(version, "gone"))
        try:
            return await asyncio.get_running_loop().run_in_executor(
                pool, _answer, path, limit_s, question, arguments
            )
        except BrokenProcessPool:
            if pool is self._pool:  # the first to notice
                self._pool = _new_pool(self.count)
            raise _unavailable("The process that was answering died.") from None
        except FileNotFoundError:
            raise _unavailable("The snapshot has changed several times since then.") from None
        except OutOfTimeError:
            detail = (
                f"The answer took longer than the {limit_s:g} s that one may take. Ask for "
                "less at a time."
            )
            raise ProblemError(503, "timeout", detail) from None

    async def ask_in_parts(
        self, version: str, question: Callable[..., list[T]], items: Sequence[Any], *more: Any
    ) -> list[T]:
        """Answer a list in parts of it, on all cores; returns the answers in its order."""
        size = max(8, -(-len(items) // (4 * self.count)))
        parts = [items[start : start + size] for start in range(0, len(items), size)]
        answers = await asyncio.gather(
            *(self.ask(version, question, part, *more) for part in parts)
        )
        return [answer for part in answers for answer in part]

    def close(self) -> None:
        """End all processes: no caller waits for their answers any more."""
        # The pool's own thread ends as the processes have. An interpreter that exits meanwhile may
        # wake that by a pipe that it is closing, which is a traceback.
        ending = threading.Thread(target=self._pool.kill, kwargs={"wait": True}, daemon=True)
        ending.start()
        ending.join(_ENDS_WITHIN_S)
        with contextlib.suppress(OSError):
            self._folder.cleanup()


class _Spawning(SpawnContext):
    """Starts processes for a pool, and knows them."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[SpawnProcess] = []

    def Process(self, *what: Any, **more: Any) -> SpawnProcess:  # type: ignore[override] # noqa: N802
        """Return a process that a pool is about to start."""
        self.started.append(SpawnProcess(*what, **more))
        return self.started[-1]


class _Pool(ProcessPoolExecutor):
    """A pool whose processes can be killed, as of Python 3.14 those of all pools can."""

    def __init__(self, count: int) -> None:
        # Not forked: a copy of a process with threads may hold their locks for ever.
        self._spawning = _Spawning()
        super().__init__(
            count, mp_context=self._spawning, initializer=_begin, initargs=(os.getpid(),)
        )

    def kill(self, *, wait: bool = False) -> None:
        """End all processes now: asked to end, they would finish their last answers first."""
        for process in self._spawning.started:
            if process.pid is not None:
                process.kill()
        self.shutdown(wait=wait, cancel_futures=True)


def _new_pool(count: int) -> _Pool:
    try:
        return _Pool(count)
    except OSError as error:
        raise InputError(
            "serve",
            f"can't start processes that answer: no lock can be made in shared memory ({error})",
            remedy="Mount a tmpfs at /dev/shm that this user can write to (`docker run "
            "--shm-size 64m`; an emptyDir with medium Memory).",
        ) from None


def _unavailable(what: str) -> ProblemError:
    return ProblemError(503, "unavailable", f"{what} Try again.", retry_s=1)


# ---- in a worker -------------------------------------------------------------------------------

_known: dict[str, Wan] = {}


def _begin(parent: int) -> None:
    # The service decides when its workers end; a terminal or a service manager signals all of them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _out_of_time)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, however that went."""
    while os.getppid() == parent:
        time.sleep(_CHECK_PARENT_EVERY_S)
    os._exit(0)


def _out_of_time(_number: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError


def _answer(path: str, limit_s: float, question: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    if path not in _known:
        with Path(path).open("rb") as file:
            # Written by the service itself, in a folder that only its user may enter.
            known = Wan(*pickle.load(file))  # noqa: S301
        _known.clear()
        _known[path] = known
        _ = _known[path].network  # laid out here, once, not for each pair that is asked for
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return question(_known[path], *arguments)
    except RelaydError as error:  # some with several arguments don't survive pickling
        raise problem_of(error) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _nap(wan: Wan, seconds: float) -> None:
    _ = wan.network
    time.sleep(seconds)
