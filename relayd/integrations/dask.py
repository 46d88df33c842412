"""Dask distributed: reduce partitions where their shuffle ends soonest.

Workers carry their region as a resource (``dask worker ADDRESS --resources "aws:us-east-1=1"``).
:func:`shuffle_plan` looks where a collection lies and decides how many partitions each region is to
reduce; :class:`ReduceWhere` makes the scheduler's shuffles of data frames follow it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import dask
from dask.typing import Key
from distributed import Client, Scheduler, Worker, futures_of, wait
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin
from distributed.scheduler import TaskState
from distributed.shuffle._core import id_from_key

from planner.model.errors import InputError
from planner.model.units import BYTES_PER_GB
from relayd.client.blocking import RemoteWan
from relayd.integrations.shuffles import PlacedShuffle, place_shuffle
from relayd.sources.wan import Wan

CONNECTIONS_SETTING = "distributed.p2p.comm.concurrency"
CONNECTIONS = 10
"""That a worker sends a shuffle over, as Dask has it."""

_NUMBER_BYTES = 8
"""Of the number of a row's partition, or of the row itself, as Dask's shuffle sends them."""

_log = logging.getLogger(__name__)
Holding: TypeAlias = tuple[str, str, str | None, int, list[Any]]
"""A worker's address, host and region, and the bytes and keys that it holds."""


def shuffle_plan(
    client: Client,
    data: Any,
    *,
    partitions: int | None = None,
    wan: Wan | RemoteWan | None = None,
    **question: Any,
) -> PlacedShuffle:
    """Return a region for each partition of a shuffle of what workers hold.

    Raises InputError if nothing is held, or a worker that holds a part is in no region; else as of
    :meth:`relayd.Wan.place_reduce`. Raises Exception what a task raised that was to make a part.

    Parameters
    ----------
    client : Client
    data : collection or futures
        Persisted; this waits until workers hold all of it.
    partitions : int, optional
        Of the result; as many as the data has unless stated.
    wan : Wan or RemoteWan, optional
        What is known of the network; without it, the store of the user.
    **question
        Further fields of :class:`~planner.placement.request.ReduceRequest`, such as ``budget_usd``.
        Unless stated, each region has a VM for each host that its workers are on, with
        :data:`CONNECTIONS` connections.
    """
    futures = futures_of(data)
    wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()  # raises what its task did
    keys = [future.key for future in futures]
    held: list[Holding] = client.run_on_scheduler(_holdings, keys=keys)
    added_bytes: dict[str, int] = {}
    if hasattr(data, "divisions"):  # a data frame: futures are not sent by Dask's shuffle
        held_by = {worker: keys for worker, *_, keys in held if keys}
        added_bytes = client.run(_added_bytes, held_by, workers=list(held_by))
    input_gb, hosts = _by_region(held, added_bytes)
    asked = {
        "vms_in": {region: len(names) for region, names in hosts.items()},
        "connections": CONNECTIONS,
        **question,
    }
    return place_shuffle(wan, input_gb, len(keys) if partitions is None else partitions, **asked)


class ReduceWhere(SchedulerPlugin):
    """Makes shuffles of data frames with the peer-to-peer method reduce in given regions.

    ``client.register_plugin(ReduceWhere(plan))`` concerns all shuffles that begin from then on; a
    later one takes its place. Within a region, its workers take turns. A shuffle of another number
    of partitions gets them in the same proportion. While a region has no worker, its partitions go
    where Dask would put them. What a shuffle reads is sent from the region that holds it: Dask
    would have idle workers fetch it first, as it takes 100 MB/s for granted between workers.

    Parameters
    ----------
    plan : PlacedShuffle
    """

    name = "relayd-reduce-where"

    def __init__(self, plan: PlacedShuffle) -> None:
        self._regions = plan.region_of_partition
        self._kept: dict[Key, set[str]] = {}

    async def start(self, scheduler: Scheduler) -> None:
        """Stand in between the scheduler's shuffles and their choice of workers.

        Raises an InputError if this version of distributed has another way to choose them.
        """
        shuffles: Any = scheduler.plugins["shuffle"]
        choose: Any = getattr(type(shuffles), "_calculate_worker_for", None)
        if choose is None:
            problem = "does not know how this version of distributed shuffles"
            raise InputError("plugin", problem, remedy="Use a version that docs/dask.md names.")

        def placed(spec: Any) -> dict[Any, str]:
            # Shuffles of arrays do not send from all to all.
            if hasattr(spec, "npartitions"):
                spec = _PlacedSpec(spec, self._regions, workers_by_region(scheduler))
            found: dict[Any, str] = choose(shuffles, spec)
            return found

        shuffles._calculate_worker_for = self._placed = placed
        self._shuffles = shuffles

    def update_graph(self, scheduler: Scheduler, **new: Any) -> None:
        """Keep what a shuffle reads from being carried to an idle worker of another region."""
        workers = {region: set(here) for region, here in workers_by_region(scheduler).items()}
        for key in new["tasks"]:
            if id_from_key(key) is None:
                continue
            for task, region in _where_read(scheduler.tasks[key]):
                if not task.worker_restrictions and region in workers:
                    task.worker_restrictions = workers[region]
                    self._kept[task.key] = workers[region]

    def remove_worker(self, scheduler: Scheduler, *_: Any, **__: Any) -> None:
        """Let other regions send what a region without workers no longer holds."""
        for key, workers in list(self._kept.items()):
            task = scheduler.tasks.get(key)
            if task is None or not workers & scheduler.workers.keys():
                del self._kept[key]
                if task is not None:
                    task.worker_restrictions = None

    async def close(self) -> None:
        """Let Dask choose again, unless a later plugin has taken the place of this one."""
        if vars(self._shuffles).get("_calculate_worker_for") is self._placed:
            del self._shuffles._calculate_worker_for


class SendOver(WorkerPlugin):
    """Makes workers send shuffles over as many connections as a plan rests on.

    ``client.register_plugin(SendOver(plan))`` concerns shuffles that begin from then on, on workers
    that are processes of their own, one a host. Where the plan has no connections, workers keep
    their own setting.

    Parameters
    ----------
    plan : PlacedShuffle
        Asked for with the ``connections`` that a worker may open.
    """

    name = "relayd-send-over"

    def __init__(self, plan: PlacedShuffle) -> None:
        self._connections = plan.transfers.connections if plan.transfers else {}

    def setup(self, worker: Worker) -> None:
        """Set the worker's number, that of its region."""
        self._before = dask.config.get(CONNECTIONS_SETTING)
        count = self._connections.get(region_of(worker.state.total_resources) or "")
        if count:
            dask.config.set({CONNECTIONS_SETTING: count})

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - what Dask calls
        """Set it as it was."""
        dask.config.set({CONNECTIONS_SETTING: self._before})


class _PlacedSpec:
    """A shuffle's specification, as far as a choice of workers needs it."""

    def __init__(self, spec: Any, regions: Sequence[str], workers: dict[str, list[str]]) -> None:
        self.id = spec.id
        self._spec, self._regions, self._workers = spec, regions, workers

    @property
    def output_partitions(self) -> Iterator[int]:
        yield from self._spec.output_partitions

    def pick_worker(self, partition: int, workers: Sequence[str]) -> str:
        share = len(self._regions) / self._spec.npartitions
        here = self._workers.get(self._regions[int(partition * share)])
        allowed = [address for address in here or () if address in workers]
        if not allowed:
            _log.warning("No worker in the region of partition %d", partition)
            return str(self._spec.pick_worker(partition, workers))
        return allowed[partition % len(allowed)]


def region_of(resources: Iterable[str]) -> str | None:
    """Return the resource that is a region: regions' ids have a colon."""
    return next((name for name in resources if ":" in name), None)


def workers_by_region(scheduler: Scheduler) -> dict[str, list[str]]:
    """Return the addresses of each region's workers, in order."""
    found: dict[str, list[str]] = {}
    for worker in scheduler.workers.values():
        if region := region_of(worker.resources):
            found.setdefault(region, []).append(worker.address)
    return {region: sorted(addresses) for region, addresses in found.items()}


def _where_read(barrier: TaskState) -> Iterator[tuple[TaskState, str]]:
    """Yield the tasks before a barrier, with the region that holds most of what each reads."""
    size_bytes: dict[TaskState, Counter[str]] = {}
    to_do = [barrier]
    while to_do:
        task = to_do[-1]
        if task in size_bytes:
            to_do.pop()
        elif task.who_has:
            regions = {region_of(worker.resources) or "" for worker in task.who_has}
            size_bytes[task] = Counter({min(regions): task.get_nbytes()})
        elif before := [read for read in task.dependencies if read not in size_bytes]:
            to_do.extend(before)
        else:
            held = sum((size_bytes[read] for read in task.dependencies), Counter[str]())
            size_bytes[task] = held
            if held and task is not barrier:
                yield task, max(held, key=held.__getitem__)


def _holdings(dask_scheduler: Scheduler, keys: Sequence[Any]) -> list[Holding]:
    """Return what each worker holds of the data."""
    held: dict[str, list[Any]] = {address: [] for address in dask_scheduler.workers}
    size_bytes: Counter[str] = Counter()
    for key in keys:
        task = dask_scheduler.tasks.get(key)
        if task is not None and task.who_has:
            address = min(worker.address for worker in task.who_has)
            held[address].append(key)
            size_bytes[address] += task.get_nbytes()
    return [
        (address, worker.host, region_of(worker.resources), size_bytes[address], held[address])
        for address, worker in dask_scheduler.workers.items()
    ]


def _by_region(
    held: Sequence[Holding], added_bytes: dict[str, int]
) -> tuple[dict[str, float], dict[str, set[str]]]:
    """Return the volume that a shuffle sends from each region, in GB, and the hosts there."""
    input_gb: dict[str, float] = {}
    hosts: dict[str, set[str]] = {}
    for worker, host, region, size_bytes, _ in held:
        if region is None and size_bytes:
            problem = "is on a worker that is in no region"
            remedy = 'Start it with its region: dask worker ... --resources "aws:us-east-1=1".'
            raise InputError("data", problem, value=worker, remedy=remedy)
        if region is not None:
            sent_bytes = size_bytes + added_bytes.get(worker, 0)
            input_gb[region] = input_gb.get(region, 0.0) + sent_bytes / BYTES_PER_GB
            hosts.setdefault(region, set()).add(host)
    if not sum(input_gb.values()):
        raise InputError("data", "is held by no worker", remedy="Persist it before.")
    return input_gb, hosts


def _added_bytes(held_by: dict[str, list[Any]], dask_worker: Worker) -> int:
    """Return the bytes that Dask's shuffle adds to frames: a column, and an index if missing."""
    frames: list[Any] = [dask_worker.data[key] for key in held_by[dask_worker.address]]
    return sum(
        _NUMBER_BYTES * len(frame) + max(_NUMBER_BYTES * len(frame) - frame.index.memory_usage(), 0)
        for frame in frames
    )
