"""``POST /v1/shuffles``: many transfers at once, over VMs that they share."""

from __future__ import annotations

from aiohttp import web

from planner.shuffle_plan import ShufflePlan
from relayd.service.answering import dumped
from relayd.service.answers import json_answer
from relayd.service.models.shuffles import ShuffleQuestion
from relayd.service.routes.table import Ask, Route
from relayd.wan import Wan


async def post_shuffle(ask: Ask) -> web.Response:
    """Answer in a worker: a shuffle takes from milliseconds to seconds."""
    current = ask.service.current
    body = await ask.service.workers.ask(current.version, shuffle_bytes, ask.body)
    return json_answer(body, current.snapshot)


def shuffle_bytes(wan: Wan, asked: ShuffleQuestion) -> bytes:
    """Return a shuffle's plan as JSON."""
    return dumped(wan.shuffle(asked.demands_gb(), **asked.keywords()))


ROUTES = (
    Route(
        "POST", "/v1/shuffles", post_shuffle, "Recommend how to run many transfers", "plan",
        body=ShuffleQuestion, answer=ShufflePlan, statuses=(409, 422),
    ),
)  # fmt: skip
