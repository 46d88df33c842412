"""The table of formats, and the one function that writes any of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.emitting.lanes import emission


class Format(NamedTuple):
    """One format: where its writer is, and whether lanes end at VMs or at an object store."""

    module: str
    function: str
    to_vms: bool


FORMATS = {
    "haproxy": Format("relays", "haproxy", True),
    "socat": Format("relays", "socat", True),
    "iperf3": Format("iperf3", "iperf3", True),
    "rclone": Format("rclone", "rclone", False),
    "aws-cli": Format("cloud_tools", "aws_cli", False),
    "azcopy": Format("cloud_tools", "azcopy", False),
    "gcloud": Format("cloud_tools", "gcloud", False),
    "env": Format("environment", "env", True),
}
DEFAULT_PORT = 5201  # of iperf3


def emit(
    plan: Answer | Mapping[str, Any] | str,
    to: str,
    *,
    endpoints: Mapping[str, str | Sequence[str]] = {},
    port: int = DEFAULT_PORT,
) -> str:
    """Return a plan as a script or a configuration of a tool.

    Parameters
    ----------
    plan : Plan, mapping or str
        Of one transfer, or its JSON.
    to : str
        ``haproxy``, ``socat``, ``iperf3``, ``rclone``, ``aws-cli``, ``azcopy``, ``gcloud`` or
        ``env``.
    endpoints : mapping, optional
        Region of the plan to the address of its VM, or to a sequence of several VMs' addresses.
        What is not given stays a variable, without which the script stops and says what it is.
    port : int
        On which relays and destinations listen; where a plan has several chains of VMs, the next
        ones follow.

    Raises
    ------
    InputError
        If there is no such format, it does not fit the plan, or an address is none.
    """
    if to not in FORMATS:
        raise InputError("emit", f"must be one of {', '.join(FORMATS)}", value=to)
    how = FORMATS[to]
    write = getattr(import_module(f"relayd.emitting.{how.module}"), how.function)
    return str(write(emission(plan, endpoints, port, to_vms=how.to_vms)))
