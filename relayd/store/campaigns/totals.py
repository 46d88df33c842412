"""What all campaigns of a store have taken."""

from __future__ import annotations

from typing import NamedTuple

from relayd.store.database import Database

_TOTALS = (
    "SELECT coalesce(sum(usd), 0.0), coalesce(sum(sent_gb), 0.0), "
    "count(CASE WHEN status = 'done' THEN 1 END), count(CASE WHEN status = 'failed' THEN 1 END) "
    "FROM probes WHERE coalesce(ended_at_s, 0) >= ?"
)


class CampaignTotals(NamedTuple):
    """Egress in USD and GB, and the numbers of probes that ended."""

    usd: float
    sent_gb: float
    done: int
    failed: int


def campaign_totals(database: Database, since_s: float = 0.0) -> CampaignTotals:
    """Return what all campaigns together have taken so far, or with probes that ended since."""
    return CampaignTotals(*database.row(_TOTALS, (since_s,)))
