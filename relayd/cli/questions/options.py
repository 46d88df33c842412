"""The options of commands that ask questions: made from the questions, and read as requests."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from planner.fields.demands import Demands, pair_rows
from planner.fields.kinds import Flag, OneOf
from planner.fields.specified import Field, Items, Specified, fields_of
from planner.model.errors import FormatError, InputError
from relayd.cli.options import catalogue_of, meanings
from relayd.cli.parser import Parser, add_commands, add_options, flags
from relayd.emitting.formats import DEFAULT_PORT, emitters
from relayd.files import read_json, read_rows, read_text
from relayd.questions.registry import QUESTIONS
from relayd.settings import load_settings
from relayd.times import until


def add_fields(
    parser: argparse.ArgumentParser,
    request: type[Specified],
    *,
    required: bool = True,
    renamed: Mapping[str, str] = {},
) -> None:
    """Add an option for each field of a question; fields that share an option get one.

    Regions that the library takes by position may be given by position here, too.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    request : type
        A specified class.
    required : bool
        Whether what the question needs must be given.
    renamed : mapping
        Name of a field to what its option is called here.
    """
    placed = by_position(request) if required else {}
    if placed:
        text = f"{' and '.join(placed)}, in this order"
        parser.add_argument("by_position", metavar="REGION", nargs="*", help=text)
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option, fields in options_of(request):
        first = fields[0]
        called = renamed.get(first.name, option)
        if first.group not in groups:
            groups[first.group] = parser.add_argument_group(first.group)
        more: dict[str, Any] = {"help": _help(fields), "default": None}
        if isinstance(first.kind, Flag):
            more["action"] = "store_true"
        elif isinstance(first.kind, OneOf):
            more["metavar"] = "{" + ",".join(first.kind.meanings) + "}"
        else:
            metavars = "|".join(dict.fromkeys(field.kind.metavar for field in fields))
            more["metavar"] = metavars if option.startswith("--") else "FILE"
            if any(field.kind.repeated for field in fields):
                more["action"] = "append"
        if called.startswith("--"):
            needed = required and first.required and option not in placed
            more |= {"dest": dest_of(option), "required": needed}
        elif not first.required:
            more["nargs"] = "?"
        added = groups[first.group].add_argument(*flags(called), **more)
        added.often = first.often  # type: ignore[attr-defined]
    parser.set_defaults(request=request, renamed=renamed)


def _help(fields: Fields) -> str:
    first = fields[0]
    is_option = (first.option or "").startswith("--")
    texts = [field.help.removesuffix(".") for field in fields]
    text = "; ".join(texts) if is_option else texts[0]
    text = text[0].lower() + text[1:] if not text[:2].isupper() else text
    if isinstance(first.kind, OneOf):
        text += ": " + ", ".join(f"{word} ({what})" for word, what in first.kind.meanings.items())
    examples = [field.example for field in fields if field.example]
    if examples and is_option:
        text += f"; such as {' or '.join(examples)}"
    if first.default and not first.required and not first.kind.repeated:
        text += f" (default {first.kind.text(first.default)})"
    return text.replace("%", "%%")


R = TypeVar("R", bound=Specified)
Fields = list[Field]


def request_from(options: argparse.Namespace, request: type[R]) -> R:
    """Return the request that options say, with settings where they say nothing.

    Parameters
    ----------
    options : argparse.Namespace
    request : type
        A specified class.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    settings = load_settings()
    take_positions(options, request)
    found: dict[str, Any] = {}
    for option, fields in options_of(request):
        given = getattr(options, dest_of(option))
        words = given if isinstance(given, list) else [] if given in {None, False} else [given]
        scalar = [word for word in words if "=" not in word] if len(fields) > 1 else words
        setting = getattr(settings, dest_of(option), None)
        if setting is not None and not scalar:
            words = [*words, setting]
        if words:
            found |= _read(fields, words, options)
    return request(**found)


def options_of(request: type[Specified]) -> list[tuple[str, Fields]]:
    """Return options with the fields that each is for, those of one group together."""
    found: dict[str, Fields] = {}
    for field in fields_of(request).values():
        if field.option:
            found.setdefault(field.option, []).append(field)
    order = list(dict.fromkeys(fields[0].group for fields in found.values()))
    return sorted(found.items(), key=lambda item: order.index(item[1][0].group))


def by_position(request: type[Specified]) -> dict[str, bool]:
    """Return the options that may be given by position, and whether each takes several words."""
    fields = fields_of(request)
    positional = [fields[name] for name in request.positional()]
    return {f.option: f.kind.repeated for f in positional if f.option and f.option.startswith("--")}


def take_positions(options: argparse.Namespace, request: type[Specified]) -> None:
    """Make words that were given by position values of the options that they stand for."""
    left: list[str] = getattr(options, "by_position", [])
    options.by_position = []
    for option, repeated in by_position(request).items() if left else ():
        if not left:
            break
        if getattr(options, dest_of(option)):
            raise InputError(option, "is given twice", value=left[0], remedy="Leave one out.")
        count = len(left) if repeated else 1
        setattr(options, dest_of(option), left[:count])
        left = left[count:]
    if left:
        known = " and ".join(by_position(request))
        remedy = f"Only {known} can be given by position; options begin with `--`."
        raise InputError(left[0], "is one word too many", remedy=remedy)


def dest_of(option: str) -> str:
    """Return under which name the value of an option is kept."""
    return option.removeprefix("--").replace("-", "_")


# ---- values --------------------------------------------------------------------------------------


def _read(fields: Fields, words: list[Any], options: argparse.Namespace) -> dict[str, Any]:
    first = fields[0]
    if first.kind.metavar == "FILE":
        return _from_file(fields, words[-1], options)
    if isinstance(first.kind, Flag):
        return {first.name: True}
    if len(fields) == 1:
        words = [until(word) for word in words] if first.key == "deadline_s" else words
        if first.key == "deadline_s" and not words[-1].strip().lstrip("+-.")[:1].isdigit():
            remedy = "Write 90s, 2h, or a time of day such as 06:00."
            raise InputError(first.option or "", "is no duration", value=words[-1], remedy=remedy)
        return {first.name: first.read_words(words)}
    # A bare word is for everywhere, and `PLACE=VALUE` for one place.
    found = {}
    for field, is_assigned in zip(fields, (False, True), strict=True):
        if of_kind := [word for word in words if ("=" in word) == is_assigned]:
            found[field.name] = field.read_words(of_kind)
    return found


def _from_file(fields: Sequence[Field], name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the values of fields that are in one file; ``-`` is standard input.

    Raises
    ------
    InputError
        If it can't be read, or is not of a format that says them.
    """
    first = fields[0]
    if len(fields) > 1:
        content = read_json(name, first.key)
        if not isinstance(content, dict):
            keys = ", ".join(field.key for field in fields)
            raise FormatError(first.key, f"must be a JSON object with {keys}", value=name)
        return {field.name: content[field.key] for field in fields if field.key in content}
    found: Any
    if first.key == "transfers":
        found = rows_of_transfers(name, "transfers", options)
        due = {"deadline": until(options.due)} if options.due else {}
        stated = ("deadline", "deadline_s")
        found = [row if any(row.get(key) for key in stated) else row | due for row in found]
    elif isinstance(first.kind, Items):
        found = read_rows(name, first.key, least=first.kind.least)
    elif first.kind.name == "pairs":
        found = _demands(name, options)
    elif first.kind.name == "document":
        found = read_text(name, first.key)
    else:  # of volumes by place
        found = read_json(name, first.key) if name.endswith(".json") else None
        if not isinstance(found, dict):
            found = read_rows(name, first.key)
    return {first.name: found}


def _demands(name: str, options: argparse.Namespace) -> Demands:
    from relayd.demands import read_demands

    columns, regions = (meanings(one, options) for one in ("--columns", "--regions"))
    return read_demands(name, columns, regions, options.unit or "", catalogue_of(options))


def rows_of_transfers(name: str, what: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return rows of transfers; a file of demands of any other kind has one for each pair."""
    src, dst = (getattr(options, end, None) for end in ("src", "dst"))
    if name == "-" or (src and dst):  # standard input can be read only once
        return read_rows(name, what, least=0)
    with suppress(InputError):
        rows = read_rows(name, what, least=0)
        if not rows or any({"src", "dst"} & {*map(str.lower, row)} for row in rows):
            return rows
    demands = _demands(name, options)
    for note in demands.notes:
        print(f"Note: {note}", file=sys.stderr)
    return pair_rows(demands)


_OF_DEMANDS = """
  [the file]
  --columns NAME=COLUMN,...  of a table: columns that have other names, such as
                       src=source,dst=target,volume_gb=bytes
  --regions NAME=REGION,...  where hosts of a log and nodes of a network are
  --unit UNIT          of figures that have none, such as TiB
"""
_DUE = """
  --due TIME           by when transfers of FILE that state no deadline, and demands of any other
                       kind of file (a bill, a log of Spark, a matrix), must have ended; such as 6h
"""


def _carrying_out() -> str:
    """Return the options of a plan that another tool carries out."""
    return f"""
  [running it]
  * --emit {{{",".join(emitters())}}}  print what to run with this tool instead
  --endpoint REGION=ADDRESS...  for --emit: address of the VM there, or of several, with commas;
                       repeatable
  --port N             for --emit: where relays listen (default {DEFAULT_PORT})

  [many at once]
  --many FILE          decide the transfers of a file, CSV or JSON lines (- is standard input): src,
                       dst, volume, and any other option, such as vms; a row of figures each. Also
                       demands of any kind: a bill, a log of Spark, a matrix
  --splits             for --many: look for splits where one may save over 2 %
  --format {{table,csv,json}}  of --many (default: by FILE's name)
  --output FILE        of --many, instead of standard output
"""


def add_question_commands(known: dict[str, Parser]) -> None:
    """Add the commands that answer a question, and the groups that they are in."""
    for question in QUESTIONS:
        group = question.command.rpartition(" ")[0]
        if group not in known:
            add_commands(known, f"{group} COMMAND  {question.heading or question.summary}")
        summary = question.summary[0].lower() + question.summary[1:]
        add_commands(known, f"{question.command}  {summary}")
    for question in QUESTIONS:  # once all commands are there: usage has words before commands
        parser = known[question.command]
        parser.set_defaults(question=question)
        add_fields(parser, question.request)
        kinds = {key: of[0].kind.name for key, of in options_of(question.request) if len(of) == 1}
        if "transfers" in kinds or "pairs" in kinds.values():
            add_options(parser, _OF_DEMANDS + (_DUE if "transfers" in kinds else ""))
        shown = [f"  * {one.option}  {one.help}" for one in question.shown if one.help]
        add_options(parser, "\n".join(["  [shown]", *shown]) if shown else "")
        add_options(parser, _carrying_out() + _OF_DEMANDS if question.emits else "")
