"""Reads JSON that a store wrote, without `json`, which loads `re` and two more modules first."""

from __future__ import annotations

TYPE_CHECKING = False  # to type checkers true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    make_scanner: Callable[[object], Callable[[str, int], tuple[Any, int]]] | None
else:
    try:
        from _json import make_scanner
    except ImportError:  # another Python than CPython
        make_scanner = None


class _Plainly:
    """What :class:`json.JSONDecoder` tells its scanner where it is given no options."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = float  # "NaN", "Infinity" and "-Infinity"


_scan = make_scanner(_Plainly) if make_scanner else None


def loads(text: str) -> Any:
    """Return what :func:`json.loads` makes of a text."""
    if _scan is not None:
        try:
            found, end = _scan(text, 0)
        except (ValueError, StopIteration):
            end = -1
        if end == len(text):
            return found
    import json  # for white space around, and for its errors

    return json.loads(text)
