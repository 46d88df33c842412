"""Reads plain command lines of ``relayd plan`` without argparse, which takes longer than the plan.

Plain is what has nothing but words by position and known options, each with a value of its own.
Whatever else there is, such as ``--help``, a value that begins with a hyphen or a mistake, is left
to :mod:`relayd.cli.parser`, so that its answers are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from planner.fields.kinds import Flag
from planner.hints import TYPE_CHECKING, cast
from planner.transfer.request import TransferRequest
from relayd.cli.flags import flags
from relayd.cli.questions import plan
from relayd.cli.questions.asking import dest_of, options_of

if TYPE_CHECKING:
    import argparse
    from typing import Any


def plain_options(words: Sequence[str]) -> argparse.Namespace | None:
    """Return what the parser makes of the words after ``relayd plan``; None if they aren't plain.

    Parameters
    ----------
    words : sequence of str
    """
    found: dict[str, Any] = {"by_position": [], "emit": None, "endpoint": [], "port": None}
    found |= {"json": False, "db": None, "ca": None, "catalogue": []}
    kinds = {"--json": "flag", "--db": "one", "--ca": "one", "--catalogue": "several"}
    for option, fields in options_of(TransferRequest):
        repeated = any(field.kind.repeated for field in fields)
        flag = isinstance(fields[0].kind, Flag)
        kinds[option] = "flag" if flag else "several" if repeated else "one"
        found[dest_of(option)] = None
    known = {name: option for option in kinds for name in flags(option)}
    left = list(reversed(words))
    while left:
        word = left.pop()
        if not word.startswith("-"):
            found["by_position"].append(word)
            continue
        name, equals, value = word.partition("=")
        option = known.get(name, "")
        kind = kinds.get(option)
        if kind is None or (equals and (kind == "flag" or name != option)):
            return None
        if kind == "flag":
            found[dest_of(option)] = True
            continue
        if not equals:
            value = left.pop() if left else "-"
        if value.startswith("-"):
            return None
        before = (found[dest_of(option)] or []) if kind == "several" else []
        found[dest_of(option)] = [*before, value] if kind == "several" else value
    found |= {"request": TransferRequest, "renamed": {}, "run": plan.run}
    return cast("argparse.Namespace", SimpleNamespace(**found))
