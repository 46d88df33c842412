"""``/v1/incidents``: links that are or were in trouble, and what that costs transfers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import Any

from planner.model.estimate import SECONDS_PER_DAY
from relayd.http.answers import rests_of
from relayd.http.route import RequestContext, route
from relayd.store import Store
from relayd.store.events import Event, Events
from relayd.transfers.incidents import Outlook, Saved, incidents, links_of, outlook, saved
from relayd.transfers.register import transfer_rows
from relayd.transfers.tracked import TransferDetails, details

DAYS = 7.0
MOST_INCIDENTS, MOST_EVENTS, MOST_FINISHED = 50, 1000, 200
MOST_PLANNED = 20
"""Transfers whose rest is planned for one answer; of others, their rate tells the end."""
_SHOWN = ("id", "label", "src", "dst", "state", "is_late", "is_slow", "planned_end_s")


@route("GET", "/v1/incidents", "read", internal=True)
async def get_incidents(context: RequestContext) -> dict[str, Any]:
    """List what is wrong with links and transfers.

    Links that are down or degraded, or were within a week; transfers in flight that this touches,
    or that are late or slow, with the time and cost that they take beyond their plans; and what
    finished transfers have saved by relays of their plans.
    """
    now_s = time.time()
    since_s = now_s - DAYS * SECONDS_PER_DAY
    events, flying, gains = await context.read(lambda store: _stored(store, since_s, now_s))
    found = incidents(reversed(events), context.current.network.states)[:MOST_INCIDENTS]
    listed = [asdict(incident) | {"transfers": []} for incident in found]
    troubled: list[TransferDetails] = []
    for one in flying:
        of, links = one.transfer, links_of(one)
        touching = [
            row
            for incident, row in zip(found, listed, strict=True)
            if (incident.src, incident.dst) in links and incident.lasted_into(of.began_s)
        ]
        for row in touching:
            row["transfers"].append(of.id)
        if touching or of.is_late or of.is_slow:
            troubled.append(one)
    seen = await _seen(context, troubled)
    return {"since_s": since_s, "incidents": listed, "transfers": seen, "saved": gains}


def _stored(
    store: Store, since_s: float, now_s: float
) -> tuple[list[Event], list[TransferDetails], Saved | None]:
    database = store.database
    flying = [details(row, now_s) for row in transfer_rows(database, "in-flight")]
    finished = transfer_rows(database, "finished", limit=MOST_FINISHED)
    events = Events(database).newest(("leg",), since_s, limit=MOST_EVENTS)
    return events, flying, saved(finished, now_s)


async def _seen(context: RequestContext, troubled: Sequence[TransferDetails]) -> list[Any]:
    """Return transfers with their ends; a silent one may have stopped, so nothing tells its end."""
    asked = [
        (at, one.rest.body)
        for at, one in enumerate(troubled)
        if one.rest and one.rest.question == "replan" and one.transfer.state == "running"
    ][:MOST_PLANNED]
    rests = await context.ask(rests_of, [body for _, body in asked]) if asked else []
    known = {at: rest for (at, _), rest in zip(asked, rests, strict=True) if rest}
    found = []
    for at, one in enumerate(troubled):
        kept, changed = known.get(at, (None, None))
        entry = {key: getattr(one.transfer, key) for key in _SHOWN}
        entry["kept"] = outlook(one, kept)
        entry["changed"] = outlook(one, changed, kept) if changed else None
        found.append(entry)
    return sorted(found, key=lambda entry: -_lost_s(entry["kept"]))


def _lost_s(kept: Outlook | None) -> float:
    """Return the time that a transfer loses, for the order; infinity where no end is known."""
    if kept is None:
        return 0.0
    return kept.extra_s or (inf if kept.extra_s is None and kept.end_s is None else 0.0)
