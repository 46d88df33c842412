"""``/v1/transfers``, ``/v1/pools``, ``/v1/incidents``: what programs report and ask, what fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from math import inf
from typing import Any, TypeVar
from urllib.parse import quote

from aiohttp import hdrs, web
from pydantic import ConfigDict, Field

from planner.model.errors import InfeasibleError
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.network import Snapshot
from planner.model.units import BITS_PER_BYTE, BYTES_PER_GB
from relayd.http.answers import advice_on
from relayd.http.models import Name, Page, Period, RequestModel, answer, model_of, page
from relayd.http.problems import ProblemError, members_of
from relayd.http.route import RequestContext, document_response, page_of, position, route
from relayd.questions.holds import PoolUse, pool_left_gbps
from relayd.store import Store
from relayd.store.events import Event, Events
from relayd.transfers.expected import is_storable
from relayd.transfers.incidents import Outlook, incidents, links_of, outlook
from relayd.transfers.register import (
    NotOwnerError,
    NoTransferError,
    TransferRegister,
    transfer_rows,
)
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import (
    TrackedTransfer,
    TransferDetails,
    TransferRate,
    WantedState,
    details,
    tracked,
)

T = TypeVar("T")
DAYS = 7.0
MOST_INCIDENTS, MOST_EVENTS, MOST_FINISHED = 50, 1000, 1000
MOST_PLANNED = 20
"""Transfers whose rest is planned for one answer; of others, their rate tells the end."""
EXAMPLE = {"id": "nightly-7", "src": "us-east", "dst": "sa", "volume_gb": 500, "deadline_s": 7200}


class TransfersQuery(Page, Period):
    """Which transfers."""

    state: WantedState | None = Field(
        None, description="`in-flight`: running or silent; `ended`: all others."
    )
    src: Name | None = Field(None, description="Only from this region.")
    dst: Name | None = Field(None, description="Only to this region.")


TRANSFERS_ANSWER = page(
    "TransfersAnswer", "Transfers, the newest first.", transfers=list[TrackedTransfer]
)
POOLS_ANSWER = answer("PoolsAnswer", "What transfers hold.", pools=list[PoolUse])
TRANSFER_ANSWER = answer("TransferAnswer", "One transfer.", transfer=TrackedTransfer)
TRANSFER_DETAILS_ANSWER = answer(
    "TransferDetailsAnswer", "One transfer, with all that is known of it.", details=TransferDetails
)
TRANSFER_RATE_ANSWER = model_of("TransferRateAnswer", TransferRate, snapshot=Snapshot)


@route("GET", "/v1/transfers", "read", TRANSFERS_ANSWER, query=TransfersQuery)
async def list_transfers(context: RequestContext) -> dict[str, Any]:
    """List transfers, the newest first: by their ends, where `state` is one of those that ended.

    With rate, forecast and whether they are in time. Without a report for `silent_after_s`, one
    is `silent`, and after a day of that `failed`.
    """
    query, wan = context.query, context.current.wan
    before = position(query.cursor, int)
    src, dst = (
        None if name is None else wan.resolve(name, field).region_id
        for name, field in ((query.src, "src"), (query.dst, "dst"))
    )
    query.check()

    def read(store: Store) -> dict[str, Any]:
        now_s = time.time()
        of = store.database, query.state, src, dst, (query.since_s, query.until_s)
        rows = transfer_rows(*of, before_number=before, limit=query.limit + 1)
        numbers, shown = lambda row: (row.number,), lambda row: tracked(row, now_s)
        return page_of("transfers", rows, query.limit, numbers, shown)

    return await context.read(read)


@route("GET", "/v1/pools", "read", POOLS_ANSWER)
async def get_pools(context: RequestContext) -> dict[str, Any]:
    """List what transfers under way hold.

    Of each pool of VMs, of quotas and of interconnects: which transfers hold how much of it, and
    what is left.
    """
    wan = context.current.wan
    return {
        "pools": await context.read(lambda store: TransferRegister(store.database, wan, "").pools())
    }


@route("GET", "/v1/transfers/{id}", "read", TRANSFER_DETAILS_ANSWER)
async def get_transfer(context: RequestContext) -> dict[str, Any]:
    """Show one transfer.

    With its reports, its paths, its plan, and the question what to do with the rest of it
    (`rest`), filled in; `advised` says whether it is late or much slower than planned.
    """
    name = _id(context)
    return {"details": await _read(context, lambda register: register.transfer_details(name))}


@route("GET", "/v1/transfers/{id}/rate", "read", TRANSFER_RATE_ANSWER)
async def get_transfer_rate(context: RequestContext) -> dict[str, Any] | web.Response:
    """Say at which rate a transfer is to send now.

    That of its plan while it is held for it, else what others leave. With `Accept: text/plain`,
    `bytes_per_s` alone. A transfer that ended, or has no plan, has none (422).
    """
    name = _id(context)
    found = await _read(context, lambda register: register.transfer_rate(name))
    if "text/plain" in context.request.headers.get(hdrs.ACCEPT, ""):
        return web.Response(text=f"{found.bytes_per_s}\n")
    return asdict(found)


@route(
    "POST",
    "/v1/transfers",
    "ingest",
    TRANSFER_ANSWER,
    body=TransferStartRequest,
    example=EXAMPLE,
    success=201,
)
async def post_transfer(context: RequestContext) -> web.Response:
    """Begin a transfer.

    May be repeated under the same `id`: the same transfer is begun once and answered with 200
    after that, and another one is refused. Nothing is sent: the transfer is yours, and its
    program reports it.
    """
    found, is_new = await _written(context, lambda register: register.begin(context.body))
    location = f"/v1/transfers/{quote(found.id, safe='')}"
    status = 201 if is_new else 200
    return document_response(
        context.snapshot, {"transfer": found}, status=status, location=location
    )


@route(
    "POST",
    "/v1/transfers/{id}/progress",
    "ingest",
    TRANSFER_ANSWER,
    body=TransferProgressRequest,
    example={"moved_gb": 120, "via_gb": {"direct": 120}},
)
async def post_transfer_progress(context: RequestContext) -> dict[str, Any]:
    """Report how far a transfer is.

    All that has arrived since it began; by the token that began it, or one with the scope
    `admin`. A report that goes backwards, in volume or in time, or
    that comes after the end is refused; the last one may be repeated.
    """
    name = _id(context)
    return {"transfer": await _written(context, lambda it: it.report(name, context.body))}


@route(
    "POST",
    "/v1/transfers/{id}/end",
    "ingest",
    TRANSFER_ANSWER,
    body=TransferEndRequest,
    example={"state": "finished"},
)
async def post_transfer_end(context: RequestContext) -> dict[str, Any]:
    """Say how a transfer ended.

    `finished`, `failed` or `cancelled`; may be repeated, by the token that began it or one with
    the scope `admin`. What finished over one path becomes samples of its
    links, of which plans learn.
    """
    name = _id(context)
    found = await _written(context, lambda it: it.end(name, context.body))
    if found.state == "finished":
        context.service.want_snapshot()
    return {"transfer": found}


async def _read(context: RequestContext, read: Callable[[TransferRegister], T]) -> T:
    wan = context.current.wan
    try:
        return await context.read(lambda store: read(TransferRegister(store.database, wan, "")))
    except NoTransferError as error:
        raise _unknown(str(error.value)) from None


async def _written(context: RequestContext, change: Callable[[TransferRegister], T]) -> T:
    service, address = context.service, context.request.remote or ""
    who = service.access.holder(context.request) or address
    wan, may_all = context.current.wan, service.access.may(context.request, "admin")
    register = partial(TransferRegister, names=wan, who=who, is_operator=may_all, address=address)
    try:
        found = await service.store.write(lambda store: change(register(store.database)))
    except InfeasibleError as error:
        raise ProblemError(409, "no-room", str(error), **members_of(error)) from None
    except NoTransferError as error:
        raise _unknown(str(error.value)) from None
    except NotOwnerError as error:
        told = members_of(error)
        if error.field == "id":
            raise ProblemError(403, "forbidden", str(error), **told) from None
        raise ProblemError(429, "rate-limited", str(error), retry_s=3600, **told) from None
    await service.read_holds()
    return found


def _id(context: RequestContext) -> str:
    name = str(context.request.match_info["id"])
    if not is_storable(name):
        raise _unknown(name)
    return name


def _unknown(name: str) -> ProblemError:
    return ProblemError(404, "not-found", f"There is no transfer {name[:50]!r}.")


# ---- pools ------------------------------------------------------------------------------------

GRANT_S = 0.25
"""Of a pool's rate, that is granted at a time: small requests would come too often."""


class GrantRequest(RequestModel):
    """The bytes that a program is about to send."""

    model_config = ConfigDict(extra="ignore")  # a refusal lifts the limit of juicefs
    bytes: int = Field(
        ge=-(1 << 27), le=1 << 27, description="Below 0: so much of a grant is given back."
    )


GRANT_ANSWER = answer(
    "GrantAnswer",
    "Bytes that may be sent.",
    granted=(int, "At least as many as were asked for."),
    expired=(int, "Milliseconds, after which the rest of it is to be given back."),
)


@route(
    "POST",
    "/v1/pools/{region}/grants",
    "ingest",
    GRANT_ANSWER,
    body=GrantRequest,
    example={"bytes": 327_680},
    unlimited=True,
)
async def post_grant(context: RequestContext) -> dict[str, Any]:
    """Ask to send over a pool.

    As `juicefs sync --traffic-control-url` does. The answer comes once that many may be sent:
    programs that ask share what transfers under way leave, in the order in which they ask.
    """
    wan, free_at_s = context.current.wan, context.service.free_at_s
    region = wan.resolve(str(context.request.match_info["region"]), "region").region_id
    left_gbps = pool_left_gbps(wan.network, context.service.holds.live(time.time()), region)
    bytes_per_s, now_s = left_gbps * BYTES_PER_GB / BITS_PER_BYTE, time.monotonic()
    at_s, granted = max(now_s, free_at_s.get(region, now_s)), context.body.bytes
    if granted > 0:
        granted = max(granted, int(bytes_per_s * GRANT_S))
    free_at_s[region] = at_s + granted / bytes_per_s
    if granted > 0:
        await asyncio.sleep(at_s - now_s)
    return {"granted": max(0, granted), "expired": 1000}


# ---- incidents --------------------------------------------------------------------------------


class IncidentsQuery(Period):
    """Of which finished transfers the savings are, and of which one more is asked."""

    transfer: Name | None = Field(None, description="Only this one, also if nothing is wrong.")


@route("GET", "/v1/incidents", "read", query=IncidentsQuery, internal=True)
async def get_incidents(context: RequestContext) -> dict[str, Any]:
    """List what is wrong with links and transfers.

    Links that are down or degraded, or were within a week; transfers in flight that this touches,
    or that are late, slow or without what they held, with the time and cost that they take beyond
    their plans, as known last of those that are silent; and what transfers that finished in a
    span of time, the newest thousand, have saved by relays of their plans.
    """
    query, now_s = context.query, time.time()
    query.check()
    since_s = now_s - DAYS * SECONDS_PER_DAY
    events, flying, gains = await context.read(lambda store: _stored(store, query, since_s, now_s))
    found = incidents(reversed(events), context.current.network.states)[:MOST_INCIDENTS]
    listed = [asdict(incident) | {"transfers": []} for incident in found]
    troubled: list[tuple[TrackedTransfer, TransferDetails]] = []
    for of, one in flying:
        links = links_of(one)
        touching = [
            row
            for incident, row in zip(found, listed, strict=True)
            if (incident.src, incident.dst) in links and incident.lasted_into(of.began_s)
        ]
        for row in touching:
            row["transfers"].append(of.id)
        if query.transfer or touching or of.is_late or of.is_slow or of.hold in ("lapsed", "lost"):
            troubled.append((of, one))
    seen = await _seen(context, troubled)
    return {"since_s": since_s, "incidents": listed, "transfers": seen, "saved": gains}


def _stored(
    store: Store, query: IncidentsQuery, since_s: float, now_s: float
) -> tuple[list[Event], list[tuple[TrackedTransfer, TransferDetails]], dict[str, float]]:
    """Return events, transfers in flight, each with its details as known last, and savings."""
    database, flying = store.database, []
    for row in transfer_rows(database, "in-flight"):
        if query.transfer in (None, row.id):
            of = tracked(row, now_s)
            flying.append((of, details(row, row.heard_s if of.state == "silent" else now_s)))
    events = Events(database).newest(("leg",), since_s, limit=MOST_EVENTS)
    span = query.since_s, query.until_s
    most = 0 if query.transfer else MOST_FINISHED
    rows = transfer_rows(database, "finished", ended_s=span, limit=most)
    found = [of for of in (tracked(row, now_s) for row in rows) if of.saved_s is not None]
    sums = {name: sum(getattr(of, name) for of in found) for name in ("saved_s", "saved_usd")}
    counts = {"transfers": len(found), "left_out": len(rows) == MOST_FINISHED}
    return events, flying, counts | sums


async def _seen(
    context: RequestContext, troubled: Sequence[tuple[TrackedTransfer, TransferDetails]]
) -> list[Any]:
    """Return transfers with their ends."""
    asked = [
        (at, one.rest.body)
        for at, (_, one) in enumerate(troubled)
        if one.rest and one.rest.question == "replan"
    ][:MOST_PLANNED]
    answers = []
    if asked:
        answers = await context.ask(advice_on, [body for _, body in asked], context.service.holds)
    known = {at: advice for (at, _), advice in zip(asked, answers, strict=True) if advice}
    found = []
    for at, (of, one) in enumerate(troubled):
        advice = known.get(at)
        kept = advice.keep if advice else None
        changed = advice.change if advice and advice.verdict == "change" else None
        entry = asdict(of) | {"last_s": of.last_s}
        entry["cause"] = advice.cause if advice else None
        entry["advice"] = advice.reason if advice else ""
        entry["kept"] = outlook(one, kept)
        entry["changed"] = outlook(one, changed, kept) if changed else None
        found.append(entry)
    return sorted(found, key=lambda entry: -_lost_s(entry["kept"]))


def _lost_s(kept: Outlook | None) -> float:
    """Return the time that a transfer loses, for the order; infinity where no end is known."""
    if kept is None:
        return 0.0
    return kept.extra_s or (inf if kept.extra_s is None and kept.end_s is None else 0.0)
