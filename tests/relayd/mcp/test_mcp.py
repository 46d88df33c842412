"""``relayd serve mcp`` with the official client: over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import relayd
from relayd.client.blocking import Loop
from relayd.questions.registry import QUESTIONS
from tests.http.running import make_store
from tests.relayd.building import fleet_file

ASKED: dict[str, Any] = {"src": "us-east", "dst": "sa", "volume_gb": 500}
READING = {
    *(question.method for question in QUESTIONS),
    *("compare", "explain", "links", "regions"),
}
Call: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("mcp"))


@pytest.fixture(scope="module")
def client(db: Path) -> Iterator[tuple[Client, Loop]]:
    """Return an assistant's client, over stdio, of a server with a fleet."""
    fleet = fleet_file(db.with_name("fleet.toml"), "aws:us-east-1", "gcp:us-east1")
    words = ["-m", "relayd", "serve", "mcp", "--db", str(db)]
    words += ["--fleet", str(fleet)]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    loop, over = Loop(), asyncio.Event()

    async def begin() -> tuple[Client, asyncio.Task[None]]:
        opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()

        async def connected() -> None:
            async with Client(server) as client:
                opened.set_result(client)
                await over.wait()

        task = asyncio.create_task(connected())
        either: list[asyncio.Future[Any]] = [opened, task]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return opened.result(), task

    async def end() -> None:
        over.set()
        await task

    found, task = loop.run(begin())
    yield found, loop
    loop.run(end())


@pytest.fixture
def call(client: tuple[Client, Loop]) -> Call:
    """Return what calls a tool, and gives its answer or what is wrong."""

    def call(tool: str, **arguments: Any) -> Any:
        found = client[1].run(client[0].call_tool(tool, arguments))
        return found.content[0].text if found.is_error else found.structured_content  # type: ignore[union-attr]

    return call


def test_every_question_is_a_tool_that_answers_as_the_library_does(
    call: Call, db: Path, environment: MutableMapping[str, str]
) -> None:
    environment["RELAYD_FLEET"] = str(db.with_name("fleet.toml"))
    wan = relayd.open(db)
    plan = call("plan", **ASKED)
    for question in QUESTIONS:
        asked = dict(question.example)
        if question.name == "replan":  # of a plan that is known
            asked["plan"] = plan
        answer = wan.ask(question.request.from_json(asked)).model_dump("json")
        assert call(question.method, **asked) == answer
    both = call("compare", transfer=ASKED, variants=[{"relays": "none"}])
    assert [one["plan_id"] for one in both["plans"]] == [
        wan.plan(**ASKED).plan_id,
        wan.plan(**ASKED, relays="none").plan_id,
    ]
    src, dst, _ = wan.resolve_pair("us-east", "sa")
    assert call("regions", name="sa")["region"] == dst
    (link,) = call("links", src=src, dst=dst)["links"]
    assert link["aggregate_gbps"]["expected"] == wan.links(src, dst)[0].aggregate_gbps.expected
    assert "`relayd plan`" in call("explain", term="margin")["commands"]
    assert len(call("explain")["terms"]) > 20


def test_what_is_wrong_is_told_and_the_next_question_is_answered(call: Call) -> None:
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("plan", {"src": "atlantis", "dst": "sa"}, "atlantis"),
        ("plan", {"src": "us-east", "dst": "sa", "volume_gb": -1}, "volume_gb"),
        ("plan", {"src": "us-east", "dst": "sa", "speed": 3}, "speed"),
        ("plan", {"src": "us-east", "dst": "sa", "volume_gb": 500, "deadline_s": 1}, "at least"),
        ("compare", {"transfer": ASKED, "variants": [3]}, "variants"),
        ("compare", {}, "transfer"),
        ("links", {"src": "atlantis"}, "atlantis"),
        ("steal", {}, "no tool"),
    ]
    for tool, arguments, words in wrong:
        said = call(tool, **arguments)
        assert isinstance(said, str)
        assert words in said
    assert call("plan", **ASKED)["plan_id"]


def test_with_a_fleet_a_campaign_is_forecast_and_every_tool_only_reads(
    call: Call, client: tuple[Client, Loop]
) -> None:
    forecast = call("forecast_campaign", budget_usd=5)
    assert 0 <= forecast["campaign"]["egress_usd"] <= 5
    tools = client[1].run(client[0].list_tools()).tools
    hints = {tool.name: tool.annotations and tool.annotations.read_only_hint for tool in tools}
    assert hints == dict.fromkeys(READING | {"forecast_campaign"}, True)


def test_over_http_it_answers_whoever_has_the_token(db: Path) -> None:
    command = [sys.executable, "-m", "relayd", "serve", "mcp", "--db", str(db), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        where, token = (server.stderr.readline().split()[-1] for _ in range(2))
        key = {"Authorization": f"Bearer {token}"}

        async def asked() -> tuple[set[str], Any]:
            async with (
                httpx2.AsyncClient(headers=key, timeout=60) as http,
                Client(streamable_http_client(where, http_client=http)) as client,
            ):
                tools = (await client.list_tools()).tools
                plan = await client.call_tool("plan", ASKED)
                return {tool.name for tool in tools}, plan.structured_content

        try:
            tools, plan = asyncio.run(asked())
            assert tools == READING
            assert plan["plan_id"] == relayd.open(db).plan(**ASKED).plan_id
            for headers, status in (
                ({}, 401),
                ({"Authorization": "Bearer x"}, 401),
                ({**key, "Host": "evil.example"}, 421),
                ({**key, "Origin": "http://evil.example"}, 403),
            ):
                refused = httpx2.post(where, json={}, headers=headers, timeout=60)
                assert refused.status_code == status, refused.text
        finally:
            server.terminate()
    taken = subprocess.run([*command[:-1], "99999999"], capture_output=True, text=True, check=False)
    assert taken.returncode == 2
    assert "--port" in taken.stderr
