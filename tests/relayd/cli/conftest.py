"""Commands on a terminal, without one."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from relayd.__main__ import main

OnTerminal = Callable[..., str]


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """Run a command in this process as on a terminal of a size; returns what appears."""

    def run(line: str, *, columns: int, lines: int = 400, **environment: str) -> str:
        usual = {"TERM": "xterm-256color", "NO_COLOR": "", "PAGER": ""}
        shown = Terminal()
        with monkeypatch.context() as patch:
            for name, value in (usual | environment).items():
                patch.setenv(name, value)
            patch.setenv("COLUMNS", str(columns))
            patch.setenv("LINES", str(lines))
            patch.setattr(sys, "stdout", shown)
            patch.setattr(sys, "stderr", shown)
            with suppress(SystemExit):  # argparse
                main(line.split())
        return shown.getvalue()

    return run
