"""``relayd serve mcp`` with the official client: over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import relayd
from relayd.questions.registry import QUESTIONS
from tests.http.running import make_store
from tests.relayd.building import fleet_file

ASKED: dict[str, Any] = {"src": "us-east", "dst": "sa", "volume_gb": 500}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("mcp"))


def over_stdio(db: Path, asks: Callable[[Client], Coroutine[Any, Any, None]], *more: str) -> None:
    words = ["-m", "relayd", "serve", "mcp", "--db", str(db), *more]
    server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def connected() -> None:
        async with Client(server) as client:
            await asks(client)

    asyncio.run(connected())


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    assert isinstance(found.structured_content, dict)
    return found.structured_content


def test_every_question_is_a_tool_that_answers_as_the_library_does(db: Path) -> None:
    wan = relayd.open(db)

    async def asks(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed.keys() == {
            *(question.method for question in QUESTIONS),
            *("compare", "explain", "links", "regions"),
        }
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed.values())
        plan = await answer(client, "plan", **ASKED)
        for question in QUESTIONS:
            asked = dict(question.example)
            if question.name == "replan":  # of a plan that is known
                asked["plan"] = plan
            found = await answer(client, question.method, **asked)
            assert found == wan.ask(question.request.from_json(asked)).model_dump("json")
        both = await answer(client, "compare", transfer=ASKED, variants=[{"relays": "none"}])
        assert [one["plan_id"] for one in both["plans"]] == [
            wan.plan(**ASKED).plan_id,
            wan.plan(**ASKED, relays="none").plan_id,
        ]
        src, dst, _ = wan.resolve_pair("us-east", "sa")
        assert (await answer(client, "regions", name="sa"))["region"] == dst
        (link,) = (await answer(client, "links", src=src, dst=dst))["links"]
        assert link["aggregate_gbps"]["expected"] == wan.links(src, dst)[0].aggregate_gbps.expected

    over_stdio(db, asks)


def test_what_is_wrong_is_told_and_the_next_question_is_answered(db: Path) -> None:
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

    async def asks(client: Client) -> None:
        for tool, arguments, words in wrong:
            found = await client.call_tool(tool, arguments)
            assert found.is_error
            assert words in found.content[0].text  # type: ignore[union-attr]
        assert (await answer(client, "plan", **ASKED))["plan_id"]

    over_stdio(db, asks)


def test_transfers_are_reported_where_that_is_allowed(db: Path, tmp_path: Path) -> None:
    """With a fleet a campaign is forecast too; terms and region names are explained."""
    fleet = fleet_file(tmp_path / "fleet.toml", "aws:us-east-1", "gcp:us-east1")

    async def asks(client: Client) -> None:
        assert "`relayd plan`" in (await answer(client, "explain", term="margin"))["commands"]
        assert len((await answer(client, "explain"))["terms"]) > 20
        forecast = await answer(client, "forecast_campaign", budget_usd=5)
        assert 0 <= forecast["campaign"]["egress_usd"] <= 5
        begun = await answer(client, "begin_transfer", **ASKED, deadline="2h")
        told = await answer(client, "report_transfer", id=begun["id"], moved_gb=100)
        assert (told["moved_gb"], told["is_late"]) == (100, False)
        ended = await answer(client, "end_transfer", id=begun["id"], state="cancelled")
        assert ended["state"] == "cancelled"
        nameless = await client.call_tool("report_transfer", {"moved_gb": 1})
        assert "Missing id" in nameless.content[0].text  # type: ignore[union-attr]
        hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        changing = {name for name, hint in hints.items() if hint and not hint.read_only_hint}
        assert changing == {"begin_transfer", "report_transfer", "end_transfer"}

    over_stdio(db, asks, "--fleet", str(fleet), "--allow-reports")


def test_over_http_it_answers_whoever_has_the_token(db: Path) -> None:
    command = [sys.executable, "-m", "relayd", "serve", "mcp", "--db", str(db), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        where, token = (server.stderr.readline().split()[-1] for _ in range(2))
        key = {"Authorization": f"Bearer {token}"}

        async def asked() -> dict[str, Any]:
            async with (
                httpx2.AsyncClient(headers=key, timeout=60) as http,
                Client(streamable_http_client(where, http_client=http)) as client,
            ):
                return await answer(client, "plan", **ASKED)

        try:
            assert asyncio.run(asked())["plan_id"] == relayd.open(db).plan(**ASKED).plan_id
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
