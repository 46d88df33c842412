"""Bytes to lines, in bounded memory, with every damage of a text file named and located."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from planner.model.errors import FormatError, InputError

CHUNK_BYTES = 1 << 18
MAX_LINE_CHARS = 1 << 20

# What a file begins with when it is no text at all, and what to do about it.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "is compressed with gzip", "Decompress it first: gunzip FILE."),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "Decompress it first: zstd -d FILE."),
    (b"PK\x03\x04", "is a zip archive or a spreadsheet", "Extract it, or save it as CSV."),
    (b"SQLite format 3\0", "is an SQLite database", "Databases are named with --db."),
    (b"\xff\xfe", "is UTF-16", "Save it as UTF-8."),
    (b"\xfe\xff", "is UTF-16", "Save it as UTF-8."),
)


def chunks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Read a stream piece by piece; an empty or unmistakably binary one is refused.

    Raises
    ------
    FormatError
        If the stream is empty, compressed, a database or UTF-16.
    InputError
        If it can't be read.
    """
    first = True
    while True:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except OSError as error:
            raise InputError(name, f"can't be read: {error.strerror or error}") from error
        if first:
            if not chunk:
                raise FormatError(name, "is empty", remedy="Was the tool's output written to it?")
            for magic, problem, remedy in _MAGIC:
                if chunk.startswith(magic):
                    raise FormatError(name, problem, remedy=remedy)
            first = False
        if not chunk:
            return
        yield chunk


class Lines:
    """The lines of a UTF-8 file without their ends, in order; iterate once.

    Attributes
    ----------
    cut_off : int
        Number of the last line if nothing ends it, else 0. Set before that line is yielded:
        whether a last line without an end is whole can't be known.
    """

    def __init__(
        self, source: Iterator[bytes], name: str, max_line_chars: int = MAX_LINE_CHARS
    ) -> None:
        self._source = source
        self._name = name
        self._max_line_chars = max_line_chars
        self.cut_off = 0

    def __iter__(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        ended = 0  # lines of earlier chunks
        unfinished: list[str] = []  # pieces of the line that the chunks so far have not ended
        unfinished_chars = 0
        for chunk in self._source:
            if b"\0" in chunk:
                line = ended + chunk[: chunk.index(b"\0")].count(b"\n") + 1
                self._refuse(line, "holds a NUL byte", "It is binary, UTF-16 or damaged.")
            try:
                text = decoder.decode(chunk)
            except UnicodeDecodeError as error:
                self._refuse_encoding(error, ended)
            # A line of more than one chunk passes through `unfinished`, so checking there bounds
            # every line without looking at each, unless the limit is below a chunk.
            before, newline, _ = text.partition("\n")
            unfinished_chars += len(before)
            self._check_length(unfinished_chars, ended + 1)
            if not newline:
                unfinished.append(text)
                continue
            unfinished.append(text)
            whole = "".join(unfinished) if len(unfinished) > 1 else text
            if "\r" in whole:
                whole = whole.replace("\r\n", "\n")
            lines = whole.split("\n")
            unfinished = [lines.pop()]
            unfinished_chars = len(unfinished[0])
            if self._max_line_chars < CHUNK_BYTES:
                for number, whole_line in enumerate(lines, start=ended + 1):
                    self._check_length(len(whole_line), number)
                self._check_length(unfinished_chars, ended + len(lines) + 1)
            yield from lines
            ended += len(lines)
        try:
            unfinished.append(decoder.decode(b"", final=True))
        except UnicodeDecodeError as error:
            self._refuse_encoding(error, ended)
        if rest := "".join(unfinished):
            self.cut_off = ended + 1
            yield rest

    def _check_length(self, chars: int, line: int) -> None:
        if chars > self._max_line_chars:
            limit = f"is longer than {self._max_line_chars:,} characters"
            self._refuse(line, limit, "It is not such a file, or it is damaged.")

    def _refuse_encoding(self, error: UnicodeDecodeError, ended: int) -> NoReturn:
        line = ended + error.object[: error.start].count(b"\n") + 1
        byte = error.object[error.start]
        self._refuse(line, f"is not UTF-8 (byte 0x{byte:02x})", "Save the file as UTF-8.")

    def _refuse(self, line: int, problem: str, remedy: str) -> NoReturn:
        raise FormatError(self._name, f"line {line} {problem}", remedy=remedy)
