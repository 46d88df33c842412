"""Ray: tasks and actors where their data and the network are, and weights to many regions.

Nodes carry their region as a resource (``ray start --address ADDRESS --resources
'{"aws:us-east-1": 1000}'``), of which what is placed there takes :data:`SHARE`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.experimental import get_object_locations
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from planner.broadcast.plan import BroadcastPlan, TreePlan
from planner.model.errors import InputError
from planner.model.units import BYTES_PER_GB
from planner.placement.plan import TaskPlacement
from relayd.client.blocking import RemoteWan
from relayd.integrations.shuffles import PlacedShuffle, place_shuffle
from relayd.sources.opening import opened
from relayd.sources.wan import Wan

SHARE = 0.001
"""Of a node's resource of its region: as many tasks fit as CPUs allow."""

# Resources of Ray itself that have a colon, too.
_RAYS_OWN = ("node:", "accelerator_type:")


@dataclass(frozen=True, slots=True)
class PlacedTasks:
    """Where tasks or actors that exchange data are to run.

    Attributes
    ----------
    placement : TaskPlacement
        VMs are nodes, by Ray's ids.
    cpus : dict
        By task.
    """

    placement: TaskPlacement
    cpus: dict[str, float]

    def options(self, task: str) -> dict[str, Any]:
        """Return the options of a task: ``work.options(**placed.options("join")).remote()``."""
        strategy = NodeAffinitySchedulingStrategy(self.placement.assignment[task], soft=False)
        return {"num_cpus": self.cpus[task], "scheduling_strategy": strategy}


@dataclass(frozen=True, slots=True)
class SentWeights:
    """Copies on their way to several regions.

    Attributes
    ----------
    plan : BroadcastPlan
    copies : dict
        By region, a reference to each part's copy there, in the order of the parts.
    """

    plan: BroadcastPlan
    copies: dict[str, tuple[Any, ...]]


def in_region(region: str) -> dict[str, Any]:
    """Return the options to run in a region: ``work.options(**in_region("aws:..."))``."""
    return {"resources": {region: SHARE}}


def reduce_plan(
    refs: Sequence[Any], tasks: int, *, wan: Wan | RemoteWan | None = None, **question: Any
) -> PlacedShuffle:
    """Return the region for each task of a stage in which each takes an equal part of all data.

    Raises InputError if data is on a node without a region; else as of
    :meth:`relayd.Wan.place_reduce`.

    Parameters
    ----------
    refs : sequence of ray.ObjectRef
        What is shuffled; this waits until it is made.
    tasks : int
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    **question
        Further fields of :class:`~planner.placement.request.ReduceRequest`. Unless stated, each
        region has as many VMs as nodes.
    """
    nodes = _nodes()
    input_gb: dict[str, float] = {}
    for places, size_bytes in _held(refs):
        region = min(places)
        input_gb[region] = input_gb.get(region, 0.0) + size_bytes / BYTES_PER_GB
    vms_in = {region: len(nodes[region]) for region in input_gb}
    return place_shuffle(wan, input_gb, tasks, **{"vms_in": vms_in, **question})


def place_tasks(
    cpus: Mapping[str, float],
    traffic_gb: Mapping[tuple[str, str], float],
    *,
    wan: Wan | RemoteWan | None = None,
    **question: Any,
) -> PlacedTasks:
    """Return the node for each task or actor, such that all is exchanged soonest.

    Raises InputError, InfeasibleError, DataError as of :meth:`relayd.Wan.place_tasks`.

    Parameters
    ----------
    cpus : mapping
        By task; nodes offer all that they have.
    traffic_gb : mapping
        By pair of tasks: what the first sends to the second.
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    **question
        Further fields of :class:`~planner.placement.request.TasksRequest`.
    """
    machines = [
        {"id": node["NodeID"], "region": region, "cpus": node["Resources"]["CPU"]}
        for region, nodes in _nodes().items()
        for node in nodes
        if node["Resources"].get("CPU", 0.0) > 0
    ]
    with opened(wan) as known:
        placement = known.place_tasks(cpus, traffic_gb, machines, **question)
    return PlacedTasks(placement, dict(cpus))


def broadcast(
    refs: Sequence[Any],
    regions: Sequence[str],
    *,
    wan: Wan | RemoteWan | None = None,
    **question: Any,
) -> SentWeights:
    """Send weights to several regions over the trees that :meth:`relayd.Wan.broadcast` plans.

    Each region on a tree receives from the one before and sends on what it has received; Ray by
    itself would fetch every copy from wherever one is. This returns at once: wait for the copies.

    Raises InputError if a destination has no node, or the parts are not in one region;
    InfeasibleError or DataError as of :meth:`relayd.Wan.broadcast`.

    Parameters
    ----------
    refs : sequence of ray.ObjectRef
        The weights in parts of at least 100 kB, all in one region: several trees share them, and a
        part is sent on when it is whole.
    regions : sequence of str
        Ids of the destinations; each needs a node.
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    **question
        Further fields of :class:`~planner.broadcast.request.BroadcastRequest`. Unless stated, only
        regions with nodes forward.
    """
    nodes = _nodes()
    for region in regions:
        if region not in nodes:
            problem = "name one that no node is in"
            raise InputError("regions", problem, value=region, remedy=_how_to_start(region))
    held = _held(refs)
    sources = set.intersection(*(places for places, _ in held))
    if not sources:
        problem, remedy = "are not all held in one region", "Make them by tasks with in_region()."
        raise InputError(
            "refs", problem, value=sorted(set.union(*(places for places, _ in held))), remedy=remedy
        )
    sizes_bytes = [size for _, size in held]
    volume_gb = sum(sizes_bytes) / BYTES_PER_GB
    asked = {"volume_gb": volume_gb, "allow": tuple(nodes), "vms": 1, **question}
    with opened(wan) as known:
        plan = known.broadcast(min(sources), list(regions), **asked)
    copies: dict[str, list[Any]] = {region: [] for region in regions}
    for ref, tree in zip(refs, _shared_out(sizes_bytes, plan.trees), strict=True):
        at = {plan.request["src"]: ref}
        for link in tree.legs:
            at[link.dst] = _copied.options(**in_region(link.dst)).remote(at[link.src])
        for region, found in copies.items():
            found.append(at[region])
    return SentWeights(plan, {region: tuple(found) for region, found in copies.items()})


def _part(part: Any) -> Any:
    return part


# What a task returns is a new object on its node, so that the next one fetches it from there.
_copied: Any = ray.remote(num_cpus=0)(_part)


def _shared_out(sizes_bytes: Sequence[int], trees: Sequence[TreePlan]) -> list[TreePlan]:
    """Return a tree for each part, large parts first to the tree that lacks most of its share."""
    left = [tree.share * sum(sizes_bytes) for tree in trees]
    found = [trees[0]] * len(sizes_bytes)
    for part in sorted(range(len(sizes_bytes)), key=sizes_bytes.__getitem__, reverse=True):
        fullest = max(range(len(trees)), key=left.__getitem__)
        left[fullest] -= sizes_bytes[part]
        found[part] = trees[fullest]
    return found


def _nodes() -> dict[str, list[dict[str, Any]]]:
    """Return the nodes that are alive, by region."""
    found: dict[str, list[dict[str, Any]]] = {}
    for node in ray.nodes():
        # Placement groups have resources named after those that they took.
        regions = [
            name
            for name in node["Resources"]
            if ":" in name and not name.startswith(_RAYS_OWN) and "_group_" not in name
        ]
        if node["Alive"] and regions:
            found.setdefault(regions[0], []).append(node)
    return found


def _held(refs: Sequence[Any]) -> list[tuple[set[str], int]]:
    """Return the regions and the size in bytes of each object.

    Raises InputError if there is none, or one is on no node with a region.
    """
    if not refs:
        raise InputError("refs", "are none")
    ray.wait(list(refs), num_returns=len(refs), fetch_local=False)
    region_of = {node["NodeID"]: region for region, nodes in _nodes().items() for node in nodes}
    locations = get_object_locations(list(refs))
    found = []
    for ref in refs:
        location = locations[ref]
        if not location["node_ids"]:
            ray.get(ref)  # raises what its task did
        regions = {region_of[node] for node in location["node_ids"] if node in region_of}
        if not regions:
            problem = "have one that is on no node with a region; objects below 100 kB are on none"
            raise InputError(
                "refs", problem, value=ref.hex(), remedy=_how_to_start("aws:us-east-1")
            )
        found.append((regions, int(location["object_size"])))
    return found


def _how_to_start(region: str) -> str:
    return f"Start nodes with their region: ray start ... --resources '{{\"{region}\": 1000}}'."
