"""What a campaign would do and cost, as JSON: the command line's dry run and the service's."""

from __future__ import annotations

from typing import Any

from probes.campaign.costing import CampaignCost
from relayd.campaigns.running import CampaignForecast


def forecast_as_json(forecast: CampaignForecast) -> dict[str, Any]:
    """Return a forecast as JSON types, beside what measuring all pairs would take."""

    def content(cost: CampaignCost, duration_s: float) -> dict[str, Any]:
        return {
            "rounds": cost.rounds,
            "duration_s": round(duration_s, 3),
            "volume_gb": cost.volume_gb,
            "egress_usd": cost.egress_usd,
            "phases": {
                phase: {
                    "rounds": part.rounds,
                    "volume_gb": part.volume_gb,
                    "egress_usd": part.egress_usd,
                }
                for phase, part in cost.by_phase.items()
            },
            "regions": {
                c.region: {
                    "sent_gb": c.sent_gb,
                    "received_gb": c.received_gb,
                    "egress_usd": c.egress_usd,
                }
                for c in cost.by_region.values()
            },
        }

    return {
        "campaign": content(forecast.cost, forecast.duration_s),
        "all_pairs": content(forecast.everything, forecast.everything_s),
    }
