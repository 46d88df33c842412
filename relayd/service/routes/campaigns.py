"""``/v1/campaigns``: measuring with the service's fleet."""

from __future__ import annotations

from typing import Any

from aiohttp import hdrs, web

from relayd.service.answers import encoded, json_answer
from relayd.service.cursors import cursor, whole_position
from relayd.service.models.campaigns import CampaignAnswer, CampaignRequest, Campaigns
from relayd.service.models.common import Page
from relayd.service.problems import ProblemError
from relayd.service.routes.table import Ask, Route
from relayd.service.service import Service
from relayd.store.campaign_pages import CampaignState, campaign, campaign_page, running

MOST_DIGITS = 18


async def list_campaigns(ask: Ask) -> web.Response:
    """List campaigns."""
    service, query = ask.service, ask.query
    before = whole_position(query.cursor)
    rows, at_work = await service.store.read(
        lambda store: (
            campaign_page(store.database, before_id=before, limit=query.limit + 1), running(store)
        )
    )  # fmt: skip
    more = len(rows) > query.limit
    rows = rows[: query.limit]
    content = {
        "snapshot": service.current.snapshot,
        "campaigns": [_seen(row, {at_work, service.campaigning.running}) for row in rows],
        "next_cursor": cursor(rows[-1].id) if more else None,
    }
    return json_answer(encoded(content), service.current.snapshot)


async def get_campaign(ask: Ask) -> web.Response:
    """Show one campaign."""
    text = ask.request.match_info["id"]
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise _unknown(text)
    return await _answer(ask.service, int(text), 200)


async def post_campaign(ask: Ask) -> web.Response:
    """Start a campaign, within its budget."""
    service = ask.service
    number = await service.campaigning.begin(ask.body.model_dump())
    return await _answer(service, number, 202)


async def _answer(service: Service, number: int, status: int) -> web.Response:
    row, at_work = await service.store.read(
        lambda store: (campaign(store.database, number), running(store))
    )
    if row is None:
        raise _unknown(str(number))
    # Ours begins, and ends, a little outside of the time in which the store knows of it.
    seen = _seen(row, {at_work, service.campaigning.running})
    content = {"snapshot": service.current.snapshot, "campaign": seen}
    response = json_answer(encoded(content), service.current.snapshot, status=status)
    if status == 202:
        response.headers[hdrs.LOCATION] = f"/v1/campaigns/{number}"
    return response


def _seen(row: CampaignState, at_work: set[int | None]) -> dict[str, Any]:
    counts = {name: getattr(row, name) for name in ("planned", "done", "failed")}
    others = {key: value for key, value in row._asdict().items() if key not in counts}
    return {**others, "is_running": row.id in at_work, "probes": counts}


def _unknown(text: str) -> ProblemError:
    return ProblemError(404, "not-found", f"There is no campaign {text[:50]!r}.")


ROUTES = (
    Route(
        "GET", "/v1/campaigns", list_campaigns, "List campaigns, the newest first", "read",
        query=Page, answer=Campaigns, statuses=(422,),
    ),
    Route(
        "POST", "/v1/campaigns", post_campaign, "Measure with the fleet", "probe",
        "Spends real money on egress, at most the budget. One campaign runs at a time; 409 where "
        "one does, or where the service has no fleet. Progress comes as events.",
        body=CampaignRequest, answer=CampaignAnswer, success=202, statuses=(409, 422),
    ),
    Route(
        "GET", "/v1/campaigns/{id}", get_campaign, "Show one campaign", "read",
        answer=CampaignAnswer, statuses=(404,),
    ),
)  # fmt: skip
