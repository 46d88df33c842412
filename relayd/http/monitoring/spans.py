"""Spans within a request's, where traces are wanted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

SpanOf: TypeAlias = Callable[[str], AbstractContextManager[object]]


def no_span(_name: str) -> AbstractContextManager[object]:
    """Return what does nothing, where nobody wants traces."""
    return nullcontext()
