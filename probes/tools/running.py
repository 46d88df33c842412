"""One test from beginning to end: server up on its own port, client run, server gone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from planner.model.errors import InputError
from probes.fleet.failures import ProbeError, missing_tool
from probes.fleet.hosts import Fleet, Host
from probes.fleet.remote import wait_for_listener
from probes.fleet.sessions import Sessions
from probes.tools.interface import Result, Test, Tool, failure

SERVER_MARGIN_S = 20.0
"""How much longer than its client a server may run before its host ends it."""


class Ports:
    """The probe ports of each host that this controller uses."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    @asynccontextmanager
    async def several(self, host: Host, count: int, avoid: set[int]) -> AsyncIterator[int]:
        """Reserve consecutive ports; yield the first.

        Raises
        ------
        ProbeError
            If there is none left.
        """
        taken = self._taken.setdefault(host.name, set())
        for first in range(host.first_port, host.last_port - count + 2):
            wanted = set(range(first, first + count))
            if not wanted & (taken | avoid):
                break
        else:
            raise ProbeError(
                host.name,
                "busy",
                f"no {count} free ports between {host.first_port} and {host.last_port}",
                "Widen `probe_ports` in the fleet file.",
            )
        taken |= wanted
        try:
            yield first
        finally:
            taken -= wanted


def make_test(fleet: Fleet, tool: Tool, src: str, dst: str) -> Test:
    """Return a test between two members of a fleet: nothing else can be probed."""
    if src == dst:
        raise InputError("pair", "has one host at both ends", value=src)
    address = fleet.target(dst, src) if tool.client_at_dst else fleet.target(src, dst)
    return Test(fleet[src], fleet[dst], address)


@asynccontextmanager
async def prepared(sessions: Sessions, ports: Ports, tool: Tool, test: Test) -> AsyncIterator[Test]:
    """Start the tool's server; yield the test with its port.

    Raises
    ------
    ProbeError
        If no port is free or the server does not come up.
    """
    server_host = test.src if tool.client_at_dst else test.dst
    session = await sessions.session(server_host.name)
    streams = test.connections + 1 if tool.name == "nuttcp" else 1
    limit_s = tool.limit_s(test) + SERVER_MARGIN_S
    avoid: set[int] = set()
    while True:
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(ports.several(server_host, streams, avoid))
            ready = replace(test, port=port)
            command = tool.server(ready)
            assert command
            server = session.server(command, limit_s)
            running = await stack.enter_async_context(server)
            if tool.ready_line:
                up = bool(await running.line_with(tool.ready_line))
            else:
                up = (await session.ask(wait_for_listener(port))).status == 0
            if up:
                yield ready
                return
            output = await running.output()
            if output.status in (126, 127):
                raise missing_tool(server_host.name, tool.name)
            problem = failure(server_host, tool.name, output.error_text)
            # The port belongs to another server: try the next.
            if problem.cause != "busy":
                raise problem
        avoid.add(port)


async def run_client(sessions: Sessions, tool: Tool, test: Test) -> Result:
    """Run the client of a test whose server listens, and read its output."""
    client = test.dst if tool.client_at_dst else test.src
    session = await sessions.session(client.name)
    began_s = time.time()
    output = await session.measure(tool.command(test), tool.limit_s(test))
    return tool.read(output, test, began_s)


async def run(sessions: Sessions, ports: Ports, tool: Tool, test: Test) -> Result:
    """Run one test.

    Raises
    ------
    ProbeError
        Naming the host at fault.
    """
    needs_server = tool.server(replace(test, port=1)) is not None
    if not needs_server:
        target = test.dst
        return await run_client(sessions, tool, replace(test, port=target.first_port))
    async with prepared(sessions, ports, tool, test) as ready:
        return await run_client(sessions, tool, ready)
