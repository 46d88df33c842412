"""Bytes to lines and JSON documents, in bounded memory, with every damage named and located.

A tool that appends its runs to one file starts each JSON document on a line of its own with ``{``
in the first column, and no line inside a document does. So a file is cut before every such line,
and each part must be a complete document. A file that does not divide that way is damaged, and
refused with the place: a document that another one interrupts (the tool was restarted into the
same file), one that begins in the middle of a line, one that ends too early.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any, BinaryIO, NoReturn

from planner.fields.json_text import read_json
from planner.model.errors import FormatError, InputError

MAX_LINE_BYTES = 1 << 20
MAX_DOCUMENT_BYTES = 1 << 26
"""64 MiB: 128 streams reported every second for half an hour."""
CUT_OFF = "last line has no line end, so its last figure may be cut off"

_NO_NUMBER = re.compile(r"([:\[,]\s*)-?(?:nan|inf)(?=\s*[,}\]])")
_WORD = re.compile(r"[\w.+-]*")


_NUL = "holds a NUL byte", "It is binary, UTF-16 or damaged."


def refuse_nul(head: bytes, name: str) -> None:
    """Refuse a file whose first bytes hold a NUL byte, which no text does."""
    if b"\0" in head:
        _refuse(name, head.partition(b"\0")[0].count(b"\n") + 1, *_NUL)


def unreadable(error: OSError, name: str) -> InputError:
    """Return the error to raise for a file that the system can't read."""
    return InputError(name, f"can't be read: {error.strerror or error}")


_DAY = rb"\d{4}-\d\d-\d\d"
_CLOCK = rb"\d\d:\d\d:\d\d"
_LOG_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # Times of `kubectl logs --timestamps`, `docker logs -t`, ts; CRI adds stream and tag.
        rb"\[?(" + _DAY + rb"[T ]" + _CLOCK + rb"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)\]? "
        rb"(?:std(?:out|err) [FP] )?",
        rb"(\w{3} \w{3} [ \d]\d " + _CLOCK + rb" \d{4}) ",  # iperf3 --timestamps: strftime's %c
        rb"\w{3} [ \d]\d " + _CLOCK + rb" \S+ \S+?\[\d+\]: ",  # syslog, journalctl: no year
        rb"[\w.-]{1,80} +\| ",  # docker compose logs
    )
)
MAX_PREFIX_BYTES = 200


class Unprefixed:
    """A stream of lines without what a log has put before each.

    Parameters
    ----------
    stream : BinaryIO
        Read by lines from its current position.
    prefix : pattern
        As :func:`log_prefix` found it. Lines without it stay as they are.
    """

    def __init__(self, stream: BinaryIO, prefix: re.Pattern[bytes]) -> None:
        self._stream, self._prefix = stream, prefix

    def readline(self, size: int) -> bytes:
        """Read a line of at most so many bytes and those before it."""
        line = self._stream.readline(size + MAX_PREFIX_BYTES)
        found = self._prefix.match(line)
        return line[found.end() :] if found else line


def log_prefix(head: bytes) -> tuple[re.Pattern[bytes], float | None] | None:
    """Find what a log has put before each line, by the first bytes of a file.

    Returns
    -------
    (pattern, time) or None
        The time of the first line in seconds since 1970, UTC where it names no zone; None where
        the prefix has no whole time.
    """
    first = head.lstrip(b"\r\n")[:MAX_PREFIX_BYTES]
    for pattern in _LOG_PREFIXES:
        if found := pattern.match(first):
            return pattern, _time_s(found[1].decode()) if pattern.groups else None
    return None


def _time_s(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text) if text[0].isdigit() else parsedate_to_datetime(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Lines:
    """The lines of a UTF-8 file without their ends, in order; iterate once.

    Attributes
    ----------
    errors : str
        As of ``bytes.decode``, for tools whose words are in any encoding.
    cut_off : int
        Number of the last line if nothing ends it, else 0. Set before that line is yielded:
        whether a last line without an end is whole can't be known.
    """

    errors = "strict"

    def __init__(
        self, stream: BinaryIO | Unprefixed, name: str, max_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self._stream, self._name, self._max_bytes = stream, name, max_bytes
        self.cut_off = 0

    def __iter__(self) -> Iterator[str]:
        for number in count(1):
            try:
                raw = self._stream.readline(self._max_bytes + 1)
            except OSError as error:
                raise unreadable(error, self._name) from error
            if not raw:
                return
            yield self._line(number, raw)

    def _line(self, number: int, raw: bytes) -> str:
        if b"\0" in raw:
            _refuse(self._name, number, *_NUL)
        is_ended = raw.endswith(b"\n")
        if not is_ended and len(raw) > self._max_bytes:
            problem = f"is longer than {self._max_bytes:,} bytes"
            _refuse(self._name, number, problem, "It is not such a file, or it is damaged.")
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8", self.errors)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            _refuse(
                self._name, number, f"is not UTF-8 (byte 0x{byte:02x})", "Save the file as UTF-8."
            )
        if is_ended:
            return line[:-1].removesuffix("\r")
        self.cut_off = number
        return line


def _refuse(name: str, line: int, problem: str, remedy: str) -> NoReturn:
    raise FormatError(name, f"line {line} {problem}", remedy=remedy)


def documents(
    stream: BinaryIO, name: str, noise: tuple[str, ...] = (), *, keep_repeated: bool = False
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the JSON objects of a file with the lines that they begin on; None for noise.

    Parameters
    ----------
    stream : BinaryIO
    name : str
        Name of the file in messages.
    noise : tuple of str
        Beginnings of lines that the tool is known to write between its documents.
    keep_repeated : bool
        Keep all values of a key that an object repeats; see :func:`.read_json`.

    Raises
    ------
    FormatError
        If something is not a complete JSON object.
    """
    start, size = 0, 0
    parts: list[str] = []
    for number, line in enumerate(Lines(stream, name, MAX_DOCUMENT_BYTES), start=1):
        # A list of documents, as `jq -s` makes it, is one value to its end.
        is_list = bool(parts) and parts[0].lstrip().startswith("[")
        begins = line.startswith("{") or (not parts and line.lstrip().startswith(("{", "[")))
        if begins and not is_list:
            for one in _parsed(parts, start, name, number, keep_repeated):
                yield start, one
            start, parts, size = number, [], 0
        elif line.startswith(noise):
            yield number, None
            continue
        elif not parts:
            if line.strip():
                raise FormatError(
                    name,
                    f"line {number} is not the beginning of a JSON object",
                    value=line[:60],
                    remedy="Give the tool's output alone, with nothing before it.",
                )
            continue
        parts.append(line)
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            raise FormatError(
                name,
                f"the document of line {start} is longer than {MAX_DOCUMENT_BYTES:,} bytes",
                remedy="Use fewer streams or longer intervals.",
            )
    for one in _parsed(parts, start, name, 0, keep_repeated):
        yield start, one


def _parsed(
    parts: list[str], start: int, name: str, next_start: int, keep_repeated: bool
) -> list[dict[str, Any]]:
    """Return the document of some lines, or those of a list; none without lines."""
    if not parts:
        return []
    # Old versions of iperf3 print what C makes of nothing divided by nothing.
    text = _NO_NUMBER.sub(r"\1null", "\n".join(parts))
    try:
        content = read_json(text, keep_repeated=keep_repeated)
    except ValueError as error:
        if isinstance(error.__cause__, json.JSONDecodeError):
            problem, remedy = _explained(error.__cause__, text, start, next_start)
            raise FormatError(name, problem, remedy=remedy) from error
        raise FormatError(name, f"the document of line {start} {error}") from error
    listed = content if isinstance(content, list) else [content]
    if not all(isinstance(one, dict) for one in listed):
        problem = f"the list that begins on line {start} holds what is no JSON object"
        raise FormatError(name, problem, remedy="Give the tool's output alone.")
    return listed


def _explained(
    error: json.JSONDecodeError, text: str, start: int, next_start: int
) -> tuple[str, str]:
    """Return the fault of a document, and the remedy."""
    line, column = start + error.lineno - 1, error.colno
    doubled = "Two runs wrote into one file, or the tool was restarted; give each run its own file."
    if error.msg == "Extra data" and text[error.pos] == "{":
        return f"a second document begins inside line {line}, column {column}", doubled
    # An unfinished string or word is reported where it begins, anything else where the text ends.
    if error.msg.startswith("Unterminated string") or _WORD.fullmatch(text.rstrip(), error.pos):
        if next_start:
            problem = f"the document of line {start} is cut off by another one on line {next_start}"
            return problem, doubled
        return (
            f"the document of line {start} is cut off at line {line}, column {column}",
            "The run was killed or the file was copied while it was written: run it again.",
        )
    problem = f"is not valid JSON at line {line}, column {column}: {error.msg}"
    return problem, "It is damaged: run the test again."


def field(content: object, *path: str) -> object:
    """Follow keys into nested objects; None where one is missing or no object."""
    for key in path:
        if not isinstance(content, dict):
            return None
        content = content.get(key)
    return content


def number_field(content: object, *path: str) -> float | None:
    """Return a finite number, or None where there is none."""
    found = field(content, *path)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        value = float(found)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def text_field(content: object, *path: str) -> str:
    """Return a string, or ``""`` where there is none."""
    found = field(content, *path)
    return found if isinstance(found, str) else ""


def list_field(content: object, *path: str) -> list[Any]:
    """Return a list, or an empty one where there is none."""
    found = field(content, *path)
    return found if isinstance(found, list) else []
