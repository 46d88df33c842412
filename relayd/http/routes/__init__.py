"""What each path does: one module a resource, and the table of all of them.

Its order is that of the documentation.
"""

from __future__ import annotations

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

ROUTES: tuple[Route, ...] = (
    *plans.ROUTES,
    *overview.ROUTES,
    *links.ROUTES,
    *link_evidence.ROUTES,
    *snapshots.ROUTES,
    *changes.ROUTES,
    *samples.ROUTES,
    *quarantine.ROUTES,
    *campaigns.ROUTES,
    *fleet.ROUTES,
    *transfers.ROUTES,
    *tokens.ROUTES,
    *events.ROUTES,
    *pages.ROUTES,
    *operations.ROUTES,
)
