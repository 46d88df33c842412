"""Ports for programs that must be told one: no other test, and no connection, takes them meanwhile.

A port that the kernel picks and gets back may be anybody's before a program binds it. These lie
below the range that the kernel picks from, in blocks: whoever gives ports out keeps the first one.
"""

from __future__ import annotations

import socket
from functools import cache
from itertools import chain

_FIRST, _END, _BLOCK = 10_000, 32_000, 500
_given = 1
"""How many ports of its block this process has gone through, modulo the block."""


def free_port(count: int = 1) -> int:
    """Return the first of so many ports in a row that nothing listens on."""
    global _given
    first: int = _own_block().getsockname()[1]
    for start in chain(range(_given, _BLOCK - count), range(1, _BLOCK - count)):
        if all(map(_is_free, range(first + start, first + start + count))):
            _given = start + count
            return first + start
    raise AssertionError(f"no {count} ports from {first} on are free")


@cache
def _own_block() -> socket.socket:
    """Return a socket that keeps the first port of a block for this process."""
    for first in range(_FIRST, _END, _BLOCK):
        kept = socket.socket()
        try:
            kept.bind(("", first))
        except OSError:
            kept.close()
        else:
            return kept
    raise AssertionError(f"the first ports of all blocks from {_FIRST} to {_END} are taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
