"""Reads option values, with errors that name the option."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TypeVar

from planner.fields.kinds import assignments
from planner.model.aliases import resolve
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, UnknownRegionError
from relayd.catalogue.loading import load_catalogue
from relayd.settings import load_settings
from relayd.sources.opening import open_with
from relayd.sources.wan import Wan
from relayd.store import Location, Store, default_path, open_store, parse_location
from relayd.store.location import SERVICE_SCHEMES, address_in
from relayd.store.opening import Mode
from relayd.times import seconds_of

MOST_WHOLE = 2**53
"""Of numbers that are given; the service has the same bound. JSON's readers know no larger ones."""


def wan_of(options: argparse.Namespace) -> Wan:
    """Open the store and the catalogue that a command names, or a mirror of a service.

    Raises an InputError if ``--ca`` is given for a store, or ``--catalogue`` for a service.
    """
    settings = load_settings()
    if fleet := getattr(options, "fleet", None):
        settings = replace(settings, fleet=Path(fleet))
    url = service_address(options)
    if url is None:
        if options.ca:
            problem, remedy = "is for a service, and --db names none", "Give --db https://..."
            raise InputError("--ca", problem, value=options.ca, remedy=remedy)
        return open_with(settings, options.db or settings.db, [*map(Path, options.catalogue)])
    if options.catalogue:
        problem, remedy = "is for a store, and --db names a service", "Give it to `relayd serve`."
        raise InputError("--catalogue", problem, value=options.catalogue[0], remedy=remedy)
    from relayd.client.blocking import RemoteWan
    from relayd.sources.mirror import MirroredWan

    # All of a command's answers rest on one snapshot: nothing newer is looked for.
    wan = MirroredWan(RemoteWan(url, ca=options.ca, attempts=2), refresh_s=inf)
    wan.close()
    return wan


def service_address(options: argparse.Namespace) -> str | None:
    """Return the address of the service that a command names; None for a store."""
    settings = load_settings()
    where = options.db or settings.db
    address = address_in(where) if where else None
    return address.reveal() if address and address.scheme in SERVICE_SCHEMES else None


def store_location(options: argparse.Namespace) -> Location:
    """Return the location of the store that a command reads and writes."""
    settings = load_settings()
    return parse_location(options.db) if options.db else settings.db or default_path()


def store_of(options: argparse.Namespace, mode: Mode) -> Store:
    """Open the store that a command reads and writes."""
    return open_store(store_location(options), mode=mode)


def catalogue_files(options: argparse.Namespace) -> list[Path]:
    """Return the user's catalogue files, of the settings and of the command line."""
    return [*load_settings().catalogues, *map(Path, options.catalogue)]


def catalogue_of(options: argparse.Namespace) -> Catalogue:
    """Return the catalogue with the user's files."""
    return load_catalogue(catalogue_files(options))


def region_id(name: str | None, field: str, catalogue: Catalogue) -> str:
    """Return the region that an option names, or ``""``; ids may be of no catalogue."""
    try:
        return resolve(name, catalogue, field=field).region_id if name else ""
    except UnknownRegionError:
        if name and ":" in name:
            return name
        raise


T = TypeVar("T")


def _value(read: Callable[[str], T], text: str, field: str, problem: str, remedy: str = "") -> T:
    try:
        return read(text)
    except ValueError:
        raise InputError(field, problem, value=text, remedy=remedy or None) from None


def whole_number(text: str, field: str) -> int:
    """Read a whole number that a store can hold, or raise an InputError that names the field."""
    found = _value(int, text, field, "is not a whole number")
    if abs(found) > MOST_WHOLE:
        raise InputError(field, "is too large", value=text, remedy=f"At most {MOST_WHOLE}.")
    return found


def meanings(option: str, options: argparse.Namespace) -> dict[str, str]:
    """Read what names mean, such as of columns: ``NAME=COLUMN`` with commas between."""
    words = ",".join(getattr(options, option.removeprefix("--"))).split(",")
    return assignments([word.strip() for word in words if word], field=option)


def time_s(text: str, field: str) -> float:
    """Read an ISO 8601 time, in seconds since 1970; a time without a zone is UTC."""
    remedy = "Write 2022-01-15 or 2022-01-15T12:00Z."
    return _value(seconds_of, text, field, "is not an ISO 8601 time", remedy)


def number(text: str, field: str) -> float:
    """Read a number, or a percentage."""
    found = _value(float, text.removesuffix("%"), field, "is not a number")
    return found / 100 if text.endswith("%") else found


def agreed(question: str, options: argparse.Namespace, field: str) -> bool:
    """Ask on a terminal; elsewhere, raise an InputError unless ``--yes`` has been said."""
    if options.yes:
        return True
    if not sys.stdin.isatty():
        problem = "needs a consent, and there is no terminal to ask on"
        raise InputError(field, problem, remedy="Add --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
