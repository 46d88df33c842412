"""Runs of a verification on the fleet: servers and relays up, all clients together, all down.

Each host has one command for all of its servers, one for all of its relays, and one for all of its
clients, however many paths pass it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from math import inf
from typing import Any, TypeVar

from planner.model.units import MBPS_PER_GBPS
from probes.campaign.throughput_tests import Findings, steady_sample
from probes.fleet.failures import ProbeError, missing_tool, side_by_side
from probes.fleet.remote import NOT_FOUND, Output
from probes.fleet.sessions import Sessions
from probes.tools.interface import SERVER_MARGIN_S, Ports, Result, Test, make_test
from probes.tools.iperf3 import Iperf3
from probes.tools.together import all_ready, clients, outputs, servers
from probes.verification.predictions import PlanPath, Stream
from probes.verification.relays import relaying
from probes.verification.runs import Run

GETTING_READY_S = 60.0
"""Longest time that the first server waits for the last client."""

LISTENING = b"0A"
"""State of a listening socket in ``/proc/net/tcp``."""

TOOL = Iperf3()
T = TypeVar("T")


@dataclass
class _StreamTest:
    """A stream and its test, which is completed as servers and relays come up."""

    path: PlanPath
    stream: Stream
    test: Test
    result: Result | None = None

    @property
    def is_relayed(self) -> bool:
        return len(self.stream.hosts) == 3


async def run_together(sessions: Sessions, ports: Ports, what: Run) -> None:
    """Run paths at the same time; add the results of each to the run.

    Raises ProbeError naming the host at fault. Whatever happens, nothing is left on the hosts.
    """
    longest_setup_s = max(path.setup_s for path in what.paths)
    flows = [
        _StreamTest(path, stream, _test(sessions, what, path, stream))
        for path in what.paths
        for stream in path.streams
    ]
    taken = await _each(what.hosts, lambda host: _listening(sessions, host))
    limit_s = max(TOOL.limit_s(flow.test) for flow in flows) + GETTING_READY_S + longest_setup_s
    async with AsyncExitStack() as stack:
        for src, own in _by_host(flows, 0).items():
            await _serve(stack, sessions, ports, src, own, taken[src], limit_s)
        for relay, own in _by_host([flow for flow in flows if flow.is_relayed], 1).items():
            tests = [flow.test for flow in own]
            what.relays[relay], reached = await stack.enter_async_context(
                relaying(sessions, ports, relay, tests, taken[relay], limit_s)
            )
            for flow, (address, port) in zip(own, reached, strict=True):
                flow.test = replace(flow.test, address=address, port=port)
        began_s = time.time()
        what.has_begun = True
        receivers = _by_host(flows, -1)
        async with side_by_side() as group:
            watches = [group.create_task(_watch(sessions, host)) for host in what.hosts]
            await _each(
                receivers, lambda dst: _receive(sessions, dst, receivers[dst], longest_setup_s)
            )
            for watch in watches:
                watch.cancel()
    what.paths = tuple(
        _outcome(path, [f.result for f in flows if f.path is path and f.result], began_s)
        for path in what.paths
    )
    what.measured_at_s = began_s


async def _each(hosts: Iterable[str], ask: Callable[[str], Coroutine[Any, Any, T]]) -> dict[str, T]:
    """Ask all hosts at the same time; the first failure ends all."""
    async with side_by_side() as group:
        tasks = {host: group.create_task(ask(host)) for host in hosts}
    return {host: task.result() for host, task in tasks.items()}


async def _watch(sessions: Sessions, host: str) -> None:
    """Fail when the connection to a host is lost: its flows have ended, too."""
    session = await sessions.session(host)
    raise await session.lost()


def _by_host(flows: Sequence[_StreamTest], place: int) -> dict[str, list[_StreamTest]]:
    """Return flows by the host at a place of their way."""
    found: dict[str, list[_StreamTest]] = {}
    for flow in flows:
        found.setdefault(flow.stream.hosts[place], []).append(flow)
    return found


def _test(sessions: Sessions, what: Run, path: PlanPath, stream: Stream) -> Test:
    test = make_test(sessions.fleet, TOOL, stream.hosts[0], stream.hosts[-1])
    most_mbps = path.most_gbps * MBPS_PER_GBPS / len(path.streams)
    return replace(
        test,
        connections=stream.connections,
        duration_s=what.measured_s,
        omit_s=what.omit_s,
        most_mbps=0.0 if most_mbps == inf else most_mbps,
    )


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
    await all_ready(running, host, TOOL.name, TOOL.ready_line, len(flows))


async def _receive(
    sessions: Sessions, dst: str, flows: Sequence[_StreamTest], longest_setup_s: float
) -> None:
    """Run the clients of a host, so that all of a run are up to speed at the same time."""
    session = await sessions.session(dst)
    began_s = time.time()
    commands = [(longest_setup_s - flow.path.setup_s, TOOL.command(flow.test)) for flow in flows]
    limit_s = max(TOOL.limit_s(flow.test) for flow in flows) + longest_setup_s
    printed = await session.measure(clients(commands), limit_s)
    found = outputs(dst, printed.stdout)
    if len(found) != len(flows):
        raise ProbeError(dst, "output", "what its programs printed is cut off")
    for flow, output in zip(flows, found, strict=True):
        flow.result = _read(flow, output, began_s)


def _read(flow: _StreamTest, output: Output, began_s: float) -> Result:
    if output.status in NOT_FOUND:
        raise missing_tool(flow.test.dst.name, TOOL.name)
    try:
        return TOOL.read(output, flow.test, began_s)
    except ProbeError as error:
        if error.of_the_host or not flow.is_relayed:
            raise
        problem = f"{error.problem} (through a relay)"
        remedy = (
            f"The relay accepts only the addresses that the fleet file has for {error.host}, and "
            f"must be reachable at port {flow.test.port}."
        )
        raise ProbeError(error.host, error.cause, problem, remedy) from None


def _outcome(path: PlanPath, results: Sequence[Result], began_s: float) -> PlanPath:
    samples = tuple(
        steady_sample([result], Findings())._replace(measured_at_s=began_s) for result in results
    )
    return replace(path, samples=samples, sent_gb=sum(result.sent_gb for result in results))
