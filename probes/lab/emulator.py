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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import TypeAlias

from probes.lab.behaviours import NO_IMPAIRMENT, Impairment
from probes.lab.counters import BIN_S, BINS, NAMES, Counters
from probes.lab.impaired import ImpairedPair
from probes.lab.linux import Timer, ask_for_short_slices
from probes.lab.packets import DESTINATION, FLOW, PROTOCOL, TCP, VNET, wire_length

_FLAGS = VNET + 33
_WINDOW = VNET + 34
_SYN = 0x02
_OPTIONS = VNET + 40
_DATA_OFFSET = VNET + 32
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

_Packet: TypeAlias = tuple[float, int, int, bytes, int]
"""Time when it is due, order, site, packet and size. The order breaks ties, so that packets are
never compared. A site of ~i says that the packet has been through the ingress cap of site i."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The network as every worker gets it."""

    devices: Sequence[int]  # descriptor of each site's TUN device
    addresses: dict[bytes, int]  # IPv4 address (4 bytes) to site
    counters: Counters


def message_of(
    delay_s: dict[int, float],
    window_bytes: dict[int, int],
    ingress_s_per_byte: dict[int, float],
    impairments: dict[int, Impairment],
) -> bytes:
    """Write a change for a worker.

    Parameters
    ----------
    delay_s : dict
        Pair (``source * sites + destination``) to its one-way delay.
    window_bytes : dict
        Pair of a site and a peer to the site's receive window.
    ingress_s_per_byte : dict
        By site.
    impairments : dict
        By pair.
    """
    return pickle.dumps((delay_s, window_bytes, ingress_s_per_byte, impairments))


def run_worker(wiring: Wiring, worker: int, sources: Sequence[int], changes: socket.socket) -> None:
    """Carry packets for as long as the keeper's end of ``changes`` is open.

    Parameters
    ----------
    wiring : Wiring
    worker : int
        Number of this worker, for its counters.
    sources : sequence of int
        Sites that this worker reads from.
    changes : socket.socket
        Sequenced packets: each is a change (:func:`message_of`), answered when it holds.
    """
    _take_precedence()
    gc.collect()
    gc.freeze()  # what was made before the fork stays shared with the other processes
    gc.disable()  # the loop makes no cycles
    count = len(wiring.devices)
    delay, window, per_byte = [0.0] * count**2, [0] * count**2, [0.0] * count
    impaired: list[ImpairedPair | None] = [None] * count**2
    heap: list[_Packet] = []
    order = itertools.count().__next__
    take = _taking(wiring, worker, sources, (delay, window, impaired), heap, order)
    deliver_due = _delivering(wiring, worker, per_byte, heap, order)
    timer = Timer()
    poll = select.epoll()
    for descriptor in (*(wiring.devices[i] for i in sources), timer.descriptor, changes.fileno()):
        poll.register(descriptor, select.EPOLLIN)
    armed_for = math.inf
    while True:
        for ready, _ in poll.poll():
            if ready == timer.descriptor:
                os.read(ready, 8)
                armed_for = math.inf
            elif ready != changes.fileno():
                take(ready)
                if heap and heap[0][0] <= time.monotonic():
                    deliver_due()
            elif not _apply_change(changes, delay, window, per_byte, impaired):
                return
        deliver_due()
        if heap and heap[0][0] != armed_for:
            armed_for = heap[0][0]
            timer.arm(armed_for)


def _taking(
    wiring: Wiring,
    worker: int,
    sources: Sequence[int],
    of_pairs: tuple[list[float], list[int], list[ImpairedPair | None]],
    heap: list[_Packet],
    order: Callable[[], int],
) -> Callable[[int], None]:
    """Return the function that reads packets of a device and puts them into the heap."""
    delay, window, impaired = of_pairs
    count = len(wiring.devices)
    clamp_of_site = {source: WindowClamp().clamped for source in sources}
    site_of_device = {wiring.devices[source]: source for source in sources}
    site_of_address = wiring.addresses
    totals, sent = wiring.counters.of(worker, "totals"), wiring.counters.of(worker, "sent")
    clock, read = time.monotonic, os.read

    def take(device: int) -> None:
        source = site_of_device[device]
        row, clamped = source * count, clamp_of_site[source]
        for _ in range(_READS_AT_ONCE):
            try:
                packet = read(device, _LONGEST_PACKET)
            except BlockingIOError:
                break
            now = clock()
            destination = site_of_address.get(packet[DESTINATION])
            if destination is None:
                continue
            size = wire_length(packet) if packet[1] else len(packet) - VNET
            sent[source] += size
            pair = row + destination
            if packet[PROTOCOL] == TCP:
                packet = clamped(packet, window[pair])
            behaviour = impaired[pair]
            if behaviour is None:
                heappush(heap, (now + delay[pair], order(), destination, packet, size))
                continue
            for wait, piece, back in behaviour.pass_on(now, packet, size, totals):
                site = source if back else destination
                due = now + delay[pair] + wait
                heappush(heap, (due, order(), site, piece, wire_length(piece)))

    return take


def _delivering(
    wiring: Wiring,
    worker: int,
    per_byte: list[float],
    heap: list[_Packet],
    order: Callable[[], int],
) -> Callable[[], None]:
    """Return the function that passes on the packets of the heap that are due."""
    totals = wiring.counters.of(worker, "totals")
    lateness = wiring.counters.of(worker, "lateness")
    received = wiring.counters.of(worker, "received")
    free = wiring.counters.free_s
    chance = Random(worker).random  # noqa: S311 - an emulation, not a secret
    device_of_site = list(wiring.devices)
    clock, write = time.monotonic, os.write

    def deliver_due() -> None:
        now = clock()
        while heap and heap[0][0] <= now:
            due, _, site, packet, size = heappop(heap)
            if site >= 0:
                at = free[site]
                if at > due:
                    over = at - due - _DROPS_BEGIN_S
                    if over > 0 and over > chance() * (_DROPS_ALL_S - _DROPS_BEGIN_S):
                        totals[_DROPPED_INGRESS] += 1
                        continue
                    free[site] = at + size * per_byte[site]
                    if at > now:
                        heappush(heap, (at, order(), ~site, packet, size))
                        continue
                    due = at
                else:
                    free[site] = due + size * per_byte[site]
            else:
                site = ~site
            try:
                write(device_of_site[site], packet)
            except OSError:
                totals[_REFUSED] += 1
                continue
            late = int((now - due) / BIN_S)
            lateness[late if late < BINS else BINS - 1] += 1
            totals[_PACKETS] += 1
            totals[_BYTES] += size
            received[site] += size
            now = clock()

    return deliver_due


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


def _apply_change(
    changes: socket.socket,
    delay: list[float],
    window: list[int],
    per_byte: list[float],
    impaired: list[ImpairedPair | None],
) -> bool:
    """Take one change over and answer it; False when the keeper is gone."""
    message = changes.recv(MESSAGE_BYTES)
    if not message:
        return False
    # The keeper forked this process: what it says is trusted.
    delays_s, windows_bytes, s_per_byte, impairments = pickle.loads(message)  # noqa: S301
    for pair, delay_s in delays_s.items():
        delay[pair] = max(delay_s - OVERHEAD_S, 0.0)
    for pair, window_bytes in windows_bytes.items():
        window[pair] = window_bytes
    for site, value in s_per_byte.items():
        per_byte[site] = value
    for pair, impairment in impairments.items():
        same = impairment == NO_IMPAIRMENT
        impaired[pair] = None if same else ImpairedPair(impairment, seed=pair)
    changes.send(b"done")
    return True
