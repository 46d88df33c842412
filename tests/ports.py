"""Ports for programs that must be told one: no other test, and no connection, takes them meanwhile.

A port that the kernel picks and gets back may be anybody's before a program binds it. These lie
below the range that the kernel picks from, and each process of tests locks those that it gives out.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO

_FIRST, _END, _BLOCK = 10_000, 32_000, 500
_given = 0
"""How many ports of its block this process has gone through, modulo the block."""


def free_port(count: int = 1) -> int:
    """Return the first of so many ports in a row that nothing listens on."""
    global _given
    first, _ = _locked_block()
    for start in chain(range(_given, _BLOCK - count), range(_BLOCK - count)):
        if all(map(_is_free, range(first + start, first + start + count))):
            _given = start + count
            return first + start
    raise AssertionError(f"no {count} ports from {first} on are free")


@cache
def _locked_block() -> tuple[int, IO[str]]:
    """Return the first port of a block, and the file whose lock keeps it for this process."""
    folder = Path(tempfile.gettempdir()) / f"relayd-ports-{os.geteuid()}"
    folder.mkdir(exist_ok=True)
    for first in range(_FIRST, _END, _BLOCK):
        file = (folder / str(first)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
        else:
            return first, file
    raise AssertionError(f"other processes have all blocks of ports locked in {folder}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
