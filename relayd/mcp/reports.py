"""Tools with which assistants report transfers, where they may: ``relayd mcp --allow-reports``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, TypeAlias

from planner.fields.specified import Specified, schema_of
from planner.model.errors import InputError
from relayd.client.blocking import RemoteWan
from relayd.mcp.tools import Arguments, AssistantTool
from relayd.sources.wan import Wan
from relayd.transfers.register import TransferRegister
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import TrackedTransfer

Register: TypeAlias = TransferRegister | RemoteWan
Report: TypeAlias = Callable[..., TrackedTransfer]

_ID = {"type": "string", "description": "The transfer's id, as `begin_transfer` answered."}


def reports(opened: Callable[[], AbstractContextManager[Register]]) -> Sequence[AssistantTool]:
    """Return the tools that begin, report and end transfers.

    Parameters
    ----------
    opened : callable
        Opens the register of the store, or the service that keeps it, for one report.
    """

    def tool(
        name: str,
        description: str,
        request: type[Specified],
        report: Callable[[Register, str, Mapping[str, Any]], TrackedTransfer],
    ) -> AssistantTool:
        schema, of_one = schema_of(request), request is not TransferStartRequest
        if of_one:
            required = ["id", *schema.get("required", ())]
            properties = {"id": _ID, **schema["properties"]}
            schema = {**schema, "properties": properties, "required": required}

        def call(wan: Wan, arguments: Arguments) -> dict[str, Any]:
            del wan
            fields = dict(arguments)
            number = str(fields.pop("id", "")) if of_one else ""
            if of_one and not number:
                raise InputError("id", "is missing", remedy="`begin_transfer` answers it.")
            given = request.from_json(fields).to_json()
            with opened() as register:
                return asdict(report(register, number, given))

        return AssistantTool(name, description, schema, call, read_only=False)

    return (
        tool(
            "begin_transfer",
            "Store that a transfer begins, and answer its id. Sends nothing itself.",
            TransferStartRequest,
            lambda register, _, given: register.begin_transfer(**given),
        ),
        tool(
            "report_transfer",
            "Store how far a transfer is; answers whether it is late, and when it ends.",
            TransferProgressRequest,
            lambda register, number, given: register.report_transfer(number, **given),
        ),
        tool(
            "end_transfer",
            "Store how a transfer ended.",
            TransferEndRequest,
            lambda register, number, given: register.end_transfer(number, **given),
        ),
    )
