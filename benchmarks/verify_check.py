"""Verifies plans of all verdicts on a lab: the last part of ``make lab-check``.

Brings up a lab in which some links carry less than their ends do, measures its links and VMs with
``relayd probe`` (no relay runs for that), plans, and lets ``relayd measure verify`` run at least
thirty plans as a user would: direct, relayed, split over both, with many connections and with one.
Holds what they carried against what was predicted. Takes about eight minutes and needs root. Exits
with 1 where a promise is not held. ``--docs FILE`` puts the table between the marks in a document.
(Shuffles and broadcasts: tests/lab/end_to_end/test_verify_many.py.)
"""

from __future__ import annotations

import argparse
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
from tests.lab.end_to_end.campaigns import left_on

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


def main() -> int:
    """Bring a lab up, measure it, plan, verify."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=8, help="plans of each kind")
    parser.add_argument("--docs", metavar="FILE", help="put the table between the marks there")
    options = parser.parse_args()

    def measure(check: Check, folder: Path) -> None:
        with lab_of(topology()) as lab:
            check_lab(check, lab, folder, options.each)

    return checked("verify-check", options.docs, measure)


def check_lab(check: Check, lab: Lab, folder: Path, each: int) -> None:
    """Measure all links and VMs, nothing of relays; then verify so many plans of each kind."""
    db = folder / "store.db"
    one, every = fleets(lab, folder)
    words = ("--thorough", "--phases", "rtt,per-flow,aggregate,caps", "--connections", CONNECTIONS)
    probed(one, db, *words, "--flow-time", "5s", "--aggregate-time", "5s")
    with lateness_of(lab) as lateness:
        plans = plans_of_all_kinds(relayd.open(db), each)
        files = [folder / f"{number}.json" for number in range(len(plans))]
        for file, plan in zip(files, plans, strict=True):
            file.write_text(plan.model_dump_json())
        where = ("--fleet", every, "--db", db, "--yes", "--seconds", SECONDS)
        check_plans(check, plans, run("measure", "verify", *files, *where, allowed=(0, 1, 5)))
    left = sum(len(left_on(lab, site.region)) for site in lab.topology().sites)
    check.at_most("processes and files left on hosts", left, 0, "")
    check.note("lateness of the lab meanwhile, p95", lateness.p95_ms or 0, "ms")


if __name__ == "__main__":
    sys.exit(main())
