"""The core: takes packets from the TUN devices of its sources and passes them on in time.

Each worker is a forked process that reads a share of the sources. A packet waits in a heap
for the one-way delay of its pair; at its destination a virtual clock holds the ingress cap.
Most pairs do nothing else; :mod:`probes.lab.impaired` has the rest.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import pickle
import select
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from heapq import heappop, heappush
from random import Random

from probes.lab.behaviours import Impairment
from probes.lab.counters import BIN_S, BINS, NAMES, Counters
from probes.lab.impaired import ImpairedPair
from probes.lab.linux import Timer, ask_for_short_slices
from probes.lab.packets import DESTINATION, FLOW, PROTOCOL, TCP, VNET, wire_length

_DATA_OFFSET, _FLAGS, _WINDOW, _OPTIONS = VNET + 32, VNET + 33, VNET + 34, VNET + 40
_SYN = 0x02
_CONNECTIONS_KEPT = 16_384


class WindowClamp:
    """Lowers the windows that one host advertises, as a middlebox would.

    Linux has no setting for an exact receive window: the route option ``window`` only picks the
    scale factor (the window becomes 65,535 times a power of two, Linux 6.18), and buffer sizes give
    a window that depends on how packets lie in memory.

    The scale factor of a connection is read from the host's own SYN (RFC 7323); a connection
    keeps the window that held when it began.
    """

    def __init__(self) -> None:
        self._highest: dict[bytes, int] = {}

    def clamped(self, packet: bytes, window_bytes: int) -> bytes:
        """Return a TCP packet of the host with its window lowered where it is too large.

        Parameters
        ----------
        packet : bytes
            IPv4 without options. Its checksum must be left to the device, as it is for
            everything that a kernel sends on a TUN device with offload.
        window_bytes : int
            Window for a connection that begins with this packet.
        """
        flow = packet[FLOW]
        if packet[_FLAGS] & _SYN:
            if len(self._highest) >= _CONNECTIONS_KEPT:
                del self._highest[next(iter(self._highest))]
            scale = 1 << _window_scale(packet)
            self._highest[flow] = min(-(-window_bytes // scale), 0xFFFF)
            highest = min(window_bytes, 0xFFFF)
        else:
            highest = self._highest.get(flow, 0xFFFF)
        if packet[_WINDOW] << 8 | packet[_WINDOW + 1] <= highest:
            return packet
        lowered = bytearray(packet)
        lowered[_WINDOW] = highest >> 8
        lowered[_WINDOW + 1] = highest & 0xFF
        return bytes(lowered)


def _window_scale(packet: bytes) -> int:
    """Window scale option of a SYN; 0 where it has none."""
    end = min(VNET + 20 + (packet[_DATA_OFFSET] >> 4) * 4, len(packet))
    at = _OPTIONS
    while at + 1 < end and packet[at] != 0:
        if packet[at] == 1:
            at += 1
            continue
        if packet[at] == 3:
            return packet[at + 2] if at + 2 < end else 0
        at += max(packet[at + 1], 2)
    return 0


INGRESS_QUEUE_S = 0.05
"""Queue of a site's ingress cap; around this it drops ever more, so that no flow is shut out."""

_DROPS_BEGIN_S, _DROPS_ALL_S = 0.8 * INGRESS_QUEUE_S, 1.2 * INGRESS_QUEUE_S
_PACKETS, _BYTES, _DROPPED_INGRESS, _REFUSED = map(
    NAMES.index, ("packets", "bytes", "dropped_ingress", "refused")
)

OVERHEAD_S = 80e-6
"""One-way time that a packet takes through an idle machine besides the wait; taken off it."""

_READS_AT_ONCE = 8
_LONGEST_PACKET = 65_536 + VNET
_NICENESS = -15
"""Where the kernel allows no real-time priority."""
_SLICE_S = 0.0001
"""Slices of processor time, the shortest there are: a worker that wakes is then let in sooner."""

MESSAGE_BYTES = 1 << 17
"""Longest message from the keeper to a worker."""


class Worker:
    """Carries the packets of some sites, in a process of its own.

    Parameters
    ----------
    devices : sequence of int
        Descriptor of each site's TUN device.
    addresses : dict
        IPv4 address (4 bytes) to site.
    counters : Counters
    number : int
        Of this worker, for its counters.
    sources : sequence of int
        Sites that this worker reads from.
    changes : socket.socket
        Sequenced packets, each answered when it holds: the pickled seconds per byte of sites'
        ingress by site, and a row for each direction that changes: pair (``source * sites +
        destination``), one-way delay in s, the pair of the way back, window in bytes that the
        destination has for the source, and impairment.
    """

    def __init__(
        self,
        devices: Sequence[int],
        addresses: dict[bytes, int],
        counters: Counters,
        number: int,
        sources: Sequence[int],
        changes: socket.socket,
    ) -> None:
        count = len(devices)
        self._devices, self._addresses, self._changes = devices, addresses, changes
        self._sources = {devices[source]: source for source in sources}
        self._clamps = {source: WindowClamp().clamped for source in sources}
        self._delay_s, self._window_bytes = [0.0] * count**2, [0] * count**2
        self._s_per_byte, self._free_s = [0.0] * count, counters.free_s
        self._impaired: list[ImpairedPair | None] = [None] * count**2
        self._totals, self._lateness = (
            counters.of(number, "totals"),
            counters.of(number, "lateness"),
        )
        self._sent, self._received = counters.of(number, "sent"), counters.of(number, "received")
        self._chance = Random(number).random  # noqa: S311 - an emulation, not a secret
        # Time when it is due, order, site, packet and size. The order breaks ties, so that packets
        # are never compared. ~i in place of site i: it has been through the ingress cap there.
        self._heap: list[tuple[float, int, int, bytes, int]] = []
        self._order = itertools.count().__next__

    def run(self) -> None:
        """Carry packets for as long as the keeper's end of ``changes`` is open."""
        _take_precedence()
        gc.collect()
        gc.freeze()  # what was made before the fork stays shared with the other processes
        gc.disable()  # the loop makes no cycles
        heap, timer, poll, changes = self._heap, Timer(), select.epoll(), self._changes.fileno()
        for descriptor in (*self._sources, timer.descriptor, changes):
            poll.register(descriptor, select.EPOLLIN)
        armed_for = math.inf
        while True:
            for ready, _ in poll.poll():
                if ready == timer.descriptor:
                    os.read(ready, 8)
                    armed_for = math.inf
                elif ready != changes:
                    self._take(ready)
                    if heap and heap[0][0] <= time.monotonic():
                        self._deliver_due()
                elif not self._apply_change():
                    return
            self._deliver_due()
            if heap and heap[0][0] != armed_for:
                armed_for = heap[0][0]
                timer.arm(armed_for)

    def _take(self, device: int) -> None:
        """Read packets of a device and put them into the heap."""
        source = self._sources[device]
        row, clamped = source * len(self._devices), self._clamps[source]
        heap, order, delay_s, clock = self._heap, self._order, self._delay_s, time.monotonic
        for _ in range(_READS_AT_ONCE):
            try:
                packet = os.read(device, _LONGEST_PACKET)
            except BlockingIOError:
                break
            now = clock()
            destination = self._addresses.get(packet[DESTINATION])
            if destination is None:
                continue
            size = wire_length(packet) if packet[1] else len(packet) - VNET
            self._sent[source] += size
            pair = row + destination
            if packet[PROTOCOL] == TCP:
                packet = clamped(packet, self._window_bytes[pair])
            behaviour = self._impaired[pair]
            if behaviour is None:
                heappush(heap, (now + delay_s[pair], order(), destination, packet, size))
                continue
            for wait, piece, back in behaviour.pass_on(now, packet, size, self._totals):
                site = source if back else destination
                due = now + delay_s[pair] + wait
                heappush(heap, (due, order(), site, piece, wire_length(piece)))

    def _deliver_due(self) -> None:
        """Pass on the packets of the heap that are due."""
        heap, free_s, s_per_byte, clock = self._heap, self._free_s, self._s_per_byte, time.monotonic
        totals, lateness, received = self._totals, self._lateness, self._received
        devices, write = self._devices, os.write  # a packet takes microseconds
        now = clock()
        while heap and heap[0][0] <= now:
            due, _, site, packet, size = heappop(heap)
            if site >= 0:
                at = free_s[site]
                if at < due:
                    at = due
                over = at - due - _DROPS_BEGIN_S
                if over > 0 and over > self._chance() * (_DROPS_ALL_S - _DROPS_BEGIN_S):
                    totals[_DROPPED_INGRESS] += 1
                    continue
                free_s[site] = at + size * s_per_byte[site]
                if at > now:
                    heappush(heap, (at, self._order(), ~site, packet, size))
                    continue
                due = at
            else:
                site = ~site
            try:
                write(devices[site], packet)
            except OSError:
                totals[_REFUSED] += 1
                continue
            late = int((now - due) / BIN_S)
            lateness[late if late < BINS else BINS - 1] += 1
            totals[_PACKETS] += 1
            totals[_BYTES] += size
            received[site] += size
            now = clock()

    def _apply_change(self) -> bool:
        """Take one change over and answer it; False when the keeper is gone."""
        message = self._changes.recv(MESSAGE_BYTES)
        if not message:
            return False
        # The keeper forked this process: what it says is trusted.
        s_per_byte, directions = pickle.loads(message)  # noqa: S301
        for site, value in s_per_byte.items():
            self._s_per_byte[site] = value
        for pair, delay_s, back, window_bytes, impairment in directions:
            self._delay_s[pair] = max(delay_s - OVERHEAD_S, 0.0)
            self._window_bytes[back] = window_bytes
            same = impairment == Impairment()
            self._impaired[pair] = None if same else ImpairedPair(impairment, seed=pair)
        self._changes.send(b"done")
        return True


def _take_precedence() -> None:
    """Ask the kernel to run this process as soon as a packet is due, before other programs."""
    try:
        # Niceness does not do it: kernels that schedule by session count it within a session alone.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        with suppress(PermissionError):
            os.nice(_NICENESS)
        with suppress(OSError):
            ask_for_short_slices(_SLICE_S)
