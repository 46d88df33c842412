"""Tools: what they are asked, what their real output means, and no failure passes for a figure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from planner.model.errors import InputError
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.remote import Output
from probes.fleet.sessions import Sessions
from probes.tools.interface import Ports, Test, Tool, make_test, prepared
from probes.tools.iperf3 import Iperf3
from probes.tools.round_trips import Ping, TcpConnect, Traceroute
from tests.probes.fleet.machines import machines, need, owner

_SRC, _DST = "aws:us-east-1", "gcp:us-east1"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with machines(tmp_path_factory.mktemp("fleet"), [_SRC, _DST]) as (found, _):
        yield found


def test_a_port_that_someone_else_holds_is_passed_over(fleet: Fleet) -> None:
    need("iperf3")
    tool = Iperf3()

    async def main() -> list[int]:
        async with Sessions(fleet, owner("tools")) as sessions:
            test = make_test(fleet, tool, _SRC, _DST)
            # Two controllers that know nothing of each other.
            async with (
                prepared(sessions, Ports(), tool, test) as first,
                prepared(sessions, Ports(), tool, test) as second,
            ):
                return [first.port, second.port]

    first, second = asyncio.run(main())
    assert second == first + 1


def test_no_free_port_is_an_error_that_says_so(fleet: Fleet) -> None:
    need("iperf3")
    narrow = {h.name: replace(h, last_port=h.first_port) for h in fleet}
    tool, ports = Iperf3(), Ports()

    async def main() -> None:
        async with Sessions(Fleet(narrow), owner("tools")) as sessions:
            test = make_test(Fleet(narrow), tool, _SRC, _DST)
            async with prepared(sessions, ports, tool, test), prepared(sessions, ports, tool, test):
                pass

    with pytest.raises(ProbeError, match="no 1 free ports") as busy:
        asyncio.run(main())
    assert busy.value.cause == "busy"


# ---- output that is not a measurement ----------------------------------------------------------


_FLEET = Fleet(
    {
        name: Host(name, name, address, 22, "u", None, Path("known"), public_address=address)
        for name, address in ((_SRC, "192.0.2.1"), (_DST, "192.0.2.2"))
    }
)
_PING_SILENT = b"""\
PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.

--- 192.0.2.2 ping statistics ---
1 packets transmitted, 0 received, 100% packet loss, time 0ms

PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.

--- 192.0.2.2 ping statistics ---
10 packets transmitted, 0 received, 100% packet loss, time 1800ms

"""


_IPERF3_ENDED = b'{"start": {"test_start": {"num_streams": 1}, "timestamp": {"timesecs": 1.7e9}}, '


def _error(text: str) -> bytes:
    return json.dumps({"start": {}, "error": text}).encode()


@pytest.mark.parametrize(
    ("tool", "status", "stdout", "stderr", "cause", "words"),
    [
        (Iperf3(), 0, _error("the server is busy running a test"), b"", "busy", "one test"),
        (Iperf3(), 0, _error("Connection timed out"), b"", "filtered", "firewall"),
        (Iperf3(), 1, b"", b"iperf3: error - too many streams", "tool", "too many"),
        (Iperf3(), 0, b'{"start": {"test_start": {"num_str', b"", "output", "cut off"),
        (Iperf3(), 0, b"", b"", "tool", "silently"),
        (Iperf3(), 0, _IPERF3_ENDED + b'"intervals": [], "end": {}}', b"", "tool", "receiver"),
        (Ping(), 1, _PING_SILENT, b"", "filtered", "filters ICMP"),
        (Ping(), 127, b"", b"sh: 2: ping: not found", "missing-tool", "not found"),
        (TcpConnect(), 0, b"", b"", "filtered", "neither ping"),
        (TcpConnect(), 0, b"192.0.2.2 0.2\n", b"", "tool", "too few"),
        (Traceroute(), 1, b"", b"traceroute: bad address", "tool", "bad address"),
    ],
)
def test_a_failure_is_no_figure(
    tool: Tool, status: int, stdout: bytes, stderr: bytes, cause: str, words: str
) -> None:
    test = replace(make_test(_FLEET, tool, _SRC, _DST), port=5201)
    with pytest.raises(ProbeError, match=words) as failed:
        tool.read(Output(status, stdout, stderr), test, 1.7e9)
    assert failed.value.cause == cause


def _ping_output(*replies_ms: str, summary: str) -> Output:
    """Two runs, as iputils prints them: one packet quietly, then the rest."""
    count = len(replies_ms)
    lines = [
        "PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.",
        "",
        "--- 192.0.2.2 ping statistics ---",
        "1 packets transmitted, 1 received, 0% packet loss, time 0ms",
        "rtt min/avg/max/mdev = 250.1/250.1/250.1/0.000 ms",
        "PING 192.0.2.2 (192.0.2.2) 56(84) bytes of data.",
        *(
            f"64 bytes from 192.0.2.2: icmp_seq={number} ttl=64 time={ms} ms"
            for number, ms in enumerate(replies_ms, start=1)
        ),
        "",
        "--- 192.0.2.2 ping statistics ---",
        f"{count} packets transmitted, {count} received, 0% packet loss, time 800ms",
        f"rtt min/avg/max/mdev = {summary} ms",
    ]
    return Output(0, "\n".join(lines).encode(), b"")


@pytest.mark.parametrize(
    ("replies_ms", "summary", "rtt_ms"),
    [
        (["204", "204", "204", "204"], "203.811/204.217/204.402/0.2", 204.217),
        (["204", "219", "204", "204"], "203.811/207.9/219.102/6.4", 204.5),
        (["12.3", "12.3", "19.9", "12.4", "12.3"], "12.281/13.9/19.911/3", 12.4),
        (["0.041", "0.043", "0.042", "0.041"], "0.041/0.042/0.043/0.001", 0.0415),
    ],
)
def test_a_late_reply_does_not_move_the_round_trip_time(
    replies_ms: list[str], summary: str, rtt_ms: float
) -> None:
    test = replace(make_test(_FLEET, Ping(), _SRC, _DST), connections=0)
    result = Ping().read(_ping_output(*replies_ms, summary=summary), test, 1.0e9)
    found = {sample.metric: sample.value for sample in result.samples}
    assert found["rtt_ms"] == pytest.approx(rtt_ms, abs=0.06)
    assert found["jitter_ms"] == pytest.approx(float(summary.split("/")[3]))
    assert found["loss_pct"] == 0


def test_the_first_ping_is_set_apart_and_figures_keep_microseconds() -> None:
    output = _PING_SILENT.replace(
        b"1 packets transmitted, 0 received, 100%", b"1 packets transmitted, 1 received, 0%"
    )
    output = output.replace(
        b"10 packets transmitted, 0 received, 100% packet loss, time 1800ms\n",
        b"10 packets transmitted, 9 received, 10% packet loss, time 1800ms\n"
        b"rtt min/avg/max/mdev = 203.117/203.482/204.020/0.311 ms\n",
    )
    test = make_test(_FLEET, Ping(), _SRC, _DST)
    result = Ping().read(Output(0, output, b""), test, 1.7e9)
    assert {s.metric: s.value for s in result.samples} == {
        "loss_pct": 10.0,
        "rtt_ms": 203.482,
        "jitter_ms": 0.311,
    }
    assert {s.measured_at_s for s in result.samples} == {1.7e9}


def test_a_route_that_ends_before_its_destination_has_no_number_of_hops() -> None:
    head = b"traceroute to 192.0.2.2 (192.0.2.2), 40 hops max, 60 byte packets\n"
    lines = b" 1  192.0.2.9  0.4 ms\n 2  *\n"
    test = make_test(_FLEET, Traceroute(), _SRC, _DST)

    def detail(output: bytes) -> dict[str, object]:
        return Traceroute().read(Output(0, output, b""), test, 0.0).detail

    arrived = detail(head + lines + b" 3  192.0.2.2  9.1 ms\n")
    assert arrived == {"hops": 3, "path": ["192.0.2.9", None, "192.0.2.2"]}
    assert detail(head + lines)["hops"] is None
    assert detail(head + lines + b" 3  192.0.2.7  9.1 ms !X\n")["hops"] is None


def test_only_what_a_tool_can_do_is_asked_of_it() -> None:
    test: Test = make_test(_FLEET, Iperf3(), _SRC, _DST)
    with pytest.raises(InputError, match="between 1 and 128"):
        Iperf3().command(replace(test, connections=129))
    with pytest.raises(InputError, match="one host at both ends"):
        make_test(_FLEET, Iperf3(), _SRC, _SRC)
    asked = Iperf3().command(replace(test, port=6001, connections=3, window_bytes=65536, omit_s=2))
    assert asked[:5] == ["iperf3", "-c", "192.0.2.1", "-p", "6001"]
    assert asked[-2:] == ["-w", "65536"]
