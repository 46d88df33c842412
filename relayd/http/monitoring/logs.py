"""The log of the service: one JSON object a line, by the standard library's ``logging``.

What the service logs has an event as its message, and members in ``extra``. Of what others can
cause at will there is a line a second, with the number of those left out since the one before.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any, TextIO

SAMPLE_EVERY_S = 1.0
REFUSALS = frozenset({401, 403, 421, 429})
"""Statuses that anybody can cause at will, at no cost to the service but the log's."""
CONNECTION_CLOSED = "connection closed"
_OWN = "relayd"
_STANDARD = frozenset({*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"})


class JsonLines(logging.Formatter):
    """Writes a record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, without its end."""
        is_own = record.name.partition(".")[0] == _OWN
        line: dict[str, Any] = {
            "time": record.created,
            "level": record.levelname.lower(),
            "event": record.getMessage() if is_own else record.name,
        }
        if not is_own:
            line["message"] = record.getMessage()
            if not record.exc_info:  # a collector that is away is no fault of the service
                line["level"] = "warning"
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class SamplingFilter(logging.Filter):
    """Lets one line a second through of each kind that may come often."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written; it says how many were left out before it."""
        kind = _kind(record)
        if kind is None:
            return True
        now_s = time.monotonic()
        last_s, left_out = self._seen.get(kind, (-SAMPLE_EVERY_S, 0))
        if now_s - last_s < SAMPLE_EVERY_S:
            self._seen[kind] = last_s, left_out + 1
            return False
        self._seen[kind] = now_s, 0
        if left_out:
            record.left_out = left_out
        return True


def _kind(record: logging.LogRecord) -> object:
    """Return the kind of a record that comes often; None for one that does not."""
    if record.name.partition(".")[0] != _OWN:
        return record.name, record.pathname, record.lineno
    if record.msg == CONNECTION_CLOSED or getattr(record, "status", None) in REFUSALS:
        return record.msg, getattr(record, "status", None), getattr(record, "token", None)
    return None


def log_to(stream: TextIO) -> None:
    """Write what the service logs, and warnings of libraries, to a stream."""
    logging.raiseExceptions = False  # where the log's reader is gone, requests go on
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    handler.addFilter(SamplingFilter())
    for name, level in (
        (_OWN, logging.INFO),
        *((library, logging.WARNING) for library in ("aiohttp", "asyncio")),
    ):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
