"""Completion of commands, options, regions and VM types in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from relayd.cli.argument_parser import Parser
from relayd.cli.parser import build_parser

REGIONS = ("REGION", "SRC", "DST")
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
        elif action.metavar in TYPES:
            action.completer = _vm_types  # type: ignore[attr-defined]
        elif action.metavar in REGIONS or action.dest in ("src", "dst", "region"):
            action.completer = _regions  # type: ignore[attr-defined]


def _regions(**_: Any) -> Iterable[str]:
    from relayd.catalogue.loading import load_catalogue

    catalogue = load_catalogue()
    # Bare names too, as people type them: a shell takes a colon for the end of a word.
    bare = (name.partition(":")[2] for name in catalogue.regions)
    return [*catalogue.regions, *bare, *catalogue.aliases]


def _vm_types(prefix: str, **_: Any) -> Iterable[str]:
    from relayd.catalogue.loading import load_catalogue

    where, assigned, _name = prefix.rpartition("=")
    names = (name.partition(":")[2] for name in load_catalogue().vm_types)
    return [f"{where}{assigned}{name}" for name in names]
