"""Keeps the matrix library to one thread while small matrices are worked on.

Matrices of a hundred rows gain nothing from threads, which wait for each other on busy cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

import numpy  # noqa: F401 - so that its library is among them
from threadpoolctl import ThreadpoolController


class _Users:
    """A count of users; the first one in sets the limit, the last one out lifts it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0
        self.limiter: object = None


_users = _Users()


@contextmanager
def one_matrix_thread() -> Iterator[None]:
    """Limit NumPy's matrix library to one thread in a ``with`` block, then give back what it had.

    The number of threads belongs to the process: other matrices worked on meanwhile have one
    thread too.
    """
    with _users.lock:
        _users.count += 1
        if _users.count == 1:
            _users.limiter = _controller().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _users.lock:
            _users.count -= 1
            if not _users.count:
                _users.limiter.restore_original_limits()  # type: ignore[attr-defined]


@cache
def _controller() -> ThreadpoolController:
    """Return a controller of the libraries loaded by now; finding them takes 1 ms."""
    return ThreadpoolController()
