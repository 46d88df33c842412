"""The parser of commands: argparse, with options after any word, and near misses named."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches  # for errors alone
from importlib import import_module
from typing import Any, NoReturn

from planner.model.errors import InputError

_MOST_SHOWN = 30


class _Formatter(argparse.HelpFormatter):
    """Shows many choices in an option's help, where they can be broken, and not in the usage."""

    def _metavar_formatter(
        self, action: argparse.Action, default_metavar: str
    ) -> Callable[[int], tuple[str, ...]]:
        if _many_choices(action):
            return lambda count: (default_metavar,) * count
        return super()._metavar_formatter(action, default_metavar)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if not (many := _many_choices(action)) or all(one in (action.help or "") for one in many):
            return action.help
        return f"{action.help}: {', '.join(many)}"


def _many_choices(action: argparse.Action) -> Sequence[str]:
    """Return the choices of an option if they are too many for the usage."""
    if action.metavar or not isinstance(action.choices, Sequence):
        return ()
    return action.choices if sum(map(len, action.choices)) > _MOST_SHOWN else ()


class Parser(argparse.ArgumentParser):
    """A parser of a command line, or of the words after one of its commands.

    What is wrong raises :class:`planner.model.errors.InputError`, as all bad input does.

    Attributes
    ----------
    unfinished : bool
        Whether command lines are still being typed, so that nothing is wrong with them.
    """

    unfinished = False

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": _Formatter, **more})
        self._commands: dict[str, Parser] = {}

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help or a version; argparse would say nothing where it can't be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    @property
    def _name(self) -> str:
        """The words before this parser's own; all errors begin with the program's name."""
        return self.prog.removeprefix("relayd ")

    def add_subparsers(self, **more: Any) -> Any:
        """Add commands; one of them must be given."""
        found = super().add_subparsers(required=True, **more)
        self._commands = found.choices
        return found

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse words; those of this command alone, and nothing may be left over."""
        if self.unfinished:
            return super().parse_known_args(args, namespace)
        words = list(args or ())
        self._check_command(words)
        before = argparse.Namespace(**vars(namespace or argparse.Namespace()))
        found, left = super().parse_known_args(words, namespace)
        if any(not word.startswith("-") for word in left) and self._may_intermix():
            # argparse takes all words by position at the first, and finds none for later ones.
            found, left = _Intermixed(self).parse(words, before)
        if left:
            self._refuse_left(left)
        return found, left

    def error(self, message: str) -> NoReturn:
        """Raise with what argparse found wrong.

        Raises
        ------
        InputError
        """
        if self.unfinished:
            super().error(message)
        message = re.sub(r"-\w/(?=--)", "", message)
        if missing := re.match(r"the following arguments are required: (.*)", message):
            self._refuse(missing[1], "must be given")
        named = re.match(r"argument (\S+): (.*)", message, re.DOTALL)
        field, problem = named.groups() if named else (self._name, message)
        choice = re.match(r"invalid choice: '(.*)' \(choose from (.*)\)", problem, re.DOTALL)
        near = _near(choice[1], re.findall(r"[\w-]+", choice[2])) if choice else ()
        self._refuse(field, problem, near)

    def _refuse(self, field: str, problem: str, near: Sequence[str] = ()) -> NoReturn:
        """Raise with what is wrong, what was probably meant, and where all is listed."""
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        listed = "commands" if self._commands else "options"
        remedy = f"{meant}`{self.prog} --help` lists all {listed}."
        raise InputError(field, problem, remedy=remedy)

    def _check_command(self, words: Sequence[str]) -> None:
        """Refuse a command that there is none of; argparse would name them all, or none."""
        if not self._commands:
            return
        if not words:
            self._refuse(self._name, "needs a command")
        if words[0].startswith("-"):
            if words[0].partition("=")[0] not in self._option_string_actions:
                self._refuse_left(words)
        elif words[0] not in self._commands:
            what = f"is no command of `{self.prog}`"
            self._refuse(words[0], what, _near(words[0], self._commands))

    def _refuse_left(self, left: Sequence[str]) -> NoReturn:
        word = left[0].partition("=")[0]
        if word.startswith("-") and len(word) > 1:
            near = _near(word, self._option_string_actions)
            self._refuse(word, f"is no option of `{self.prog}`", near)
        self._refuse(left[0], f"is one word too many for `{self.prog}`")

    def _may_intermix(self) -> bool:
        by_position = self._get_positional_actions()
        return bool(by_position) and not any(
            action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in by_position
        )


class _Intermixed:
    """Parses words by position between options, which argparse does in two passes of its own."""

    def __init__(self, parser: Parser) -> None:
        self._parser = parser

    def parse(
        self, words: list[str], namespace: argparse.Namespace
    ) -> tuple[argparse.Namespace, list[str]]:
        plain = argparse.ArgumentParser.parse_known_args
        parser: Any = self._parser
        parser.parse_known_args = plain.__get__(parser)
        parser.usage = ""  # it would format one, for nobody
        try:
            return parser.parse_known_intermixed_args(words, namespace)  # type: ignore[no-any-return]
        finally:
            del parser.parse_known_args
            parser.usage = None


def _near(word: str, known: Any) -> list[str]:
    return get_close_matches(word, [name for name in known if len(name) > 2], 2, 0.7)


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


SHORT = {"--src": "-s", "--dst": "-d", "--connections": "-n", "--json": "-j", "--output": "-o"}


def flags(option: str) -> tuple[str, ...]:
    """Return the names of an option: its short flag, where it has one, and the long one."""
    return (SHORT[option], option) if option in SHORT else (option,)
