"""``/v1/campaigns``: measuring with the service's fleet."""

from __future__ import annotations

from typing import Any

from aiohttp import hdrs, web

from relayd.http.campaigns.process import forecast
from relayd.http.models.common import Page
from relayd.http.models.measuring import (
    CAMPAIGN_ANSWER,
    CAMPAIGNS,
    FORECAST_ANSWER,
    CampaignRequest,
)
from relayd.http.problems import ProblemError
from relayd.http.responses import document_response, page_of, whole_position
from relayd.http.route import RequestContext, route
from relayd.http.service import Service
from relayd.store import Store
from relayd.store.campaigns.log import Campaigns
from relayd.store.campaigns.states import (
    CampaignState,
    RunningCampaign,
    campaign,
    campaign_page,
    failures,
    last_event,
    running,
    stages,
)

MOST_DIGITS = 18


@route("GET", "/v1/campaigns", "read", query=Page, answer=CAMPAIGNS)
async def list_campaigns(context: RequestContext) -> web.Response:
    """List campaigns, the newest first."""
    service, query = context.service, context.query
    before = whole_position(query.cursor)
    rows, at_work = await service.store.read(
        lambda store: (
            campaign_page(store.database, before_id=before, limit=query.limit + 1),
            running(store),
        )
    )
    page, next_cursor = page_of(rows, query.limit, lambda row: (row.id,))
    ours = _at_work(service, at_work)
    return document_response(
        service.current.snapshot,
        {"campaigns": [_seen(row, ours) for row in page], "next_cursor": next_cursor},
    )


@route("GET", "/v1/campaigns/{id}", "read", answer=CAMPAIGN_ANSWER, statuses=(404,))
async def get_campaign(context: RequestContext) -> web.Response:
    """Show one campaign.

    With its stages, what failed and what to do about it, and how far it is.
    """
    return await _answer(context.service, _number(context), 200)


@route(
    "POST",
    "/v1/campaigns",
    "probe",
    body=CampaignRequest,
    answer=CAMPAIGN_ANSWER,
    success=202,
    statuses=(409,),
)
async def post_campaign(context: RequestContext) -> web.Response:
    """Measure with the fleet.

    Spends real money on egress, at most the budget. One campaign runs at a time; 409 where one
    does, or where the service has no fleet. Progress comes as events.
    """
    service = context.service
    number = await service.campaigns.begin(context.body.model_dump())
    return await _answer(service, number, 202)


@route(
    "POST",
    "/v1/campaigns/{id}/stop",
    "probe",
    answer=CAMPAIGN_ANSWER,
    success=202,
    statuses=(404, 409),
)
async def post_campaign_stop(context: RequestContext) -> web.Response:
    """Stop a campaign.

    Whichever process of this store runs it: within seconds it ends its probes on all hosts.
    What was measured is kept, and what its probes may have sent counts as spent. `resume` goes
    on with it. 409 where it is not running, or the watcher runs it.
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
        raise ProblemError(
            409,
            "conflict",
            f"The watcher runs campaign {number} and would go on with it. To measure less, give "
            "it a smaller daily budget or quiet hours, or end watching.",
        )
    await service.store.write(lambda store: Campaigns(store).ask_to_stop(number))
    return await _answer(service, number, 202)


@route(
    "POST",
    "/v1/campaigns/forecast",
    "probe",
    body=CampaignRequest,
    answer=FORECAST_ANSWER,
    statuses=(409,),
)
async def post_campaign_forecast(context: RequestContext) -> web.Response:
    """Forecast a campaign.

    Nothing is sent and nothing spent: rounds, time, volume and egress that the same request to
    `/v1/campaigns` would take at most, by phase and by region; `resume` is left aside. 409
    where the service has no fleet.
    """
    service = context.service
    fleet = service.settings.fleet
    if fleet is None:
        raise ProblemError(409, "conflict", service.campaigns.refusal())
    found = await service.workers.ask(
        service.current.version, forecast, fleet, service.store.path, context.body.model_dump()
    )
    return document_response(service.current.snapshot, found)


def _number(context: RequestContext) -> int:
    text = context.request.match_info["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise _unknown(text)
    return int(text)


async def _answer(service: Service, number: int, status: int) -> web.Response:
    found = await service.store.read(lambda store: _read(store, number))
    if found is None:
        raise _unknown(str(number))
    row, at_work, details = found
    content = {"campaign": _seen(row, _at_work(service, at_work)), **details}
    response = document_response(service.current.snapshot, content, status=status)
    if status == 202:
        response.headers[hdrs.LOCATION] = f"/v1/campaigns/{number}"
    return response


def _read(
    store: Store, number: int
) -> tuple[CampaignState, RunningCampaign | None, dict[str, Any]] | None:
    row = campaign(store.database, number)
    if row is None:
        return None
    return (
        row,
        running(store),
        {
            "stages": [stage._asdict() for stage in stages(store.database, number)],
            "failures": [found._asdict() for found in failures(store.database, number)],
            "progress": None if row.finished_at_s else last_event(store.database, number),
        },
    )


def _at_work(service: Service, stored: RunningCampaign | None) -> dict[int | None, bool]:
    """Return the campaigns that run, with whether the watcher runs them."""
    # Ours begins, and ends, a little outside of the time in which the store knows of it.
    ours = {service.campaigns.running: False, service.watcher.campaign: True}
    return {**({stored.id: stored.by_watcher} if stored else {}), **ours}


def _seen(row: CampaignState, at_work: dict[int | None, bool]) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in ("planned", "done", "failed")}
    others = {key: value for key, value in row._asdict().items() if key not in counts}
    return {
        **others,
        "is_running": row.id in at_work,
        "may_be_stopped": not at_work.get(row.id, True),
        "probes": counts,
    }


def _unknown(text: str) -> ProblemError:
    return ProblemError(404, "not-found", f"There is no campaign {text[:50]!r}.")
