"""What annotations are written with, for modules that must load quickly, without `typing`.

`typing` takes as long to load as half of a bare interpreter. Modules that `relayd plan` loads
import what only annotations name for type checkers alone, and what is used while classes are made
from here: to type checkers it is that of `typing`, and at run time it does nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to type checkers true
if TYPE_CHECKING:
    from typing import (
        Any,
        Generic,
        ParamSpec,
        Protocol,
        TypeVar,
        cast,
        dataclass_transform,
        overload,
    )
else:
    Any = object

    class Generic:
        """A class that may be subscripted."""

        def __class_getitem__(cls, _: object) -> type:
            return cls

    class Protocol:
        """A class that says what others have."""

    def TypeVar(name, *_, **__):  # noqa: N802
        """Return what stands for any type."""
        return name

    ParamSpec = TypeVar

    def cast(_, value):
        """Return the value."""
        return value

    def overload(function):
        """Return the function."""
        return function

    def dataclass_transform(**_):
        """Return a decorator that returns what it is given."""
        return lambda decorator: decorator


def from_literals(name: str) -> object:
    """Return a type of :mod:`planner.literals`: `__getattr__` of modules that name it theirs."""
    if name.startswith("__"):
        raise AttributeError(name)
    from planner import literals

    return getattr(literals, name)


__all__ = [
    "TYPE_CHECKING",
    "Any",
    "Generic",
    "ParamSpec",
    "Protocol",
    "TypeVar",
    "cast",
    "dataclass_transform",
    "from_literals",
    "overload",
]
