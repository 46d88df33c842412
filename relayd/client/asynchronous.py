"""A client of the service for asyncio."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, reduce
from io import BytesIO
from itertools import islice
from math import inf
from operator import getitem
from typing import Any, TypeVar, Unpack
from urllib.parse import quote

import numpy as np
from numpy.typing import ArrayLike
from pydantic import TypeAdapter, ValidationError

from planner.fields.shared import DEFAULT_VOLUME_GB
from planner.fields.specified import Specified
from planner.model.answer import Recommendation
from planner.model.catalogue import Catalogue, Region
from planner.model.document import NETWORK_COLUMNS, link_of, network_of, network_of_columns
from planner.model.errors import FormatError, InputError, RelaydError
from planner.model.link import Link, Site
from planner.model.link_array import Records
from planner.model.network import Network, Snapshot
from planner.transfer.plan import Plan
from planner.transfer.request import TransferRequest
from probes.samples import Sample
from relayd.catalogue.loading import catalogue_of
from relayd.client.connection import Connection
from relayd.client.errors import error_of
from relayd.questions.asking import AskingAsync
from relayd.questions.decisions import NPY, Columns, columns_of
from relayd.questions.holds import PoolUse
from relayd.questions.registry import question_of
from relayd.store.events import Event
from relayd.tables.matrices import Matrix, MatrixMetric
from relayd.transfers.register import MOST_LISTED
from relayd.transfers.reporting import ReportedTransfer, TransferOptions
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import TrackedTransfer, TransferDetails, TransferRate, WantedState

T = TypeVar("T")
BATCH = 1000
"""Requests that go into one call of the service at most, and links that one answers."""
SAMPLES_A_CALL = DECISIONS_A_CALL = 10_000


@dataclass(frozen=True, slots=True)
class Rejection:
    """A sample that was left out."""

    row: int
    """From 1: its place among those sent in one call."""
    reason: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of sending samples."""

    accepted: int
    duplicates: int
    rejected: int
    """New ones, those that were there already, those that can't be used."""
    rejections: tuple[Rejection, ...]
    """The first hundred of each call."""
    quarantined: int = 0
    """Those that can't be measurements: kept apart, and nothing rests on them."""
    quarantine: tuple[Rejection, ...] = ()
    """The first hundred of these of each call."""

    def __add__(self, other: IngestResult) -> IngestResult:
        """Return both together."""
        names = [field.name for field in fields(self)]
        return IngestResult(*(getattr(self, name) + getattr(other, name) for name in names))


class AsyncWan(AskingAsync, Connection):
    """A service's network, and plans on it.

    Use it as an async context manager, or call :meth:`close`. Answers and errors are those of
    :class:`relayd.sources.wan.Wan`.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8080``.
    token : str, optional
        A bearer token, where the service wants one; else ``RELAYD_TOKEN``, else the one that this
        user's services on this machine made.
    ca : str or Path, optional
        PEM file of the authorities to trust in place of the system's, for a service whose
        certificate is of your own; by default what ``RELAYD_CA`` names.
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

    def __repr__(self) -> str:
        """Say which service it asks."""
        return f"<AsyncWan at {self.url}>"

    # ---- decisions -----------------------------------------------------------------------

    async def ask(self, request: Specified) -> Any:
        """Answer a request; ``plan(...)`` and the others make one and ask it."""
        question = question_of(request)
        content = await self._post(question.path, request.to_json())
        return answer_of(question.answer, content)

    async def plans(self, requests: Iterable[Mapping[str, Any]]) -> list[Plan | RelaydError]:
        """Answer many requests, each with the keywords of :meth:`plan`, in their order.

        What can't be answered comes back as the error that :meth:`plan` would raise: one wrong
        request does not take the others along.
        """
        found: list[Plan | RelaydError | None] = []
        bodies: list[dict[str, Any]] = []
        for request in requests:
            try:
                bodies.append(TransferRequest(**request).to_json())
                found.append(None)
            except RelaydError as error:
                found.append(error)
        items: list[dict[str, Any]] = []
        for first in range(0, len(bodies), BATCH):
            batch = {"plans": bodies[first : first + BATCH]}
            items += json.loads(await self._post("/v1/plans/batch", batch))["results"]
        answers = iter(items)
        return [self._item(next(answers)) if one is None else one for one in found]

    async def decide(
        self,
        /,
        src: str | Sequence[str],
        dst: str | Sequence[str],
        volume_gb: ArrayLike | str = DEFAULT_VOLUME_GB,
        *,
        splits: bool = False,
        **fields: Any,
    ) -> Records:
        """Decide many transfers at once; see :func:`relayd.questions.decisions.decide`."""
        columns = columns_of({"src": src, "dst": dst, "volume_gb": volume_gb, **fields})
        starts = range(0, columns.count, DECISIONS_A_CALL) or [0]
        calls = (self._decided(columns, first, splits=splits) for first in starts)
        return np.concatenate(await asyncio.gather(*calls))

    async def _decided(self, columns: Columns, first: int, *, splits: bool) -> Records:
        part = columns.part(first, DECISIONS_A_CALL)
        body = {name: _bare(value) for name, value in {**part.settings, **part.listed}.items()}
        text = json.dumps({**body, "splits": splits}, allow_nan=False)
        try:
            answer = await self._call("POST", "/v1/decisions", body=text, headers={"Accept": NPY})
        except InputError as fault:
            raise fault.within(f"(after {first:,})") if first else fault from None
        found: Records = np.load(BytesIO(answer.content), allow_pickle=False)
        return found

    def _item(self, item: Mapping[str, Any]) -> Plan | RelaydError:
        if item["plan"] is None:
            return error_of(item["problem"], self.url)
        return answer_of(Plan, item["plan"])

    # ---- the network -------------------------------------------------------------------

    async def snapshot(self) -> Snapshot:
        """Return the snapshot that answers rest on now."""
        return Snapshot(**(await self._get("/v1/regions"))["snapshot"])

    async def regions(self) -> list[Region]:
        """Return all regions that can be planned between: measured ones and the catalogue's."""
        known = (await self.catalogue()).region
        return [known(row["id"]) for row in (await self._get("/v1/regions"))["regions"]]

    async def catalogue(self) -> Catalogue:
        """Return the catalogue that the service rests on, prices included."""
        document = await self._get("/v1/catalogue")
        return catalogue_of(document["catalogue"], document["digest"])

    async def sites(self) -> Mapping[str, Site]:
        """Return, by region, the VM type used there and the caps of one VM."""
        return (await self.network()).sites

    async def links(self, src: str | None = None, dst: str | None = None) -> AsyncIterator[Link]:
        """Iterate over links, all or those from or into one region, a page at a time."""
        query = {"src": src or None, "dst": dst or None, "limit": BATCH, "cursor": None}
        while True:
            document = await self._get("/v1/links", query)
            for row in document["links"]:
                yield link_of(row)
            if not (cursor := document.get("next_cursor")):
                return
            query["cursor"] = cursor

    async def matrix(
        self,
        metric: MatrixMetric = "aggregate",
        connections: int | None = None,
        *,
        measured_only: bool = False,
        regions: Sequence[str] = (),
    ) -> Matrix:
        """Return one figure for every pair of regions; see :meth:`.Wan.matrix`."""
        only = "true" if measured_only else None
        query = {"metric": metric, "connections": connections, "measured_only": only}
        found = matrix_of(await self._get("/v1/matrix", query))
        return found.among(regions) if regions else found

    async def network(self) -> Network:
        """Return the graph of estimates, bounds widened for age, with links as they are now."""
        network, _ = await self.network_if_changed(None)
        assert network is not None
        return network.with_(aged_to_s=time.time())

    async def network_if_changed(self, tag: str | None) -> tuple[Network | None, str | None]:
        """Return the graph and its tag, bounds as measured; None for one that is as it was."""
        headers = {"Accept": f"{NETWORK_COLUMNS}, application/json;q=0.5"}
        if tag:
            headers["If-None-Match"] = tag
        found = await self._call("GET", "/v1/snapshots/current", headers=headers)
        if found.status == 304:
            return None, tag
        if found.media_type == NETWORK_COLUMNS:
            return network_of_columns(found.content), found.tag
        return network_of(json.loads(found.content)), found.tag  # of another version

    # ---- transfers under way --------------------------------------------------------------

    def transfer(
        self, plan: Recommendation | Mapping[str, Any], **options: Unpack[TransferOptions]
    ) -> ReportedTransfer:
        """Carry out a plan: ``async with wan.transfer(plan) as transfer:``.

        See :class:`~relayd.transfers.reporting.ReportedTransfer`.
        """
        return ReportedTransfer(lambda call: call(self), plan, **options)

    async def begin_transfer(self, /, *ends: str, **fields: Any) -> TrackedTransfer:
        """Report the start of a transfer; may be repeated.

        Parameters
        ----------
        *ends : str
            `src` and `dst`, region ids or aliases; as the plan has them, unless given.
        **fields
            Of :class:`~relayd.transfers.requests.TransferStartRequest`: ``volume_gb`` or ``plan``
            and, where wanted, ``id``, ``label``, ``deadline_s``, ``silent_after_s``, ``no_hold``,
            ``at_s``.

        Raises
        ------
        InputError
            If a region is unknown, or another transfer has its id.
        InfeasibleError
            If its plan takes more than other transfers leave; see `starts_at_s`.
        """
        # A name of its own, so that repeating the call after a lost answer begins it once.
        named = {"id": uuid.uuid4().hex[:16], **fields}
        return await self._report("/v1/transfers", TransferStartRequest(*ends, **named))

    async def report_transfer(
        self,
        /,
        id: str,  # noqa: A002 - what a transfer has
        moved_gb: float | str,
        **fields: Any,
    ) -> TrackedTransfer:
        """Report the volume that has arrived since a transfer began.

        Parameters
        ----------
        id : str
        moved_gb : float or str
            GB, or a text with a unit.
        **fields
            Of :class:`~relayd.transfers.requests.TransferProgressRequest`: ``via_gb``,
            ``limited_by``, ``at_s``.

        Raises
        ------
        InputError
            If it has ended, or the report goes backwards.
        """
        request = TransferProgressRequest(moved_gb, **fields)
        return await self._report(f"{_of_transfer(id)}/progress", request)

    async def end_transfer(
        self,
        /,
        id: str,  # noqa: A002
        state: str = "finished",
        **fields: Any,
    ) -> TrackedTransfer:
        """Report the end of a transfer: ``finished``, ``failed`` or ``cancelled``.

        Parameters
        ----------
        id, state : str
        **fields
            Of :class:`~relayd.transfers.requests.TransferEndRequest`: ``moved_gb``, ``via_gb``,
            ``limited_by``, ``problem``, ``at_s``.

        Raises
        ------
        InputError
            If it has ended in another way.
        """
        return await self._report(f"{_of_transfer(id)}/end", TransferEndRequest(state, **fields))

    async def transfer_details(self, id: str) -> TransferDetails:  # noqa: A002
        """Return a transfer with its reports, its paths and its plan."""
        document = await self._get(_of_transfer(id))
        return answer_of(TransferDetails, document["details"])

    async def pools(self) -> list[PoolUse]:
        """Return the use of each pool, and of quotas and interconnects, by transfers."""
        return answer_of(list[PoolUse], (await self._get("/v1/pools"))["pools"])

    async def transfer_rate(self, id: str) -> TransferRate:  # noqa: A002
        """Return the rate at which a transfer is to send now.

        Raises InputError if it has ended, or was begun without a plan that says its rate.
        """
        return answer_of(TransferRate, await self._get(f"{_of_transfer(id)}/rate"))

    async def transfers(
        self, state: WantedState | None = None, src: str | None = None, dst: str | None = None
    ) -> list[TrackedTransfer]:
        """Return transfers, the newest first, at most a thousand.

        Parameters
        ----------
        state : {"in-flight", "ended", "finished", "failed", "cancelled"}, optional
        src, dst : str, optional
        """
        query = {"state": state, "src": src, "dst": dst, "limit": MOST_LISTED}
        document = await self._get("/v1/transfers", query)
        return [answer_of(TrackedTransfer, row) for row in document["transfers"]]

    async def _report(self, path: str, request: Specified) -> TrackedTransfer:
        content = await self._post(path, request.to_json())
        return answer_of(TrackedTransfer, json.loads(content)["transfer"])

    # ---- samples and events ----------------------------------------------------------

    async def ingest(self, samples: Iterable[Sample]) -> IngestResult:
        """Send measurements; when it returns, those accepted are on the service's disk.

        May be repeated after any failure: a sample that is there already is not kept twice.
        """
        total = IngestResult(0, 0, 0, ())
        waiting = iter(samples)
        while part := list(islice(waiting, SAMPLES_A_CALL)):
            lines = b"\n".join(_line(sample) for sample in part) + b"\n"
            headers = {"Content-Type": "application/x-ndjson"}
            found = await self._call("POST", "/v1/samples", body=lines, headers=headers)
            total += answer_of(IngestResult, found.content)
        return total

    async def events(self, after: int | None = None) -> AsyncGenerator[Event]:
        """Yield events, for ever: new snapshots, campaigns, links that fail and recover.

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
        async for line in self._stream("/v1/events", headers):
            # Each event is one line of data that says everything (WHATWG HTML, 9.2.6).
            if line.startswith(b"data:"):
                yield answer_of(Event, line.removeprefix(b"data:").strip())


def _bare(value: Any) -> Any:
    """Return an array or a list as JSON has it, None in place of NaN; anything else as it is."""
    if not isinstance(value, list | tuple | np.ndarray):
        return value
    items = value.tolist() if isinstance(value, np.ndarray) else value
    return [None if one != one else "inf" if one == inf else one for one in items]


def _of_transfer(name: str) -> str:
    return f"/v1/transfers/{quote(name, safe='')}"


def _line(sample: Sample) -> bytes:
    content = {k: v for k, v in sample._asdict().items() if v not in (None, "") and v is not False}
    if sample.detail:
        content["detail"] = json.loads(sample.detail)
    return json.dumps(content, allow_nan=False).encode()


# ---- from JSON to the objects that a local store would return ----------------------------------


_reader: Any = cache(TypeAdapter)  # made when first needed: for a plan, it takes some 10 ms


def answer_of(kind: type[T], content: bytes | Mapping[str, Any]) -> T:
    """Return an answer as its dataclass; keys that this version does not know are left out.

    Raises
    ------
    FormatError
        If it lacks something that this version relies on.
    """
    reader: TypeAdapter[T] = _reader(kind)
    document = json.loads(content) if isinstance(content, bytes) else content
    try:
        return reader.validate_python(document)
    except ValidationError as error:
        faults = error.errors(include_url=False)
    # JSON knows no infinity, and has null in the place of one.
    if all(each["type"] == "float_type" and each["input"] is None for each in faults):
        document = json.loads(json.dumps(document))
        for *place, last in (each["loc"] for each in faults):
            reduce(getitem, place, document)[last] = inf
        return reader.validate_python(document)
    where = ".".join(map(str, faults[0]["loc"]))
    raise FormatError(
        f"answer ({kind.__name__})",
        f"can't be read: {where}: {faults[0]['msg']}",
        remedy="Use versions of client and service that go together.",
    )


def matrix_of(document: Mapping[str, Any]) -> Matrix:
    """Return a matrix with NaN where the document has null."""
    regions, sources = tuple(document["regions"]), document.get("sources")
    values = np.array(document["values"], dtype=float)  # None becomes NaN
    return Matrix(
        document["metric"],
        document["unit"],
        regions,
        values.reshape(len(regions), len(regions)),
        Snapshot(**document["snapshot"]),
        sources and tuple(map(tuple, sources)),
    )
