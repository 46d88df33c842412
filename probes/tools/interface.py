"""The interface of all tools, and one test from beginning to end.

A tool has a command, its server's command, and a way to read its output. A test brings the server
up on its own port, runs the client, and ends the server.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from planner.model.errors import InputError
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.analysis.steady_state import Interval
from probes.fleet.failures import Cause, ProbeError, missing_tool
from probes.fleet.hosts import Fleet, Host
from probes.fleet.remote import NOT_FOUND, Output, wait_for_listener
from probes.importers.options import ImportOptions
from probes.metrics import Metric
from probes.samples import Sample, SkippedRow

if TYPE_CHECKING:  # which loads asyncssh
    from probes.fleet.sessions import Sessions

LARGEST_PIECE_BYTES = 131_072
"""Largest piece that tools write at once: rates are kept to within one for each connection."""
OVERRUN_S = 1.0
"""Time that a sender may be at work after its end, and a tool's rounding to whole seconds."""
LEAST_MBPS = 0.1
MARGIN_S = 15.0
"""Time of a throughput test besides: opening streams, and the exchange of results at the end, take
round trips of their own; a full queue on the way makes both slow."""


@dataclass(frozen=True, slots=True)
class Test:
    """One run of a tool between two hosts."""

    __test__ = False  # not a test of pytest

    src: Host  # data flows from ``src`` to ``dst``, wherever the tool's client runs
    dst: Host
    # Of the host that does not run the client, from :meth:`~probes.fleet.hosts.Fleet.target`
    address: str
    port: int = 0  # of the tool's server, or to connect to
    connections: int = 1
    duration_s: float = 10.0  # measured time, and time before it that is left out
    omit_s: float = 0.0
    window_bytes: int = 0  # TCP window to ask for; 0 leaves the system's
    congestion_control: str = ""  # algorithm of TCP to ask for; ``""`` leaves the system's
    udp_mbps: float = 0.0  # rate to offer over UDP; 0 for TCP
    udp_bytes: int = 0  # payload of each UDP packet; 0 leaves it to the tool
    # Rate of payload that all TCP connections together are held to; 0 for none
    most_mbps: float = 0.0
    most_gb: float = inf  # allowance, warm-up included; infinite for no limit
    interval_s: float = 1.0  # time between reports of the tool

    def options(self, measured_at_s: float, *, client_at_dst: bool = False) -> ImportOptions:
        """Return the importers' options: all that they need beyond the output."""
        client, server = (self.dst, self.src) if client_at_dst else (self.src, self.dst)
        return ImportOptions(
            src=client.region,
            dst=server.region,
            src_vm=client.vm_type,
            dst_vm=server.vm_type,
            measured_at_s=measured_at_s,
            connections=self.connections or None,
            duration_s=self.duration_s,
            # Importers refuse tests with a rate limit; the caller set it, and judges the rate.
            force=bool(self.held_to_mbps),
            name=f"the output from {client.name}",
        )

    @property
    def held_to_mbps(self) -> float:
        """Rate that the sender is held to, by `most_mbps` or by `most_gb`; 0 for none.

        No tool ends by bytes and by time, so bytes are limited by a rate, for the time that the
        test takes and its end may be late.
        """
        rates = [self.most_mbps] if self.most_mbps else []
        if self.most_gb < inf:
            in_pieces_gb = self.connections * LARGEST_PIECE_BYTES / 1e9
            span_s = self.duration_s + self.omit_s + OVERRUN_S
            mbit = max(0.0, self.most_gb - in_pieces_gb) * BITS_PER_BYTE * MBPS_PER_GBPS
            rates.append(max(LEAST_MBPS, mbit / span_s))
        return min(rates, default=0.0)

    def sample(
        self, metric: Metric, value: float, tool: str, at_s: float, detail: dict[str, object]
    ) -> Sample:
        """Return a sample of the link between its hosts."""
        return self.settled(
            Sample(
                self.src.region,
                self.dst.region,
                metric,
                value,
                at_s,
                tool,
                src_vm=self.src.vm_type,
                dst_vm=self.dst.vm_type,
                detail=json.dumps(detail),
            ),
            at_s,
        )

    def settled(self, sample: Sample, measured_at_s: float) -> Sample:
        """Return a sample with its zones, the kind of address, and the controller's time.

        Hosts' clocks may be off.
        """
        private = any(
            self.address == host.private_address != host.public_address
            for host in (self.src, self.dst)
        )
        return sample._replace(
            measured_at_s=measured_at_s,
            src_zone=self.src.zone,
            dst_zone=self.dst.zone,
            address="private" if private else "public",
        )


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run."""

    samples: tuple[Sample, ...]
    sent_gb: float = 0.0  # volume from ``src`` to ``dst``, warm-up included
    intervals: tuple[Interval, ...] = ()  # of the measured time, where the tool reports them
    detail: dict[str, object] = field(default_factory=dict)  # further figures of the tool


class Tool:
    """A measuring tool.

    Attributes
    ----------
    name : str
        Of the program.
    client_at_dst : bool
        Whether the client runs where the data arrives.
    ready_line : bytes
        Part of the line that the listening server prints; empty if it prints none.
    """

    name: str
    client_at_dst = False
    ready_line = b""

    def server(self, test: Test) -> list[str]:
        """Return the command of the server on the other host, of a tool that needs one."""
        raise NotImplementedError

    def command(self, test: Test) -> list[str]:
        """Return the client's command."""
        raise NotImplementedError

    def limit_s(self, test: Test) -> float:
        """Return the time after which the client must have ended, exchange of results included."""
        return test.duration_s + test.omit_s + MARGIN_S

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read the client's output.

        Raises ProbeError if it failed, loudly or quietly, or its figures can't be a measurement.
        """
        raise NotImplementedError


# Parts of tools' error texts, in lower case, and their causes.
_CAUSES: tuple[tuple[str, Cause], ...] = (
    ("busy", "busy"),
    ("address already in use", "busy"),
    ("refused", "busy"),
    ("timed out", "filtered"),
    ("unreachable", "filtered"),
    ("no route", "filtered"),
    ("no reply", "filtered"),
    ("no space left", "no-space"),
)


_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        "socket buffer size",
        "Ask for a smaller --tcp-window, or let --change-sysctls raise "
        "net.core.rmem_max and wmem_max for the length of the campaign.",
    ),
    (
        "tcp_congestion",
        "Load the algorithm's module on the host (`modprobe tcp_bbr`), or name one "
        "of /proc/sys/net/ipv4/tcp_available_congestion_control.",
    ),
)


def failure(host: Host, tool: str, text: str) -> ProbeError:
    """Return the error for a tool's own error text."""
    lower = text.lower()
    cause: Cause = next((cause for part, cause in _CAUSES if part in lower), "tool")
    problem = text if lower.startswith(tool) else f"{tool} failed: {text or 'silently'}"
    remedy = next((remedy for part, remedy in _REMEDIES if part in lower), "")
    if cause == "filtered" and tool == "iperf3":
        remedy = "Open the probe ports between the fleet's hosts (`probe_ports` in the fleet file)."
    return ProbeError(host.name, cause, problem, remedy)


def only_samples(host: Host, tool: str, outcomes: Sequence[Sample | SkippedRow]) -> list[Sample]:
    """Return the samples that an importer found.

    Raises ProbeError if it skipped anything or found nothing: all of a single run must be usable.
    """
    for outcome in outcomes:
        if isinstance(outcome, SkippedRow):
            raise failure(host, tool, outcome.reason)
    if not outcomes:
        raise ProbeError(host.name, "output", f"{tool} printed nothing that can be read")
    return [outcome for outcome in outcomes if isinstance(outcome, Sample)]


SERVER_MARGIN_S = 20.0
"""Time after its client's limit at which a server's host ends it."""


class Ports:
    """The probe ports of each host that this controller uses."""

    def __init__(self) -> None:
        self._taken: dict[str, set[int]] = {}

    @asynccontextmanager
    async def several(self, host: Host, count: int, avoid: set[int]) -> AsyncIterator[int]:
        """Reserve consecutive ports; yield the first; raises ProbeError if there is none left."""
        taken = self._taken.setdefault(host.name, set())
        for first in range(host.first_port, host.last_port - count + 2):
            wanted = set(range(first, first + count))
            if not wanted & (taken | avoid):
                break
        else:
            problem = f"no {count} free ports between {host.first_port} and {host.last_port}"
            raise ProbeError(host.name, "busy", problem, "Widen `probe_ports` in the fleet file.")
        taken |= wanted
        try:
            yield first
        finally:
            taken -= wanted


def make_test(fleet: Fleet, tool: Tool, src: str, dst: str) -> Test:
    """Return a test between two members of a fleet: nothing else can be probed.

    Raises an InputError if both are the same host, or one is not of the fleet.
    """
    if src == dst:
        raise InputError("pair", "has one host at both ends", value=src)
    address = fleet.target(dst, src) if tool.client_at_dst else fleet.target(src, dst)
    return Test(fleet[src], fleet[dst], address, fleet[dst].first_port)


@asynccontextmanager
async def prepared(sessions: Sessions, ports: Ports, tool: Tool, test: Test) -> AsyncIterator[Test]:
    """Start the tool's server; yield the test with its port.

    Raises ProbeError if no port is free or the server does not come up.
    """
    server_host = test.src if tool.client_at_dst else test.dst
    session = await sessions.session(server_host.name)
    limit_s = tool.limit_s(test) + SERVER_MARGIN_S
    avoid: set[int] = set()
    while True:
        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(ports.several(server_host, 1, avoid))
            ready = replace(test, port=port)
            server = session.server(tool.server(ready), limit_s)
            running = await stack.enter_async_context(server)
            if tool.ready_line:
                up = bool(await running.line_with(tool.ready_line))
            else:
                up = (await session.ask(wait_for_listener(port))).status == 0
            if up:
                yield ready
                return
            output = await running.output()
            if output.status in NOT_FOUND:
                raise missing_tool(server_host.name, tool.name)
            problem = failure(server_host, tool.name, output.error_text)
            # The port belongs to another server: try the next.
            if problem.cause != "busy":
                raise problem
        avoid.add(port)


async def run_client(sessions: Sessions, tool: Tool, test: Test) -> Result:
    """Run the client of a test, whose server listens if it has one, and read its output.

    Raises ProbeError naming the host at fault.
    """
    client = test.dst if tool.client_at_dst else test.src
    session = await sessions.session(client.name)
    began_s = time.time()
    output = await session.measure(tool.command(test), tool.limit_s(test))
    return tool.read(output, test, began_s)
