"""Measurements of a lab with real tools, for ``make lab-check``, tests and the reproduction.

A measurement counts only while the emulator keeps up: :func:`undisturbed` repeats what was
measured while it was late.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from planner.model.errors import RelaydError
from probes.lab.controller import Lab
from probes.lab.counters import lateness_quantile_ms
from probes.lab.linux import CLONE_NEWNET, set_namespace
from probes.lab.sites import children_of

LATE_MS = 0.5
"""A measurement is disturbed when the 95th percentile of lateness exceeded this meanwhile."""

_SO_TIMESTAMPNS = 35
_FIRST_PORT = 5201
_NICENESS = -15
T = TypeVar("T")


class DisturbedError(RelaydError):
    """The machine was too busy for a lab to keep time, in every attempt."""


@dataclass(slots=True)
class Lateness:
    """Lateness of packets in the emulator during a measurement."""

    p95_ms: float | None = None  # None until the watch has ended, or where no packet passed


@contextmanager
def lateness_of(lab: Lab) -> Iterator[Lateness]:
    """Watch the emulator's lateness during a ``with`` block."""
    before = lab.status()["lateness"]["counts"]
    watched = Lateness()
    yield watched
    watched.p95_ms = lateness_quantile_ms(before, lab.status()["lateness"]["counts"], 0.95)


def undisturbed(
    lab: Lab, measure: Callable[[], T], attempts: int = 4, late_ms: float = LATE_MS
) -> T:
    """Measure until the emulator was on time meanwhile.

    Parameters
    ----------
    late_ms : float
        The most that the 95th percentile of lateness may be.

    Raises
    ------
    DisturbedError
        If it was late every time: the machine is too busy to measure on.
    """
    for _ in range(attempts):
        with lateness_of(lab) as lateness:
            result = measure()
        if lateness.p95_ms is None or lateness.p95_ms <= late_ms:
            return result
    raise DisturbedError(
        f"The machine is too busy to measure on: the lab passed packets on up to "
        f"{lateness.p95_ms:.2f} ms late (95th percentile) in each of {attempts} attempts."
    )


@contextmanager
def sockets_in(lab: Lab) -> Iterator[Callable[[int, int, int], socket.socket]]:
    """Give a function that makes a socket in the network of a site (needs root).

    The function takes a site's index, a socket type and a protocol.
    """
    pids = [site["pid"] for site in lab.status()["sites"]]
    with ExitStack() as stack:
        ours = os.open("/proc/self/ns/net", os.O_RDONLY)
        stack.callback(os.close, ours)

        def make(site: int, kind: int, protocol: int = 0) -> socket.socket:
            theirs = os.open(f"/proc/{pids[site]}/ns/net", os.O_RDONLY)
            set_namespace(theirs, CLONE_NEWNET)
            try:
                return stack.enter_context(socket.socket(socket.AF_INET, kind, protocol))
            finally:
                set_namespace(ours, CLONE_NEWNET)
                os.close(theirs)

        yield make


def echo_rtts_ms(
    lab: Lab, pairs: Sequence[tuple[int, int]], rounds: int = 1, interval_s: float = 0.002
) -> dict[tuple[int, int], list[float]]:
    """Measure round-trip times by ICMP echo, with the kernel's time of arrival.

    Parameters
    ----------
    lab : Lab
    pairs : sequence of (int, int)
        Sites from and to.
    rounds : int
        Echoes for each pair.
    interval_s : float
        Between one echo and the next, of any pairs.

    Returns
    -------
    dict
        Round-trip times in ms by pair; an echo that was not answered within 2 s is missing.
    """
    addresses = [site["private_address"] for site in lab.status()["sites"]]
    found: dict[tuple[int, int], list[float]] = {pair: [] for pair in pairs}
    sent: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}
    with sockets_in(lab) as make, selectors.DefaultSelector() as selector, _prompt():
        ends = {}
        for source in {source for source, _ in pairs}:
            end = ends[source] = make(source, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
            end.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            end.setblocking(False)
            selector.register(end, selectors.EVENT_READ, source)

        def take(until_s: float) -> None:
            while (left := until_s - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    arrival = _arrival(ends[key.data])
                    if arrival is not None and (key.data, arrival[0]) in sent:
                        pair, sent_ns = sent.pop((key.data, arrival[0]))
                        found[pair].append((arrival[1] - sent_ns) / 1e6)

        next_s = time.monotonic()
        for number, pair in enumerate(list(pairs) * rounds):
            sequence = number & 0xFFFF
            request = struct.pack("!BBHHH", 8, 0, 0, 0, sequence) + bytes(48)
            sent[pair[0], sequence] = (pair, time.time_ns())
            ends[pair[0]].sendto(request, (addresses[pair[1]], 0))
            next_s += interval_s
            take(next_s)
        deadline_s = time.monotonic() + 2
        while sent and time.monotonic() < deadline_s:
            take(min(time.monotonic() + 0.05, deadline_s))
    return found


@contextmanager
def _prompt() -> Iterator[None]:
    """Give this thread precedence: a wait between the clock and the send is not the network's."""
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, thread, before)


def _arrival(end: socket.socket) -> tuple[int, int] | None:
    try:
        reply, ancillary, _, _ = end.recvmsg(2048, 256)
    except OSError:  # nothing there, or an ICMP error
        return None
    for _, kind, data in ancillary:
        if kind == _SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data)
            return struct.unpack_from("!H", reply, 6)[0], seconds * 1_000_000_000 + nanoseconds
    return None


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer to measure with iperf3 between two sites."""

    source: int
    destination: int
    flows: int = 1
    options: tuple[str, ...] = ()


def iperf3_reports(
    lab: Lab, transfers: Sequence[Transfer], seconds: float, omitted_s: int = 0
) -> list[dict[str, Any]]:
    """Run iperf3 for several transfers at once; returns each client's report.

    Raises
    ------
    RelaydError
        If a client or a server says that it failed.
    """
    status = lab.status()
    regions = [site["region"] for site in status["sites"]]
    with ExitStack() as stack:
        ports = []
        for number, transfer in enumerate(transfers):
            ports.append(_FIRST_PORT + number)
            serve = ["iperf3", "-s", "-1", "-p", str(ports[-1]), "--forceflush"]
            region = regions[transfer.destination]
            stack.enter_context(running(lab, region, serve, until="listening"))
        clients = []
        for transfer, port in zip(transfers, ports, strict=True):
            address = status["sites"][transfer.destination]["private_address"]
            ask = ["iperf3", "-c", address, "-p", str(port), "-J", "-t", f"{seconds:g}"]
            ask += ["-P", str(transfer.flows), "-O", str(omitted_s), *transfer.options]
            clients.append(stack.enter_context(running(lab, regions[transfer.source], ask)))
        reports = []
        for client in clients:
            text, _ = client.communicate(timeout=seconds + omitted_s + 60)
            report = json.loads(text)
            if "error" in report:
                raise RelaydError(f"iperf3 failed: {report['error']}")
            reports.append(report)
    return reports


def goodputs_mbps(
    lab: Lab, transfers: Sequence[Transfer], seconds: float, omitted_s: int = 0
) -> list[float]:
    """Goodput at the receiver of several transfers at once, in Mbit/s."""
    reports = iperf3_reports(lab, transfers, seconds, omitted_s)
    return [report["end"]["sum_received"]["bits_per_second"] / 1e6 for report in reports]


def rates_mbps(lab: Lab, seconds: float) -> list[tuple[float, float]]:
    """Return the rates that each site sends and receives on the wire, in Mbit/s."""
    before = lab.status()
    time.sleep(seconds)
    after = lab.status()
    took_s = after["monotonic_s"] - before["monotonic_s"]  # a busy keeper may answer late
    return [
        tuple(
            (new[name] - old[name]) * 8 / took_s / 1e6 for name in ("sent_bytes", "received_bytes")
        )
        for old, new in zip(before["sites"], after["sites"], strict=True)
    ]


@contextmanager
def running(
    lab: Lab, region: str, command: Sequence[str], until: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """Run a program in a region for the length of a ``with`` block.

    Parameters
    ----------
    lab : Lab
    region : str
    command : sequence of str
    until : str
        The block begins when the program has printed a line with this in it.
    """
    process = subprocess.Popen(
        lab.command(region, command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        if until:
            _wait_for_line(process, until)
        yield process
    finally:
        # `nsenter` waits for the program, which would outlive it.
        for pid in [*children_of(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()  # not read to its end, which a daemon may keep open


def _wait_for_line(process: subprocess.Popen[str], word: str, timeout_s: float = 20.0) -> None:
    assert process.stdout is not None
    seen = b""
    deadline_s = time.monotonic() + timeout_s
    descriptor = process.stdout.fileno()
    while word.encode() not in seen:
        left_s = max(deadline_s - time.monotonic(), 0.0)
        if not select.select([descriptor], [], [], left_s)[0]:
            raise RelaydError(f"A program in the lab did not say {word!r} within {timeout_s:g} s")
        if not (piece := os.read(descriptor, 65_536)):
            raise RelaydError(f"A program in the lab ended without saying {word!r}: {seen!r}")
        seen += piece
