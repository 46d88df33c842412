"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.service.routes import catalogue, operations, plans, regions
from relayd.service.routes.table import Route

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *regions.ROUTES,
    *catalogue.ROUTES,
    *operations.ROUTES,
)
