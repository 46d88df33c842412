"""The surfaces that a question can be asked on, each giving the answer's JSON or its problem."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import relayd
from planner.fields.kinds import ByPlace, Flag
from planner.fields.specified import Field, Specified, fields_of
from planner.model.errors import RelaydError
from planner.model.network import Network
from relayd.__main__ import main
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import RemoteWan
from relayd.client.errors import error_of
from relayd.questions.question import Question
from tests.http.running import Served, served
from tests.law.states import State

Body = Mapping[str, Any]


class Said(str):
    """What a command said on stderr in place of an answer."""

    __slots__ = ()


Outcome = str | RelaydError | Said
Surface = Callable[[Question, Body], Outcome]


class Surfaces(NamedTuple):
    """All surfaces on one state of knowledge, by name."""

    by_name: dict[str, Surface]
    networks: dict[str, Network]


class Problem(NamedTuple):
    """What an error says, whichever way it came."""

    kind: str
    field: str | None
    remedy: str | None
    text: str


def problem_of(error: Outcome) -> Problem:
    """Return an error by what must be the same everywhere."""
    assert isinstance(error, RelaydError), error
    return Problem(
        type(error).__name__,
        getattr(error, "field", None),
        getattr(error, "remedy", None),
        str(error),
    )


@contextmanager
def surfaces_on(state: State, folder: Path) -> Iterator[Surfaces]:
    """Open a state of knowledge in every way there is."""
    catalogues = [word for file in state.catalogues for word in ("--catalogue", str(file))]
    with ExitStack() as stack:
        fleet = ["--fleet", str(state.fleet)] if state.fleet else []
        service = stack.enter_context(served(state.db, *catalogues, *fleet))
        if state.fleet:
            stack.enter_context(pytest.MonkeyPatch.context()).setenv(
                "RELAYD_FLEET", str(state.fleet)
            )
        local = relayd.open(state.db, catalogues=state.catalogues)
        stack.callback(local.close)
        memory = relayd.open(state.db, catalogues=state.catalogues)
        stack.callback(memory.close)
        _ = memory.network  # from here on it answers from the whole network
        remote = stack.enter_context(RemoteWan(service.url))
        mirror = relayd.open(service.url, mirror=True)
        stack.callback(mirror.close)

        def asked(wan: Any) -> Surface:
            return lambda question, body: _outcome(
                lambda: wan.ask(question.request.from_json(body)).model_dump_json()
            )

        def command(*where: str) -> Surface:
            return lambda question, body: _command(question, body, folder, *where)

        yield Surfaces(
            {
                "library": asked(local),
                "library on the whole network": asked(memory),
                "client": asked(remote),
                "asynchronous client": lambda question, body: _outcome(
                    lambda: asyncio.run(_asynchronous(service.url, question, body))
                ),
                "mirror": asked(mirror),
                "HTTP": lambda question, body: _http(service, question, body),
                "command on a store": command("--db", str(state.db), *catalogues),
                "command on a service": command("--db", service.url),
            },
            {"library": memory.network, "client": remote.network, "mirror": mirror.network},
        )


def _outcome(ask: Callable[[], str]) -> Outcome:
    try:
        return canonical(ask())
    except RelaydError as error:
        return error


def canonical(text: str) -> str:
    """Return JSON with its keys in their order and its figures digit for digit."""
    return json.dumps(json.loads(text), indent=1)


async def _asynchronous(url: str, question: Question, body: Body) -> str:
    async with AsyncWan(url) as wan:
        return str((await wan.ask(question.request.from_json(body))).model_dump_json())


def _http(service: Served, question: Question, body: Body) -> Outcome:
    answer = service.ask("POST", question.path, dict(body))
    if answer.status == 200:
        return canonical(answer.content.decode())
    found = error_of(answer.json, service.url)
    assert isinstance(found, RelaydError)
    return found


def _command(question: Question, body: Body, folder: Path, *where: str) -> Outcome:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words_of(question, body, folder), "--json", *where])
    return Said(err.getvalue()) if code else canonical(out.getvalue())


def words_of(question: Question, body: Body, folder: Path) -> list[str]:
    """Return a question as a person types it, with what is long in a file."""
    words, in_file = question.command.split(), {}
    for name, field in fields_of(question.request).items():
        if field.key not in body or field.option is None:
            continue
        value, option = body[field.key], field.option
        if not option.startswith("--"):
            in_file[field.key] = value
        elif field.kind.metavar == "FILE":
            words += [option, _written(folder, name, value)]
        elif isinstance(field.kind, Flag):
            words += [option] if value else []
        elif isinstance(field.kind, ByPlace):
            of = field.kind.of
            for place, item in value.items():
                words += [option, f"{place}={of.text(of.validate(item))}"]
        else:
            for item in value if isinstance(value, list) else [value]:
                words += [option, _typed(field, item)]
    if in_file:
        several = len(_fields_in_file(question.request)) > 1
        content = in_file if several else next(iter(in_file.values()))
        words.append(_written(folder, question.name, content))
    return words


def _typed(field: Field, value: Any) -> str:
    if isinstance(value, str):
        return value
    if field.name.endswith("_gb"):
        return f"{value}GB"
    try:
        return field.kind.text(field.kind.validate(value))
    except RelaydError:  # the surfaces are to say so
        return str(value)


def _fields_in_file(request: type[Specified]) -> list[str]:
    fields = fields_of(request).values()
    return [field.key for field in fields if field.option and not field.option.startswith("--")]


def _written(folder: Path, name: str, content: Any) -> str:
    file = folder / f"{name}.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)
