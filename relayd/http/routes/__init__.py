"""What each path does: one module a resource, and the table of all of them.

Its order is that of the documentation.
"""

from __future__ import annotations

from types import ModuleType

from relayd.http.route import Route
from relayd.http.routes import (
    campaigns,
    changes,
    events,
    fleet,
    link_evidence,
    links,
    operations,
    overview,
    pages,
    plans,
    quarantine,
    samples,
    snapshots,
    tokens,
    transfers,
)

_MODULES: tuple[ModuleType, ...] = (
    plans,
    overview,
    links,
    link_evidence,
    snapshots,
    changes,
    samples,
    quarantine,
    campaigns,
    fleet,
    transfers,
    tokens,
    events,
    pages,
    operations,
)


def _declared_in(module: ModuleType) -> list[Route]:
    """Return the routes of a module; those that are made of a list are in its ``ROUTES``."""
    own = [value for value in vars(module).values() if isinstance(value, Route)]
    return [*own, *getattr(module, "ROUTES", ())]


ROUTES = tuple(route for module in _MODULES for route in _declared_in(module))
