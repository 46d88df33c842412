"""A request from the options of a command, by the question's specification."""

from __future__ import annotations

import argparse
import os
from itertools import groupby
from typing import Any, TypeVar

from planner.fields.kinds import Flag
from planner.fields.specified import Field, Specified, fields_of
from planner.model.errors import InputError
from relayd.cli.questions.reading import from_file  # csv and json: no word needs them
from relayd.settings import load_settings

R = TypeVar("R", bound=Specified)
Fields = list[Field]


def request_from(options: argparse.Namespace, request: type[R], **more: Any) -> R:
    """Return the request that options say, with settings where they say nothing.

    Parameters
    ----------
    options : argparse.Namespace
    request : type
        A specified class.
    **more
        Values of fields that are known otherwise.

    Raises
    ------
    InputError
        Naming the field that is wrong.
    """
    settings = load_settings()
    placed = _placed(getattr(options, "by_position", []), options, request)
    found: dict[str, Any] = {}
    for option, fields in options_of(request):
        given = placed.get(option) or getattr(options, dest_of(option))
        words = given if isinstance(given, list) else [] if given in {None, False} else [given]
        scalar = [word for word in words if "=" not in word] if len(fields) > 1 else words
        setting = getattr(settings, dest_of(option), None)
        if setting is not None and not scalar:
            words = [*words, setting]
        if words:
            found |= _read(fields, words)
    return request(**{**found, **more})


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


def _placed(
    words: list[str], options: argparse.Namespace, request: type[Specified]
) -> dict[str, list[str]]:
    """Return which option each word stands for that was given by position."""
    if not words:
        return {}
    left, found = words.copy(), {}
    for option, repeated in by_position(request).items():
        if not left:
            break
        if getattr(options, dest_of(option)):
            raise InputError(option, "is given twice", value=left[0], remedy="Leave one out.")
        found[option] = [left.pop(0)]
        if repeated:
            found[option] += left
            left = []
    if left:
        known = " and ".join(by_position(request))
        remedy = f"Only {known} can be given by position; options begin with `--`."
        raise InputError(left[0], "is one word too many", remedy=remedy)
    return found


def dest_of(option: str) -> str:
    """Return under which name the value of an option is kept."""
    return option.removeprefix("--").replace("-", "_")


# ---- values --------------------------------------------------------------------------------------


def _read(fields: Fields, words: list[Any]) -> dict[str, Any]:
    first = fields[0]
    if first.kind.metavar == "FILE":
        return from_file(fields, words[-1])
    if isinstance(first.kind, Flag):
        return {first.name: True}
    if len(fields) == 1:
        return {first.name: first.read_words(words)}
    # A bare word is for everywhere, and `PLACE=VALUE` for one place.
    everywhere, by_place = fields
    found: dict[str, Any] = {}
    for assigned, of_kind in groupby(sorted(words, key=_is_assigned), key=_is_assigned):
        field = by_place if assigned else everywhere
        found[field.name] = field.read_words(list(of_kind))
    return found


def _is_assigned(word: str) -> bool:
    return "=" in word


def one_thread() -> None:
    """Keep NumPy's libraries, which read this when first imported, from using threads.

    Matrices of a hundred rows gain nothing from threads, which wait for each other on busy cores.
    """
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
