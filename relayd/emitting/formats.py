"""Emitters, which write a plan for one tool each, and the function that calls them.

Each is registered by an entry point of the group ``relayd.emitters``, those of relayd in its own
``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from planner.model.answer import Answer
from planner.model.errors import InputError
from probes.plugins import registered
from relayd.emitting.lanes import Emission, emission

GROUP = "relayd.emitters"
DEFAULT_PORT = 5201  # of iperf3
Write: TypeAlias = Callable[[Emission], str]


@dataclass(frozen=True)
class Emitter:
    """A tool or service that a plan can be written for.

    A distribution registers its own by an entry point of the group ``relayd.emitters``, which names
    an emitter or a function that returns several.

    Attributes
    ----------
    name : str
        As ``--emit`` has it, such as ``rclone``.
    writes : str
        The text that it writes, in words: "configuration of haproxy 2.4 or later".
    write : function
        From a plan divided into lanes to the text. It raises an InputError of the field ``emit`` if
        the plan does not fit. :mod:`relayd.emitting.text` has comments and shell code for it.
    to_vms : bool
        Whether lanes end at the plan's VMs, rather than at an object store, which takes any number
        of connections.
    write_bucket : function, optional
        As ``write``, for plans whose source is a bucket; without it, ``write`` is for these too.
    order : int
        Place in lists of emitters; ours stand before those of other distributions.
    """

    name: str
    writes: str
    write: Write
    to_vms: bool = True
    write_bucket: Write | None = None
    order: int = 1000


@cache
def emitters() -> Mapping[str, Emitter]:
    """Return all installed emitters by name: those of relayd, then those of other distributions.

    Raises
    ------
    RegistrationError
        If an entry point can't be loaded, or names anything but emitters with new names.
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

    Raises
    ------
    InputError
        If there is no such emitter, it does not fit the plan, or an address is none.
    """
    known = emitters()
    if to not in known:
        raise InputError("emit", f"must be one of {', '.join(known)}", value=to)
    emitter = known[to]
    made = emission(plan, endpoints, port, to_vms=emitter.to_vms)
    write = (made.src_bucket and emitter.write_bucket) or emitter.write
    return write(made)
