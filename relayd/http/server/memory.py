"""Returns free memory to the system, so that a service stays as small as its network."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress


def release_memory() -> None:
    """Return freed memory to the system after a snapshot was taken up; takes some ten ms.

    What a snapshot replaces goes at once, cycles included: left to itself, the collector looks at
    old objects only when a quarter of all is new. What is left lives until the next snapshot, so it
    is frozen (:func:`gc.freeze`), and no request waits while the collector walks through all links.

    glibc keeps what lies between pieces still in use. A snapshot allocates some ten MB for a
    second, and each one leaves a little more of that behind: processes that make many of them had
    twice the memory that they have with this. Where the C library has no ``malloc_trim``
    (https://man7.org/linux/man-pages/man3/malloc_trim.3.html), nothing is done.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
