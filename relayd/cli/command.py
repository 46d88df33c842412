"""Helpers that add a command, or a group of commands, to the parser."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

from relayd.cli.argument_parser import Parser
from relayd.cli.flags import flags


def command(commands: Any, name: str, handler: str, help_text: str) -> Parser:
    """Add a command.

    Parameters
    ----------
    commands
        What ``add_subparsers`` returned.
    handler : str
        ``module:function``, imported when the command runs.
    help_text : str
        Without a capital and a full stop.
    """
    parser: Parser = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + "."
    )
    parser.set_defaults(run=late(handler))
    parser.add_argument(*flags("--json"), action="store_true", help="print JSON")
    add_data_options(parser)
    return parser


def listing(commands: Any, name: str, handler: str, help_text: str) -> Parser:
    """Add a command that lists rows, in any of several formats."""
    parser = command(commands, name, handler, help_text)
    parser.add_argument(
        "--format", choices=("table", "csv", "json", "parquet"), help="(default: by FILE's name)"
    )
    parser.add_argument(*flags("--output"), metavar="FILE", help="instead of standard output")
    return parser


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the store and further catalogue files."""
    parser.add_argument(
        "--db",
        metavar="FILE|URL",
        help="the store: a file, or postgresql://USER@HOST/DATABASE (default: a per-user file)",
    )
    parser.add_argument(
        "--ca",
        metavar="FILE",
        help="the authority (PEM) that certified the service at --db https://...",
    )
    parser.add_argument(
        "--catalogue",
        metavar="FILE",
        action="append",
        default=[],
        help="a catalogue file of your own; may be repeated",
    )


def group(commands: Any, name: str, help_text: str, title: str, metavar: str) -> Any:
    """Add a command that has commands of its own; returns what those are added to."""
    parser = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + "."
    )
    return parser.add_subparsers(title=title, metavar=metavar)


def positive(text: str) -> int:
    """Read a count of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def late(handler: str) -> Callable[[argparse.Namespace], int]:
    """Return what imports ``module:function`` and calls it, when it is called."""
    module, _, function = handler.partition(":")

    def run(options: argparse.Namespace) -> int:
        return int(getattr(import_module(module), function)(options))

    return run
