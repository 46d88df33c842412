"""The table of formats, and the one function that writes any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.emitting.environment import env
from relayd.emitting.iperf3 import iperf3
from relayd.emitting.lanes import Emission, emission
from relayd.emitting.relays import haproxy, socat
from relayd.emitting.uploads import aws_cli, azcopy, gcloud, rclone


class Format(NamedTuple):
    """One format: what writes it, and whether lanes end at VMs or at an object store."""

    write: Callable[[Emission], str]
    to_vms: bool


FORMATS = {
    "haproxy": Format(haproxy, True),
    "socat": Format(socat, True),
    "iperf3": Format(iperf3, True),
    "rclone": Format(rclone, False),
    "aws-cli": Format(aws_cli, False),
    "azcopy": Format(azcopy, False),
    "gcloud": Format(gcloud, False),
    "env": Format(env, True),
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
    return how.write(emission(plan, endpoints, port, to_vms=how.to_vms))
