"""Emitters, which write a plan for one tool each, and the function that calls them.

Each is registered by an entry point of the group ``relayd.emitters``, those of relayd in its own
``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from planner.model.answer import Answer
from planner.model.errors import InputError
from probes.plugins import registered
from relayd.emitting.emitter import Emitter
from relayd.emitting.lanes import emission

GROUP = "relayd.emitters"
DEFAULT_PORT = 5201  # of iperf3


@cache
def emitters() -> Mapping[str, Emitter]:
    """Return all installed emitters by name: those of relayd, then those of other distributions.

    Raises RegistrationError if an entry point can't be loaded, or names anything but emitters with
    new names.
    """
    return {one.name: one for one in registered(GROUP, Emitter, unique=["name"])}


def emit(
    plan: Answer | Mapping[str, Any] | str,
    to: str,
    *,
    endpoints: Mapping[str, str | Sequence[str]] = {},
    port: int = DEFAULT_PORT,
) -> str:
    """Return a plan as a script or a configuration of a tool.

    Raises InputError if there is no such emitter, it does not fit the plan, or an address is none.

    Parameters
    ----------
    plan : Plan, mapping or str
        Of one transfer, or its JSON.
    to : str
        The name of an emitter, such as ``rclone``.
    endpoints : mapping, optional
        Region of the plan to the address of its VM, or to a sequence of several VMs' addresses.
        What is not given stays a variable, without which the script stops and says what it is.
    port : int
        On which relays and destinations listen; where a plan has several chains of VMs, the next
        ones follow.
    """
    known = emitters()
    if to not in known:
        raise InputError("emit", f"must be one of {', '.join(known)}", value=to)
    emitter = known[to]
    made = emission(plan, endpoints, port, to_vms=emitter.to_vms)
    write = (made.src_bucket and emitter.write_bucket) or emitter.write
    return write(made)
