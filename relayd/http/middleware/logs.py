"""Structured logs: one JSON object a line, written in bunches."""

from __future__ import annotations

import asyncio
import json
import logging
import select
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any, TextIO

import orjson

FLUSH_AFTER_S = 0.2
FLUSH_AT = 500
SAMPLE_EVERY_S = 1.0
REFUSALS = frozenset({401, 403, 421, 429})
"""Statuses that anybody can cause at will, at no cost to the service but the log's."""


class Log:
    """A log that does not hold up requests: lines leave together, a fifth of a second later.

    What is at least a warning leaves at once. Of what others can cause at will there is a line a
    second, with the number of those left out since the one before.

    Parameters
    ----------
    stream : TextIO, optional
        Standard error unless given.
    process : int, optional
        The place of this process among those of the service; each line says it.
    """

    def __init__(self, stream: TextIO | None = None, process: int | None = None) -> None:
        self._stream = stream or sys.stderr
        self._process = {} if process is None else {"process": process}
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sampled: dict[object, tuple[float, int]] = {}

    def info(self, event: str, **members: Any) -> None:
        """Log something usual."""
        self._add("info", event, members)

    def request(
        self,
        request_id: str,
        method: str,
        route: str,
        path: str,
        status: int,
        seconds: float,
        caller: object,
    ) -> None:
        """Log a request; its path only if the route has parameters."""
        left_out = self._left_out(("request", status)) if status in REFUSALS else 0
        if left_out is None:
            return
        line: dict[str, Any] = {
            "time": time.time(),
            "level": "info",
            "event": "request",
            **self._process,
            "request_id": request_id,
            "method": method,
            "route": route,
            "status": status,
            "duration_ms": seconds * 1e3,
            "caller": caller,
        }
        if path:
            line["path"] = path
        if left_out:
            line["left_out"] = left_out
        self._write(line)

    def change(
        self,
        request_id: str,
        token: str | None,
        address: str | None,
        method: str,
        path: str,
        status: int,
    ) -> None:
        """Log who changed something, or tried to, at once: this is what an audit reads."""
        left_out = self._left_out(("change", status, token)) if status in REFUSALS else 0
        if left_out is None:
            return
        self.info(
            "change",
            request_id=request_id,
            token=token,
            address=address,
            method=method,
            path=path,
            status=status,
            **({"left_out": left_out} if left_out else {}),
        )
        self.flush()

    def warning(self, event: str, **members: Any) -> None:
        """Log something that needs attention."""
        self._add("warning", event, members)
        self.flush()

    def sampled(
        self, event: str, source: object = None, error: BaseException | None = None, **members: Any
    ) -> None:
        """Log a warning or an error that may come often, once a second.

        Parameters
        ----------
        event : str
        source : hashable, optional
            What tells it from others that come often; the event unless given.
        error : BaseException, optional
        """
        left_out = self._left_out(source or event)
        if left_out is None:
            return
        if left_out:
            members["left_out"] = left_out
        if error is None:
            self.warning(event, **members)
        else:
            self.error(event, error, **members)

    def error(self, event: str, error: BaseException, **members: Any) -> None:
        """Log a fault of our own, with where it happened."""
        where = "".join(traceback.format_exception(error))
        self._add("error", event, {**members, "traceback": where})
        self.flush()

    def flush(self) -> None:
        """Write what was logged so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        try:
            for together in _bunches(lines):
                self._stream.write(together.decode())
                self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads it any more; requests go on

    def _left_out(self, source: object) -> int | None:
        """Return how many lines were left out before this one; None to leave it out, too."""
        now_s = time.monotonic()
        last_s, left_out = self._sampled.get(source, (-SAMPLE_EVERY_S, 0))
        if now_s - last_s < SAMPLE_EVERY_S:
            self._sampled[source] = last_s, left_out + 1
            return None
        self._sampled[source] = now_s, 0
        return left_out

    def _add(self, level: str, event: str, members: dict[str, Any]) -> None:
        self._write(
            {"time": time.time(), "level": level, "event": event, **self._process, **members}
        )

    def _write(self, line: dict[str, Any]) -> None:
        try:
            self._lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except TypeError:  # text that is not UTF-8, such as half of a pair of surrogates
            self._lines.append(json.dumps(line, default=repr).encode() + b"\n")
        if len(self._lines) >= FLUSH_AT:
            self.flush()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(FLUSH_AFTER_S, self.flush)
            except RuntimeError:  # before the service runs
                self.flush()


def _bunches(lines: list[bytes]) -> Iterator[bytes]:
    """Yield lines together, as many as a pipe takes without those of another process between."""
    bunch = b""
    for line in lines:
        if len(bunch) + len(line) > select.PIPE_BUF:
            yield bunch
            bunch = b""
        bunch += line
    yield bunch


class LogHandler(logging.Handler):
    """Sends what libraries log to a :class:`Log`."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record."""
        source = record.name, record.pathname, record.lineno
        error = record.exc_info[1] if record.exc_info else None
        self._log.sampled(record.name, source, error, message=record.getMessage())
