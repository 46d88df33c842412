"""``/v1/campaigns``, ``/v1/fleet``, ``/v1/sites``: measuring with the fleet, hosts, caps of VMs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from aiohttp import web

from planner.model.document import as_json
from planner.model.link_states import Health, LinkState
from probes.fleet.hosts import Host
from relayd.campaigns.inputs import measured_caps
from relayd.http.answers import encoded
from relayd.http.campaigns import fleet_of, forecast
from relayd.http.models import (
    CampaignRequest,
    Page,
    answer,
    attributes_as,
    dict_of,
    many,
    model_of,
    page,
)
from relayd.http.problems import ProblemError
from relayd.http.route import RequestContext, document_response, page_of, position, route
from relayd.http.service import Service
from relayd.store import Store
from relayd.store.campaigns import (
    Campaigns,
    CampaignState,
    Failures,
    RunningCampaign,
    StageState,
    campaign,
    campaign_page,
    failures,
    last_event,
    running,
    stages,
)

MOST_DIGITS = 18
_REFERENCE = ("egress_gbps", "ingress_gbps", "window_mb", "burstable", "source")
"""Caps of a VM type by the catalogue, for comparison with measured ones."""

_MOVED, _COUNT = "What they moved, and what that costs.", (int, "Numbers of probes.")
_HAPPENED = 'What happened, and what to do about it; the remedy is `""` where none is known.'
CAMPAIGN = model_of(
    "CampaignSeen",
    CampaignState,
    "A campaign and how far it is.",
    without=("planned", "done", "failed"),
    sent_gb=(float, _MOVED),
    usd=(float, _MOVED),
    is_running=(bool, "Whether some process is running it now."),
    may_be_stopped=(bool, "Whether it is running and `stop` ends it; the watcher would go on."),
    probes=model_of(
        "ProbeCounts", "How many probes are in which state.", planned=int, done=int, failed=int
    ),
)
CAMPAIGNS = page("Campaigns", "Campaigns, the newest first.", campaigns=many(CAMPAIGN))
STAGE = model_of(
    "StageSeen",
    StageState,
    stage=(str, "`rtt`, `per-flow`, `caps`, `aggregate 1`, ..."),
    planned=_COUNT,
    done=_COUNT,
    failed=_COUNT,
)
FAILURES = model_of(
    "FailuresSeen",
    Failures,
    problem=(str, _HAPPENED),
    remedy=(str, _HAPPENED),
    probes=(int, "How many."),
    pairs=(list[list[str]], "Source and destination host, the first 20."),
    hosts=(list[str], "Those that take part in all of these probes: where to look first."),
    attempts=(int, "In all."),
    last_at_s=(float | None, "When one of them failed last."),
)
CAMPAIGN_ANSWER = answer(
    "CampaignAnswer",
    "One campaign.",
    campaign=CAMPAIGN,
    stages=(many(STAGE), "In the order in which they were planned."),
    failures=(many(FAILURES), "By reason, the most frequent first."),
    progress=(
        dict[str, Any] | None,
        "The last `campaign` event of one that is not finished, with its `at_s`: `status`, "
        "`stage`, `round` of `rounds`, `done` of `total`, `left_s`.",
    ),
)
CAMPAIGN_PART = model_of(
    "CampaignPart", "What some probes take at most.", rounds=int, volume_gb=float, egress_usd=float
)
REGION_PART = model_of(
    "RegionPart",
    "Volumes that a region sends and receives, and the cost of its egress.",
    sent_gb=float,
    received_gb=float,
    egress_usd=float,
)
FORECAST = model_of(
    "ForecastSeen",
    "Upper bounds of a campaign's time, volume and cost.",
    base=CAMPAIGN_PART,
    duration_s=float,
    phases=dict_of(CAMPAIGN_PART),
    regions=dict_of(REGION_PART),
)
FORECAST_ANSWER = answer(
    "ForecastAnswer",
    "The forecast of a campaign, and of measuring all pairs.",
    campaign=FORECAST,
    all_pairs=(FORECAST, "All pairs with 64 connections for 5 s."),
    regret=model_of(
        "RegretSeen",
        "Expected regret: the share of throughput lost for lack of measurements.",
        before=(float, "Mean over ordered pairs of known regions, now."),
        after=(float, "The same after all of it, if the budget allows that."),
        saved_per_usd=(float | None, "What a dollar of egress saves; null for nothing."),
        unknown_regions=(list[str], "Of the fleet, of which nothing is known; left aside."),
    ),
)

FLEET_HOST = model_of(
    "FleetHost",
    "A host that measures, without its login.",
    name=str,
    region=str,
    zone=str,
    vm_type=(str, "As the fleet file has it; may be empty."),
    unreachable=(str | None, "Why the watcher reaches no host of its region; null where it can."),
    remedy=(str | None, "What to do about it."),
)
FLEET_ANSWER = answer(
    "FleetAnswer",
    "Who measures, and what is wrong now.",
    configured=(bool, "Whether the service has a fleet."),
    problem=(str, "Why the fleet file can't be used now; empty where it can."),
    hosts=many(FLEET_HOST),
    vm_caps=(
        many(
            model_of(
                "VmCapSeen",
                "The newest cap of one VM in one direction, compared with its type's.",
                host=str,
                region=str,
                vm_type=str,
                cap=Literal["egress", "ingress"],
                mbps=float,
                measured_at_s=float,
                catalogue_mbps=float | None,
                others_of_type=int,
                recreate=(bool, "Whether recreating the VM is likely to pay."),
                odds=float | None,
                tries_to_be_sure=int | None,
                expected_mbps=float | None,
                slower_share=(float | None, "Share of VMs of its type that are slower."),
                text=str,
            )
        ),
        "Measured caps of single VMs.",
    ),
    leg_states=(list[LinkState], "Links that are down or degraded now."),
    links_health=(Health, "Of the watched links: `bad` where one of them is in trouble."),
    may_start_campaigns=(bool, "Whether the caller may start one."),
    why_not=(str, "Why not; empty where they may."),
)


@route("GET", "/v1/campaigns", "read", CAMPAIGNS, query=Page)
async def list_campaigns(context: RequestContext) -> dict[str, Any]:
    """List campaigns, the newest first."""
    query, before = context.query, (position(context.query.cursor, int) or 0)
    rows, at_work = await context.read(
        lambda store: (
            campaign_page(store.database, before_id=before, limit=query.limit + 1),
            running(store),
        )
    )
    ours = _at_work(context.service, at_work)
    return page_of(
        "campaigns", rows, query.limit, lambda row: (row.id,), lambda row: _seen(row, ours)
    )


@route("GET", "/v1/campaigns/{id}", "read", CAMPAIGN_ANSWER)
async def get_campaign(context: RequestContext) -> dict[str, Any]:
    """Show one campaign.

    With its stages, what failed and what to do about it, and how far it is.
    """
    return await _details(context.service, _number(context))


@route("POST", "/v1/campaigns", "probe", CAMPAIGN_ANSWER, body=CampaignRequest, success=202)
async def post_campaign(context: RequestContext) -> web.Response:
    """Measure with the fleet.

    Spends real money on egress, at most the budget. One campaign runs at a time; 409 where one
    does, or where the service has no fleet. Progress comes as events.
    """
    return await _accepted(
        context, await context.service.campaigns.begin(context.body.model_dump())
    )


@route("POST", "/v1/campaigns/{id}/stop", "probe", CAMPAIGN_ANSWER, success=202)
async def post_campaign_stop(context: RequestContext) -> web.Response:
    """Stop a campaign.

    Whichever process of this store runs it: within seconds it ends its probes on all hosts.
    What was measured is kept, and what its probes may have sent counts as spent. `resume` goes
    on with it. Refused where there is no such campaign (404), and where it is not running, or
    the watcher runs it (409).
    """
    service, number = context.service, _number(context)
    row, at_work = await service.store.read(
        lambda store: (campaign(store.database, number), running(store))
    )
    if row is None:
        raise _unknown(str(number))
    runners = _at_work(service, at_work)
    if number not in runners:
        raise ProblemError(409, "conflict", f"Campaign {number} is not running.")
    if runners[number]:
        detail = (
            f"The watcher runs campaign {number} and would go on with it. To measure less, give "
            "it a smaller daily budget or quiet hours, or end watching."
        )
        raise ProblemError(409, "conflict", detail)
    await service.store.write(lambda store: Campaigns(store).ask_to_stop(number))
    return await _accepted(context, number)


@route("POST", "/v1/campaigns/forecast", "probe", FORECAST_ANSWER, body=CampaignRequest)
async def post_campaign_forecast(context: RequestContext) -> dict[str, Any]:
    """Forecast a campaign.

    Nothing is sent and nothing spent: rounds, time, volume and egress that the same request to
    `/v1/campaigns` would take at most, by phase and by region; `resume` is left aside.
    Refused (409) where the service has no fleet.
    """
    service = context.service
    fleet = service.settings.fleet
    if fleet is None:
        raise ProblemError(409, "conflict", service.campaigns.refusal())
    return await context.ask(forecast, fleet, service.store.path, context.body.model_dump())


def _number(context: RequestContext) -> int:
    text = context.request.match_info["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise _unknown(text)
    return int(text)


async def _accepted(context: RequestContext, number: int) -> web.Response:
    content = await _details(context.service, number)
    location = f"/v1/campaigns/{number}"
    return document_response(context.snapshot, content, status=202, location=location)


async def _details(service: Service, number: int) -> dict[str, Any]:
    def read(store: Store) -> dict[str, Any] | None:
        database = store.database
        if (row := campaign(database, number)) is None:
            return None
        return {
            "campaign": _seen(row, _at_work(service, running(store))),
            "stages": stages(database, number),
            "failures": failures(database, number),
            "progress": None if row.finished_at_s else last_event(database, number),
        }

    if (found := await service.store.read(read)) is None:
        raise _unknown(str(number))
    return found


def _at_work(service: Service, stored: RunningCampaign | None) -> dict[int | None, bool]:
    """Return the campaigns that run, with whether the watcher runs them."""
    # Ours begins, and ends, a little outside of the time in which the store knows of it.
    ours = {service.campaigns.running: False, service.watcher.status("campaign", "id"): True}
    return {**({stored.id: stored.by_watcher} if stored else {}), **ours}


def _seen(row: CampaignState, at_work: dict[int | None, bool]) -> dict[str, Any]:
    return attributes_as(
        CAMPAIGN,
        row,
        is_running=row.id in at_work,
        may_be_stopped=not at_work.get(row.id, True),
        probes={"planned": row.planned, "done": row.done, "failed": row.failed},
    )


def _unknown(text: str) -> ProblemError:
    return ProblemError(404, "not-found", f"There is no campaign {text[:50]!r}.")


# ---- the fleet and its sites -------------------------------------------------------------------


@route("GET", "/v1/fleet", "read", FLEET_ANSWER)
async def get_fleet(context: RequestContext) -> dict[str, Any]:
    """List the hosts of the fleet, and problems.

    Hosts of the fleet file without what logging in takes; measured caps of single VMs; links
    that are down or degraded.
    """
    service = context.service
    path, hosts, problem = service.settings.fleet, list[Host](), ""
    if path is not None:
        try:
            hosts = list(await asyncio.to_thread(fleet_of, path))
        except ProblemError as error:  # the rest is answered all the same
            problem = str(error)
    watch = service.watcher.status() or {}
    catalogue, states = context.current.catalogue, context.current.network.states
    caps = await service.store.read(lambda store: measured_caps(store, catalogue))
    why_not = service.campaigns.refusal()
    if not why_not and not service.access.may(context.request, "probe"):
        why_not = "This needs a token with the scope 'probe'."
    return {
        "configured": path is not None,
        "problem": problem,
        "hosts": [_host(host, watch) for host in hosts],
        "vm_caps": caps,
        "leg_states": list(states.values()),
        "links_health": service.watcher.links_health(states),
        "may_start_campaigns": not why_not,
        "why_not": why_not,
    }


def _host(host: Host, watch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a host without what logging in takes; the watcher speaks of regions."""
    return attributes_as(
        FLEET_HOST,
        host,
        unreachable=watch.get("unreachable", {}).get(host.region),
        remedy=watch.get("remedies", {}).get(host.region) or None,
    )


@route("GET", "/v1/sites", "read", etag=True, internal=True)
async def get_sites(context: RequestContext) -> bytes:
    """List the caps of all regions.

    Of one VM in each region, with what the catalogue says of its type. Bounds are widened for
    age.
    """
    current, known = context.current, context.current.catalogue.vm_types

    def made() -> bytes:
        sites = []
        for site in current.wan.network.sites.values():
            vm_type = known.get(site.vm_type)
            caps = {name: getattr(vm_type, name) for name in _REFERENCE} if vm_type else None
            sites.append({**as_json(site), "reference": caps})
        return encoded({"snapshot": current.snapshot, "sites": sites})

    return current.answer("sites", made)
