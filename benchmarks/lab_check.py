"""Measures what a lab can do on this machine: ``make lab-check``.

Brings up all forty regions, measures them with ping and iperf3, and prints a table of what is
promised and what was found. Takes about five minutes and needs root. Exits with 1 where a promise
is not held. ``--json FILE`` also writes the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, pstdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.lab_measuring import (
    Transfer,
    echo_rtts_ms,
    goodputs_mbps,
    iperf3_reports,
    lateness_of,
    rates_mbps,
    running,
    undisturbed,
)
from planner.model.baseline import backbone
from planner.model.errors import RelaydError
from probes.lab.controller import Lab
from probes.lab.profiles import load_profile, topology_of
from probes.lab.sites import children_of
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue

CAP_MBPS = 100.0
WINDOW_BYTES = 500_000
RTTS_MS = (1.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0, 150.0, 200.0, 300.0, 400.0)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    what: str
    promised: str
    found: str
    held: bool
    value: float


class Check:
    """Collects findings and prints them as they come."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def at_most(self, what: str, value: float, limit: float, unit: str) -> None:
        """Note a value that must not exceed a limit."""
        self._add(what, f"<= {limit:g} {unit}", f"{value:.3g} {unit}", value <= limit, value)

    def at_least(self, what: str, value: float, limit: float, unit: str) -> None:
        """Note a value that must reach a limit."""
        self._add(what, f">= {limit:g} {unit}", f"{value:.3g} {unit}", value >= limit, value)

    def within(self, what: str, value: float, low: float, high: float) -> None:
        """Note a ratio that must lie in a range."""
        self._add(what, f"{low:g} to {high:g}", f"{value:.3f}", low <= value <= high, value)

    def note(self, what: str, value: float, unit: str) -> None:
        """Note a value without a promise."""
        self._add(what, "", f"{value:.3g} {unit}", True, value)

    def finished(self, docs: str | None, mark: str) -> int:
        """Put what was found into a document, if one is named; returns the exit code."""
        if docs:
            _write_table(Path(docs), mark, self.findings)
        return 0 if all(finding.held for finding in self.findings) else 1

    def _add(self, what: str, promised: str, found: str, held: bool, value: float) -> None:
        self.findings.append(Finding(what, promised, found, held, value))
        mark = "" if held else "   NOT HELD"
        print(f"{what:<62} {promised:>12}  {found:>14}{mark}", flush=True)


def _write_table(path: Path, mark: str, findings: Sequence[Finding]) -> None:
    """Put findings as a table between two marks of a document."""
    head, _, rest = path.read_text().partition(f"<!-- {mark} -->")
    _, _, tail = rest.partition(f"<!-- /{mark} -->")
    table = "| what | promised | found |\n|---|---|---|\n"
    table += "".join(f"| {f.what.strip()} | {f.promised} | {f.found} |\n" for f in findings)
    path.write_text(f"{head}<!-- {mark} -->\n{table}<!-- /{mark} -->{tail}")


def checked_on_lab(
    name: str, topology: Topology, docs: str | None, measure: Callable[[Check, Lab, Path], None]
) -> int:
    """Bring a lab up and measure it, print what was found, and return the exit code.

    Parameters
    ----------
    name : str
        Of the check, such as ``campaign``.
    topology : Topology
    docs : str | None
        A document whose marks get the table.
    measure : callable
        Takes the check, the lab and a folder that is removed at the end.
    """
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} processors\n")
    check, lab = Check(), Lab(f"check-{name}-{os.getpid()}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            lab.up(topology, ends_with_caller=True)
            measure(check, lab, Path(folder))
        except RelaydError as error:
            print(f"{name}-check: {error}", file=sys.stderr)
            return 1
        finally:
            lab.down()
    return check.finished(docs, f"{name}-check")


def forty() -> Topology:
    """Return the topology of the paper's profile."""
    profile = load_profile(built_in_folder() / "lab-paper.toml")
    return topology_of(profile, load_catalogue(), backbone.rtt_ms)


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


def quantile(values: Sequence[float], share: float) -> float:
    """Quantile of some values, the nearest rank."""
    return sorted(values)[int(share * (len(values) - 1))]


def memory_mib(lab: Lab) -> float:
    """Proportional set size of every process of a lab."""
    record = json.loads((lab.folder / "lab.json").read_text())
    waiting, total_kib = [record["pid"]], 0
    while waiting:
        pid = waiting.pop()
        waiting += children_of(pid)
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has ended
            continue
        total_kib += next(
            int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
        )
    return total_kib / 1024


def check_life(check: Check) -> None:
    """Up, idle and down, forty sites."""
    lab, topology = Lab("check-life"), forty()
    ups, downs = [], []
    for _ in range(3):
        began = time.monotonic()
        lab.up(topology, ends_with_caller=True)
        ups.append(time.monotonic() - began)
        memory = memory_mib(lab)
        began = time.monotonic()
        lab.down()
        downs.append(time.monotonic() - began)
    check.at_most("40 regions up, with sshd answering (worst of 3)", max(ups), 5, "s")
    check.at_most("40 regions down (worst of 3)", max(downs), 2, "s")
    check.at_most("memory of 40 idle regions (proportional set size)", memory, 200, "MiB")


def errors_ms(lab: Lab, pairs: Sequence[tuple[int, int]], rounds: int) -> list[float]:
    """How far round-trip times are from what is configured."""
    topology = lab.topology()
    found = echo_rtts_ms(lab, pairs, rounds, 0.003)
    return [abs(v - topology.rtt_ms[i][j]) for (i, j), values in found.items() for v in values]


def check_distances(check: Check) -> None:
    """Round-trip times of all 1,560 pairs, idle and with others loaded."""
    topology = forty()
    # Caps of the first 20 sites are raised, so that ten of their pairs can load the core.
    sites = tuple(
        replace(site, egress_mbps=100.0, ingress_mbps=100.0, window_bytes=500_000)
        if index < 20
        else site
        for index, site in enumerate(topology.sites)
    )
    lab = Lab("check-rtt")
    lab.up(replace(topology, sites=sites), ends_with_caller=True)
    try:
        count = len(sites)
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        idle = undisturbed(lab, lambda: errors_ms(lab, pairs, 1))
        check.note("RTT error idle, all 1,560 pairs, p50", median(idle), "ms")
        check.at_most("RTT error idle, all 1,560 pairs, p95", quantile(idle, 0.95), 0.3, "ms")
        quiet = [(i, j) for i in range(20, 40) for j in range(20, 40) if i != j]
        load = [Transfer(2 * i, 2 * i + 1, 8) for i in range(10)]

        def loaded() -> tuple[list[float], float]:
            with ThreadPoolExecutor() as pool:
                reports = pool.submit(iperf3_reports, lab, load, 12)
                time.sleep(3)
                rates = pool.submit(rates_mbps, lab, 5)
                errors = errors_ms(lab, quiet, 5)
                total = sum(sent for sent, _ in rates.result()) / 1000
                reports.result()
            return errors, total

        runs = [undisturbed(lab, loaded) for _ in range(3)]
        check.note("  load meanwhile: ten pairs, all together", runs[0][1], "Gbit/s")
        p50 = median(median(errors) for errors, _ in runs)
        p95 = median(quantile(errors, 0.95) for errors, _ in runs)
        check.note("RTT error loaded, p50 (median of 3 runs)", p50, "ms")
        check.at_most("RTT error loaded, p95 (median of 3 runs)", p95, 0.6, "ms")
    finally:
        lab.down()


def check_flows(check: Check) -> None:
    """One flow over 11 distances, then many flows to every destination."""
    lab = Lab("check-flows")
    lab.up(chain(RTTS_MS, CAP_MBPS, WINDOW_BYTES), ends_with_caller=True)
    try:
        topology = lab.topology()
        transfers = [Transfer(2 * i, 2 * i + 1) for i in range(len(RTTS_MS))]
        got = undisturbed(lab, lambda: goodputs_mbps(lab, transfers, 12, 6))
        expected = [topology.expected_flow_mbps(t.source, t.destination) for t in transfers]
        errors = [abs(g / e - 1) * 100 for g, e in zip(got, expected, strict=True)]
        check.note(
            "one flow, fastest over slowest of 11 pairs, 1 to 400 ms", max(got) / min(got), "x"
        )
        check.at_most("one flow against min(W/RTT, caps), median error", median(errors), 2, "%")
        check.at_most("one flow against min(W/RTT, caps), worst error", max(errors), 5, "%")
    finally:
        lab.down()


def check_caps(check: Check) -> None:
    """Caps of the VM: to every destination, one to many, many to one."""
    lab, topology = Lab("check-caps"), forty()
    lab.up(topology, ends_with_caller=True)
    try:
        source = topology.index("aws:us-east-1")
        cap = topology.sites[source].egress_mbps * GOODPUT_SHARE
        others = [i for i in range(len(topology.sites)) if i != source][::4]

        def aggregates() -> list[float]:
            return [goodputs_mbps(lab, [Transfer(source, j, 32)], 6, 4)[0] for j in others]

        got = undisturbed(lab, aggregates)
        check.at_most(
            f"many flows to each of {len(others)} regions against the cap, worst error",
            max(abs(rate / cap - 1) for rate in got) * 100,
            2,
            "%",
        )
        check.at_most("  spatial coefficient of variation", pstdev(got) / fmean(got) * 100, 2, "%")
        for inwards in (False, True):
            transfers = [
                Transfer(j, source, 8) if inwards else Transfer(source, j, 8) for j in others
            ]

            def middle(transfers: list[Transfer] = transfers) -> list[tuple[float, float]]:
                with ThreadPoolExecutor() as pool:
                    reports = pool.submit(iperf3_reports, lab, transfers, 14)
                    time.sleep(7)
                    rates = rates_mbps(lab, 5)
                    reports.result()
                return rates

            rate = undisturbed(lab, middle)[source][inwards]
            name = f"{len(others)} to one" if inwards else f"one to {len(others)}"
            check.within(f"{name}, together, over the cap", rate * GOODPUT_SHARE / cap, 0.98, 1.02)
    finally:
        lab.down()


def relayed_mbps(lab: Lab, flows: int, seconds: float, omitted_s: int) -> float:
    """Goodput through socat on the relay (site 1), from site 0 to site 2."""
    serve = ["iperf3", "-s", "-1", "--forceflush"]
    split = ["socat", "-d", "-d", "TCP-LISTEN:5301,fork,reuseaddr", "TCP:10.77.0.3:5201"]
    ask = ["iperf3", "-c", "10.77.0.2", "-p", "5301", "-J", "-t", f"{seconds:g}"]
    ask += ["-O", str(omitted_s), "-P", str(flows)]
    with (
        running(lab, "lab:relay", split, until="listening"),
        running(lab, "lab:destination", serve, until="listening"),
        running(lab, "lab:source", ask) as client,
    ):
        text, _ = client.communicate(timeout=seconds + 90)
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 1e6


def check_relay(check: Check) -> None:
    """Measure the paper's result: a relay helps one flow, and does not help many."""
    names = ("source", "relay", "destination")
    sites = tuple(Site(f"lab:{name}", CAP_MBPS, CAP_MBPS, 125_000) for name in names)
    matrix = ((0.0, 84.0, 204.0), (84.0, 0.0, 81.0), (204.0, 81.0, 0.0))
    lab = Lab("check-relay")
    lab.up(Topology(sites, matrix, profile="check"), ends_with_caller=True)
    try:
        topology = lab.topology()
        direct = undisturbed(lab, lambda: goodputs_mbps(lab, [Transfer(0, 2)], 12.24, 4)[0])
        relayed = undisturbed(lab, lambda: relayed_mbps(lab, 1, 12.6, 4))
        predicted = min(topology.expected_flow_mbps(0, 1), topology.expected_flow_mbps(1, 2))
        check.note(
            "relay, one flow: gain over direct (204 ms -> 84 + 81 ms)", relayed / direct, "x"
        )
        check.within("  relayed over min(W/RTT1, W/RTT2)", relayed / predicted, 0.95, 1.05)
        flows = 48  # cap RTT / W is 20
        direct = undisturbed(lab, lambda: goodputs_mbps(lab, [Transfer(0, 2, flows)], 10, 5)[0])
        relayed = undisturbed(lab, lambda: relayed_mbps(lab, flows, 10, 5))
        check.within(f"relay, {flows} flows: relayed over direct", relayed / direct, 0.97, 1.02)
    finally:
        lab.down()


def check_capacity(check: Check) -> None:
    """How much the core carries before measurements disturb each other."""
    lab = Lab("check-capacity")
    for label, pairs, cap in (("19 pairs x 200", 19, 200.0), ("8 pairs x 1000", 8, 1000.0)):
        lab.up(chain([20.0] * pairs, cap, 65535 * 64), ends_with_caller=True)
        try:
            transfers = [Transfer(2 * i, 2 * i + 1, 2) for i in range(pairs)]
            with ThreadPoolExecutor() as pool:
                reports = pool.submit(iperf3_reports, lab, transfers, 10)
                time.sleep(4)
                with lateness_of(lab) as lateness:
                    before = lab.status()["counters"]["packets"]
                    rates = rates_mbps(lab, 4)
                    packets = (lab.status()["counters"]["packets"] - before) / 4
                reports.result()
            sent = [rates[2 * i][0] for i in range(pairs)]
            check.note(f"capacity, {label} Mbit/s: carried", sum(sent) / 1000, "Gbit/s")
            check.note("  worst pair's shortfall", (1 - min(sent) / cap) * 100, "%")
            check.note("  packets a second", packets, "/s")
            check.note("  lateness p95", lateness.p95_ms or 0.0, "ms")
        finally:
            lab.down()


PARTS: dict[str, Callable[[Check], None]] = {
    "life": check_life,
    "distances": check_distances,
    "flows": check_flows,
    "caps": check_caps,
    "relay": check_relay,
    "capacity": check_capacity,
}


def main() -> int:
    """Run the parts that were asked for; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--json", metavar="FILE", help="also write the figures")
    parser.add_argument("--docs", metavar="FILE", help="put them between the marks in docs/lab.md")
    options = parser.parse_args()
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"unknown part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} processors\n")
    check = Check()
    try:
        for name in options.parts or PARTS:
            PARTS[name](check)
    except RelaydError as error:
        print(f"lab-check: {error}", file=sys.stderr)
        return 1
    if options.json:
        found = [
            {"what": f.what, "promised": f.promised, "found": f.found, "held": f.held}
            for f in check.findings
        ]
        Path(options.json).write_text(json.dumps(found, indent=2) + "\n")
    return check.finished(options.docs, "lab-check")


if __name__ == "__main__":
    sys.exit(main())
