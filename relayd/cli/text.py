"""Tables, paragraphs and emphasis for terminals, without the control characters of others.

Names come from catalogues, samples, files and services, and a terminal obeys the control characters
in them: it moves the cursor, changes its title or reverses the reading order. Everything that a
command prints passes :func:`safe_output`, which shows such characters as JSON escapes (RFC 8259,
7); in JSON they stay what they were.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from math import inf
from typing import Any, TextIO, cast

from planner.model.text.figures import link as link
from planner.model.text.figures import neutralised as neutralised
from planner.model.text.page import BOLD as BOLD
from planner.model.text.page import DIM as DIM
from planner.model.text.page import GREEN as GREEN
from planner.model.text.page import PLAIN, TextPage
from planner.model.text.page import YELLOW as YELLOW

# Tells our own escape sequences from those in names: no one can know it beforehand.
_ESCAPE = f"\033{os.urandom(8).hex()}"


@contextmanager
def safe_output() -> Iterator[None]:
    """Let no control character of others out of this process, by either standard stream."""
    with (
        redirect_stdout(cast("TextIO", _SafeStream(sys.stdout))),
        redirect_stderr(cast("TextIO", _SafeStream(sys.stderr))),
    ):
        yield


def shown_safely(text: str) -> str:
    """Return text as a terminal may get it: with our own escape sequences alone."""
    return "\033".join(neutralised(part) for part in text.split(_ESCAPE))


class _SafeStream:
    """A text stream that neutralises what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, made safe."""
        return self._stream.write(shown_safely(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, one after the other."""
        for line in lines:
            self.write(line)


class Progress:
    """Progress on standard error: one line that changes; elsewhere than on a terminal, lines.

    Parameters
    ----------
    line_every_s : float
        After which there is a line where there is no terminal; by default there is none.
    """

    def __init__(self, line_every_s: float = inf) -> None:
        self._terminal = sys.stderr.isatty()
        self._every_s = 0.2 if self._terminal else line_every_s
        self._last_s, self._last_stage = -inf, ""
        self._drawn = False

    def show(self, line: str, stage: str = "") -> None:
        """Show a line: at once for a new stage, and otherwise not too often."""
        now_s = time.monotonic()
        is_new = stage != self._last_stage
        if self._every_s == inf or (now_s - self._last_s < self._every_s and not is_new):
            return
        self._last_s, self._last_stage = now_s, stage
        sys.stderr.write(redrawn(line[:118]) if self._terminal else f"{line}\n")
        sys.stderr.flush()
        self._drawn = self._terminal

    def end(self) -> None:
        """Clear the line that changes."""
        if self._drawn:
            sys.stderr.write(redrawn())
            sys.stderr.flush()
            self._drawn = False


def redrawn(line: str = "") -> str:
    """Return the text that overwrites the terminal's present line."""
    return f"{_ESCAPE}[G{_ESCAPE}[K{line}"


def formula_safe(cell: str) -> str:
    """Return a text cell of CSV that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def page(stream: TextIO | None = None) -> TextPage:
    """Return the page that a stream is, by default standard output.

    That of a terminal is as wide as it, with styles if the user wants them (no-color.org).
    """
    if not (stream or sys.stdout).isatty():
        return PLAIN
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return TextPage(columns(), "" if plain or not sys.stdout.isatty() else _ESCAPE)


def columns() -> int:
    """Return the width of the terminal in characters; 80 where there is none."""
    return shutil.get_terminal_size().columns


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to all of it."""
    if share is None:
        return "-"
    percent = int(share * 1000) / 10 if 0.999 < share < 1 else share * 100
    return f"{percent:.1f} %"
