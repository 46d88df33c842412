"""What relayd takes from ping's output."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.fleet.hosts import Host
from probes.fleet.session import Output
from probes.tools.interface import Test as ProbeTest
from probes.tools.round_trips import Ping

HOSTS = [
    Host(name, name, "192.0.2.1", 22, "u", None, Path("known_hosts"))
    for name in ("aws:us-east-1", "gcp:us-east1")
]


def output(*replies_ms: str, summary: str) -> Output:
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
    test = ProbeTest(HOSTS[0], HOSTS[1], "192.0.2.2", connections=0, duration_s=1.0)
    result = Ping().read(output(*replies_ms, summary=summary), test, 1.0e9)
    found = {sample.metric: sample.value for sample in result.samples}
    assert found["rtt_ms"] == pytest.approx(rtt_ms, abs=0.06)
    assert found["jitter_ms"] == pytest.approx(float(summary.split("/")[3]))
    assert found["loss_pct"] == 0
