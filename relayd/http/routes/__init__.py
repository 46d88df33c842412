"""Handlers and models of all paths, one module a resource, and the table of all routes."""

from __future__ import annotations

from relayd.http.route import Route
from relayd.http.routes import (
    campaigns,
    incidents,
    links,
    operations,
    plans,
    samples,
    snapshots,
    transfers,
)

# Routes of a module are in its names; those that are made of a list are in its ``ROUTES``.
ROUTES: tuple[Route, ...] = tuple(
    route
    for module in (plans, links, snapshots, samples, campaigns, transfers, incidents, operations)
    for route in (*vars(module).values(), *getattr(module, "ROUTES", ()))
    if isinstance(route, Route)
)
