"""The service from asyncio."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from planner.broadcast.plan import BroadcastPlan
from planner.model.answer import Answer
from planner.model.catalogue import Catalogue, Region
from planner.model.demands import demands_gb as read_demands
from planner.model.document import link_of, link_states_of, network_of
from planner.model.errors import InputError, RelaydError
from planner.model.link_states import LinkState, overlaid
from planner.model.network import Link, Network, Site, Snapshot
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import Machine
from planner.replanning.plan import Replan
from planner.schedule.plan import SchedulePlan
from planner.schedule.request import timed_transfers
from planner.shuffle.plan import ShufflePlan
from planner.transfer.plan import Plan
from probes.samples import Sample
from relayd.catalogue.loading import catalogue_of
from relayd.client.answers import Ingested, answer_of, matrix_of
from relayd.client.connection import TIMEOUT_S, Connection
from relayd.client.errors import error_of
from relayd.client.options import (
    BroadcastOptions,
    ReduceOptions,
    ScheduleOptions,
    ShuffleOptions,
    TasksOptions,
    TransferOptions,
    as_json,
)
from relayd.files.plans import document_of
from relayd.questions.placement import task_cpus
from relayd.store.events import Event

if TYPE_CHECKING:
    from types import TracebackType

    from relayd.sources.matrices import Matrix, MatrixMetric

BATCH = 1000
"""Requests that go into one call of the service at most."""
SAMPLES_A_CALL = 10_000


class Graph(NamedTuple):
    """What a service knows: estimates as they were made, and which links are not as usual."""

    network: Network
    link_states: dict[tuple[str, str], LinkState]


class AsyncWan:
    """A service's view of the network, and what to do on it.

    Use it as an async context manager, or call :meth:`close`. Answers and errors are those of
    :class:`relayd.sources.wan.Wan`.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8080``.
    token : str, optional
        A bearer token, where the service wants one.
    timeout_s : float
        For one attempt at one call.
    attempts : int
        How often a call that is safe to repeat is tried while the service can't be reached or
        is overloaded.

    Raises
    ------
    InputError
        If the address is not one of HTTP.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout_s: float = TIMEOUT_S, attempts: int = 4
    ) -> None:
        self._connection = Connection(url, token=token, timeout_s=timeout_s, attempts=attempts)

    def __repr__(self) -> str:
        """Say which service it asks."""
        return f"<AsyncWan at {self._connection.url}>"

    async def __aenter__(self) -> AsyncWan:
        """Open nothing yet: connections are made when first used."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    # ---- decisions -----------------------------------------------------------------------

    async def plan(self, src: str, dst: str, **options: Unpack[TransferOptions]) -> Plan:
        """Recommend how to move a volume; see :meth:`.Wan.plan`."""
        body = as_json({"src": src, "dst": dst, **options})
        return answer_of(Plan, await self._connection.post("/v1/plans", body))

    async def plans(self, requests: Iterable[Mapping[str, Any]]) -> list[Plan | RelaydError]:
        """Answer many requests, each with the keywords of :meth:`plan`, in their order.

        What can't be answered comes back as the error that :meth:`plan` would raise: one wrong
        request does not take the others along.
        """
        bodies = [as_json(request) for request in requests]
        found: list[Plan | RelaydError] = []
        for first in range(0, len(bodies), BATCH):
            batch = {"plans": bodies[first : first + BATCH]}
            document = json.loads(await self._connection.post("/v1/plans/batch", batch))
            for item in document["results"]:
                if item["plan"] is not None:
                    found.append(answer_of(Plan, item["plan"]))
                else:
                    found.append(error_of(item["problem"], self._connection.url))
        return found

    async def shuffle(
        self,
        demands_gb: Any,
        *,
        regions: Sequence[str] | None = None,
        **options: Unpack[ShuffleOptions],
    ) -> ShufflePlan:
        """Recommend how to run many transfers at once; see :meth:`.Wan.shuffle`."""
        demands = [
            {"src": src, "dst": dst, "volume_gb": volume_gb}
            for (src, dst), volume_gb in read_demands(demands_gb, regions).items()
        ]
        body = {"demands": demands, **as_json(options)}
        return answer_of(ShufflePlan, await self._connection.post("/v1/shuffles", body))

    async def broadcast(
        self, src: str, destinations: Sequence[str], **options: Unpack[BroadcastOptions]
    ) -> BroadcastPlan:
        """Recommend how to bring one volume to several; see :meth:`.Wan.broadcast`."""
        body = {"src": src, "destinations": list(destinations), **as_json(options)}
        return answer_of(BroadcastPlan, await self._connection.post("/v1/broadcasts", body))

    async def schedule(
        self,
        transfers: Any = None,
        *,
        existing: SchedulePlan | Mapping[str, Any] | None = None,
        **options: Unpack[ScheduleOptions],
    ) -> SchedulePlan:
        """Admit transfers with deadlines; see :meth:`.Wan.schedule`."""
        given = () if transfers is None and existing else timed_transfers(transfers)
        body = {"transfers": [asdict(transfer) for transfer in given], **as_json(options)}
        if existing is not None:
            body["existing"] = document_of(existing)
        return answer_of(SchedulePlan, await self._connection.post("/v1/schedules", body))

    async def place_reduce(
        self, input_gb: Mapping[str, float], **options: Unpack[ReduceOptions]
    ) -> ReducePlacement:
        """Recommend where to reduce; see :meth:`.Wan.place_reduce`."""
        body = {"input_gb": dict(input_gb), **as_json(options)}
        content = await self._connection.post("/v1/placements/reduce", body)
        return answer_of(ReducePlacement, content)

    async def place_tasks(
        self, tasks: Any, traffic_gb: Any, machines: Any, **options: Unpack[TasksOptions]
    ) -> TaskPlacement:
        """Recommend on which VM to run which task; see :meth:`.Wan.place_tasks`."""
        cpus = task_cpus(tasks)
        if isinstance(machines, str | bytes | Mapping) or not isinstance(machines, Sequence):
            raise InputError("vms", "must be a list of id, region and cpus", value=machines)
        body = as_json(options) | {
            "tasks": [{"id": task, "cpus": count} for task, count in cpus.items()],
            "traffic": [
                {"src": src, "dst": dst, "volume_gb": gb}
                for (src, dst), gb in read_demands(traffic_gb, list(cpus)).items()
            ],
            "vms": [asdict(one) if isinstance(one, Machine) else dict(one) for one in machines],
        }
        content = await self._connection.post("/v1/placements/tasks", body)
        return answer_of(TaskPlacement, content)

    async def replan(
        self,
        plan: Answer | Mapping[str, Any] | str,
        *,
        moved_gb: float | Mapping[tuple[str, str], float],
        elapsed_s: float,
        changes: int = 0,
        month_to_date_gb: Mapping[str, float] = {},
        vm_types: Mapping[str, str] = {},
    ) -> Replan:
        """Say whether to keep to a plan in progress; see :meth:`.Wan.replan`."""
        moved = (
            [{"src": s, "dst": d, "volume_gb": gb} for (s, d), gb in moved_gb.items()]
            if isinstance(moved_gb, Mapping)
            else moved_gb
        )
        body = {
            "plan": document_of(plan),
            "moved_gb": moved,
            "elapsed_s": elapsed_s,
            "changes": changes,
            "month_to_date_gb": dict(month_to_date_gb),
            "vm_types": dict(vm_types),
        }
        return answer_of(Replan, await self._connection.post("/v1/replans", body))

    # ---- what is known -------------------------------------------------------------------

    async def snapshot(self) -> Snapshot:
        """Return the snapshot that answers rest on now."""
        document = await self._connection.get("/v1/regions")
        return Snapshot(**document["snapshot"])

    async def regions(self) -> list[Region]:
        """Return the catalogue's baseline regions and all measured ones."""
        known = (await self.catalogue()).region
        return [known(row["id"]) for row in (await self._connection.get("/v1/regions"))["regions"]]

    async def catalogue(self) -> Catalogue:
        """Return the catalogue that the service rests on, prices included."""
        document = await self._connection.get("/v1/catalogue")
        return catalogue_of(document["catalogue"], document["digest"])

    async def sites(self) -> dict[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return (await self.network()).sites

    async def links(self, src: str | None = None, dst: str | None = None) -> AsyncIterator[Link]:
        """Iterate over links, all or those from or into one region, a page at a time."""
        query = {name: value for name, value in (("src", src), ("dst", dst)) if value}
        async for row in self._connection.pages("/v1/links", query, "links"):
            yield link_of(row)

    async def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int | None = None,
        *,
        measured_only: bool = False,
    ) -> Matrix:
        """Return one figure for every pair of regions; see :meth:`.Wan.matrix`."""
        query: dict[str, Any] = {"metric": metric}
        if connections is not None:
            query["connections"] = connections
        if measured_only:
            query["measured_only"] = "true"
        return matrix_of(await self._connection.get("/v1/matrix", query))

    async def network(self) -> Network:
        """Return the graph of estimates, bounds widened for age, with links as they are now."""
        document = await self._connection.get("/v1/snapshots/current")
        return overlaid(network_of(document).aged(time.time()), link_states_of(document))

    async def graph_if_changed(self, tag: str | None) -> tuple[Graph | None, str | None]:
        """Return the graph and its tag; None in place of one that is as it was."""
        content, tag = await self._connection.get_if_changed("/v1/snapshots/current", tag)
        if content is None:
            return None, tag
        document = json.loads(content)
        return Graph(network_of(document), link_states_of(document)), tag

    # ---- what is given and told ----------------------------------------------------------

    async def ingest(self, samples: Iterable[Sample]) -> Ingested:
        """Send measurements; when it returns, those accepted are on the service's disk.

        May be repeated after any failure: a sample that is there already is not kept twice.
        """
        total = Ingested(0, 0, 0, ())
        waiting = iter(samples)
        while part := list(islice(waiting, SAMPLES_A_CALL)):
            lines = b"\n".join(_line(sample) for sample in part) + b"\n"
            content = await self._connection.call(
                "POST", "/v1/samples", body=lines, media_type="application/x-ndjson"
            )
            total += answer_of(Ingested, content)
        return total

    async def events(self, after: int | None = None) -> AsyncGenerator[Event]:
        """Yield what happens, for ever: new snapshots, campaigns, links that fail and recover.

        Parameters
        ----------
        after : int, optional
            Id of the last event that was seen; without it, only what is to come.

        Raises
        ------
        ServiceError
            If the connection is lost: go on after the last event's id.
        """
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        async for line in self._connection.stream("/v1/events", headers):
            # Each event is one line of data that says everything (WHATWG HTML, 9.2.6).
            if line.startswith(b"data:"):
                yield answer_of(Event, line.removeprefix(b"data:").strip())


def _line(sample: Sample) -> bytes:
    content = {k: v for k, v in sample._asdict().items() if v not in (None, "")}
    if sample.detail:
        content["detail"] = json.loads(sample.detail)
    return json.dumps(content, allow_nan=False).encode()
