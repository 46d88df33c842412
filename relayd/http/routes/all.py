"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.http.route import Route
from relayd.http.routes import (
    campaigns,
    changes,
    dashboard,
    decisions,
    events,
    fleet,
    link_evidence,
    links,
    operations,
    overview,
    plans,
    quarantine,
    questions,
    regions,
    relay_gains,
    samples,
    snapshots,
    tokens,
    transfers,
)

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *questions.ROUTES,
    *regions.ROUTES,
    *overview.ROUTES,
    *links.ROUTES,
    *relay_gains.ROUTES,
    *link_evidence.ROUTES,
    *snapshots.ROUTES,
    *changes.ROUTES,
    *samples.ROUTES,
    *quarantine.ROUTES,
    *decisions.ROUTES,
    *campaigns.ROUTES,
    *fleet.ROUTES,
    *transfers.ROUTES,
    *tokens.ROUTES,
    *events.ROUTES,
    *dashboard.ROUTES,
    *operations.ROUTES,
)
