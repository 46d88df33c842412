"""The parser of commands: argparse, with options after any word, and near misses named.

Commands and their options are made from a text, of which each line is one. A command's line has its
words and its help, with two spaces or more between; that of a group has ``COMMAND`` after the words
that its commands begin with. Below it, indented by two, are its options: how they are written, and
their help, which may go on in lines indented further.

``--flag``, ``--name VALUE`` and ``--name VALUE...`` (repeatable) are options; ``dest:NAME``, with
``?``, ``*`` or ``+`` after it, are words by position; ``{a,b}`` are choices. Then ``:=value`` is a
default, ``:int`` and ``:count`` (from 1) before that a type, ``!`` says that the option is
required, and ``@name`` what it is kept under. ``* `` before an option says that it is among those
most used, which are what ``-h`` shows. ``[title]`` begins a group of options, and ``+name``
stands for the options of the block with that name.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches  # for errors alone
from functools import partial
from typing import Any, NoReturn

from planner.model.errors import InputError

_MOST_SHOWN = 30
_MOST_WORDS = 4
_OF_GROUP = " COMMAND"


class _Once(argparse.Action):
    """Keep the value of an option that may be given once; argparse keeps the last of several."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given = getattr(namespace, _GIVEN, ())
        if option_string and self.dest in given:
            remedy = "It takes one value: leave one of them out."
            raise InputError(option_string, "is given twice", value=values, remedy=remedy)
        setattr(namespace, _GIVEN, (*given, self.dest))
        setattr(namespace, self.dest, values)


_GIVEN = "_given"


class _ShortHelp(argparse.Action):
    """Print help of one screen: of the options that are marked, if any is; and leave."""

    def __call__(self, parser: Any, _namespace: Any, _values: Any, _option: Any = None) -> None:
        options = [one for one in parser._actions if one.option_strings]
        if any(getattr(one, "often", False) for one in options):
            for one in options:
                if one.required or getattr(one, "often", False):
                    default = re.search(r" \(default [^)]*\)$", one.help or "")
                    one.help = re.split(r"[;:(.] ?", one.help or "")[0].strip()
                    one.help += default[0] if default else ""
                else:
                    one.help = argparse.SUPPRESS
            words = " ".join(one.metavar or "" for one in parser._get_positional_actions())
            parser.usage = f"{parser.prog} [OPTION ...] {words}"
            parser.epilog = f"`{parser.prog} --help` shows all {len(options)} options."
            parser.formatter_class = partial(argparse.HelpFormatter, max_help_position=32)
        parser.print_help()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser of a command line, or of the words after one of its commands.

    What is wrong raises :class:`planner.model.errors.InputError`, as all bad input does.

    Attributes
    ----------
    unfinished : bool
        Whether command lines are still being typed, so that nothing is wrong with them.
    known, commands : dict
        All commands by their words, and those of this one by their last word.
    """

    unfinished = False

    def __init__(self, **more: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "add_help": False, **more})
        self.add_argument("-h", action=_ShortHelp, nargs=0, help="show the options most used")
        self.add_argument("--help", action="help", help="show all options")
        if not self.unfinished:  # completion acts by argparse's own actions alone
            self.register("action", None, _Once)
        self.known: dict[str, Parser] = {}
        self.commands: dict[str, Parser] = {}
        self.listed: list[Any] = []
        self._adding: Any = None
        self._is_intermixing = False

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help or a version; argparse would say nothing where it can't be written."""
        print(message, end="", file=file or sys.stderr, flush=True)

    def add_command(self, name: str, **more: Any) -> Parser:
        """Add a command below this one."""
        if self._adding is None:
            self._adding = self.add_subparsers(title="commands", metavar="COMMAND")
            self.commands, self.listed = self._adding.choices, self._adding._choices_actions
        parser: Parser = self._adding.add_parser(name, **more)
        parser.known = self.known
        return parser

    def of(self, words: Sequence[str]) -> tuple[Parser, list[str]]:
        """Find the command that words begin with, the longest, and what follows it."""
        counts = range(min(len(words), _MOST_WORDS), -1, -1)
        count = next(n for n in counts if " ".join(words[:n]) in self.known)
        found = self.known[" ".join(words[:count])]
        if not self.unfinished or len(found._get_positional_actions()) > 1:
            # They are found here, and only help lists them.
            found._actions = [one for one in found._actions if one.nargs != argparse.PARSER]
        return found, [*words[count:]]

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse a command line, by the parser of its command."""
        parser, left = self.of(words)
        options = parser.parse_args(left)
        if "command" not in options:
            verbs = f"needs one of its commands: {', '.join(parser.commands)}"
            parser._refuse(parser.prog.removeprefix("relayd "), verbs)
        return options

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse words; those of this command alone, and nothing may be left over."""
        if self.unfinished or self._is_intermixing:
            return super().parse_known_args(args, namespace)
        words = list(args or ())
        if self.commands and words and not self._get_positional_actions():
            self._check_command(words[0])
        self._is_intermixing = True
        try:  # options may stand after any word
            found, left = self.parse_known_intermixed_args(words, namespace)
        finally:
            self._is_intermixing = False
        if left:
            self._refuse_left(left[0])
        return found, left

    def error(self, message: str) -> NoReturn:
        """Raise with what argparse found wrong.

        Raises InputError.
        """
        if self.unfinished:
            super().error(message)
        message = re.sub(r"-\w/(?=--)", "", message)
        if missing := re.match(r"the following arguments are required: (.*)", message):
            self._refuse(missing[1], "is missing")
        named = re.match(r"argument (\S+): (.*)", message, re.DOTALL)
        field, problem = named.groups() if named else (self.prog.removeprefix("relayd "), message)
        choice = re.match(r"invalid choice: '(.*)' \(choose from (.*)\)", problem, re.DOTALL)
        known = re.findall(r"[\w-]+", choice[2]) if choice else ()
        if choice:
            problem = f"must be one of {', '.join(known)} (got {choice[1]!r})"
        problem = re.sub(r"^expected (one|at least one) argument$", "needs a value", problem)
        self._refuse(field, problem, choice[1] if choice else "", known)

    def _refuse(self, field: str, problem: str, word: str = "", known: Any = ()) -> NoReturn:
        """Raise with what is wrong, what was probably meant, and where all is listed."""
        near = get_close_matches(word, [name for name in known if len(name) > 2], 2, 0.7)
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        listed = "commands" if self.commands and not field.startswith("-") else "options"
        raise InputError(field, problem, remedy=f"{meant}`{self.prog} --help` lists all {listed}.")

    def _check_command(self, word: str) -> None:
        """Refuse a command that there is none of; argparse would name them all, or none."""
        if word.startswith("-"):
            return
        if elsewhere := [f"`relayd {one}`" for one in self.known if one.split()[-1:] == [word]]:
            raise InputError(word, f"is {' or '.join(elsewhere)}")
        self._refuse(word, f"is not a command of `{self.prog}`", word, self.commands)

    def _refuse_left(self, word: str) -> NoReturn:
        option = word.partition("=")[0]
        if option.startswith("-") and len(option) > 1:
            known = self._option_string_actions
            self._refuse(option, f"is not an option of `{self.prog}`", option, known)
        self._refuse(word, f"is not an argument of `{self.prog}`")


DATA = """
  --db FILE|URL    the store: a file, or postgresql://USER@HOST/DATABASE (default: a per-user file)
  --ca FILE        the authority (PEM) that certified the service at --db https://...
  --catalogue FILE...  a catalogue file of your own; may be repeated
"""
ALL = f"  --json  print JSON{DATA}"


def add_commands(
    known: dict[str, Parser], text: str, blocks: Mapping[str, str] = {}, common: str = ALL
) -> None:
    """Add the commands of a text, which is described above.

    Parameters
    ----------
    known : dict
        Words of a command to its parser, to which these are added; of ``""``, the first parser.
    text : str
    blocks : mapping
        Options that several commands have, under the name after ``+``.
    common : str
        Options of all of them.
    """
    for entry in re.split(r"\n(?=\w)", text.strip()):
        line, _, options = entry.partition("\n")
        words, help_text = re.split("  +", line, maxsplit=1)
        is_group = words.endswith(_OF_GROUP)
        words = words.removesuffix(_OF_GROUP)
        group, _, name = words.rpartition(" ")
        described = help_text[0].upper() + help_text[1:] + "."
        parser = known[words] = known[group].add_command(
            name, help=help_text, description=described
        )
        if not is_group:
            parser.set_defaults(command=words)
            add_options(parser, common)
            add_options(parser, options, blocks)


def add_options(parser: Any, text: str, blocks: Mapping[str, str] = {}) -> None:
    """Add the options of a text, which is described above."""
    to = parser
    text = re.sub(r"^  \+(\w+)", lambda found: blocks[found[1]], text, flags=re.MULTILINE)
    text = re.sub(r"\n   +(?=\S)", " ", text)
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line.startswith("["):
            to = parser.add_argument_group(line[1:-1])
            continue
        written, _, help_text = line.removeprefix("* ").partition("  ")
        added = option(to, written, help_text.strip().replace("%", "%%"))
        added.often = line.startswith("* ")  # type: ignore[attr-defined]


def option(to: Any, written: str, help_text: str, **more: Any) -> argparse.Action:
    """Add an option, or a word by position, to a parser or a group of one.

    Parameters
    ----------
    written : str
        Such as ``--src REGION!``, as described above; ``--src`` brings its short flag with it.
    **more
        As of ``add_argument``. Many choices are listed in the help, where they can be broken.
    """
    name, _, value = written.partition(" ")
    if not name.startswith("-"):
        name, _, value = written.partition(":")
        if value.endswith(("?", "*", "+")):
            more["nargs"], value = value[-1], value[:-1]
    value, _, dest = value.partition("@")
    if dest:
        more["dest"] = dest
    value, _, default = value.partition(":=")
    if default:
        more["default"] = default
    if value.endswith("!"):
        more["required"], value = True, value[:-1]
    value, _, kind = value.partition(":")
    if kind:
        more |= {"type": _KINDS[kind], "default": int(default)}
    if value.startswith("{"):
        choices = more["choices"] = tuple(value[1:-1].split(","))
        value = ""
        if sum(map(len, choices)) > _MOST_SHOWN:
            value = name.removeprefix("--").upper()
            help_text += f": {', '.join(choices)}"
    elif value.endswith("..."):
        more = {"action": "append", "default": [], **more}
        value = value.removesuffix("...")
    elif not value and name.startswith("-"):
        more["action"] = "store_true"
    if value:
        more["metavar"] = value
    added: argparse.Action = to.add_argument(*flags(name), help=help_text or None, **more)
    return added


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


_KINDS: dict[str, Callable[[str], int]] = {"int": int, "count": _positive}


SHORT = {"--src": "-s", "--dst": "-d", "--connections": "-n", "--json": "-j", "--output": "-o"}


def flags(name: str) -> tuple[str, ...]:
    """Return the names of an option: its short flag, where it has one, and the long one."""
    return (SHORT[name], name) if name in SHORT else (name,)
