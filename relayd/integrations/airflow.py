"""Airflow: plans as tasks; those that wait take no worker meanwhile.

A connection says where the service is (``AIRFLOW_CONN_RELAYD_DEFAULT=http://relayd:8080``); its
password is a token with the scopes ``read`` and ``plan``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from airflow.sdk import BaseHook, BaseOperator, Connection
from airflow.sdk.exceptions import AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from planner.fields.specified import Specified
from planner.model.errors import DataError, InfeasibleError, InputError, RelaydError
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import RemoteWan
from relayd.client.errors import ServiceError
from relayd.questions.registry import QUESTIONS

CONNECTION = "relayd_default"
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

    def __init__(self, relayd_conn_id: str = CONNECTION) -> None:
        super().__init__()
        self.relayd_conn_id = relayd_conn_id

    def get_conn(self) -> RemoteWan:
        """Return the service's view of the network; close it after use."""
        return RemoteWan(**_address(self.get_connection(self.relayd_conn_id)))

    async def get_async_conn(self) -> AsyncWan:
        """Return it for asyncio, as triggers need it."""
        return AsyncWan(**_address(await self.aget_connection(self.relayd_conn_id)))


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
        names = ("question", "request", "relayd_conn_id", "ask_again_s")
        arguments = {name: getattr(self, name) for name in names}
        return f"{__name__}.{type(self).__name__}", arguments

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

        Raises AirflowFailException if the question is wrong, or no plan meets its limits: trying
        again would not help.
        """
        try:
            with RelaydHook(self.relayd_conn_id).get_conn() as wan:
                answer = wan.ask(_request(self.question, self.request))
        except RelaydError as error:
            if self.deferrable and isinstance(error, WAITED_FOR):
                self.log.info("Not yet: %s", error)
                of = self.question, self.request, self.relayd_conn_id, self.ask_again_s
                timeout = self.wait_at_most
                self.defer(trigger=WhenAnswered(*of), method_name="answered", timeout=timeout)
            if isinstance(error, DataError) or _may_heal(error):
                raise  # the task is tried again: the service may answer later
            raise AirflowFailException(str(error)) from error
        return self.answered(context, {"answer": answer.model_dump("json")})

    def answered(self, context: Any, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer that the trigger received, or raise an AirflowFailException."""
        if "error" in event:
            raise AirflowFailException(event["error"])
        document: dict[str, Any] = event["answer"]
        self.log.info("%s", document["reason"])
        return document


def _address(connection: Connection) -> dict[str, Any]:
    """Return the arguments of a client, from a connection."""
    host = connection.host or ""
    if not host:
        remedy = "Give the service's, such as http://relayd:8080."
        raise InputError(str(connection.conn_id), "is a connection without a host", remedy=remedy)
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


def _may_heal(error: RelaydError) -> bool:
    """Say whether the same call may succeed later, because the service is down or busy."""
    if not isinstance(error, ServiceError):
        return False
    # Of 4xx, only 408 and 429 allow repeating the call as it was (RFC 9110, 15.5.9; RFC 6585, 4).
    return error.status is None or error.status >= 500 or error.status in {408, 429}
