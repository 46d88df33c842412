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
from typing import Any, BinaryIO, NamedTuple, NoReturn

from planner.fields.json_text import read_json
from planner.model.errors import FormatError, InputError
from probes.samples import MAX_TIME_S, MIN_TIME_S

MAX_LINE_BYTES = 1 << 20
TOOL_LINE_BYTES = 2048
"""No line of a tool is as long; it also bounds the time that a pattern may take."""
MAX_DOCUMENT_BYTES = 1 << 26
"""64 MiB: 128 streams reported every second for half an hour."""
CUT_OFF = "last line has no line end, so its last figure may be cut off"

_NO_NUMBER = re.compile(r"([:\[,]\s*)-?(?:nan(?:\(\w*\))?|inf)(?=\s*[,}\]])")
_OF_JSON = re.compile(r"[{}\[\]]|\":")
_WORD = re.compile(r"[\w.+-]*")


_NUL = "holds a NUL byte", "It is binary, UTF-16 or damaged."


def refuse_nul(head: bytes, name: str) -> None:
    """Refuse a file whose first bytes hold a NUL byte, which no text does."""
    if b"\0" in head:
        _refuse(name, head.partition(b"\0")[0].count(b"\n") + 1, *_NUL)


def unreadable(error: OSError, name: str) -> InputError:
    """Return the error to raise for a file that the system can't read."""
    return InputError(name, f"can't be read: {error.strerror or error}")


_STAMP = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}"  # strftime's %c
    rb"|(?<![\w.])1\d{9}(?:\.\d{1,9})?(?![\w.,:])"  # seconds since 1970
)
"""A whole time, as logs write it."""
_MAY_END_PREFIX = re.compile(rb"(?:[\s:|\]>]|\x1b\[[\d;]{0,20}m)(?=\S)")
_FIGURES = re.compile(rb"\d+(?:(?:\\\.|,)\d+)?")
_BLANKS = re.compile(rb"(?:\\[ \t])+(?!\Z)")
_LOGGED = re.compile(
    r'"(?:stdout|log|[mM]essage|MESSAGE)"\s*:\s*"((?:[^"\\]|\\u[\da-fA-F]{4}|\\["\\/bfnrt])*)'
)
MAX_PREFIX_BYTES = 200


class LogPrefix(NamedTuple):
    """The prefix that a log has put before each line.

    ``pattern`` is as the first line has it, with any figures; ``skipped`` are lines ahead of a
    tool's JSON that are none of it; ``at_s`` is the time of the first line in seconds since 1970,
    UTC where it names no zone, None where it has no whole time. Of logs that are JSON, and results
    of Ansible, :func:`logged_text` gives the lines.
    """

    pattern: re.Pattern[bytes] = re.compile(b"")
    at_s: float | None = None
    skipped: int = 0
    is_json: bool = False


def log_prefixes(head: bytes) -> Iterator[LogPrefix]:
    """Yield what may be a log's prefix to each line, by a file's first bytes; none is first."""
    first = head.lstrip(b"\r\n").partition(b"\n")[0][:MAX_PREFIX_BYTES]
    yield LogPrefix()
    for end in _MAY_END_PREFIX.finditer(first):
        prefix = first[: end.end()]
        stamp = _STAMP.search(prefix)
        pattern = _FIGURES.sub(rb"\\d+(?:[.,]\\d+)?", _BLANKS.sub(rb"\\s*", re.escape(prefix)))
        yield LogPrefix(re.compile(pattern), time_s(stamp[0].decode()) if stamp else None)


def logged_text(content: bytes) -> tuple[bytes, LogPrefix]:
    """Take lines out of texts in JSON: logs of Docker and journald, what Ansible registers."""
    found = _LOGGED.findall(content.decode(errors="replace"))
    texts = [json.loads(f'"{text}"', strict=False).removesuffix("\n") for text in found]
    stamp = _STAMP.search(content)
    at_s = time_s(stamp[0].decode()) if stamp else None
    text = "\n".join([*texts, ""]).encode(errors="replace")
    return text, LogPrefix(at_s=at_s, is_json=True)


def whole(stream: BinaryIO, name: str) -> bytes:
    """Read a file that must be read at once, or refuse it where it is too long for that."""
    content = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise FormatError(name, f"is longer than {MAX_DOCUMENT_BYTES:,} bytes", remedy="Divide it.")
    return content


class UnprefixedLines:
    """A stream of lines without what a log has put before each.

    Lines without the prefix stay as they are; those to skip are blank.
    """

    def __init__(self, stream: BinaryIO, prefix: LogPrefix) -> None:
        self._stream, self._prefix, self._skipped = stream, prefix.pattern, prefix.skipped

    def readline(self, size: int) -> bytes:
        """Read a line of at most so many bytes and those before it."""
        line = self._stream.readline(size + MAX_PREFIX_BYTES)
        if self._skipped and line:
            self._skipped -= 1
            return b"\n"
        found = self._prefix.match(line)
        return line[found.end() :] if found else line

    def read(self, size: int) -> bytes:
        """Read lines until there are so many bytes, or none is left."""
        lines, left = list[bytes](), size
        while left > 0 and (line := self.readline(size)):
            lines.append(line)
            left -= len(line)
        return b"".join(lines)


def time_s(written: str) -> float | None:
    """Read seconds since 1970, ISO 8601 or RFC 2822; a time without a zone is UTC."""
    try:
        if written[:1].isalpha():
            moment = parsedate_to_datetime(written)
        elif written.replace(".", "", 1).isdigit():
            moment = datetime.fromtimestamp(float(written), UTC)
        else:
            moment = datetime.fromisoformat(written)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if MIN_TIME_S <= seconds <= MAX_TIME_S else None


class Lines:
    """The lines of a UTF-8 file without their ends, in order; iterate once.

    ``errors`` is as of ``bytes.decode``, for tools whose words are in any encoding.

    Attributes
    ----------
    cut_off : int
        Number of the last line if nothing ends it, else 0. Set before that line is yielded:
        whether a last line without an end is whole can't be known.
    """

    def __init__(
        self,
        stream: BinaryIO | UnprefixedLines,
        name: str,
        max_bytes: int = MAX_LINE_BYTES,
        errors: str = "strict",
    ) -> None:
        self._stream, self._name, self._max_bytes, self._errors = stream, name, max_bytes, errors
        self.cut_off = 0

    def __iter__(self) -> Iterator[str]:
        for number in count(1):
            try:
                raw = self._stream.readline(self._max_bytes + 1)
            except OSError as error:
                raise unreadable(error, self._name) from error
            if not raw:
                return
            if b"\0" in raw:
                _refuse(self._name, number, *_NUL)
            if not (is_ended := raw.endswith(b"\n")):
                self.cut_off = number
                if len(raw) > self._max_bytes:
                    problem = f"is longer than {self._max_bytes:,} bytes"
                    remedy = "It is not such a file, or it is damaged."
                    _refuse(self._name, number, problem, remedy)
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8", self._errors)
            except UnicodeDecodeError as error:
                problem = f"is not UTF-8 (byte 0x{error.object[error.start]:02x})"
                _refuse(self._name, number, problem, "Save the file as UTF-8.")
            yield line[:-1].removesuffix("\r") if is_ended else line


def _refuse(name: str, line: int, problem: str, remedy: str) -> NoReturn:
    raise FormatError(name, f"line {line} {problem}", remedy=remedy)


def documents(
    stream: BinaryIO, name: str, noise: tuple[str, ...] = (), *, keep_repeated: bool = False
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Yield the JSON objects of a file with the lines that they begin on; None for noise.

    Noise are beginnings of lines that the tool is known to write between its documents. All values
    of a key that an object repeats may be kept; see :func:`.read_json`. Raises :class:`FormatError`
    if something is not a complete JSON object.
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
                problem = f"line {number} is not the beginning of a JSON object"
                remedy = "Give the tool's output alone, with nothing before it."
                raise FormatError(name, problem, value=line[:60], remedy=remedy)
            continue
        parts.append(line)
        size += len(line)
        if size > MAX_DOCUMENT_BYTES:
            problem = f"the document of line {start} is longer than {MAX_DOCUMENT_BYTES:,} bytes"
            raise FormatError(name, problem, remedy="Use fewer streams or longer intervals.")
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
        if isinstance(fault := error.__cause__, json.JSONDecodeError):
            if fault.msg == "Extra data" and not _OF_JSON.search(text, fault.pos):
                parts = [text[: fault.pos]]  # a shell says something at the end
                return _parsed(parts, start, name, next_start, keep_repeated)
            problem, remedy = _explained(fault, text, start, next_start)
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
