"""Objects that distributions register by entry points: ours and those of others alike.

Why it is so: docs/decisions/09-entry-points.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import TypeVar, cast

from planner.model.errors import RelaydError

T = TypeVar("T")


class RegistrationError(RelaydError):
    """An object that can't be registered; says which distribution brings it."""

    exit_code = 2


@cache
def _all() -> EntryPoints:
    # It reads the metadata of every distribution, which takes 15 ms for 150 of them.
    return cast("EntryPoints", entry_points())


def names(group: str) -> tuple[str, ...]:
    """Return the names of a group's entry points without loading any, in alphabetical order."""
    return tuple(sorted(_all().select(group=group).names))


def registered(
    group: str, kind: type[T], unique: Sequence[str], found: Sequence[EntryPoint] | None = None
) -> tuple[T, ...]:
    """Load the objects of a group of entry points, in the order of their attribute ``order``.

    An entry point names an object, and is called like it, or names a function that returns several.

    Raises RegistrationError if there are none, one can't be loaded or is of another class, or two
    have the same value of a unique attribute; names the distributions.

    Parameters
    ----------
    group : str
        Such as ``relayd.importers``.
    kind : type
        Class of its objects, which have a ``name`` and an ``order``.
    unique : sequence of str
        Attributes, of which no two objects may have the same value.
    found : sequence of EntryPoint, optional
        In place of those of all installed distributions.
    """
    found = tuple(_all().select(group=group)) if found is None else found
    if not found:
        raise RegistrationError(
            f"No distribution has entry points {group}, not even relayd. Install relayd, a source "
            "tree by `pip install --editable .`."
        )
    origins: dict[tuple[str, object], str] = {}
    objects = []
    for point in found:
        by = point.dist.name if point.dist else "a distribution without a name"
        origin = f"{by} (entry point {point.name} = {point.value})"
        try:
            loaded = point.load()
            several = tuple(loaded()) if callable(loaded) else (loaded,)
        except Exception as error:
            what = f"It has to name a {kind.__name__}, or a function that returns several."
            raise RegistrationError(f"{origin} can't be loaded: {error!r}. {what}") from error
        for one in several:
            if not isinstance(one, kind):
                raise RegistrationError(f"{origin} is no {kind.__name__}, but {one!r:.80}")
            facts = vars(one)
            for attribute in unique:
                if other := origins.get((attribute, facts[attribute])):
                    raise RegistrationError(
                        f"Two entry points of {group} have the {attribute} {facts[attribute]!r}: "
                        f"{other} and {origin}. Uninstall one of them, or rename its {attribute}."
                    )
                origins[attribute, facts[attribute]] = origin
            if not callable(loaded) and point.name != facts["name"]:
                raise RegistrationError(
                    f"{origin} is called {facts['name']!r}: name both the same."
                )
            objects.append(one)
    return tuple(sorted(objects, key=lambda one: int(vars(one)["order"])))
