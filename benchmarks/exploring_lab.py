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
from pathlib import Path
from typing import Any

import relayd
import tests.conftest  # noqa: F401 - registers what tests' modules ask for as they load
from benchmarks.campaign_check import run
from benchmarks.table import show
from planner.exploring.outcome import DIRECT, Outcome
from planner.model.errors import RelaydError
from probes.lab.behaviours import LinkBehaviour
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from tests.lab.end_to_end.true_store import true_store

SRC, DST = "aws:us-east-1", "aws:sa-east-1"
RELAYS = ("azure:eastus", "gcp:us-east1", "aws:us-west-2")
PLACES = (SRC, DST, *RELAYS)
CAP_MBPS, WINDOW_BYTES, RTT_MS, CONNECTIONS = 16.0, 60_000, 24.0, 8
RATES_MBPS = {DIRECT: 5.0, RELAYS[0]: 6.0, RELAYS[1]: 5.5, RELAYS[2]: 4.5}
"""What paths carry at first, and what estimates have of them: relays by their first link."""
CHANGES = {4: {RELAYS[2]: 9.0}, 12: {RELAYS[2]: 4.5, RELAYS[1]: 8.0}}
"""Number of a transfer to what changes before it."""
GAP_S = 1800.0
"""By which transfers are taken to be apart; they follow each other at once."""
LEAST_SHARE = 1e-6
"""For trials, where always the predicted best is taken."""
SECONDS = 4
ATTEMPTS = 3


def topology() -> Topology:
    """All places as far from each other, VMs of 16 Mbit/s."""
    sites = tuple(Site(name, CAP_MBPS, CAP_MBPS, WINDOW_BYTES) for name in PLACES)
    rtts = tuple(tuple(0.0 if a == b else RTT_MS for b in PLACES) for a in PLACES)
    links = {
        (0, 1 if via == DIRECT else PLACES.index(via)): LinkBehaviour(rate_mbps=mbps)
        for via, mbps in RATES_MBPS.items()
    }
    return Topology(sites, rtts, links, profile="exploring")


def set_rates(lab: Lab, rates_mbps: Mapping[str, float]) -> None:
    """Set what paths carry, by their first links."""
    for via, mbps in rates_mbps.items():
        lab.set_link(SRC, DST if via == DIRECT else via, {"rate_mbps": str(mbps)}, one_way=True)


def followed(
    lab: Lab,
    db: Path,
    folder: Path,
    share: float,
    transfers: int,
    changes: Mapping[int, Mapping[str, float]],
) -> tuple[float, int]:
    """Return the time beyond that of the best path, as a share of it, and how many were trials."""
    wan = relayd.open(db)
    away = [name for name in wan.known_regions() if name not in PLACES]
    rates = dict(RATES_MBPS)
    told: list[tuple[int, str, float]] = []
    set_rates(lab, rates)
    spent = least = 0.0
    trials = 0
    for number in range(transfers):
        rates |= changes.get(number, {})
        set_rates(lab, changes.get(number, {}))
        begins_s = time.time()
        outcomes = [
            Outcome(f"t{k}", SRC, DST, gbps, begins_s - GAP_S * (number - k - 0.5), via)
            for k, via, gbps in told
        ]
        plan = wan.plan(
            SRC,
            DST,
            volume_gb=1.0,
            objective="time",
            connections=CONNECTIONS,
            vms=1,
            avoid=away,
            explore=share,
            outcomes=outcomes,
        )
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
    parser.add_argument("--shares", type=float, nargs="*", default=[LEAST_SHARE, 0.02])
    options = parser.parse_args()
    rows: list[Sequence[str]] = []
    lab = Lab(f"exploring-{os.getpid()}")
    kinds: tuple[tuple[str, Mapping[int, Mapping[str, float]]], ...]
    kinds = ("still", {}), ("changing", CHANGES)
    with tempfile.TemporaryDirectory() as place:
        try:
            lab.up(topology(), ends_with_caller=True)
            folder = Path(place)
            true = folder / "true.db"
            for file in (true, folder / "runs.db"):
                true_store(file, lab.topology(), len(PLACES), CONNECTIONS)
            for kind, changes in kinds:
                for share in options.shares:
                    lost, trials = followed(lab, true, folder, share, options.transfers, changes)
                    policy = "predicted best" if share == LEAST_SHARE else f"explore {share:.0%}"
                    rows.append((kind, policy, f"{lost:.1%}", str(trials)))
                    print(*rows[-1], flush=True)
        finally:
            lab.down()
    header = ("links", "policy", "time lost", "trials")
    show(f"{options.transfers} transfers on a lab: time beyond that of the best path", header, rows)


if __name__ == "__main__":
    main()
