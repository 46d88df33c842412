"""Emitters, which write a plan for one tool each, and the function that calls them.

Each is registered by an entry point of the group ``relayd.emitters``, those of relayd in its own
``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.emitting.lanes import Emission, emission

GROUP = "relayd.emitters"
DEFAULT_PORT = 5201  # of iperf3
Write: TypeAlias = Callable[[Emission], str]


@dataclass(frozen=True, slots=True)
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
    """

    name: str
    writes: str
    write: Write
    to_vms: bool = True
    write_bucket: Write | None = None


@cache
def emitters() -> Mapping[str, Emitter]:
    """Return all installed emitters by name: those of relayd, then those of other distributions.

    Raises
    ------
    InputError
        If an entry point can't be loaded, or names anything but emitters with new names.
    """
    return load_emitters(entry_points(group=GROUP))


def load_emitters(points: Iterable[EntryPoint]) -> dict[str, Emitter]:
    """Return the emitters that entry points name, as :func:`emitters` does; raises as it does."""
    found: dict[str, Emitter] = {}
    for point in sorted(points, key=lambda point: (_distribution(point) != "relayd", point.name)):
        try:
            loaded = point.load()
            several = (loaded,) if isinstance(loaded, Emitter) else tuple(loaded())
        except Exception as error:
            raise _unfit(point, f"can't be loaded: {error}") from error
        for emitter in several:
            if not isinstance(emitter, Emitter):
                raise _unfit(point, f"names a {type(emitter).__name__}, not an Emitter")
            if emitter.name in found:
                raise _unfit(point, f"names the emitter {emitter.name}, which there is already")
            found[emitter.name] = emitter
    return found


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "?"


def _unfit(point: EntryPoint, problem: str) -> InputError:
    entry = f"entry point {point.name} of the distribution {_distribution(point)} ({GROUP})"
    remedy = "Upgrade or uninstall that distribution."
    return InputError(entry, problem, value=point.value, remedy=remedy)


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
