"""Measures what a lab can do on this machine: ``make lab-check``.

Brings up all forty regions, measures them with ping and iperf3, and prints a table of what is
promised and what was found. Takes about five minutes and needs root. Exits with 1 where a promise
is not held. ``--docs FILE`` puts the table between the marks in a document.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from statistics import fmean, median, pstdev

from benchmarks.lab_measuring import (
    Transfer,
    echo_rtts_ms,
    goodputs_mbps,
    iperf3_reports,
    lateness_of,
    rates_mbps,
    undisturbed,
)
from benchmarks.labs import Check, checked, lab_of, topology_like
from benchmarks.processes import memory_mb
from benchmarks.table import quantile
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology

CAP_MBPS = 100.0
WINDOW_BYTES = 500_000
RTTS_MS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0, 150.0, 200.0, 300.0, 400.0)


def chain(rtts_ms: Sequence[float], cap_mbps: float, window_bytes: int) -> Topology:
    """Pairs of sites 0-1, 2-3, ..., each pair so far apart; pairs are 10 ms from each other."""
    count = 2 * len(rtts_ms)
    sites = tuple(Site(f"lab:{i}", cap_mbps, cap_mbps, window_bytes) for i in range(count))
    matrix = tuple(
        tuple(
            0.0 if i == j else rtts_ms[i // 2] if i // 2 == j // 2 else 10.0 for j in range(count)
        )
        for i in range(count)
    )
    return Topology(sites, matrix, profile="check")


@contextmanager
def loaded(lab: Lab, transfers: Sequence[Transfer], seconds: int, begun_s: float) -> Iterator[None]:
    """Run transfers for so long, the block from some seconds after their start."""
    with ThreadPoolExecutor() as pool:
        reports = pool.submit(iperf3_reports, lab, transfers, seconds)
        time.sleep(begun_s)
        yield
        reports.result()


def check_life(check: Check) -> None:
    """Up, idle and down, forty sites."""
    ups, downs = [], []
    for _ in range(3):
        began = time.monotonic()
        with lab_of(topology_like("paper")) as lab:
            ups.append(time.monotonic() - began)
            keeper = int(json.loads((lab.folder / "lab.json").read_text())["pid"])
            memory = sum(memory_mb(keeper).values()) * 1e6 / 2**20
            began = time.monotonic()
        downs.append(time.monotonic() - began)
    check.at_most("40 regions up, with sshd answering (worst of 3)", max(ups), 5, "s")
    check.at_most("40 regions down (worst of 3)", max(downs), 2, "s")
    check.at_most("memory of 40 idle regions (proportional set size)", memory, 200, "MiB")


def errors_ms(lab: Lab, pairs: Sequence[tuple[int, int]], rounds: int) -> list[float]:
    """Return the differences of round-trip times from the configured ones."""
    topology = lab.topology()
    found = echo_rtts_ms(lab, pairs, rounds, 0.003)
    return [abs(v - topology.rtt_ms[i][j]) for (i, j), values in found.items() for v in values]


def check_distances(check: Check) -> None:
    """Round-trip times of all 1,560 pairs, idle and with others loaded."""
    topology = topology_like("paper")
    # Caps of the first 20 sites are raised, so that ten of their pairs can load the core.
    raised = [
        replace(site, egress_mbps=100.0, ingress_mbps=100.0, window_bytes=500_000)
        for site in topology.sites[:20]
    ]
    sites = (*raised, *topology.sites[20:])
    with lab_of(replace(topology, sites=sites)) as lab:
        pairs = list(permutations(range(len(sites)), 2))
        idle = undisturbed(lab, lambda: errors_ms(lab, pairs, 1))
        check.note("RTT error idle, all 1,560 pairs, p50", median(idle), "ms")
        check.at_most("RTT error idle, all 1,560 pairs, p95", quantile(idle, 0.95), 0.3, "ms")
        quiet = list(permutations(range(20, 40), 2))
        load = [Transfer(2 * i, 2 * i + 1, 8) for i in range(10)]

        def meanwhile() -> tuple[list[float], float]:
            with loaded(lab, load, 12, 3), ThreadPoolExecutor() as pool:
                rates = pool.submit(rates_mbps, lab, 5)
                return errors_ms(lab, quiet, 5), sum(sent for sent, _ in rates.result()) / 1000

        runs = [undisturbed(lab, meanwhile) for _ in range(3)]
    check.note("  load meanwhile: ten pairs, all together", runs[0][1], "Gbit/s")
    p50, p95 = (median(quantile(errors, part) for errors, _ in runs) for part in (0.5, 0.95))
    check.note("RTT error loaded, p50 (median of 3 runs)", p50, "ms")
    check.at_most("RTT error loaded, p95 (median of 3 runs)", p95, 0.6, "ms")


def check_flows(check: Check) -> None:
    """One flow over 11 distances."""
    with lab_of(chain(RTTS_MS, CAP_MBPS, WINDOW_BYTES)) as lab:
        topology = lab.topology()
        transfers = [Transfer(2 * i, 2 * i + 1) for i in range(len(RTTS_MS))]
        got = undisturbed(lab, lambda: goodputs_mbps(lab, transfers, 12, 6))
    expected = [topology.expected_flow_mbps(t.source, t.destination) for t in transfers]
    errors = [abs(g / e - 1) * 100 for g, e in zip(got, expected, strict=True)]
    check.note("one flow, fastest over slowest of 11 pairs, 1 to 400 ms", max(got) / min(got), "x")
    check.at_most("one flow against min(W/RTT, caps), median error", median(errors), 2, "%")
    check.at_most("one flow against min(W/RTT, caps), worst error", max(errors), 5, "%")


def check_caps(check: Check) -> None:
    """Caps of the VM: to every destination, one to many, many to one."""
    with lab_of(topology_like("paper")) as lab:
        topology = lab.topology()
        source = topology.index("aws:us-east-1")
        cap = topology.sites[source].egress_mbps * GOODPUT_SHARE
        others = [i for i in range(len(topology.sites)) if i != source][::4]
        got = undisturbed(
            lab, lambda: [goodputs_mbps(lab, [Transfer(source, j, 32)], 6, 4)[0] for j in others]
        )
        worst = max(abs(rate / cap - 1) for rate in got) * 100
        what = f"many flows to each of {len(others)} regions against the cap, worst error"
        check.at_most(what, worst, 2, "%")
        check.at_most("  spatial coefficient of variation", pstdev(got) / fmean(got) * 100, 2, "%")
        for inwards in (False, True):
            ends = [(j, source) if inwards else (source, j) for j in others]

            def middle(ends: Sequence[tuple[int, int]] = ends) -> list[tuple[float, float]]:
                with loaded(lab, [Transfer(*pair, 8) for pair in ends], 14, 7):
                    return rates_mbps(lab, 5)

            rate = undisturbed(lab, middle)[source][inwards]
            name = f"{len(others)} to one" if inwards else f"one to {len(others)}"
            check.within(f"{name}, together, over the cap", rate * GOODPUT_SHARE / cap, 0.98, 1.02)


def check_capacity(check: Check) -> None:
    """Check the load of the core at which measurements do not disturb each other."""
    for label, pairs, cap in (("19 pairs x 200", 19, 200.0), ("8 pairs x 1000", 8, 1000.0)):
        transfers = [Transfer(2 * i, 2 * i + 1, 2) for i in range(pairs)]
        with (
            lab_of(chain([20.0] * pairs, cap, 65535 * 64)) as lab,
            loaded(lab, transfers, 10, 4),
            lateness_of(lab) as lateness,
        ):
            before = lab.status()["counters"]["packets"]
            rates = rates_mbps(lab, 4)
            packets = (lab.status()["counters"]["packets"] - before) / 4
        sent = [rates[2 * i][0] for i in range(pairs)]
        check.note(f"capacity, {label} Mbit/s: carried", sum(sent) / 1000, "Gbit/s")
        check.note("  worst pair's shortfall", (1 - min(sent) / cap) * 100, "%")
        check.note("  packets a second", packets, "/s")
        check.note("  lateness p95", lateness.p95_ms or 0.0, "ms")


PARTS: dict[str, Callable[[Check], None]] = {
    "life": check_life,
    "distances": check_distances,
    "flows": check_flows,
    "caps": check_caps,
    "capacity": check_capacity,
}


def main() -> int:
    """Run the parts that were asked for; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default="all", choices=("all", *PARTS))
    parser.add_argument("--docs", metavar="FILE", help="put them between the marks in docs/lab.md")
    options = parser.parse_args()

    def measure(check: Check, _folder: Path) -> None:
        for name in PARTS if "all" in options.parts else options.parts:
            PARTS[name](check)

    return checked("lab-check", options.docs, measure)


if __name__ == "__main__":
    sys.exit(main())
