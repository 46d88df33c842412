"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.service.routes import (
    campaigns,
    catalogue,
    changes,
    dashboard,
    documentation,
    events,
    fleet,
    legs,
    links,
    operations,
    plans,
    questions,
    regions,
    samples,
    snapshots,
)
from relayd.service.routes.table import Route

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *questions.ROUTES,
    *regions.ROUTES,
    *links.ROUTES,
    *legs.ROUTES,
    *snapshots.ROUTES,
    *changes.ROUTES,
    *catalogue.ROUTES,
    *samples.ROUTES,
    *campaigns.ROUTES,
    *fleet.ROUTES,
    *events.ROUTES,
    *documentation.ROUTES,
    *dashboard.ROUTES,
    *operations.ROUTES,
)
