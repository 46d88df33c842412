"""The paper's point on how round-trip times are measured: ICMP echoes, and TCP's handshake.

relayd's own two tools and hping3, which the paper used, measure the same pairs one after the other:
idle, with the sender's cap full, with ways that are not alike, and where ICMP is filtered.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from statistics import median

from benchmarks.lab_measuring import running
from planner.model.errors import RelaydError
from probes.fleet.failures import ProbeError
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.fleet.remote import Output
from probes.lab.controller import Lab
from probes.lab.topology import private_address
from probes.tools.interface import Tool, make_test
from probes.tools.round_trips import Ping, TcpConnect
from scripts.reproduce.laboratory import EC2_PAIRS, FLOWS, laboratory, measured
from scripts.reproduce.point import Point

PAIRS = (
    *EC2_PAIRS,
    ("gcp:us-central1", "gcp:us-east1"),
    ("gcp:europe-west1", "gcp:asia-east1"),
    ("aws:us-east-1", "gcp:us-east1"),
)
TO_AZURE = (("aws:us-east-1", "azure:westeurope"), ("gcp:us-central1", "azure:brazilsouth"))
OTHERS = ("hping3", "TCP connects")
PROBES = 30
AT_ONCE = 3
"""Pairs; more would make each other late."""
ALIKE = 0.05
"""Two medians that differ by less are taken for the same round-trip time."""
ALIKE_MS = 0.5
"""Or by less than this: of a near pair, 5 % is less than what a machine takes to answer."""
FURTHER_MS, JITTER_MS = 100.0, 10.0
"""Of one way alone: how much longer it takes, and what it varies by."""
SSH_PORT = "22"

Pair = tuple[str, str]
Times = dict[Pair, float | None]
"""Medians in ms; None where nothing answered."""


def round_trip_points() -> list[Point]:
    """Compare the paper's ways to measure round-trip times (needs root, two minutes)."""
    if shutil.which("hping3", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        raise RelaydError("hping3 is missing: apt-get install -y hping3.")
    with laboratory("t2.micro") as lab:
        return measured(lab, _idle, _loaded, _one_way_longer, _one_way_unsteady, _filtered)


def _medians(lab: Lab, pairs: Sequence[Pair]) -> dict[str, Times]:
    """Measure every pair by each tool, one tool after the other."""
    fleet = load_fleet(lab.fleet_file)
    tools: dict[str, Callable[[Pair], float | None]] = {
        "ping": lambda pair: _own(lab, fleet, Ping(), pair),
        "hping3": lambda pair: _hping3(lab, pair),
        "TCP connects": lambda pair: _own(lab, fleet, TcpConnect(), pair),
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {
            name: dict(zip(pairs, pool.map(measure, pairs), strict=True))
            for name, measure in tools.items()
        }


def _own(lab: Lab, fleet: Fleet, tool: Tool, pair: Pair) -> float | None:
    """Measure with a tool of relayd, as a campaign does."""
    test = replace(make_test(fleet, tool, *pair), duration_s=PROBES * 0.2)
    done = subprocess.run(lab.command(pair[0], tool.command(test)), capture_output=True)
    try:
        result = tool.read(Output(done.returncode, done.stdout, done.stderr), test, time.time())
    except ProbeError:
        return None
    return next(sample.value for sample in result.samples if sample.metric == "rtt_ms")


def _hping3(lab: Lab, pair: Pair) -> float | None:
    """Send SYNs to a port that listens, a tenth of a second apart; the first is set apart."""
    address = private_address(lab.topology().index(pair[1]))
    ask = ["hping3", "-S", "-n", "-I", "wan", "-p", SSH_PORT, "-c", str(PROBES + 1)]
    done = subprocess.run(
        lab.command(pair[0], [*ask, "-i", "u100000", address]), capture_output=True, text=True
    )
    times_ms = [float(ms) for ms in re.findall(r"flags=SA .*rtt=([\d.]+) ms", done.stdout)]
    return median(times_ms[1:]) if len(times_ms) > PROBES / 2 else None


def _alike(found: Mapping[str, Times]) -> list[Point]:
    """Return the point on differences from ping."""
    answered = [ms for ms in found["ping"].values() if ms is not None]
    words, alike = [f"ping {min(answered):.1f} to {max(answered):.1f} ms"], True
    for name in OTHERS:
        both = [(ms, found[name][pair]) for pair, ms in found["ping"].items()]
        more = [(other - ms, ms) for ms, other in both if ms is not None and other is not None]
        alike &= len(more) == len(both)
        alike &= all(abs(off_ms) <= max(ALIKE_MS, ALIKE * ms) for off_ms, ms in more)
        if more:
            most = max((off_ms / ms for off_ms, ms in more), key=abs)
            middle_ms = median(off_ms for off_ms, _ in more)
            words.append(f"{name} {middle_ms:+.2f} ms in the median, {most:+.1%} at most")
        else:
            words.append(f"{name} unanswered")
    criterion = f"medians of all pairs within {ALIKE:.0%} or {ALIKE_MS:g} ms of ping's"
    basis = f"{len(found['ping'])} pairs, {PROBES} probes of each tool"
    return [Point("; ".join(words), alike, criterion, basis)]


def _idle(lab: Lab) -> list[Point]:
    return _alike(_medians(lab, PAIRS))


@contextmanager
def _full(lab: Lab, src: str) -> Iterator[None]:
    """Fill a sender's cap towards a third region meanwhile."""
    topology, sink = lab.topology(), "gcp:europe-west1"
    there = topology.index(sink)
    # Without reports: no one would read them.
    send = ["iperf3", "-c", private_address(there), "-t", "600", "-P", str(FLOWS), "-i", "0"]
    with (
        running(lab, sink, ["iperf3", "-s", "-1", "--forceflush"], until="listening"),
        running(lab, src, send),
    ):
        # Until all connections are open, one after the other, and the queue is full.
        time.sleep((FLOWS + 4) * topology.rtt_ms[topology.index(src)][there] / 1e3 + 5)
        yield


def _loaded(lab: Lab) -> list[Point]:
    found: dict[str, Times] = {}
    for pair in EC2_PAIRS:
        with _full(lab, pair[0]):
            for name, times in _medians(lab, [pair]).items():
                found.setdefault(name, {}).update(times)
    return _alike(found)


def _from_both_ends(lab: Lab, settings: Callable[[float], Mapping[str, float]]) -> list[Point]:
    """Measure pairs from either end, of which one way is set by its round-trip time."""
    topology = lab.topology()
    for src, dst in EC2_PAIRS:
        usual_ms = topology.rtt_ms[topology.index(src)][topology.index(dst)]
        lab.set_link(src, dst, settings(usual_ms), one_way=True)
    found = _medians(lab, [*EC2_PAIRS, *((dst, src) for src, dst in EC2_PAIRS)])
    lab.clear()
    return _alike(found)


def _one_way_longer(lab: Lab) -> list[Point]:
    # Of a direction's round-trip time, that direction takes half.
    return _from_both_ends(lab, lambda usual_ms: {"rtt_ms": usual_ms + 2 * FURTHER_MS})


def _one_way_unsteady(lab: Lab) -> list[Point]:
    return _from_both_ends(lab, lambda _: {"jitter_ms": JITTER_MS})


def _filtered(lab: Lab) -> list[Point]:
    """Filter ICMP at Azure, as in the paper: TCP's handshake shows the round trip."""
    topology = lab.topology()
    for _, azure in TO_AZURE:
        lab.set_host(azure, {"icmp": "filtered"})
    found = _medians(lab, TO_AZURE)
    lab.clear()
    off = [
        ms / topology.rtt_ms[topology.index(src)][topology.index(dst)] - 1
        for name in OTHERS
        for (src, dst), ms in found[name].items()
        if ms is not None
    ]
    pairs, silent = len(TO_AZURE), sum(ms is None for ms in found["ping"].values())
    most = max(off, key=abs, default=1.0)
    return [
        Point(
            f"{silent} of {pairs} pings unanswered; hping3 and relayd's TCP connects answered "
            f"{len(off)} of {2 * pairs}, off what is set by {most:+.1%} at most",
            silent == pairs and len(off) == 2 * pairs and abs(most) <= ALIKE,
            f"no ping answered, all others within {ALIKE:.0%} of what is set",
            f"{pairs} pairs, {PROBES} probes of each tool",
        )
    ]
