"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.http.route import Route
from relayd.http.routes import (
    campaigns,
    changes,
    dashboard,
    documentation,
    events,
    fleet,
    link_evidence,
    links,
    operations,
    plans,
    quarantine,
    questions,
    regions,
    samples,
    snapshots,
)

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *questions.ROUTES,
    *regions.ROUTES,
    *links.ROUTES,
    *link_evidence.ROUTES,
    *snapshots.ROUTES,
    *changes.ROUTES,
    *samples.ROUTES,
    *quarantine.ROUTES,
    *campaigns.ROUTES,
    *fleet.ROUTES,
    *events.ROUTES,
    *documentation.ROUTES,
    *dashboard.ROUTES,
    *operations.ROUTES,
)
