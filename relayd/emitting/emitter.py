"""An emitter: one object for each tool or service that a plan can be written for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from relayd.emitting.lanes import Emission

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
    needs : str
        What a plan has to have for it: ``relays``, ``buckets``, or the provider where it ends.
    order : int
        Place in lists of emitters; ours stand before those of other distributions.
    """

    name: str
    writes: str
    write: Write
    to_vms: bool = True
    write_bucket: Write | None = None
    needs: str = ""
    order: int = 1000
