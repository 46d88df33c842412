"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.http.routes import (
    campaigns,
    catalogue,
    changes,
    dashboard,
    documentation,
    events,
    fleet,
    link_details,
    links,
    operations,
    plans,
    questions,
    regions,
    samples,
    snapshots,
)
from relayd.http.routes.table import Route

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *questions.ROUTES,
    *regions.ROUTES,
    *links.ROUTES,
    *link_details.ROUTES,
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
