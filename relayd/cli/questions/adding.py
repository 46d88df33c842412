"""The options of commands that ask questions, from the questions' specifications."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from planner.fields.kinds import Flag, OneOf
from planner.fields.specified import Specified
from relayd.cli.flags import flags
from relayd.cli.questions.asking import Fields, by_position, dest_of, options_of


def add_options(
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
        parser.add_argument(
            "by_position",
            metavar="REGION",
            nargs="*",
            help=f"{' and '.join(placed)}, in this order",
        )
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
            more["metavar"] = _metavar(option, fields)
            if any(field.kind.repeated for field in fields):
                more["action"] = "append"
        if called.startswith("--"):
            needed = required and first.required and option not in placed
            more |= {"dest": dest_of(option), "required": needed}
        elif not first.required:
            more["nargs"] = "?"
        groups[first.group].add_argument(*flags(called), **more)
    parser.set_defaults(request=request, renamed=renamed)


def _metavar(option: str, fields: Fields) -> str:
    if not option.startswith("--"):
        return "FILE"
    return "|".join(dict.fromkeys(field.kind.metavar for field in fields))


def _help(fields: Fields) -> str:
    first = fields[0]
    texts = [field.help.removesuffix(".") for field in fields]
    text = "; ".join(texts) if first.option and first.option.startswith("--") else texts[0]
    text = text[0].lower() + text[1:] if not text[:2].isupper() else text
    if isinstance(first.kind, OneOf):
        text += ": " + ", ".join(f"{word} ({what})" for word, what in first.kind.meanings.items())
    examples = [field.example for field in fields if field.example]
    if examples and first.option and first.option.startswith("--"):
        text += f"; such as {' or '.join(examples)}"
    if first.default and not first.required and not first.kind.repeated:
        text += f" (default {first.kind.text(first.default)})"
    return text.replace("%", "%%")
