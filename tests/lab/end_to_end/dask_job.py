"""A shuffle of a data frame on a cluster that is there: ``SCHEDULER even|placed < topology``.

Runs in a site of a lab, and prints what it found as JSON. Workers make the data of their regions.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, wait

import relayd
from planner.model.units import BYTES_PER_GB
from probes.lab.topology import Topology
from relayd.integrations.dask import CONNECTIONS, ReduceWhere, shuffle_plan
from tests.lab.end_to_end.true_store import true_store

PARTITIONS = 40
COLUMNS = 12
ROWS = 25_000
PARTS = (40, 12, 8)
"""Of each region, 2.4 MB each."""


def part(seed: int) -> pd.DataFrame:
    """Return rows that no compression makes smaller, with a key."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(draw.random((ROWS, COLUMNS))).rename(columns=lambda n: f"x{n}")
    return table.assign(key=draw.integers(0, 100_000, ROWS))


def _sent_bytes() -> int:
    """Return the volume that the interfaces of a worker's site have sent to others."""
    _, _, *lines = Path("/proc/net/dev").read_text().splitlines()
    words = [line.replace(":", " ").split() for line in lines]
    return sum(int(fields[9]) for fields in words if fields[0] != "lo")


def _warm_up() -> None:
    """Let workers import what shuffling needs: on a new cluster that takes seconds."""
    few = pd.DataFrame({"key": range(100), "x0": 0.0})
    wait(dd.from_pandas(few, npartitions=6).shuffle("key", npartitions=6).persist())


def main(scheduler: str, how: str, topology: Topology) -> dict[str, Any]:
    """Shuffle once; returns times, volumes and where partitions are."""
    regions = [site.region for site in topology.sites]
    with TemporaryDirectory() as folder, Client(scheduler, timeout="60s") as client:
        client.wait_for_workers(len(regions), timeout=120)
        seeds = [
            (region, n) for region, parts in zip(regions, PARTS, strict=True) for n in range(parts)
        ]
        made = [
            client.submit(part, seed, resources={region: 1}, pure=False)
            for seed, (region, _) in enumerate(seeds)
        ]
        wait(made)  # or scheduling what follows may move them to idle workers
        frame = dd.from_delayed(made, meta=part(0), verify_meta=False).persist()
        wan = relayd.open(
            true_store(Path(folder) / "store.db", topology, len(regions), CONNECTIONS)
        )
        plan = shuffle_plan(client, frame, partitions=PARTITIONS, wan=wan)
        with dask.config.set({"dataframe.shuffle.method": "p2p"}):
            _warm_up()
            if how == "placed":
                client.register_plugin(ReduceWhere(plan))
            shuffled = frame.shuffle("key", npartitions=PARTITIONS)
            before = client.run(_sent_bytes)
            began_s = time.monotonic()
            shuffled = shuffled.persist()
            wait(shuffled)
            took_s = time.monotonic() - began_s
            after = client.run(_sent_bytes)
        region_of = {
            address: next(iter(worker["resources"]))
            for address, worker in client.scheduler_info(n_workers=-1)["workers"].items()
        }
        where = Counter(region_of[held[0]] for held in client.who_has(shuffled).values())
        return {
            "rows": len(shuffled),
            "where": dict(where),
            "planned": plan.partitions_in,
            "predicted_s": plan.duration_s,
            "predicted_gb": plan.moved_gb,
            "took_s": took_s,
            "sent_gb": (sum(after.values()) - sum(before.values())) / BYTES_PER_GB,
        }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Topology.from_json(sys.stdin.read()))))
