"""Exact TCP receive windows, held by lowering the window that packets advertise.

Linux has no setting for it: the route option ``window`` only picks the scale factor (the
window becomes 65,535 times a power of two, Linux 6.18), and buffer sizes give a window that
depends on how packets lie in memory. So a host's kernel may advertise what it likes, and the
emulator lowers the field on its way out, as a middlebox would.
"""

from __future__ import annotations

from probes.lab.packets import FLOW, VNET

_FLAGS = VNET + 33
_WINDOW = VNET + 34
_SYN = 0x02
_OPTIONS = VNET + 40
_DATA_OFFSET = VNET + 32
_CONNECTIONS_KEPT = 16_384


class WindowClamp:
    """Lowers the windows that one host advertises.

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
