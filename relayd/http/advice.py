"""Events that say which transfers under way had better change their plans."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from planner.model.network import Network
from planner.replanning.plan import Replan
from relayd.http.answers import advice_on
from relayd.http.store_access import StoreAccess
from relayd.http.workers import Workers
from relayd.questions.holds import Holds
from relayd.store import Store
from relayd.store.events import Events
from relayd.transfers.incidents import links_of
from relayd.transfers.register import transfer_rows
from relayd.transfers.tracked import TransferDetails, details

KIND = "replan"
AT_ONCE = 4
"""Plans that a worker takes between questions of others: less than a second."""
MOST_PLANNED = 100
"""The newest transfers: some 10 s of a worker."""


async def advise(
    store: StoreAccess, workers: Workers, version: str, network: Network, holds: Holds
) -> None:
    """Add an event for each running transfer that had better change its plan.

    Once for each transfer, snapshot and state of its links; services that share a store together.
    """
    running = await store.read(_running)
    for first in range(0, len(running), AT_ONCE):
        some = running[first : first + AT_ONCE]
        bodies = [one.rest.body for one in some if one.rest]
        found = await workers.ask(version, advice_on, bodies, holds)
        for one, advice in zip(some, found, strict=True):
            if advice and advice.verdict == "change":
                said = _said(advice, one, network)
                await store.write(partial(_add, name=one.transfer.id, said=said))


def _running(store: Store) -> list[TransferDetails]:
    """Return running transfers whose whole plan is known."""
    now_s, rows = time.time(), transfer_rows(store.database, "in-flight", limit=MOST_PLANNED)
    return [
        one
        for one in (details(row, now_s) for row in rows)
        if one.transfer.state == "running" and one.rest and one.rest.question == "replan"
    ]


def _said(advice: Replan, of: TransferDetails, network: Network) -> dict[str, Any]:
    states = {pair: network.states[pair] for pair in links_of(of) if pair in network.states}
    links = {">".join(pair): [state.condition, state.since] for pair, state in states.items()}
    plan: Mapping[str, Any] = advice.plan or {}
    return {
        "snapshot": advice.snapshot.id,
        "links": links,
        "plan_id": plan.get("plan_id"),
        "verdict": plan.get("verdict"),
        "reason": advice.reason,
        "cause": advice.cause and advice.cause.text,
    }


def _add(store: Store, name: str, said: Mapping[str, Any]) -> None:
    events = Events(store.database)
    with store.database.transaction():
        last = events.last(KIND, name)
        if last is None or any(last.detail[key] != said[key] for key in ("snapshot", "links")):
            events.add(KIND, name, said)
