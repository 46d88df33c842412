"""The parser of the whole command line."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from relayd.cli.command import command
from relayd.cli.questions.commands import NAMES, add_question_commands
from relayd.version import __version__


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse a command line; ``run`` of the result is the handler."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # Only what the command needs is built: options take most of the time that a plan does.
    parser = build_parser(words[0] if words else "")
    for word in words:
        # argparse before Python 3.13 makes an empty list of this (python/cpython#59317).
        if re.fullmatch(r"--[\w-]+=--", word):
            parser.error(f"argument {word.partition('=')[0]}: `--` is not a value")
    return parser.parse_args(_with_negatives_joined(words))


def _with_negatives_joined(words: list[str]) -> list[str]:
    """Join `--volume -5GB` into one word: a value, not an option, so that it gets a real answer."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-[\d.]", word) and joined and re.fullmatch(r"--[\w-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands, or one that suffices for a command line that begins so."""
    parser = argparse.ArgumentParser(
        prog="relayd",
        description="Direct or relayed? Measures bandwidth between cloud datacenters and "
        "recommends transfer plans, with the reason, the price and the confidence.",
        epilog="Exit codes: 0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, "
        "5 finished in part, 1 our own fault.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"relayd {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    add_question_commands(commands, only)
    if only in NAMES:
        return parser
    from relayd.cli.catalogue.commands import add_catalogue_commands
    from relayd.cli.data.commands import add_data_commands
    from relayd.cli.measuring.commands import add_measuring_commands
    from relayd.cli.serving.commands import add_serving_commands

    add_data_commands(commands)
    add_catalogue_commands(commands)
    add_measuring_commands(commands)
    add_serving_commands(commands)
    completion = command(
        commands, "completion", f"{__name__}:completion", "print a shell completion script"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    return parser


def completion(options: argparse.Namespace) -> int:
    """Print a script that completes commands and options in a shell."""
    import shtab

    print(shtab.complete(build_parser(), options.shell))
    return 0
