"""All commands, and the words of a command line that are read by them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from planner.model.errors import InputError
from relayd.cli.parser import Parser
from relayd.cli.questions.commands import NAMES, add_question_commands
from relayd.version import __version__

FIRST = """\
A first question, which needs no measurement and no account:

  relayd plan us-east sa --volume 500GB
"""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; ``run`` of the result is the handler."""
    parser = build_parser(words[0] if words else "")
    for word in words:
        # argparse before Python 3.13 makes an empty list of this (python/cpython#59317).
        if re.fullmatch(r"--[\w-]+=--", word):
            raise InputError(word.partition("=")[0], "`--` is not a value")
    return parser.parse_args(_with_negatives_joined(words))


def _with_negatives_joined(words: Sequence[str]) -> list[str]:
    """Join `--volume -5GB` into one word: a value, not an option, so that it gets a real answer."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-[\d.]", word) and joined and re.fullmatch(r"--[\w-]+|-[a-z]", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def build_parser(only: str | None = None) -> Parser:
    """Return the parser of all commands, or one that suffices for a question's command line."""
    parser = Parser(
        prog="relayd",
        description="Direct or relayed? Measures bandwidth between cloud datacenters and "
        "recommends transfer plans, with the reason, the price and the confidence.",
        epilog="Exit codes: 0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, "
        "5 finished in part, 1 our own fault.",
    )
    parser.add_argument("--version", action="version", version=f"relayd {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    add_question_commands(commands, only)
    if only not in NAMES:
        from relayd.cli.measuring.commands import add_measuring_commands
        from relayd.cli.other_commands import add_other_commands, add_serving_commands

        add_other_commands(commands)
        add_measuring_commands(commands)
        add_serving_commands(commands)
    return parser


def introduction() -> str:
    """Return the text for a command line without words."""
    return f"{build_parser().format_help()}\n{FIRST}"
