"""Looks for the packages that only extras bring."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, such as ``opentelemetry.sdk``.

    Looking for a module imports its parents, and raises where one is missing: they come first.
    """
    names = module.split(".")
    return all(find_spec(".".join(names[:end])) for end in range(1, len(names) + 1))
