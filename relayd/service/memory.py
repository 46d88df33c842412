"""Giving memory back that is free, so that a service stays as large as what it knows."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def give_back() -> None:
    """Return freed memory to the system; takes milliseconds.

    glibc keeps what lies between pieces still in use. A snapshot allocates some ten MB for a
    second, and each one leaves a little more of that behind: processes that make many of them had
    twice the memory that they have with this. Where the C library has no ``malloc_trim``
    (https://man7.org/linux/man-pages/man3/malloc_trim.3.html), nothing is done.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
