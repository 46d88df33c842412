"""IPv4 packets with a virtio-net header, as a TUN device hands them over.

A packet is 10 bytes of header followed by the IP packet::

    flags u8 | gso_type u8 | hdr_len u16 | gso_size u16 | csum_start u16 | csum_offset u16

The kernel may put many TCP segments into one packet (``gso_type`` is not 0). Such a packet
passes through the lab whole, but is accounted at the length that its segments would have on
a wire, and is cut where single segments are to be lost.
"""

from __future__ import annotations

from itertools import groupby
from struct import pack, pack_into, unpack_from

VNET = 10
"""Length of the virtio-net header in bytes."""

DESTINATION = slice(VNET + 16, VNET + 20)
"""Position of a packet's destination address."""

FLOW = slice(VNET + 12, VNET + 24)
"""Position of addresses and ports, which make a flow (of a packet without IP options)."""

PROTOCOL = VNET + 9
ICMP, TCP, UDP = 1, 6, 17

_FIN, _RST, _PSH, _ACK, _SYN, _CWR = 0x01, 0x04, 0x08, 0x10, 0x02, 0x80
_TCP_TIMESTAMPED_HEADERS = 52


def wire_length(packet: bytes) -> int:
    """Bytes of IP that a packet takes on the wire, once cut into segments.

    Every segment after the first adds its own headers: 52 bytes for TCP (20 of IP, 32 of
    TCP with timestamps), 28 for UDP.
    """
    length = len(packet) - VNET
    if not packet[1]:
        return length
    headers = _TCP_TIMESTAMPED_HEADERS if packet[PROTOCOL] == TCP else 28
    size = packet[4] | packet[5] << 8
    return length + headers * (max(-(-(length - headers) // size), 1) - 1)


def segment_count(packet: bytes) -> int:
    """Count the segments that a packet is cut into on the wire."""
    if not packet[1]:
        return 1
    size = packet[4] | packet[5] << 8
    return max(-(-(len(packet) - _payload_offset(packet)) // size), 1)


def keep_segments(packet: bytes, kept: list[bool]) -> list[bytes]:
    """Cut a TCP packet and leave out the segments that are not kept.

    Parameters
    ----------
    packet : bytes
    kept : list of bool
        One per segment of the packet.

    Returns
    -------
    list of bytes
        A packet for each run of kept segments, each valid on its own.
    """
    if all(kept):
        return [packet]
    if len(kept) == 1 or packet[PROTOCOL] != TCP:
        return [packet] if kept[0] and len(kept) == 1 else []
    pieces = []
    first = 0
    for is_kept, run in groupby(kept):
        end = first + len(list(run))
        if is_kept:
            pieces.append(_part(packet, first, end, len(kept)))
        first = end
    return pieces


def _part(packet: bytes, first: int, end: int, count: int) -> bytes:
    """Return segments ``first`` to ``end - 1`` of a TCP packet as a packet of their own."""
    size = packet[4] | packet[5] << 8
    payload = _payload_offset(packet)
    start = payload + first * size
    data = packet[start : payload + end * size]
    piece = bytearray(packet[:payload]) + data
    ip = VNET
    tcp = ip + (packet[ip] & 0x0F) * 4
    if len(data) <= size:  # a single segment is no longer an offloaded one
        piece[1] = 0
        piece[4:6] = b"\0\0"
    length = len(piece) - ip
    (identification,) = unpack_from("!H", packet, ip + 4)
    pack_into("!HH", piece, ip + 2, length, (identification + first) & 0xFFFF)
    pack_into("!H", piece, ip + 10, 0)
    pack_into("!H", piece, ip + 10, _checksum(piece[ip:tcp]))
    (sequence,) = unpack_from("!I", packet, tcp + 4)
    pack_into("!I", piece, tcp + 4, (sequence + first * size) & 0xFFFF_FFFF)
    if end < count:
        piece[tcp + 13] &= ~(_FIN | _PSH) & 0xFF
    if first:
        piece[tcp + 13] &= ~_CWR & 0xFF
    # With the checksum left to the device, the field holds the pseudo header's sum.
    pseudo = _pseudo_header(piece[ip + 12 : ip + 20], TCP, length - (tcp - ip))
    pack_into("!H", piece, tcp + 16, _sum(pseudo))
    return bytes(piece)


def reset_of(packet: bytes) -> bytes | None:
    """Answer a TCP packet as a closed port would; None where no answer is due."""
    ip = VNET
    tcp = ip + (packet[ip] & 0x0F) * 4
    flags = packet[tcp + 13]
    if flags & _RST:
        return None
    sequence, acknowledged = unpack_from("!II", packet, tcp + 4)
    data = len(packet) - _payload_offset(packet) + bool(flags & _SYN) + bool(flags & _FIN)
    if flags & _ACK:
        numbers, answer_flags = (acknowledged, 0), _RST
    else:
        numbers, answer_flags = (0, (sequence + data) & 0xFFFF_FFFF), _RST | _ACK
    source_port, destination_port = unpack_from("!HH", packet, tcp)
    segment = bytearray(
        pack("!HHIIBBHHH", destination_port, source_port, *numbers, 0x50, answer_flags, 0, 0, 0)
    )
    pseudo = _pseudo_header(packet[ip + 12 : ip + 20], TCP, len(segment))
    pack_into("!H", segment, 16, _checksum(pseudo + segment))
    return _answer(packet, TCP, segment)


def unreachable_of(packet: bytes) -> bytes | None:
    """Answer a packet with "host unreachable" (RFC 792); None to ICMP errors."""
    ip = VNET
    start = ip + (packet[ip] & 0x0F) * 4
    if packet[PROTOCOL] == ICMP and packet[start] not in (0, 8):
        return None
    message = bytearray(pack("!BBHI", 3, 1, 0, 0)) + packet[ip : start + 8]
    pack_into("!H", message, 2, _checksum(message))
    return _answer(packet, ICMP, message)


def _answer(packet: bytes, protocol: int, content: bytearray) -> bytes:
    """Return content as an IP packet from the destination of another to its source."""
    header = bytearray(pack("!BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0))
    header += packet[DESTINATION] + packet[VNET + 12 : VNET + 16]
    pack_into("!H", header, 10, _checksum(header))
    return bytes(VNET) + bytes(header + content)


def _payload_offset(packet: bytes) -> int:
    transport = VNET + (packet[VNET] & 0x0F) * 4
    if packet[PROTOCOL] == TCP:
        return transport + (packet[transport + 12] >> 4) * 4
    return transport + 8


def _pseudo_header(addresses: bytes | bytearray, protocol: int, length: int) -> bytes:
    return bytes(addresses) + pack("!HH", protocol, length)


def _sum(data: bytes | bytearray) -> int:
    """Ones' complement sum of 16-bit words (RFC 1071), not inverted."""
    if len(data) % 2:
        data = bytes(data) + b"\0"
    total: int = sum(unpack_from(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _checksum(data: bytes | bytearray) -> int:
    return ~_sum(data) & 0xFFFF
