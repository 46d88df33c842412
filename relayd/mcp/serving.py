"""A server of the Model Context Protocol over standard input and output, or HTTP on loopback."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from planner.model.errors import RelaydError
from relayd.mcp.tools import AssistantTool
from relayd.sources.wan import Wan
from relayd.version import __version__

PATH = "/mcp"
_INSTRUCTIONS = (
    "relayd plans transfers between cloud datacenters. Ask `plan` whether to send direct or "
    "through a relay, with how many VMs and connections, how long it takes and what it costs; an "
    "answer's `reason`, `warnings` and `confidence` say what it rests on: pass them on. `links` "
    "shows the figures behind it."
)

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


async def serve_stdio(wan: Wan, tools: Sequence[AssistantTool]) -> None:
    """Answer the program that started this one, until it closes its end."""
    server = _server(wan, tools)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def serve_http(
    wan: Wan, tools: Sequence[AssistantTool], listening: socket.socket, token: str
) -> None:
    """Answer requests that carry the token, on a socket of loopback.

    The SDK refuses the hosts and origins of others.
    """
    app = _with_token(_server(wan, tools).streamable_http_app(streamable_http_path=PATH), token)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    await server.serve(sockets=[listening])


def _server(wan: Wan, tools: Sequence[AssistantTool]) -> Server[Any]:
    by_name = {tool.name: tool for tool in tools}
    listed = [
        types.Tool(
            name=tool.name,
            description=tool.description,
            input_schema=tool.schema,
            annotations=types.ToolAnnotations(
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )
        for tool in tools
    ]
    thread = ThreadPoolExecutor(1)  # a store is used by the thread that opened it

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = by_name.get(params.name)
        if tool is None:
            return _refused(f"There is no tool {params.name!r}; there are {', '.join(by_name)}.")

        def ask() -> dict[str, Any]:
            wan.refresh()
            return tool.call(wan, params.arguments or {})

        try:
            answer = await asyncio.get_running_loop().run_in_executor(thread, ask)
        except RelaydError as error:
            return _refused(str(error))
        text = types.TextContent(text=json.dumps(answer, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=answer)

    return Server(
        "relayd",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _refused(problem: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=problem)], is_error=True)


def _with_token(app: _App, token: str) -> _App:
    """Return an app that refuses requests without a token before anything else sees them."""
    expected = f"Bearer {token}".encode()

    async def checked(scope: _Message, receive: _Receive, send: _Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] != "http" or hmac.compare_digest(given, expected):
            await app(scope, receive, send)
            return
        headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body"})

    return checked
