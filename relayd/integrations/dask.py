"""Dask distributed: reduce partitions where their shuffle ends soonest.

Workers carry their region as a resource (``dask worker ADDRESS --resources "aws:us-east-1=1"``).
:func:`shuffle_plan` looks where a collection lies and decides how many partitions each region is to
reduce; :class:`ReduceWhere` makes the scheduler's shuffles of data frames follow it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
from distributed import Client, Scheduler, Worker, futures_of, wait
from distributed.diagnostics.plugin import SchedulerPlugin, WorkerPlugin

from planner.model.errors import InputError
from planner.model.units import BYTES_PER_GB
from relayd.integrations.shuffles import PlacedShuffle, place_shuffle

if TYPE_CHECKING:
    from relayd.client.blocking import RemoteWan
    from relayd.sources.wan import Wan

CONNECTIONS_SETTING = "distributed.p2p.comm.concurrency"
CONNECTIONS = 10
"""That a worker sends a shuffle over, as Dask has it."""

_log = logging.getLogger(__name__)


def shuffle_plan(
    client: Client,
    data: Any,
    *,
    partitions: int | None = None,
    wan: Wan | RemoteWan | None = None,
    **question: Any,
) -> PlacedShuffle:
    """Return which region is to reduce each partition of a shuffle of what workers hold.

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

    Raises
    ------
    InputError
        If nothing is held, or a worker that holds a part is in no region; else as of
        :meth:`relayd.Wan.place_reduce`.
    Exception
        What a task raised that was to make a part.
    """
    futures = futures_of(data)
    wait(futures)
    for future in futures:
        if future.status != "finished":
            future.result()  # raises what its task did
    keys = [future.key for future in futures]
    held = [_PartOfData(*one) for one in client.run_on_scheduler(_holdings, keys=keys)]
    input_gb: dict[str, float] = {}
    hosts: dict[str, set[str]] = {}
    for one in held:
        region = region_of(one.resources)
        if region is None and one.size_bytes:
            raise InputError(
                "data",
                "is on a worker that is in no region",
                value=one.worker,
                remedy='Start it with its region: dask worker ... --resources "aws:us-east-1=1".',
            )
        if region is not None:
            input_gb[region] = input_gb.get(region, 0.0) + one.size_bytes / BYTES_PER_GB
            hosts.setdefault(region, set()).add(one.host)
    if not sum(input_gb.values()):
        raise InputError("data", "is held by no worker", remedy="Persist it before.")
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
    where Dask would put them.

    Parameters
    ----------
    plan : PlacedShuffle
    """

    name = "relayd-reduce-where"

    def __init__(self, plan: PlacedShuffle) -> None:
        self._regions = plan.region_of_partition

    async def start(self, scheduler: Scheduler) -> None:
        """Stand in between the scheduler's shuffles and their choice of workers."""
        shuffles: Any = scheduler.plugins["shuffle"]
        choose: Any = getattr(type(shuffles), "_calculate_worker_for", None)
        if choose is None:
            raise InputError(
                "plugin",
                "does not know how this version of distributed shuffles",
                remedy="Use a version that docs/dask.md names.",
            )

        def placed(spec: Any) -> dict[Any, str]:
            # Shuffles of arrays do not send from all to all.
            if hasattr(spec, "npartitions"):
                spec = _PlacedSpec(spec, self._regions, workers_by_region(scheduler))
            found: dict[Any, str] = choose(shuffles, spec)
            return found

        shuffles._calculate_worker_for = self._placed = placed
        self._shuffles = shuffles

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


class _PartOfData(NamedTuple):
    worker: str
    host: str
    resources: list[str]
    size_bytes: int


def _holdings(dask_scheduler: Scheduler, keys: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return, of each worker, its address, host, resources and how many bytes of keys it holds."""
    size_bytes: Counter[str] = Counter()
    for key in keys:
        task = dask_scheduler.tasks.get(key)
        if task is not None and task.who_has:
            size_bytes[min(worker.address for worker in task.who_has)] += task.get_nbytes()
    return [
        (worker.address, worker.host, list(worker.resources), size_bytes[worker.address])
        for worker in dask_scheduler.workers.values()
    ]
