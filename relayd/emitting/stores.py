"""Emitters that copy to object stores: one for each tool of ``configs/copies.toml``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from relayd.catalogue.copies import copies
from relayd.emitting.buckets import copy
from relayd.emitting.emitter import Emitter
from relayd.emitting.uploads import upload


def emitters_of_stores() -> Iterator[Emitter]:
    """Yield an emitter for each row of the tables ``upload`` and ``tool``.

    A tool of both uploads folders by the one, and copies buckets by the other.
    """
    uploads, tools = copies()["upload"], copies()["tool"]
    made = partial(Emitter, to_vms=False, order=30)
    for name, how in (uploads | tools | uploads).items():
        copied = partial(copy, tool=name) if name in tools else None
        write = partial(upload, tool=name) if name in uploads else partial(copy, tool=name)
        needs = how.get("provider", "") if name in uploads else "buckets"
        yield made(name, how["writes"], write, write_bucket=copied, needs=needs)
