"""Ray on a cluster of processes: the page's example, and where its copies and tasks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.relayd.integrations.engines import example_of, python_of, result_of

pytestmark = pytest.mark.integrations

SCRIPT = """
import json
import numpy as np
from ray.cluster_utils import Cluster
from ray.experimental import get_object_locations
from planner.model.errors import InputError
import relayd

REGIONS = ["azure:brazilsouth", "aws:us-east-1", "gcp:us-central1"]
PLAIN = {"num_cpus": 1, "object_store_memory": 100_000_000}
cluster = Cluster()

def start(resources):
    # On a busy machine a node may take longer than the 30 s that Ray gives it.
    for attempt in range(8):
        try:
            return cluster.add_node(resources=resources, **PLAIN)
        except Exception as error:
            if "timed out during startup" not in str(error) or attempt == 7:
                raise

for region in REGIONS:
    start({region: 1000})
start({"stray": 1})
ray.init(cluster.address, logging_level="ERROR")
where = {n["NodeID"]: next((r for r in REGIONS if r in n["Resources"]), "") for n in ray.nodes()}

def here():
    return where[ray.get_runtime_context().get_node_id()]

@ray.remote(num_cpus=0)
def load(n):
    return np.full(125_000, n)  # 1 MB

@ray.remote(num_cpus=0)
def reduce(*parts):
    return here()

@ray.remote
class Work:
    def where(self):
        return here()

def held_in(refs):
    ray.wait(list(refs), num_returns=len(refs), fetch_local=False)
    found = get_object_locations(list(refs))
    return [sorted({where[node] for node in found[ref]["node_ids"]}) for ref in refs]

exec(EXAMPLE)
unread = [load.options(**in_region(region)).remote(0) for region in REGIONS[1:]]
found = {
    "src": held_in(parts),
    "held": {region: held_in(refs) for region, refs in sent.copies.items()},
    "legs": [[leg.src, leg.dst] for leg in sent.plan.trees[0].legs],
    "trees": len(sent.plan.trees),
    "volume_gb": sent.plan.volume_gb,
    "values": {r: [int(ray.get(ref)[-1]) for ref in refs] for r, refs in sent.copies.items()},
    "stage": [list(stage.region_of_partition), ray.get(reduced)],
    "one_region": reduce_plan(unread, 3, reduce_in=["gcp:us-central1"]).partitions_in,
    "placed": ray.get([actor.where.remote() for actor in actors]),
    "assigned": [where[placed.placement.assignment[name]] for name in ("join", "serve")],
    "duration_s": placed.placement.duration_s,
    "other_s": relayd.open().place_tasks(
        {"join": 1, "serve": 1}, {("join", "serve"): 20},
        [{"id": r, "region": r, "cpus": 1} for r in ("azure:brazilsouth", "aws:us-east-1")],
    ).duration_s,
}

@ray.remote(num_cpus=0, resources={"stray": 0.1})
def stray():
    return np.zeros(125_000)

@ray.remote(num_cpus=0)
def broken():
    raise KeyError("is told")

def refusal(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return str(error)

found["refused"] = [
    refusal(broadcast, parts, ["aws:eu-west-1"]),
    refusal(broadcast, unread, ["azure:brazilsouth"]),
    refusal(reduce_plan, [stray.remote()], 2),
    refusal(reduce_plan, [broken.remote()], 2),
    refusal(reduce_plan, [], 2),
]
print("RESULT", json.dumps([found]))
ray.shutdown()
cluster.shutdown()
"""


def test_copies_and_tasks_are_where_relayd_says(tmp_path: Path) -> None:
    python = python_of("ray")
    example = example_of("ray.md", {'ray.init("auto")\n': ""})
    script = f"import ray\nEXAMPLE = {example!r}\n{SCRIPT}"
    (found,) = result_of(script, tmp_path, python)

    regions = ["aws:us-east-1", "gcp:us-central1"]
    # Brazil's egress is dear: one copy leaves it, and its receiver sends on.
    assert found["trees"] == 1
    assert [leg[0] for leg in found["legs"]].count("azure:brazilsouth") == 1
    first, second = found["legs"]
    assert second[0] == first[1]
    assert found["volume_gb"] == pytest.approx(0.008, rel=0.01)
    for region in regions:
        assert found["values"][region] == list(range(8))
    # Each copy is where it was sent to, and nobody but the next on the tree fetched it from there.
    copies = {**found["held"], first[0]: found["src"]}
    for region, fetched_by in ((first[0], first), (first[1], second), (second[1], second[1:])):
        assert len(copies[region]) == 8
        for places in copies[region]:
            assert region in places
            assert set(places) <= set(fetched_by)

    planned, ran = found["stage"]
    assert ran == planned
    assert len(planned) == 12
    assert found["one_region"] == {"gcp:us-central1": 3}
    # A node has one CPU: the two are apart, where they reach each other soonest.
    assert found["placed"] == found["assigned"]
    assert len(set(found["placed"])) == 2
    assert found["duration_s"] < found["other_s"]

    nowhere, two, stray, broken, none = found["refused"]
    assert "aws:eu-west-1" in nowhere
    assert "--resources" in nowhere
    assert "one region" in two
    assert "no node with a region" in stray
    assert "is told" in broken
    assert "none" in none
