"""Runs one campaign, described on standard input, in a process of its own.

Estimating and choosing links takes seconds of a core, and SSH has its own event loop: neither is
to hold up answers. What it does is in the store, so that the end of either process loses nothing.
Its first line of output is the campaign's number, or a problem.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, RelaydError
from probes.campaign.specification import CampaignSpec, Method, parse_pairs
from probes.campaign.tasks import PHASES, CampaignLimits
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.campaigns.running import CampaignRunner, cancelled_by_sigterm
from relayd.catalogue.loading import load_catalogue
from relayd.http.campaigns.supervisor import fleet_of
from relayd.http.problems import ProblemError, problem_of
from relayd.sources.wan import Wan
from relayd.store import Location, open_store
from relayd.store.campaigns.log import Campaigns, StoredCampaign


def main() -> int:
    """Run the campaign that standard input describes."""
    asked = json.load(sys.stdin)
    try:
        catalogue = load_catalogue([Path(name) for name in asked["catalogues"]])
        fleet = fleet_of(Path(asked["fleet"]))
        with ExitStack() as stack:
            store = stack.enter_context(open_store(asked["db"], mode="create"))
            campaigns = Campaigns(store)
            try:
                stack.enter_context(campaigns.alone())
            except InputError:
                detail = "Another process is running a campaign on the same store."
                raise ProblemError(409, "conflict", detail) from None
            runner = CampaignRunner(fleet, catalogue, store)
            campaign = _campaign(campaigns, runner, asked["request"])
            _say({"id": campaign.id})
            asyncio.run(_run(runner, campaign, asked["request"]))
    except (RelaydError, ProblemError) as error:
        problem = problem_of(error)
        _say({"status": problem.status, "problem": problem.content})
        return 1
    return 0


def _campaign(
    campaigns: Campaigns, runner: CampaignRunner, request: dict[str, Any]
) -> StoredCampaign:
    unfinished = campaigns.unfinished()
    if request["resume"]:
        if unfinished is None:
            raise InputError("resume", "finds nothing: the last campaign was finished", value=True)
        return unfinished
    spec = spec_of(request, runner.measured.fleet)
    return runner.begin(spec, Method(), request["budget_usd"])


def spec_of(request: dict[str, Any], fleet: Fleet) -> CampaignSpec:
    """Return the campaign specification of a request.

    Raises
    ------
    InputError
        If a pair is none of the fleet's.
    """
    phases = request["phases"] or PHASES
    return CampaignSpec(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(request["pairs"], fleet),
        thorough=request["thorough"],
        connections=request["connections"],
    )


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


async def _run(runner: CampaignRunner, campaign: StoredCampaign, request: dict[str, Any]) -> None:
    cancelled_by_sigterm()
    deadline_s = float("inf")
    if request["max_minutes"] is not None:
        deadline_s = time.monotonic() + 60 * request["max_minutes"]
    limits = CampaignLimits(budget_usd=request["budget_usd"], deadline_s=deadline_s)
    with suppress(asyncio.CancelledError):
        await runner.run(campaign, limits)


def _say(content: dict[str, Any]) -> None:
    print(json.dumps(content), flush=True)  # noqa: T201 - the service reads this


if __name__ == "__main__":
    sys.exit(main())
