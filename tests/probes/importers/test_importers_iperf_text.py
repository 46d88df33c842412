"""Text of iperf 2 and 3: against their JSON of the same test, and as real runs have written it."""

from __future__ import annotations

import re
import subprocess
import time

import pytest

from tests.ports import free_port
from tests.probes.importers.reading import FIXTURES, outcomes, reasons, samples, skipped
from tests.probes.importers.test_importers_live import run, tool

TEXTS = sorted((FIXTURES / "iperf").glob("*.txt"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("-n", "40M", "-b", "400M"),
        ("-t", "2", "-P", "3", "-i", "0.5", "-b", "90M"),
        ("-t", "2", "-O", "1", "-b", "90M", "-f", "K"),
        ("-t", "1", "-u", "-b", "5M"),
    ],
)
def test_a_servers_text_says_what_the_clients_json_does(arguments: tuple[str, ...]) -> None:
    port = str(free_port())
    form = arguments[-2:] if "-f" in arguments else ()
    server = subprocess.Popen(
        [tool("iperf3"), "-s", "-1", "-B", "127.0.0.1", "-p", port, "--forceflush", *form],
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        output = server.stdout
        assert output
        head = "".join(output.readline() for _ in range(3))
        json_text = run(tool("iperf3"), "-c", "127.0.0.1", "-p", port, "-J", *arguments)
        text = head + output.read()
    (exact,) = samples("iperf3", json_text, force=True)
    (found,) = samples("iperf", text)
    same = ("src", "dst", "metric", "connections", "warmed_up")
    assert [getattr(found, name) for name in same] == [getattr(exact, name) for name in same]
    # Both sides begin and end at other moments, of which a busy machine makes much.
    assert found.value == pytest.approx(exact.value, rel=0.5)
    assert found.duration_s == pytest.approx(exact.duration_s, rel=0.5)


def test_iperf_2_on_loopback() -> None:
    port = str(free_port())
    server = subprocess.Popen([tool("iperf"), "-s", "-p", port], stdout=subprocess.DEVNULL)
    with server:
        for _ in range(100):
            before_s = time.time()
            text = run(tool("iperf"), "-e", "-c", "127.0.0.1", "-p", port, "-t1", "-P2", "-b50m")
            # As long as the server begins, one of the two connections may fail alone.
            if found := samples("iperf", text, measured_at_s=None):
                break
            time.sleep(0.05)
        server.terminate()
    assert len(found) == 1, text
    sample = found[0]
    assert (sample.metric, sample.connections) == ("aggregate_mbps", 2)
    assert 10 < sample.value < 120
    assert abs(sample.measured_at_s - before_s) < 60
    assert sample.tool.startswith("iperf2")
    assert sample.read_detail()["counted_at"] == "sender"


def test_streams_may_be_told_before_their_test() -> None:
    """As iperf 2.1.8 wrote on a busy machine, twice into one file."""
    text = b"""\
[  2] local 10.77.0.1 port 39772 connected with 127.0.0.1 port 48911 on 2026-11-23 02:36:02 (UTC)
[  1] local 10.77.0.1 port 39780 connected with 127.0.0.1 port 48911 on 2026-11-23 02:36:02 (UTC)
------------------------------------------------------------
Client connecting to 127.0.0.1, TCP port 48911 with pid 13781 (2 flows)
TCP window size: 4.00 MByte (default)
------------------------------------------------------------
[ ID] Interval            Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)
[  2] 0.0000-1.0340 sec  6.13 MBytes  49.7 Mbits/sec  49/0          0      895K/4965(5264) us
[  1] 0.0000-1.0341 sec  6.13 MBytes  49.7 Mbits/sec  49/0          0      895K/4392(5977) us
[SUM] 0.0000-1.0068 sec  12.3 MBytes   102 Mbits/sec  98/0         0
"""
    later = text.replace(b"02:36:02", b"02:37:02")
    first, second = samples("iperf", text + later, measured_at_s=None)
    assert first.value == second.value == pytest.approx(102)
    assert first.connections == second.connections == 2
    assert second.measured_at_s - first.measured_at_s == 60


def test_what_real_runs_wrote() -> None:
    """Files of iperf 3.12 and 2.1.8; rates as their summaries or the medians of intervals say."""
    found = {
        path.stem: [
            (s.metric, round(s.value, 2), s.connections, s.src.partition(":")[0], s.tool)
            for s in samples("iperf", path)
        ]
        for path in TEXTS
    }
    aws = "aws"
    assert found == {
        "iperf2-client": [("aggregate_mbps", 400.0, 2, aws, "iperf2")],
        "iperf2-refused": [],
        "iperf2-server": [
            ("aggregate_mbps", 400.0, 2, aws, "iperf2"),
            ("per_flow_mbps", 101.0, 1, aws, "iperf2"),
        ],
        "iperf2-udp": [("udp_mbps", 20.0, 1, aws, "iperf2")],
        "iperf3-client": [("aggregate_mbps", 400.0, 2, aws, "iperf3")],
        "iperf3-refused": [],
        "iperf3-reverse": [("per_flow_mbps", 50.3, 1, "gcp", "iperf3")],
        "iperf3-reverse-verbose": [],
        "iperf3-udp": [("udp_mbps", 20.1, 1, aws, "iperf3")],
    }
    paced = FIXTURES / "iperf" / "iperf3-reverse-verbose.txt"
    ((_, reason),) = skipped("iperf", paced)
    assert reason.endswith("(-b or -R)")
    (sample,) = samples("iperf", paced, measured_at_s=None, force=True)
    assert (sample.src, sample.value, sample.tool) == ("gcp:us-east1", 200.0, "iperf3 3.12")
    assert sample.measured_at_s == 1795382035
    for name in ("iperf2-refused", "iperf3-refused"):
        ((_, reason),) = skipped("iperf", FIXTURES / "iperf" / f"{name}.txt")
        assert "Connection refused" in reason
        assert "server listens there" in reason


@pytest.mark.parametrize(("name", "jitter_ms"), [("iperf2-udp", 0.004), ("iperf3-udp", 0.019)])
def test_loss_and_jitter_of_udp_are_in_the_text(name: str, jitter_ms: float) -> None:
    text = (FIXTURES / "iperf" / f"{name}.txt").read_text()
    lost = re.sub(r" 0/(\d+) \(0%\)", lambda found: f" 5/{found[1]} (1%)", text)
    assert lost != text
    for content, is_lost in ((text, False), (lost, True)):
        (sample,) = samples("iperf", content)
        told = sample.read_detail()
        assert (told["jitter_ms"], told["loss_at_this_rate_pct"] > 0) == (jitter_ms, is_lost)


def test_tests_without_a_summary_are_left_out() -> None:
    whole = (FIXTURES / "iperf" / "iperf3-client.txt").read_text()
    begun = "".join(whole.splitlines(keepends=True)[:12])
    found = outcomes("iperf", begun + whole)
    assert len(found) == 2
    assert reasons(found) == {"no summary of the test: it was cut off": 1}


def test_rows_with_damaged_numbers_are_no_fault() -> None:
    """Fuzzing found one that was."""
    whole = (FIXTURES / "iperf" / "iperf3-udp.txt").read_text()
    damaged, count = re.subn(r"[\d.]+ ms", "0..004 ms", whole)
    assert count
    assert len(outcomes("iperf", damaged)) == len(outcomes("iperf", whole))
