"""From the words of a command line to values, with errors that name the option."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.catalogue import Catalogue
from planner.errors import InputError
from relayd.catalogue import load_catalogue
from relayd.opening import open_with
from relayd.settings import Settings, load_settings
from relayd.store import Place, default_path, place
from relayd.wan import Wan


def wan_of(options: argparse.Namespace) -> Wan:
    """Open the store and the catalogue that a command names."""
    return open_with(
        load_settings(),
        place(options.db) if options.db else None,
        [Path(name) for name in options.catalogue],
    )


def store_place(options: argparse.Namespace, settings: Settings) -> Place:
    """Return where the store is that a command reads and writes."""
    return place(options.db) if options.db else settings.db or default_path()


def catalogue_of(options: argparse.Namespace, settings: Settings) -> Catalogue:
    """Return the catalogue with the files of the settings and of the command line."""
    return load_catalogue((*settings.catalogues, *(Path(name) for name in options.catalogue)))


def whole_number(text: str, field: str) -> int:
    """Read a whole number."""
    try:
        return int(text)
    except ValueError:
        raise InputError(field, "is not a whole number", value=text) from None


def number(text: str, field: str) -> float:
    """Read a number, or a percentage."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text)
    except ValueError:
        raise InputError(field, "is not a number", value=text) from None


def assignments(values: list[str], field: str, default: str | None) -> dict[str, str]:
    """Read ``WHERE=VALUE`` options; a bare value goes under `default` where that is allowed."""
    found: dict[str, str] = {}
    for text in values:
        where, separator, value = text.partition("=")
        if not separator:
            if default is None:
                raise InputError(
                    field, "has no `=`", value=text, remedy=f"Write {field} WHERE=VALUE."
                )
            where, value = default, text
        if where in found:
            raise InputError(field, f"is given twice for {where}", value=text)
        found[where] = value
    return found
