"""Plans as JSON, and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import orjson

from planner.fields.specified import Specified
from planner.model.answer import Answer
from planner.model.errors import RelaydError
from planner.model.network import Snapshot
from planner.transfer.request import TransferRequest
from relayd.emitting.formats import emit
from relayd.http.responses.problems import encoded as problem_bytes
from relayd.http.responses.problems import problem_of
from relayd.sources.source import Source
from relayd.sources.wan import Wan


def answer_bytes(wan: Wan, request: Specified) -> bytes:
    """Return an answer as JSON.

    orjson writes dataclasses as they are: 0.02 ms a plan, where turning one into dicts and these
    into text takes 0.14 ms, nearly half of what planning takes.

    Raises
    ------
    RelaydError
        As :meth:`relayd.sources.wan.Wan.ask` does.
    """
    return _written(wan.ask(request))


def answer_earlier(
    _wan: Wan, open_source: Callable[[], Source], request: Specified
) -> tuple[bytes, Snapshot]:
    """Return an answer from an earlier snapshot as JSON, and that snapshot, read from the store."""
    with closing(open_source()) as source:
        answer = Wan(source).ask(request)
    return _written(answer), answer.snapshot


def _written(answer: Answer) -> bytes:
    return orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY)


def script_of(_wan: Wan, asked: Mapping[str, Any]) -> str:
    """Return what :func:`relayd.emitting.formats.emit` writes; it needs no network."""
    return emit(asked["plan"], asked["emit"], endpoints=asked["endpoints"], port=asked["port"])


def batch_items(wan: Wan, requests: list[Any], request_id: str | None) -> list[bytes]:
    """Return the items of a batch's answer, each with a plan or its own problem."""
    return [_item(wan, request, request_id) for request in requests]


def _item(wan: Wan, request: Any, request_id: str | None) -> bytes:
    try:
        plan = answer_bytes(wan, TransferRequest.from_json(request))
    except RelaydError as error:
        return b'{"plan":null,"problem":%b}' % problem_bytes(problem_of(error), request_id)
    return b'{"plan":%b,"problem":null}' % plan
