"""Completion of commands, options, regions, VM types, terms and ids of a store in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from relayd.cli.argument_parser import Parser
from relayd.cli.parser import build_parser

REGIONS = ("REGION", "RULE", "SRC", "DST")
"""Metavariables that stand for a region."""
TYPES = ("TYPE", "WHERE=NAME")


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
        return _late("vm_types")
    if action.metavar in REGIONS or action.dest in ("src", "dst", "region"):
        return _late("regions")
    if action.dest == "snapshot":
        return _late("snapshots")
    if action.option_strings or action.dest not in ("term", "id"):
        return None
    return _late("terms" if action.dest == "term" else "transfers")


def _late(name: str) -> Callable[..., Iterable[str]]:
    """Return what imports the names to complete when they are asked for."""

    def completer(**given: Any) -> Iterable[str]:
        from relayd.cli.help import completers

        found: Iterable[str] = getattr(completers, name)(**given)
        return found

    return completer
