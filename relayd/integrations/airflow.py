"""Airflow: plans, reservations and copies as tasks; those that wait take no worker meanwhile.

A connection says where the service is (``AIRFLOW_CONN_RELAYD_DEFAULT=http://relayd:8080``); its
password is a token with the scopes ``read`` and ``plan``, and ``ingest`` where copies are to be
among the service's transfers in flight. Reservations of all DAGs share the
links in a schedule that an Airflow variable keeps.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, NoReturn

from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseHook, BaseOperator, Connection, Variable
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

import relayd.fs
from planner.fields.kinds import MOST_NAME
from planner.fields.specified import Specified
from planner.model.errors import DataError, InfeasibleError, InputError, RelaydError
from planner.schedule.plan import TransferSchedule
from planner.schedule.request import TimedTransfer
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import RemoteWan
from relayd.client.errors import ServiceError
from relayd.fs.copying import DEFAULT_STREAMS, CopyForecast
from relayd.questions.registry import QUESTIONS
from relayd.times import seconds_of, utc_text

CONNECTION = "relayd_default"
SCHEDULE = "relayd_schedule"
ASK_AGAIN_S = 60.0
WAITED_FOR = (InfeasibleError, DataError)
"""Errors that new measurements, or a link that is up again, can remove."""


class RelaydHook(BaseHook):
    """A service of relayd, as a connection of Airflow names it.

    Parameters
    ----------
    relayd_conn_id : str
        Of a connection whose host is the service's; its schema ``https``, or a host that begins
        with it, asks over TLS, its password is the token, and ``ca`` among its extras names a PEM
        file.
    """

    conn_name_attr, default_conn_name = "relayd_conn_id", CONNECTION
    conn_type = hook_name = "relayd"

    def __init__(self, relayd_conn_id: str = CONNECTION) -> None:
        super().__init__()
        self.relayd_conn_id = relayd_conn_id

    def get_conn(self) -> RemoteWan:
        """Return the service's view of the network; close it after use."""
        return RemoteWan(**_address(self.get_connection(self.relayd_conn_id)))

    async def get_async_conn(self) -> AsyncWan:
        """Return it for asyncio, as triggers need it."""
        return AsyncWan(**_address(await self.aget_connection(self.relayd_conn_id)))

    def test_connection(self) -> tuple[bool, str]:
        """Ask the service on which snapshot its answers rest."""
        try:
            with self.get_conn() as wan:
                return True, f"Answers rest on snapshot {wan.snapshot.id}."
        except RelaydError as error:
            return False, str(error)


class WhenAnswered(BaseTrigger):
    """Fires once a question has an answer; until then it is asked again and again.

    The event is ``{"answer": document}``, or ``{"error": text}`` where waiting can't help.

    Parameters
    ----------
    question : str
        A method of :class:`relayd.Wan`, such as ``plan``.
    request : mapping
        Its fields.
    relayd_conn_id : str
    ask_again_s : float
    """

    def __init__(
        self,
        question: str,
        request: Mapping[str, Any],
        relayd_conn_id: str = CONNECTION,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        super().__init__()
        self.question, self.request = question, dict(request)
        self.relayd_conn_id, self.ask_again_s = relayd_conn_id, ask_again_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments that recreate it in the triggerer."""
        return f"{__name__}.{type(self).__name__}", {
            "question": self.question,
            "request": self.request,
            "relayd_conn_id": self.relayd_conn_id,
            "ask_again_s": self.ask_again_s,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Ask until there is an answer; a service that is down or busy is waited for, too."""
        async with await RelaydHook(self.relayd_conn_id).get_async_conn() as wan:
            while True:
                try:
                    answer = await wan.ask(_request(self.question, self.request))
                except RelaydError as error:
                    if not (isinstance(error, WAITED_FOR) or _may_heal(error)):
                        yield TriggerEvent({"error": str(error)})
                        return
                    self.log.info("Not yet: %s", error)
                    await asyncio.sleep(self.ask_again_s)
                else:
                    yield TriggerEvent({"answer": answer.model_dump("json")})
                    return


class RelaydPlanOperator(BaseOperator):
    """Asks a question, and returns its answer as a document.

    Parameters
    ----------
    question : str
        A method of :class:`relayd.Wan`: ``plan``, ``shuffle``, ``broadcast`` and others.
    request : mapping
        Its fields, which may have templates.
    deferrable : bool
        Whether to wait, off the worker, until limits can be met and all is known that is needed.
        Without it, the task fails for good where no plan meets the limits.
    ask_again_s : float
    wait_at_most : timedelta, optional
    relayd_conn_id : str
    """

    template_fields = ("request",)

    def __init__(
        self,
        *,
        question: str = "plan",
        request: Mapping[str, Any],
        deferrable: bool = False,
        ask_again_s: float = ASK_AGAIN_S,
        wait_at_most: timedelta | None = None,
        relayd_conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.question, self.request, self.relayd_conn_id = question, request, relayd_conn_id
        self.deferrable, self.ask_again_s = deferrable, ask_again_s
        self.wait_at_most = wait_at_most

    def execute(self, context: Any) -> dict[str, Any]:
        """Ask, or begin to wait.

        Raises
        ------
        AirflowFailException
            If the question is wrong, or no plan meets its limits: trying again would not help.
        """
        try:
            with RelaydHook(self.relayd_conn_id).get_conn() as wan:
                answer = wan.ask(_request(self.question, self.request))
        except WAITED_FOR as error:
            if not self.deferrable:
                _fail(error)
            self.log.info("Not yet: %s", error)
            trigger = WhenAnswered(
                self.question, self.request, self.relayd_conn_id, self.ask_again_s
            )
            self.defer(trigger=trigger, method_name="answered", timeout=self.wait_at_most)
        except RelaydError as error:
            _fail(error)
        document: dict[str, Any] = answer.model_dump("json")
        self.log.info("%s", document["reason"])
        return document

    def answered(self, context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer that the trigger received."""
        if "error" in event:
            raise AirflowFailException(event["error"])
        document: dict[str, Any] = event["answer"]
        self.log.info("%s", document["reason"])
        return document


class RelaydReserveOperator(BaseOperator):
    """Reserves links for one transfer, next to those that all others have reserved.

    Returns what :class:`RelaydCopyOperator` takes: ``id`` and ``schedule``, and as promised now
    ``src``, ``dst``, ``volume_gb``, ``start_at``, ``end_at`` and ``egress_usd``. A later
    reservation may change when this one sends, never beyond its deadline.

    Give tasks that reserve in one schedule a pool with one slot: two at once would not see each
    other.

    Parameters
    ----------
    transfer : mapping
        Fields of :class:`~planner.schedule.request.TimedTransfer`, which may have templates;
        ``start`` and ``deadline`` count from when the task runs. A task of a run has one
        reservation, however often it is tried, unless there is an ``id`` (or ``name``).
    schedule : str
        The Airflow variable that keeps the schedule in progress.
    limits : mapping, optional
        Further fields of :class:`~planner.schedule.request.ScheduleRequest`, such as ``vms``: the
        same for all that share a schedule.
    relayd_conn_id : str
    """

    template_fields = ("transfer", "schedule", "limits")

    def __init__(
        self,
        *,
        transfer: Mapping[str, Any],
        schedule: str = SCHEDULE,
        limits: Mapping[str, Any] | None = None,
        relayd_conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.transfer, self.schedule, self.limits = transfer, schedule, limits
        self.relayd_conn_id = relayd_conn_id

    def execute(self, context: Any) -> dict[str, Any]:
        """Ask for a schedule with this transfer in it, and keep that.

        Raises
        ------
        AirflowFailException
            If the deadline can't be promised, with what would do; or if a field is wrong.
        """
        kept = _StoredSchedule.read(self.schedule)
        try:
            named = "id" in self.transfer or "name" in self.transfer
            own: dict[str, Any] = {} if named else {"id": _own_id(context["ti"])}
            asked = TimedTransfer(**own, **self.transfer)
            if kept and (found := kept.transfer(asked.id)):
                self.log.info("%s was reserved before.", asked.id)
                return _reservation(self.schedule, kept, found)
            kept = kept or _StoredSchedule(time.time(), {"now_s": 0.0, "transfers": []})
            # Clocks of workers differ a little.
            now_s = max(time.time() - kept.began_s, kept.document["now_s"])
            figures = TimedTransfer.figures_of(asked)
            figures["start_s"] += now_s
            if figures["deadline_s"] is not None:
                figures["deadline_s"] += now_s
            limits = self.limits or {}
            with RelaydHook(self.relayd_conn_id).get_conn() as wan:
                plan = wan.schedule(
                    [figures], existing=kept.in_progress(now_s), now_s=now_s, **limits
                )
        except RelaydError as error:
            _fail(error)
        decided = plan.transfer(asked.id)
        if decided.verdict == "refused":
            raise AirflowFailException(f"{plan.reason} {_remedies_text(decided)}".strip())
        document = plan.model_dump("json")
        kept = _StoredSchedule(
            kept.began_s, {name: document[name] for name in ("now_s", "transfers")}
        )
        kept.write(self.schedule)
        return _reservation(self.schedule, kept, kept.transfer(asked.id) or {})


class RelaydCopyOperator(BaseOperator):
    """Copies files between object stores as :func:`relayd.fs.copy` does, when it is their turn.

    Returns ``files``, ``sent_gb``, ``duration_s``, and ``forecast_s`` and ``forecast_usd`` of
    before.

    Parameters
    ----------
    source, target : str
        Addresses as fsspec has them.
    src, dst : str
        Regions of the two, ids or aliases.
    reservation : mapping, optional
        What :class:`RelaydReserveOperator` returned: the task waits, off the worker, until the
        schedule as it is then lets it begin.
    budget_usd : float, optional
        Most egress fees that the forecast may have.
    here, streams, source_options, target_options
        As of :func:`relayd.fs.copy`.
    relayd_conn_id : str
    """

    template_fields = ("source", "target", "src", "dst", "reservation")

    def __init__(
        self,
        *,
        source: str,
        target: str,
        src: str,
        dst: str,
        reservation: Any = None,
        budget_usd: float | None = None,
        here: str | None = None,
        streams: int = DEFAULT_STREAMS,
        source_options: Mapping[str, Any] | None = None,
        target_options: Mapping[str, Any] | None = None,
        relayd_conn_id: str = CONNECTION,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source, self.target, self.src, self.dst = source, target, src, dst
        self.reservation, self.budget_usd = reservation, budget_usd
        self.here, self.streams = here, streams
        self.source_options, self.target_options = source_options, target_options
        self.relayd_conn_id = relayd_conn_id

    def execute(self, context: Any, event: Any = None) -> dict[str, Any]:
        """Copy, or wait for the time that is reserved.

        Raises
        ------
        AirflowFailException
            If the fees are above the budget, or the copy can't be made as it is asked for.
        """
        if self.reservation and (start_s := self._start_s()) > time.time():
            moment = datetime.fromtimestamp(start_s, UTC)
            self.log.info("The schedule lets this begin at %s.", moment)
            # Then the schedule is looked at again, because it may have changed.
            self.defer(trigger=DateTimeTrigger(moment=moment), method_name="execute")
        try:
            with RelaydHook(self.relayd_conn_id).get_conn() as wan:
                copied = relayd.fs.copy(
                    self.source,
                    self.target,
                    src=self.src,
                    dst=self.dst,
                    here=self.here,
                    streams=self.streams,
                    wan=wan,
                    source_options=self.source_options or {},
                    target_options=self.target_options or {},
                    budget_usd=self.budget_usd,
                    confirm=self._told,
                    label=_own_id(context["ti"]),
                )
        except RelaydError as error:
            _fail(error)
        assert copied is not None  # it was confirmed
        return {
            "files": copied.files,
            "sent_gb": copied.sent_gb,
            "duration_s": copied.duration_s,
            "forecast_s": copied.forecast.duration_s,
            "forecast_usd": copied.forecast.egress_usd,
        }

    def _start_s(self) -> float:
        kept = _StoredSchedule.read(self.reservation["schedule"])
        found = kept.transfer(self.reservation["id"]) if kept else None
        if kept is None or found is None:
            # All of the schedule has ended, and another one has begun.
            return seconds_of(self.reservation["start_at"])
        return kept.start_s(found)

    def _told(self, forecast: CopyForecast) -> bool:
        for line in (str(forecast), *forecast.warnings):
            self.log.info("%s", line)
        return True


class _StoredSchedule(NamedTuple):
    """A schedule in progress, as a variable keeps it.

    Attributes
    ----------
    began_s : float
        When its clock was 0, in seconds since 1970.
    document : dict
        ``now_s`` and ``transfers`` of a schedule's JSON.
    """

    began_s: float
    document: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> _StoredSchedule | None:
        text = Variable.get(name, default=None)
        if text is None:
            return None
        try:
            content = json.loads(text)
            return cls(float(content["began_s"]), dict(content["schedule"]))
        except (TypeError, ValueError, KeyError):
            _fail(
                InputError(
                    name,
                    "is a variable that keeps no schedule",
                    value=text,
                    remedy="Name another one in `schedule`, or delete it.",
                )
            )

    def write(self, name: str) -> None:
        content = {"began_s": self.began_s, "schedule": self.document}
        Variable.set(name, json.dumps(content), description="Transfers that relayd has admitted")

    def transfer(self, name: str) -> dict[str, Any] | None:
        """Return a transfer that is to send, or has sent."""
        return next(
            (t for t in self.document["transfers"] if t["id"] == name and t["periods"]), None
        )

    def in_progress(self, now_s: float) -> dict[str, Any]:
        """Return it without what has ended, so that it does not grow for ever."""
        going_on = [t for t in self.document["transfers"] if (t["end_s"] or 0.0) > now_s]
        return {**self.document, "transfers": going_on}

    def start_s(self, transfer: Mapping[str, Any]) -> float:
        """Return the start of a transfer, in seconds since 1970."""
        return self.began_s + float(transfer["periods"][0]["start_s"])


def _address(connection: Connection) -> dict[str, Any]:
    """Return the arguments of a client, from a connection."""
    host = connection.host or ""
    if not host:
        raise InputError(
            str(connection.conn_id),
            "is a connection without a host",
            remedy="Give the service's, such as http://relayd:8080.",
        )
    if "://" not in host:
        kind = connection.schema or connection.conn_type
        host = f"{'https' if kind == 'https' else 'http'}://{host}"
    url = f"{host}:{connection.port}" if connection.port else host
    return {
        "url": url,
        "token": connection.password or None,
        "ca": connection.extra_dejson.get("ca"),
    }


def _request(question: str, fields: Mapping[str, Any]) -> Specified:
    for known in QUESTIONS:
        if known.method == question:
            return known.request(**fields)
    methods = ", ".join(known.method for known in QUESTIONS)
    raise InputError("question", f"must be one of {methods}", value=question)


def _fail(error: RelaydError) -> NoReturn:
    """Fail the task: again if the service may answer later, else for good."""
    if isinstance(error, DataError) or _may_heal(error):
        raise error
    raise AirflowFailException(str(error)) from error


def _may_heal(error: RelaydError) -> bool:
    """Say whether the same call may succeed later, because the service is down or busy."""
    if not isinstance(error, ServiceError):
        return False
    # Of 4xx, only 408 and 429 allow repeating the call as it was (RFC 9110, 15.5.9; RFC 6585, 4).
    return error.status is None or error.status >= 500 or error.status in {408, 429}


def _own_id(task_instance: Any) -> str:
    # No task's id has brackets, so that task `load1` is not part 1 of task `load`.
    part = f"[{task_instance.map_index}]" if task_instance.map_index >= 0 else ""
    own = f"{task_instance.dag_id}/{task_instance.task_id}{part}/{task_instance.run_id}"
    if len(own) <= MOST_NAME:
        return own
    digest = sha256(own.encode()).hexdigest()[:16]
    return f"{own[: MOST_NAME - 1 - len(digest)]}-{digest}"


def _reservation(
    schedule: str, kept: _StoredSchedule, transfer: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "schedule": schedule,
        **{name: transfer[name] for name in ("id", "src", "dst", "volume_gb", "egress_usd")},
        "start_at": utc_text(kept.start_s(transfer)),
        "end_at": utc_text(kept.began_s + transfer["end_s"]),
    }


def _remedies_text(transfer: TransferSchedule) -> str:
    remedies = transfer.remedies
    if remedies is None:
        return ""
    return (
        f"A deadline of {remedies.deadline_s - transfer.start_s:,.0f} s after its start would do, "
        f"or a volume of {remedies.volume_gb:,.4g} GB."
    )
