"""Completion of commands, options, regions, VM types, terms and ids of a store in a shell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from planner.model.errors import RelaydError
from relayd.catalogue.loading import load_catalogue
from relayd.cli.commands import build_parser
from relayd.cli.options import store_of
from relayd.cli.parser import Parser
from relayd.questions.explanations import terms as explained
from relayd.transfers.register import transfer_rows

REGIONS = ("REGION", "RULE", "SRC", "DST")
"""Metavariables that stand for a region."""
TYPES = ("TYPE", "WHERE=NAME")
_MOST_IDS = 100


def complete() -> None:
    """Answer the shell that asks by the variables of argcomplete, and exit."""
    import argcomplete
    from argcomplete.lexers import split_line

    Parser.unfinished = True
    line, point = os.environ["COMP_LINE"], int(os.environ["COMP_POINT"])
    *_, typed, _ = split_line(line, point)
    before = int(os.environ["_ARGCOMPLETE"])
    parser, left = build_parser().of(typed[before:])
    os.environ["_ARGCOMPLETE"] = str(len(typed) - len(left))  # where the command's own words begin
    for action in parser._actions:
        if completer := _completer(action, parser):
            action.completer = completer  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _completer(action: argparse.Action, parser: Parser) -> Callable[..., Iterable[str]] | None:
    if action.dest == "by_position":  # or a command below it
        return lambda **_: [*regions(), *parser.commands]
    if action.metavar in TYPES:
        return vm_types
    if action.metavar in REGIONS or action.dest in ("src", "dst", "region"):
        return regions
    if action.dest == "snapshot":
        return snapshots
    by_position: dict[str, Callable[..., Iterable[str]]] = {"term": terms, "id": transfers}
    return None if action.option_strings else by_position.get(action.dest)


def regions(**_: Any) -> Iterable[str]:
    """Return ids and aliases of regions."""
    catalogue = load_catalogue()
    # Bare names too, as people type them: a shell takes a colon for the end of a word.
    bare = (name.partition(":")[2] for name in catalogue.regions)
    return [*catalogue.regions, *bare, *catalogue.aliases]


def vm_types(prefix: str, **_: Any) -> Iterable[str]:
    """Return VM types, after the place that a word may begin with."""
    where, assigned, _name = prefix.rpartition("=")
    names = (name.partition(":")[2] for name in load_catalogue().vm_types)
    return [f"{where}{assigned}{name}" for name in names]


def terms(**_: Any) -> Iterable[str]:
    """Return the terms that are explained."""
    return [term["name"] for term in explained()]


def snapshots(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return ids of snapshots of the store that a command line means, if it can be read."""
    with suppress(RelaydError), store_of(parsed_args, "read") as store:
        return [row.id for row in store.snapshots.list()[:_MOST_IDS]]
    return ()


def transfers(parsed_args: argparse.Namespace, **_: Any) -> Iterable[str]:
    """Return ids of the newest transfers of the store."""
    with suppress(RelaydError), store_of(parsed_args, "read") as store:
        return [row.id for row in transfer_rows(store.database, limit=_MOST_IDS)]
    return ()
