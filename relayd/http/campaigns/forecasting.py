"""Forecasts of campaigns: their probes and cost, before they start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.http.campaigns.fleet_file import fleet_of
from relayd.http.campaigns.process import spec_of
from relayd.sources.wan import Wan
from relayd.store import Location, open_store


def forecast(wan: Wan, fleet: Path, location: Location, request: dict[str, Any]) -> dict[str, Any]:
    """Return the forecast of a campaign as JSON types; in a worker, because it takes a while.

    Raises
    ------
    InputError, ProblemError
        If the request or the fleet file can't be used.
    """
    hosts = fleet_of(fleet)
    with open_store(location, mode="read") as store:
        measured = MeasuredFleet(hosts, wan.catalogue, store)
        found = forecast_campaign(measured, spec_of(request, hosts), request["budget_usd"])
    return found.as_json()
