"""Completion of commands, options, regions, VM types, terms and ids of a store in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
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


def run(options: argparse.Namespace) -> int:
    """Print a script that lets a shell ask :func:`complete`."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["relayd"], shell=options.shell))
    return 0


def complete() -> None:
    """Answer the shell that asks by the variables of argcomplete, and exit."""
    import argcomplete

    Parser.unfinished = True
    parser = build_parser()
    _add_completers(parser)
    argcomplete.autocomplete(parser)


def _add_completers(parser: Parser) -> None:
    for action in parser._actions:
        if isinstance(action.choices, Mapping):
            for name in action.choices:
                _add_completers(action.choices[name])
        elif completer := _completer(action):
            action.completer = completer  # type: ignore[attr-defined]


def _completer(action: argparse.Action) -> Callable[..., Iterable[str]] | None:
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
