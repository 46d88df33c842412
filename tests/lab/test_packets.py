from __future__ import annotations

from struct import pack, unpack_from

from hypothesis import given
from hypothesis import strategies as st

from probes.lab import packets
from probes.lab.emulator import WindowClamp
from probes.lab.packets import VNET

SOURCE, DESTINATION = bytes([10, 77, 0, 1]), bytes([10, 77, 0, 2])


def ones_sum(data: bytes) -> int:
    """An independent RFC 1071 sum, byte by byte."""
    total = 0
    for index, byte in enumerate(data):
        total += byte << (8 if index % 2 == 0 else 0)
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def tcp_packet(
    payload: bytes, segment: int, flags: int = 0x18, sequence: int = 2**32 - 700, window: int = 512
) -> bytes:
    offloaded = len(payload) > segment
    header = pack("<BBHHHH", 1, 1 if offloaded else 0, 52, segment if offloaded else 0, 20, 16)
    options = b"\1\1\x08\x0a" + bytes(8)
    tcp = pack("!HHIIBBHHH", 40000, 5201, sequence, 7, 0x80, flags, window, 0, 0) + options
    length = 20 + len(tcp) + len(payload)
    ip = pack("!BBHHHBBH", 0x45, 0, length, 65535, 0x4000, 64, 6, 0) + SOURCE + DESTINATION
    ip = ip[:10] + pack("!H", 0xFFFF - ones_sum(ip)) + ip[12:]
    return header + ip + tcp + payload


@given(st.binary(min_size=1, max_size=9000), st.integers(100, 1448), st.data())
def test_cutting_keeps_exactly_the_kept_bytes_in_valid_packets(
    payload: bytes, segment: int, data: st.DataObject
) -> None:
    packet = tcp_packet(payload, segment, flags=0x19)
    count = packets.segment_count(packet)
    assert count == max(-(-len(payload) // segment), 1)
    kept = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    pieces = packets.keep_segments(packet, kept)
    got = bytearray(b"?" * len(payload))
    for piece in pieces:
        (length,) = unpack_from("!H", piece, VNET + 2)
        assert length == len(piece) - VNET
        assert ones_sum(piece[VNET : VNET + 20]) == 0xFFFF
        pseudo = piece[VNET + 12 : VNET + 20] + pack("!HH", 6, length - 20)
        if piece is not packet:
            assert unpack_from("!H", piece, VNET + 36)[0] == ones_sum(pseudo)
        (sequence,) = unpack_from("!I", piece, VNET + 24)
        at = (sequence - (2**32 - 700)) % 2**32
        body = piece[VNET + 52 :]
        got[at : at + len(body)] = body
        is_last = at + len(body) == len(payload)
        assert bool(piece[VNET + 33] & 0x01) == is_last  # only the last one ends the stream
        assert (piece[1] != 0) == (len(body) > segment)
    expected = b"".join(
        payload[i * segment : (i + 1) * segment]
        if keep
        else b"?" * len(payload[i * segment : (i + 1) * segment])
        for i, keep in enumerate(kept)
    )
    assert bytes(got) == expected


@given(st.integers(1, 60_000), st.integers(500, 1448))
def test_wire_length_is_that_of_the_segments(size: int, segment: int) -> None:
    whole, rest = divmod(size, segment)
    expected = whole * (segment + 52) + (rest + 52 if rest else 0)
    assert packets.wire_length(tcp_packet(bytes(size), segment)) == expected


def test_a_reset_answers_what_was_sent_and_resets_are_not_answered() -> None:
    answer = packets.reset_of(tcp_packet(b"abc", 1448))
    assert answer is not None
    assert answer[VNET + 12 : VNET + 20] == DESTINATION + SOURCE
    assert unpack_from("!HHI", answer, VNET + 20) == (5201, 40000, 7)
    pseudo = answer[VNET + 12 : VNET + 20] + pack("!HH", 6, 20)
    assert ones_sum(pseudo + answer[VNET + 20 :]) == 0xFFFF
    assert packets.reset_of(answer) is None
    opened = packets.reset_of(tcp_packet(b"", 1448, flags=0x02))
    assert opened is not None
    assert unpack_from("!I", opened, VNET + 28)[0] == (2**32 - 700 + 1) % 2**32
    unreachable = packets.unreachable_of(tcp_packet(b"", 1448))
    assert unreachable is not None
    assert packets.unreachable_of(unreachable) is None


def test_a_window_is_lowered_to_what_the_connection_began_with() -> None:
    clamp = WindowClamp()
    scale = b"\1\3\3\7"
    opening = bytearray(tcp_packet(b"", 1448, flags=0x02, window=64_000))
    opening[VNET + 40 : VNET + 44] = scale
    assert unpack_from("!H", clamp.clamped(bytes(opening), 100_000), VNET + 34)[0] == 64_000
    later = clamp.clamped(tcp_packet(b"", 1448, window=60_000), 999_999)
    assert unpack_from("!H", later, VNET + 34)[0] == -(-100_000 // 128)
    small = tcp_packet(b"", 1448, window=3)
    assert clamp.clamped(small, 100_000) is small
