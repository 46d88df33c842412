"""The parent of a service's processes: it starts them, starts them again, and ends them.

It keeps no thread, no connection and no event loop: what it forks off begins with the loaded code,
and nothing that a fork would break. It answers nothing itself, so little can end it; when something
does, its processes end, too.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from socket import socket
from typing import Protocol

from relayd.http.middleware.logs import Log
from relayd.http.processes.peers import LEADER, SharedState

_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGCHLD})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
"""Between two starts at a place, the second twice as long for each process that ended sooner."""


class Serves(Protocol):
    """Serves in this process, at a place, until it is told to stop or the pipe `parent` ends."""

    def __call__(self, place: int, began: Callable[[], None], parent: int) -> None:
        """Serve; `began` is called when it listens."""


class ProcessGroup:
    """The processes of a service.

    Parameters
    ----------
    shared : SharedState
    listeners : sequence of socket
        Shared by all processes: what one of them had not accepted, the others accept.
    serve : Serves
    announce : callable
        Called when all processes listen.
    """

    def __init__(
        self,
        shared: SharedState,
        listeners: Sequence[socket],
        serve: Serves,
        announce: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._listeners = listeners
        self._serve = serve
        self._announce = announce
        self._log = Log()
        self._lifeline, self._held = os.pipe()
        self._places: dict[int, int] = {}
        self._started_s = dict.fromkeys(range(shared.processes), 0.0)
        self._pauses_s = dict.fromkeys(range(shared.processes), _FIRST_PAUSE_S)
        self._restarts = 0

    def run(self) -> None:
        """Serve until a signal (SIGTERM, SIGINT) says to stop.

        Raises
        ------
        SystemExit
            With the exit code of a process that could not begin, which has said why.
        """
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        gc.collect()
        gc.freeze()
        # The leader comes first: it makes or upgrades the store, and says what is wrong.
        others = [place for place in range(self._shared.processes) if place != LEADER]
        if self._have_begun([LEADER]) and self._have_begun(others):
            self._announce()
            self._keep_running()
            self._stop()
        else:
            codes = self._stop()
            raise SystemExit(max(1, *codes))

    def _have_begun(self, places: Sequence[int]) -> bool:
        """Start processes, and return whether all of them listen."""
        pipes = [self._start(place) for place in places]
        began = []
        for pipe in pipes:
            began.append(os.read(pipe, 1))
            os.close(pipe)
        return all(began)

    def _start(self, place: int) -> int:
        """Start a process; returns a pipe into which it writes when it listens."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        number = os.fork()
        if number == 0:
            os.close(self._held)
            signal.signal(signal.SIGINT, signal.SIG_IGN)

            def began() -> None:
                with suppress(BrokenPipeError):  # where another one ended, nobody waits for this
                    os.write(writing, b".")

            self._serve(place, began, self._lifeline)
            raise SystemExit(0)
        os.close(writing)
        self._places[number] = place
        self._started_s[place] = time.monotonic()
        self._log.info("process started", process=place, pid=number)
        return reading

    def _keep_running(self) -> None:
        while True:
            found = signal.sigtimedwait(_SIGNALS, self._until_next_start_s())
            if found is not None and found.si_signo != signal.SIGCHLD:
                return
            self._note_ended()
            for place in self._missing():
                if self._due_s(place) <= time.monotonic():
                    os.close(self._start(place))
                    self._restarts += 1
            self._shared.ran(self._places.values(), restarts=self._restarts)

    def _note_ended(self) -> None:
        while self._places:
            number, status = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                return
            place = self._places.pop(number, None)
            if place is None:  # in a container, what an ended process has left behind
                continue
            code = os.waitstatus_to_exitcode(status)
            self._log.warning("process ended", process=place, code=code)
            lived_s = time.monotonic() - self._started_s[place]
            longer_s = min(_LONGEST_PAUSE_S, 2 * self._pauses_s[place])
            self._pauses_s[place] = _FIRST_PAUSE_S if lived_s > _LONGEST_PAUSE_S else longer_s

    def _missing(self) -> list[int]:
        return sorted({*self._started_s} - {*self._places.values()})

    def _due_s(self, place: int) -> float:
        return self._started_s[place] + self._pauses_s[place]

    def _until_next_start_s(self) -> float:
        due_s = min(map(self._due_s, self._missing()), default=math.inf)
        return max(0.0, min(_LONGEST_PAUSE_S, due_s - time.monotonic()))

    def _stop(self) -> list[int]:
        """End all processes, and return their exit codes."""
        self._log.info("stopping")
        for listener in self._listeners:
            listener.close()
        for number in self._places:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGTERM)
        codes = [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in self._places]
        self._log.info("stopped")
        return codes
