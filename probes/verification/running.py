"""Runs of a verification on the fleet: servers and relays up, all clients together, all down.

Each host has one command for all of its servers, one for all that it relays, and one for all of its
clients, however many paths pass it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from planner.model.units import MBPS_PER_GBPS
from probes.campaign.findings import Findings, steady_sample
from probes.fleet.failures import ProbeError, first_of, missing_tool
from probes.fleet.remote import NOT_FOUND
from probes.fleet.session import Output
from probes.fleet.sessions import Sessions
from probes.tools.interface import Result, Test
from probes.tools.iperf3 import Iperf3
from probes.tools.running import SERVER_MARGIN_S, Ports, make_test
from probes.tools.together import all_ready, clients, outputs, servers
from probes.verification.outcomes import PathOutcome, RunOutcome
from probes.verification.relays import RelayedStream, relaying
from probes.verification.runs import PathRun, Run, Stream

GETTING_READY_S = 60.0
"""Longest time that the first server waits for the last client."""

LISTENING = b"0A"
"""State of a listening socket in ``/proc/net/tcp``."""

TOOL = Iperf3()
T = TypeVar("T")


@dataclass
class _StreamTest:
    """A stream and its test, which is completed as servers and relays come up."""

    path: PathRun
    stream: Stream
    test: Test

    @property
    def is_relayed(self) -> bool:
        return len(self.stream.hosts) == 3


async def run(
    sessions: Sessions, ports: Ports, what: Run, begin: Callable[[], None] = lambda: None
) -> RunOutcome:
    """Run paths at the same time; return what each carried.

    Parameters
    ----------
    begin : callable
        Called before anything is sent.

    Raises
    ------
    ProbeError
        Naming the host at fault. Whatever happens, nothing is left on the hosts.
    """
    longest_setup_s = max(path.setup_s for path in what.paths)
    flows = [
        _StreamTest(path, stream, _test(sessions, what, path, stream))
        for path in what.paths
        for stream in path.streams
    ]
    taken = await _each(what.hosts, lambda host: _listening(sessions, host))
    limit_s = max(TOOL.limit_s(flow.test) for flow in flows) + GETTING_READY_S + longest_setup_s
    relays: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for src, own in _by_host(flows, 0).items():
            await _serve(stack, sessions, ports, src, own, taken[src], limit_s)
        for relay, own in _by_host([flow for flow in flows if flow.is_relayed], 1).items():
            passing = [
                RelayedStream(
                    flow.stream.hosts[0],
                    flow.stream.hosts[2],
                    flow.test.port,
                    flow.test.connections,
                )
                for flow in own
            ]
            relays[relay], reached = await stack.enter_async_context(
                relaying(sessions, ports, relay, passing, taken[relay], limit_s)
            )
            for flow, (address, port) in zip(own, reached, strict=True):
                flow.test = replace(flow.test, address=address, port=port)
        began_s = time.time()
        receivers = _by_host(flows, -1)
        begin()
        async with _watched(sessions, what.hosts):
            found = await _each(
                receivers, lambda dst: _receive(sessions, dst, receivers[dst], longest_setup_s)
            )
    results = {id(flow): result for dst in receivers for flow, result in found[dst]}
    return RunOutcome(
        what,
        tuple(
            _outcome(path, [results[id(flow)] for flow in flows if flow.path is path], began_s)
            for path in what.paths
        ),
        relays,
    )


# ---- inside ------------------------------------------------------------------------------------


async def _each(hosts: Iterable[str], ask: Callable[[str], Awaitable[T]]) -> dict[str, T]:
    """Ask all hosts at the same time; the first failure ends all."""
    names = list(hosts)

    async def one(host: str) -> T:
        return await ask(host)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(host)) for host in names]
    except* ProbeError as failed:
        raise first_of(failed) from None
    return {host: task.result() for host, task in zip(names, tasks, strict=True)}


@asynccontextmanager
async def _watched(sessions: Sessions, hosts: Iterable[str]) -> AsyncIterator[None]:
    """End what is in this block when the connection to a host is lost: its flows have ended too."""

    async def watch(host: str) -> None:
        session = await sessions.session(host)
        raise await session.lost()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(watch(host)) for host in hosts]
            yield
            for task in tasks:
                task.cancel()
    except* ProbeError as failed:
        raise first_of(failed) from None


def _by_host(flows: Sequence[_StreamTest], place: int) -> dict[str, list[_StreamTest]]:
    """Return flows by the host at a place of their way."""
    found: dict[str, list[_StreamTest]] = {}
    for flow in flows:
        found.setdefault(flow.stream.hosts[place], []).append(flow)
    return found


def _test(sessions: Sessions, what: Run, path: PathRun, stream: Stream) -> Test:
    test = make_test(sessions.fleet, TOOL, stream.hosts[0], stream.hosts[-1])
    return replace(
        test,
        connections=stream.connections,
        duration_s=what.measured_s,
        omit_s=what.omit_s,
        most_mbps=0.0 if path.most_gbps == inf else _share_mbps(path),
    )


def _share_mbps(path: PathRun) -> float:
    return path.most_gbps * MBPS_PER_GBPS / len(path.streams)


async def _listening(sessions: Sessions, host: str) -> set[int]:
    """Return the TCP ports of a host on which something listens."""
    session = await sessions.session(host)
    output = await session.ask(["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true"])
    rows = (line.split() for line in output.stdout.splitlines())
    return {
        int(row[1].rpartition(b":")[2], 16) for row in rows if len(row) > 3 and row[3] == LISTENING
    }


async def _serve(
    stack: AsyncExitStack,
    sessions: Sessions,
    ports: Ports,
    src: str,
    flows: Sequence[_StreamTest],
    taken: set[int],
    limit_s: float,
) -> None:
    """Start the servers of a host; the tests get their ports."""
    host = sessions.fleet[src]
    for flow in flows:
        port = await stack.enter_async_context(ports.several(host, 1, taken))
        flow.test = replace(flow.test, port=port)
    session = await sessions.session(src)
    command = servers(TOOL.server(flow.test) for flow in flows)
    running = await stack.enter_async_context(session.server(command, limit_s + SERVER_MARGIN_S))
    await all_ready(running, host, TOOL.name, TOOL.ready_line(), len(flows))


async def _receive(
    sessions: Sessions, dst: str, flows: Sequence[_StreamTest], longest_setup_s: float
) -> list[tuple[_StreamTest, Result]]:
    """Run the clients of a host, so that all of a run are up to speed at the same time."""
    session = await sessions.session(dst)
    began_s = time.time()
    commands = [(longest_setup_s - flow.path.setup_s, TOOL.command(flow.test)) for flow in flows]
    limit_s = max(TOOL.limit_s(flow.test) for flow in flows) + longest_setup_s
    printed = await session.measure(clients(commands), limit_s)
    found = outputs(dst, printed.stdout)
    if len(found) != len(flows):
        raise ProbeError(dst, "output", "what its programs printed is cut off")
    return [(flow, _read(flow, output, began_s)) for flow, output in zip(flows, found, strict=True)]


def _read(flow: _StreamTest, output: Output, began_s: float) -> Result:
    if output.status in NOT_FOUND:
        raise missing_tool(flow.test.dst.name, TOOL.name)
    try:
        return TOOL.read(output, flow.test, began_s)
    except ProbeError as error:
        if error.of_the_host or not flow.is_relayed:
            raise
        raise ProbeError(
            error.host,
            error.cause,
            f"{error.problem} (through a relay)",
            f"The relay accepts only the addresses that the fleet file has for {error.host}, and "
            f"must be reachable at port {flow.test.port}.",
        ) from None


def _outcome(path: PathRun, results: Sequence[Result], began_s: float) -> PathOutcome:
    samples = tuple(
        steady_sample([result], Findings())._replace(measured_at_s=began_s) for result in results
    )
    return PathOutcome(path, samples, sum(result.sent_gb for result in results), began_s)
