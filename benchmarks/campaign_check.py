"""Measures accuracy, bytes and time of a frugal campaign: the second half of ``make lab-check``.

Brings up a lab on which Azure's egress differs from pair to pair, measures it with ``relayd
probe`` as a user would, and holds what was found against what the lab was built with: round-trip
times, single flows, aggregates, caps, and the plans for all pairs. Takes about ten minutes with
forty regions and needs root. Exits with 1 where a promise is not held. ``--docs FILE`` puts the
table between the marks in a document. With ``--short-tests``, three regions are measured twice:
with whole tests of many connections, and with short first ones, as watches that keep a regret do.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import relayd
from benchmarks.achieved import achieved, with_estimates
from benchmarks.lab_measuring import lateness_of
from benchmarks.labs import Check, checked, lab_of, run, topology_like
from benchmarks.table import quantile
from planner.model.estimate import Estimate, exactly
from planner.model.link import Link, Site
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.campaign.costing import Meter
from probes.campaign.specification import AS_ASKED, CampaignSpec
from probes.campaign.tasks import CampaignLimits
from probes.fleet.file import load_fleet
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Topology
from relayd.campaigns.running import CampaignRunner
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.watch.settings import FIRST_S

CONNECTIONS, PROBE_S = 64, 5.0
SCALED_KEYS = ("egress_mbps", "ingress_mbps")


def true_network(topology: Topology) -> Network:
    """Return a lab as a graph, in the rates that it stands for: those before scaling."""
    to_gbps = 1 / topology.scale / MBPS_PER_GBPS
    sites = {
        site.region: Site(
            site.region,
            site.vm_type,
            exactly(site.egress_mbps * GOODPUT_SHARE * to_gbps),
            exactly(site.ingress_mbps * GOODPUT_SHARE * to_gbps),
            exactly(site.window_bytes / topology.scale / 1e6),
        )
        for site in sorted(topology.sites, key=lambda site: site.region)
    }
    links: dict[str, dict[str, Link]] = {site.region: {} for site in topology.sites}
    for (i, src), (j, dst) in permutations(enumerate(list(links)), 2):
        links[src][dst] = Link(
            src,
            dst,
            exactly(topology.rtt_ms[i][j]),
            exactly(topology.expected_flow_mbps(i, j) / topology.scale),
            exactly(topology.expected_aggregate_mbps(i, j) * to_gbps),
        )
    return Network(sites, links, Snapshot("truth", "", ""))


def unscaled(network: Network, regions: Sequence[str], scale: float) -> Network:
    """Return a lab's network with rates scaled up to those that it stands for."""

    def larger(name: str, estimate: Estimate) -> Estimate:
        if name == "rtt_ms":
            return estimate
        low, expected, high = (
            bound / scale for bound in (estimate.low, estimate.expected, estimate.high)
        )
        return replace(estimate, low=low, expected=expected, high=high)

    return with_estimates(network.with_(restricted_to=regions), larger)


def probed(fleet: Path, db: Path, *words: object) -> Any:
    """Run a campaign, and return its answer."""
    return run("probe", "--fleet", fleet, "--db", db, "--yes", *words)


def check_forecasts(check: Check, fleet: Path, folder: Path, regions: int) -> None:
    """Bytes, dollars and rounds, before anything runs, at the rates of the clouds."""
    at_cloud_rates = folder / "fleet-at-cloud-rates.toml"
    kept = [line for line in fleet.read_text().splitlines() if not line.startswith(SCALED_KEYS)]
    at_cloud_rates.write_text("\n".join(kept) + "\n")
    words = ["probe", "--fleet", at_cloud_rates, "--db", folder / "none.db", "--dry-run"]
    forecast = run(*words)
    frugal, everything = forecast["campaign"], forecast["all_pairs"]
    check.note("forecast at cloud rates: frugal, at most", frugal["volume_gb"], "GB")
    check.note("  all pairs, 64 connections, 5 s", everything["volume_gb"], "GB")
    for key, unit in (("volume_gb", "bytes"), ("egress_usd", "dollars")):
        fewer = everything[key] / frugal[key]
        check.at_least(f"  {unit}: all pairs over frugal", fewer, 20 if regions >= 40 else 1, "x")
    bound = 2 * (regions - 1 + regions % 2)
    thorough = run(*words, "--thorough", "--phases", "aggregate")["campaign"]
    rounds = "rounds of thorough mode (the bound of edge colouring)"
    check.at_most(rounds, thorough["rounds"], bound, "")


def check_accuracy(check: Check, found: Network, truth: Network) -> None:
    """Compare measurements with the configuration of the lab."""
    links = [(link, truth.link(link.src, link.dst)) for link in found]
    off = [
        abs(link.rtt_ms.expected - true.rtt_ms.expected) / (0.5 + 0.01 * true.rtt_ms.expected)
        for link, true in links
        if link.rtt_ms.source == "measured"
    ]
    check.note("round-trip times measured", len(off), "links")
    check.at_most("  error in parts of 0.5 ms + 1 %, p95", quantile(off, 0.95), 1, "")
    check.note("  error in parts of 0.5 ms + 1 %, worst", max(off), "")
    flows = [
        (link.per_flow_mbps, true.per_flow_mbps.expected)
        for link, true in links
        if link.per_flow_mbps.source == "measured"
    ]
    rates = aggregates_of(links)
    caps = [
        (getattr(site, side), getattr(truth.sites[name], side).expected)
        for name, site in found.sites.items()
        for side in ("egress_gbps", "ingress_gbps")
        if getattr(site, side).source == "measured"
    ]
    for name, errors in (("single flows", errors_pct(flows)), ("aggregates", errors_pct(rates))):
        check.note(f"{name} measured", len(errors), "links")
        if errors:
            check.errors("  median error", errors, 3, 8)
    check.note("caps measured", len(caps), "")
    if caps:
        check.at_most("  worst error", max(errors_pct(caps)), 3, "%")


def aggregates_of(links: Sequence[tuple[Link, Link]]) -> list[tuple[Estimate, float]]:
    """Return measured aggregates with the rates that the connections reach.

    Those of short windows may not fill a long path.
    """
    return [
        (link.aggregate_gbps, true.rate_gbps(CONNECTIONS))
        for link, true in links
        if link.aggregate_gbps.source == "measured"
    ]


def errors_pct(found: Sequence[tuple[Estimate, float]]) -> list[float]:
    """Return the errors of estimates, in percent of the true figures."""
    return [abs(estimate.expected / true - 1) * 100 for estimate, true in found]


def check_campaign(check: Check, lab: Lab, folder: Path, at_once: int) -> None:
    """Measure frugally and hold it against the truth."""
    topology, catalogue = lab.topology(), load_catalogue()
    regions = sorted(site.region for site in topology.sites)
    db = folder / "store.db"
    words = ("--connections", CONNECTIONS, "--aggregate-time", f"{PROBE_S:g}s")
    with lateness_of(lab) as lateness:
        report = probed(lab.fleet_file, db, *words, "--parallel", at_once)
    check.at_most("probes that failed", len(report["failed"]), 0, "")
    check.note("lateness of the lab meanwhile, p95 (0.5 is too late)", lateness.p95_ms or 0, "ms")
    truth = true_network(topology)
    found = unscaled(relayd.open(db).network.with_(restricted_to=regions), regions, topology.scale)
    check_accuracy(check, found, truth)
    meter, all_gb, all_usd = Meter(catalogue), 0.0, 0.0
    for link in truth:
        gb = link.rate_gbps(CONNECTIONS) * topology.scale * PROBE_S / BITS_PER_BYTE
        all_gb += gb
        all_usd += meter.add(link.src, link.dst, gb)
    check.note("campaign", report["duration_s"], "s")
    for name, times in (
        ("  bytes: all pairs over what was moved", all_gb / report["sent_gb"]),
        ("  dollars: all pairs over what was spent", all_usd / report["egress_usd"]),
    ):
        if len(regions) >= 40:
            check.at_least(name, times, 20, "x")
        else:  # few regions have few pairs, and calibrating takes as much
            check.note(name, times, "x")
    overhead = report["duration_s"] / report["critical_s"] - 1
    check.at_most("  orchestration, over the tools' own time", overhead * 100, 15, "%")
    for objective in ("value", "time"):
        plans = achieved(found, truth, partial(CataloguePrices, catalogue), objective)
        name = f"plans for all pairs, objective {objective}: throughput per dollar"
        if objective == "value":
            check.at_least(name, plans.per_usd * 100, 98, "%")
        else:
            check.note(name, plans.per_usd * 100, "%")
        check.note("  10th percentile of pairs", plans.per_usd_p10 * 100, "%")
        check.note("  throughput", plans.rate * 100, "%")
    print(f"\nIt stopped because {report['reason'] or 'all was measured'}.")


def check_short_tests(check: Check, lab: Lab, folder: Path) -> None:
    """Compare errors and traffic of whole tests and of those that may end early."""
    topology = lab.topology()
    regions, truth = [site.region for site in topology.sites], true_network(topology)
    for name, first_s in (("whole tests", 0.0), ("short first", FIRST_S)):
        spec = CampaignSpec(
            ("rtt", "aggregate"), thorough=True, connections=CONNECTIONS, aggregate_first_s=first_s
        )
        with open_store(folder / f"{first_s}.db", mode="create") as store:
            runner = CampaignRunner(load_fleet(lab.fleet_file), load_catalogue(), store)
            campaign = runner.begin(spec, AS_ASKED, None)
            report = asyncio.run(runner.run(campaign, CampaignLimits(at_once=3)))
            found = unscaled(runner.measured.network(), regions, topology.scale)
        links = [(link, truth.link(link.src, link.dst)) for link in found]
        check.note(f"{name}: sent", 1e3 * report.sent_gb, "MB")
        check.errors("  median error", errors_pct(aggregates_of(links)))


def main() -> int:
    """Bring a lab up, measure it, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--regions", type=int, default=40)
    parser.add_argument("--profile", default="skyplane-2022")
    parser.add_argument("--scale", type=float, help="in place of the profile's")
    parser.add_argument("--parallel", type=int, default=8, help="bandwidth probes at once")
    parser.add_argument("--docs", metavar="FILE", help="put the table between the marks there")
    parser.add_argument("--short-tests", action="store_true", help="compare them with whole ones")
    options = parser.parse_args()
    regions = 3 if options.short_tests else options.regions
    topology = topology_like(options.profile, regions, options.scale)

    def measure(check: Check, folder: Path) -> None:
        with lab_of(topology) as lab:
            if options.short_tests:
                check_short_tests(check, lab, folder)
                return
            fit = run("measure", "fleet", "check", "--fleet", lab.fleet_file, allowed=(0, 5))
            check.note("hosts tested by fleet check", len(fit["hosts"]), "")
            check_forecasts(check, lab.fleet_file, folder, len(topology.sites))
            check_campaign(check, lab, folder, options.parallel)

    return checked("campaign-check", options.docs, measure)


if __name__ == "__main__":
    sys.exit(main())
