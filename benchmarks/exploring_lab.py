"""What exploring brings on a lab: ``python -m benchmarks.exploring_lab``.

Brings up a lab in which several relays lead from one region to another, and lets transfers go one
after the other, each as ``relayd plan --explore`` says and run by ``relayd verify`` with real
tools; between them links change, or do not. What each had is all that the next ones learn. Beside
it: the same with next to no share for trials, which is always the path that is predicted to be best
by estimates and by the same outcomes. Loss is time beyond that of the best path, by what the links
are set to. Needs root, and takes some minutes for each row.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

import tests.conftest  # noqa: F401 - registers what tests' modules ask for as they load
from benchmarks.campaign_check import run
from benchmarks.table import show
from planner.exploring.outcome import DIRECT, Outcome
from planner.model.errors import RelaydError
from planner.model.estimate import Estimate
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from probes.lab.behaviours import LinkBehaviour
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from tests.lab.end_to_end.true_store import true_store

SRC, DST = "aws:us-east-1", "aws:sa-east-1"
RELAYS = ("azure:eastus", "gcp:us-east1", "aws:us-west-2")
PLACES = (SRC, DST, *RELAYS)
CAP_MBPS, WINDOW_BYTES, RTT_MS, CONNECTIONS = 16.0, 60_000, 24.0, 8
RATES_MBPS = {DIRECT: 5.0, RELAYS[0]: 6.0, RELAYS[1]: 5.5, RELAYS[2]: 4.5}
"""What estimates have of paths: relays by their first link."""
OFF, JUMP, JUMPS_A_TRANSFER = 0.25, 0.35, 0.05
"""Of logarithms: what first rates are off estimates, and jumps; and how often a path jumps."""
KINDS = ("still", "jumping")
GAP_S = 1800.0
"""By which transfers are taken to be apart; they follow each other at once."""
LEAST_SHARE = 1e-6
"""For trials, where always the predicted best is taken."""
SECONDS = 4
ATTEMPTS = 3
UNSURE = 1.5
"""Bounds of estimates, over what is expected and under it."""


def topology() -> Topology:
    """All places as far from each other, VMs of 16 Mbit/s."""
    sites = tuple(Site(name, CAP_MBPS, CAP_MBPS, WINDOW_BYTES) for name in PLACES)
    rtts = tuple(tuple(0.0 if a == b else RTT_MS for b in PLACES) for a in PLACES)
    links = {
        (0, 1 if via == DIRECT else PLACES.index(via)): LinkBehaviour(rate_mbps=mbps)
        for via, mbps in RATES_MBPS.items()
    }
    return Topology(sites, rtts, links, profile="exploring")


def estimates() -> Network:
    """Return what plans know before any transfer: the first rates, within half as much again."""
    gbps = np.full((len(PLACES), len(PLACES)), CAP_MBPS * GOODPUT_SHARE / MBPS_PER_GBPS)
    for (first, second), behaviour in topology().links.items():
        assert behaviour.rate_mbps
        gbps[first, second] = behaviour.rate_mbps * GOODPUT_SHARE / MBPS_PER_GBPS
    np.fill_diagonal(gbps, 0.0)
    exact = Network.from_matrices(list(PLACES), gbps, rtt_ms=RTT_MS, per_flow_mbps=1e3 * gbps)
    links = {}
    for src, row in exact.links.items():
        links[src] = {dst: replace(link, aggregate_gbps=_wide(link)) for dst, link in row.items()}
    return exact.with_(links=links)


def _wide(link: Link) -> Estimate:
    rate = link.aggregate_gbps
    return replace(rate, low=rate.expected / UNSURE, high=rate.expected * UNSURE)


def rates_over_time(transfers: int, seed: int, *, jumping: bool) -> list[dict[str, float]]:
    """Return what paths carry at each transfer."""
    random = np.random.default_rng(seed)
    logs = {via: random.normal(log(mbps), OFF) for via, mbps in RATES_MBPS.items()}
    found = []
    for _ in range(transfers):
        for via, mbps in RATES_MBPS.items():
            jumps, to = random.random() < JUMPS_A_TRANSFER, random.normal(log(mbps), JUMP)
            if jumps and jumping:
                logs[via] = to
        found.append({via: round(exp(value), 3) for via, value in logs.items()})
    return found


def set_rates(lab: Lab, rates_mbps: Mapping[str, float]) -> None:
    """Set what paths carry, by their first links."""
    for via, mbps in rates_mbps.items():
        lab.set_link(SRC, DST if via == DIRECT else via, {"rate_mbps": str(mbps)}, one_way=True)


def followed(
    lab: Lab, folder: Path, share: float, rates_mbps: Sequence[Mapping[str, float]]
) -> tuple[float, int]:
    """Return the time beyond that of the best path, as a share of it, and how many were trials."""
    network, prices = estimates(), FlatPrices(PLACES, 0.02, 1.0)
    told: list[tuple[int, str, float]] = []
    spent = least = 0.0
    trials = 0
    for number, rates in enumerate(rates_mbps):
        set_rates(lab, rates)
        begins_s = time.time()
        outcomes = [
            Outcome(f"t{k}", SRC, DST, gbps, begins_s - GAP_S * (number - k - 0.5), via)
            for k, via, gbps in told
        ]
        request = TransferRequest(
            SRC,
            DST,
            volume_gb=1.0,
            objective="time",
            connections=CONNECTIONS,
            vms=1,
            explore=share,
            outcomes=outcomes,
        )
        plan = recommend(request, network, prices, now_s=begins_s)
        assert plan.exploration
        via = plan.exploration.via
        trials += via != plan.exploration.best
        file = folder / "plan.json"
        file.write_text(json.dumps(plan.model_dump("json")))
        # Into a store of its own: plans learn from outcomes alone.
        to = ("--db", str(folder / "runs.db"), "--seconds", str(SECONDS))
        done = _ran(("verify", str(file), "--fleet", str(lab.fleet_file), "--yes", *to))
        (ran,) = done["plans"]
        if ran["error"]:
            raise SystemExit(f"transfer {number} over {via}: {ran['error']}")
        told.append((number, via, ran["runs"][0]["achieved_gbps"]))
        spent += 1 / (rates[via] * GOODPUT_SHARE)
        least += 1 / (max(rates.values()) * GOODPUT_SHARE)
    return spent / least - 1, trials


def _ran(words: Sequence[str]) -> dict[str, Any]:
    """Return what a command answers; on a busy machine a lease may not be kept in time."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return run(*words, allowed=(0, 1, 5))
        except RelaydError:
            if attempt == ATTEMPTS:
                raise
    raise AssertionError


def main() -> None:
    """Print what each policy loses."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--transfers", type=int, default=24)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--shares", type=float, nargs="*", default=[LEAST_SHARE, 0.01])
    options = parser.parse_args()
    rows: list[Sequence[str]] = []
    lab = Lab(f"exploring-{os.getpid()}")
    with tempfile.TemporaryDirectory() as place:
        try:
            lab.up(topology(), ends_with_caller=True)
            folder = Path(place)
            true_store(folder / "runs.db", lab.topology(), len(PLACES), CONNECTIONS)
            for kind in options.kinds:
                for share in options.shares:
                    lost, trials = [], 0
                    for seed in options.seeds:
                        rates = rates_over_time(options.transfers, seed, jumping=kind == "jumping")
                        more, tried = followed(lab, folder, share, rates)
                        lost.append(more)
                        trials += tried
                    policy = "predicted best" if share == LEAST_SHARE else f"explore {share:.0%}"
                    each = ", ".join(f"{one:.1%}" for one in lost)
                    rows.append((kind, policy, f"{fmean(lost):.1%}", each, str(trials)))
                    print(*rows[-1], flush=True)
        finally:
            lab.down()
    header = ("links", "policy", "time lost", "by seed", "trials")
    show(f"{options.transfers} transfers on a lab: time beyond that of the best path", header, rows)


if __name__ == "__main__":
    main()
