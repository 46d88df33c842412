"""Weights to all other regions of a Ray cluster that is there: ``ADDRESS plain|trees < topology``.

Runs in the site of the lab that has the weights, and prints what it found as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import ray

import relayd
from probes.lab.topology import Topology
from relayd.integrations.ray import broadcast, in_region
from tests.lab.end_to_end.true_store import true_store

PARTS, PART_BYTES = 12, 2_000_000


def random_bytes(seed: int) -> bytes:
    """Return data that no compression makes smaller."""
    return np.random.default_rng(seed).bytes(PART_BYTES)


def same(part: bytes) -> bytes:
    """Return a part: its copy is where the task ran."""
    return part


def main(address: str, how: str, topology: Topology) -> dict[str, Any]:
    """Send once; returns the time, what was predicted, and the length of all that arrived."""
    src, *others = regions = [site.region for site in topology.sites]
    ray.init(address, _node_ip_address=address.partition(":")[0], log_to_driver=False)
    make = ray.remote(num_cpus=0)(random_bytes)
    copy: Any = ray.remote(num_cpus=0)(same)
    parts = [make.options(**in_region(src)).remote(seed) for seed in range(PARTS)]
    # So that no time is taken by processes that start.
    ray.get([copy.options(**in_region(region)).remote(b"") for region in regions])
    ray.wait(parts, num_returns=PARTS, fetch_local=False)
    with TemporaryDirectory() as folder:
        wan = relayd.open(true_store(Path(folder) / "store.db", topology, len(regions), 1))
        began_s, predicted_s = time.monotonic(), 0.0
        if how == "trees":
            sent = broadcast(parts, others, wan=wan, connections=1, objective="time")
            copies, predicted_s = dict(sent.copies), sent.plan.duration_s
        else:
            copies = {
                region: tuple(copy.options(**in_region(region)).remote(part) for part in parts)
                for region in others
            }
        refs = [ref for of_region in copies.values() for ref in of_region]
        ray.wait(refs, num_returns=len(refs), fetch_local=False)
        took_s = time.monotonic() - began_s
    return {"took_s": took_s, "predicted_s": predicted_s, "copies": len(refs)}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Topology.from_json(sys.stdin.read()))))
