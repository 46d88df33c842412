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
        super().__init__(**{"allow_abbrev": False, **more})
        self._commands: dict[str, Parser] = {}
        self._is_intermixing = False

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
        if self.unfinished or self._is_intermixing:
            return super().parse_known_args(args, namespace)
        words = list(args or ())
        self._check_command(words)
        by_position = self._get_positional_actions()
        if any(action.nargs in (argparse.PARSER, argparse.REMAINDER) for action in by_position):
            found, left = super().parse_known_args(words, namespace)
        else:
            self._is_intermixing = True
            try:  # options may stand after any word
                found, left = self.parse_known_intermixed_args(words, namespace)
            finally:
                self._is_intermixing = False
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


def _near(word: str, known: Any) -> list[str]:
    return get_close_matches(word, [name for name in known if len(name) > 2], 2, 0.7)


def group(commands: Any, name: str, help_text: str, title: str, metavar: str) -> Any:
    """Add a command that has commands of its own; returns what those are added to."""
    return _added(commands, name, help_text).add_subparsers(title=title, metavar=metavar)


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
    parser = _added(commands, name, help_text)
    parser.set_defaults(run=late(handler))
    option(parser, "--json", None, "print JSON")
    add_data_options(parser)
    return parser


def _added(commands: Any, name: str, help_text: str) -> Parser:
    described = help_text[0].upper() + help_text[1:] + "."
    parser: Parser = commands.add_parser(name, help=help_text, description=described)
    return parser


def listing(commands: Any, name: str, handler: str, help_text: str) -> Parser:
    """Add a command that lists rows, in any of several formats."""
    parser = command(commands, name, handler, help_text)
    formats = ("table", "csv", "json", "parquet")
    option(parser, "--format", None, "(default: by FILE's name)", choices=formats)
    option(parser, "--output", "FILE", "instead of standard output")
    return parser


def option(to: Any, name: str, metavar: str | None, help_text: str, **more: Any) -> None:
    """Add an option to a parser or a group of one: a flag, unless it has a metavar or choices.

    Parameters
    ----------
    name : str
        Such as ``--src``, which brings its short flag with it.
    metavar : str or None
        Such as ``NAME``; ``NAME...`` for an option that may be repeated.
    **more
        As of ``add_argument``. Many choices are listed in the help, where they can be broken.
    """
    choices = more.get("choices", ())
    if metavar and metavar.endswith("..."):
        more = {"action": "append", "default": [], **more}
    elif sum(map(len, choices)) > _MOST_SHOWN:
        metavar = name.removeprefix("--").upper()
        help_text += f": {', '.join(choices)}"
    elif not metavar and not choices:
        more["action"] = "store_true"
    if metavar:
        more["metavar"] = metavar.removesuffix("...")
    to.add_argument(*flags(name), help=help_text, **more)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the store and further catalogue files."""
    at = "the store: a file, or postgresql://USER@HOST/DATABASE (default: a per-user file)"
    option(parser, "--db", "FILE|URL", at)
    certified = "the authority (PEM) that certified the service at --db https://..."
    option(parser, "--ca", "FILE", certified)
    option(parser, "--catalogue", "FILE...", "a catalogue file of your own; may be repeated")


def positive(text: str) -> int:
    """Read a count of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def late(handler: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports ``module:function`` and calls it, when it is called."""
    module, _, function = handler.partition(":")

    def run(options: argparse.Namespace) -> int:
        return int(getattr(import_module(module), function)(options))

    return run


SHORT = {"--src": "-s", "--dst": "-d", "--connections": "-n", "--json": "-j", "--output": "-o"}


def flags(name: str) -> tuple[str, ...]:
    """Return the names of an option: its short flag, where it has one, and the long one."""
    return (SHORT[name], name) if name in SHORT else (name,)
