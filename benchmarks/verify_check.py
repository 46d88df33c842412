"""Verifies plans of all verdicts on a lab: the last part of ``make lab-check``.

Brings up a lab in which some links carry less than their ends do, measures its links and VMs with
``relayd probe`` (no relay runs for that), plans, and lets ``relayd measure verify`` run at least
thirty
plans as a user would: direct, relayed, split over both, with many connections and with one; then a
shuffle, a broadcast, and 64 connections from a site of slow paths to three others at once. Holds
what they carried against what was predicted. Takes about ten minutes and needs root; ``--only
many`` runs the last three alone. Exits with 1 where a promise is not held. ``--docs FILE`` puts the
table between the marks in a document.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import relayd
from benchmarks.campaign_check import probed
from benchmarks.lab_measuring import lateness_of
from benchmarks.labs import Check, checked, lab_of, run
from planner.transfer.plan import Plan
from probes.lab.behaviours import LinkBehaviour
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology
from relayd.sources.wan import Wan

REGIONS = (
    "aws:us-east-1",
    "azure:eastus",
    "gcp:us-east1",
    "aws:eu-west-1",
    "azure:westeurope",
    "gcp:asia-east1",
    "aws:sa-east-1",
    "azure:japaneast",
)
# Second VMs of the first four regions: places of their own in the lab, at the same distances.
SECOND = {
    "aws:us-east-2": REGIONS[0],
    "azure:centralus": REGIONS[1],
    "gcp:us-west1": REGIONS[2],
    "aws:eu-west-3": REGIONS[3],
}
PLACES = (*REGIONS, *SECOND)
CONNECTIONS, SECONDS = 16, 6
LIMITED = 7
"""The region all of whose paths carry a sixth of its cap."""
OF_LIMITED = (22, 21, 21)
"""Its connections to three others."""
KINDS = ("direct", "relay", "split", "relay, one connection", "direct, one connection")


def topology() -> Topology:
    """Eight regions 20 to 90 ms apart, VMs of 16 to 30 Mbit/s; over a third of links are slow."""
    number = [REGIONS.index(SECOND.get(place, place)) for place in PLACES]
    sites = tuple(
        Site(place, 16.0 + 2 * i, 30.0 - 2 * i, 50_000 + 5_000 * i)
        for place, i in zip(PLACES, number, strict=True)
    )
    rtts = tuple(
        tuple(0.0 if i == j else 20.0 + 10.0 * abs(a - b) for j, b in enumerate(number))
        for i, a in enumerate(number)
    )
    links = {
        (a, b): LinkBehaviour(rate_mbps=4.0 + number[a] % 3)
        for a, b in permutations(range(len(PLACES)), 2)
        if number[a] != number[b] and (number[a] == LIMITED or (2 * number[a] + number[b]) % 3 == 0)
    }
    return Topology(sites, rtts, links, profile="verify-check")


def fleets(lab: Lab, folder: Path) -> tuple[Path, Path]:
    """Return a fleet file with one VM a region, to measure, and one with all, to run plans."""
    text = lab.fleet_file.read_text()
    head, *blocks = text.split("[[host]]")
    one, every = folder / "one.toml", folder / "every.toml"
    one.write_text("[[host]]".join([head, *blocks[: len(REGIONS)]]))
    for place, region in SECOND.items():
        text = text.replace(f'region = "{place}"', f'region = "{region}"\nname = "{place}"')
    every.write_text(text)
    return one, every


def kind_of(plan: Plan) -> str:
    """Return the kind as which a plan is counted."""
    return plan.verdict + (", one connection" if plan.request["connections"] == 1 else "")


def plans_of_all_kinds(wan: Wan, each: int) -> list[Plan]:
    """Return so many plans of each kind, over as many different pairs as there are."""
    away = [name for name in wan.known_regions() if name not in REGIONS]
    two = dict.fromkeys(SECOND.values(), 2)
    found: dict[str, list[Plan]] = {kind: [] for kind in KINDS}
    questions: Sequence[dict[str, Any]] = (
        {"connections": CONNECTIONS},
        {"connections": CONNECTIONS, "vms_in": two},
        {"connections": 1},
    )
    # Neighbours in this order share few hosts, so that many run at the same time.
    pairs = sorted(permutations(range(len(REGIONS)), 2), key=lambda p: ((p[1] - p[0]) % 8, p))
    for question in questions:
        for src, dst in pairs:
            ends = REGIONS[src], REGIONS[dst]
            plan = wan.plan(*ends, objective="time", avoid=away, vms=1, **question)
            if len(found[kind_of(plan)]) < each:
                found[kind_of(plan)].append(plan)
    mixed = [plan for row in zip(*filter(None, found.values()), strict=False) for plan in row]
    return mixed + [p for plans in found.values() for p in plans if p not in mixed]


def plans_of_many(wan: Wan) -> dict[str, dict[str, Any]]:
    """Return the documents of plans of several transfers at once."""
    away = [name for name in wan.known_regions() if name not in REGIONS]
    demands = {
        (REGIONS[i], REGIONS[(i + step) % 6]): 10.0 * (1 + (3 * i + step) % 4)
        for i in range(6)
        for step in (1, 2, 4)
    }
    shuffle = wan.shuffle(demands, avoid=away, margin=0.0, vms=1)
    to = [REGIONS[i] for i in (1, 3, 4, 6)]
    broadcast = wan.broadcast(REGIONS[0], to, volume_gb=100.0, objective="time", avoid=away, vms=1)
    slow_pairs = {(REGIONS[LIMITED], region): 10.0 for region in REGIONS[:3]}
    limited = wan.shuffle(slow_pairs, relays="none", avoid=away, vms=1).model_dump("json")
    for pair, connections in zip(limited["pairs"], OF_LIMITED, strict=True):
        (path,) = pair["paths"]
        path["connections"] = connections
    return {
        "shuffle": shuffle.model_dump("json"),
        "broadcast": broadcast.model_dump("json"),
        "64 connections over three slow paths": limited,
    }


def check_plans(check: Check, plans: Sequence[Plan], answer: dict[str, Any]) -> None:
    """Compare the rates reached with those predicted."""
    errors: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for plan, shown in zip(plans, answer["plans"], strict=True):
        if shown["error"]:
            print(f"{shown['src']} -> {shown['dst']}: {shown['error']}", file=sys.stderr)
            continue
        ran = shown["runs"][0]
        ratio = ran["achieved_gbps"] / plan.throughput_gbps
        error = abs(ratio - 1) * 100
        print(f"{kind_of(plan):<24} {shown['src']} -> {shown['dst']}: {ratio:.3f}", file=sys.stderr)
        errors[kind_of(plan)].append(error)
    everything = [error for of_kind in errors.values() for error in of_kind]
    check.at_least("plans verified", len(everything), 30, "")
    check.at_most("  that failed", sum(bool(p["error"]) for p in answer["plans"]), 0, "")
    check.errors("predicted against achieved, all: median error", everything, 5, 15)
    for kind, of_kind in errors.items():
        if of_kind:
            check.note(f"{kind}: plans", len(of_kind), "")
            check.errors("  median error", of_kind, 5 if kind == "relay, one connection" else None)
    within = sum(plan["held"] for plan in answer["plans"])
    check.note("within their bounds, each path and direct too", within, "plans")


def check_many(check: Check, kinds: Sequence[str], answer: dict[str, Any]) -> None:
    """Compare the rates of paths that ran side by side with their predictions."""

    def errors(carried: Sequence[dict[str, Any]]) -> list[float]:
        return [abs(one["achieved_gbps"] / one["expected_gbps"] - 1) * 100 for one in carried]

    everything, full = [], []
    for kind, shown in zip(kinds, answer["plans"], strict=True):
        check.at_most(f"{kind}: failed", float(bool(shown["error"])), 0, "")
        if shown["error"]:
            print(f"{kind}: {shown['error']}", file=sys.stderr)
            continue
        of_paths = errors(shown["runs"][0]["paths"])
        check.errors(f"  {len(of_paths)} paths: median error", of_paths)
        of_vms = errors(shown["runs"][0]["vms"])
        check.note("  what VMs send and receive, worst error", max(of_vms), "%")
        everything += of_paths
        full += errors(shown["full"])
    check.errors("many at once, predicted against achieved: median error", everything, 5, 15)
    if full:
        check.errors("full VMs and links with a quarter more: median error", full, 5, 15)


def left_on(lab: Lab) -> int:
    """Count our processes and files that are left in all places."""
    script = (
        "for p in /proc/[0-9]*; do cat $p/comm; done 2>/dev/null | "
        "grep -cxE 'iperf3|haproxy|socat|timeout'; ls -d /tmp/relayd-* 2>/dev/null | wc -l"
    )
    return sum(
        int(word)
        for site in lab.topology().sites
        for word in subprocess.run(
            lab.command(site.region, ["sh", "-c", script]), capture_output=True, text=True
        ).stdout.split()
    )


def main() -> int:
    """Bring a lab up, measure it, plan, verify."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=8, help="plans of each kind")
    parser.add_argument("--only", choices=("one", "many"), help="plans of one transfer, or of many")
    parser.add_argument("--docs", metavar="FILE", help="put the table between the marks there")
    options = parser.parse_args()

    def measure(check: Check, folder: Path) -> None:
        with lab_of(topology()) as lab:
            check_lab(check, lab, folder, options)

    return checked("verify-check", options.docs, measure)


def check_lab(check: Check, lab: Lab, folder: Path, options: argparse.Namespace) -> None:
    """Measure all links and VMs, nothing of relays; then verify plans."""
    db = folder / "store.db"
    one, every = fleets(lab, folder)
    words = ("--thorough", "--phases", "rtt,per-flow,aggregate,caps", "--connections", CONNECTIONS)
    probed(one, db, *words, "--flow-time", "5s", "--aggregate-time", "5s")

    def verified(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
        files = [folder / f"{number}.json" for number in range(len(documents))]
        for file, document in zip(files, documents, strict=True):
            file.write_text(json.dumps(document))
        words = ("--fleet", every, "--db", db, "--yes", "--seconds", SECONDS)
        return run("measure", "verify", *files, *words, allowed=(0, 1, 5))

    with lateness_of(lab) as lateness:
        if options.only != "many":
            plans = plans_of_all_kinds(relayd.open(db), options.each)
            check_plans(check, plans, verified([plan.model_dump("json") for plan in plans]))
        if options.only != "one":
            many = plans_of_many(relayd.open(db))
            check_many(check, list(many), verified(list(many.values())))
    check.at_most("processes and files left on hosts", left_on(lab), 0, "")
    check.note("lateness of the lab meanwhile, p95", lateness.p95_ms or 0, "ms")


if __name__ == "__main__":
    sys.exit(main())
