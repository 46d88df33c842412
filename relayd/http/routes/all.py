"""All routes, in the order in which the documentation lists them."""

from __future__ import annotations

from relayd.http.route import Route
from relayd.http.routes import events, operations, pages, tokens
from relayd.http.routes.measuring import campaigns, decisions, fleet, quarantine, samples
from relayd.http.routes.network import (
    changes,
    link_evidence,
    links,
    overview,
    regions,
    relay_gains,
    snapshots,
)
from relayd.http.routes.planning import plans, questions, transfers

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
    *pages.ROUTES,
    *operations.ROUTES,
)
