"""An importer: one object for each format of files that relayd reads."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from probes.importers.options import ImportedRow, ImportOptions

Reader: TypeAlias = Callable[[Any, ImportOptions], Iterator[ImportedRow]]
"""From a binary stream to samples and skipped rows, lazily and in bounded memory.

It may raise :class:`~planner.model.errors.FormatError` where the file as a whole can't be trusted,
and :class:`~planner.model.errors.InputError` where an option that it needs is missing.
"""


class FileKind(NamedTuple):
    """One form in which files of a format come, such as a tool's text and its JSON.

    Attributes
    ----------
    what : str
        In words, with the name of the tool, as errors and reports of imports say it.
    mark : str
        A regular expression that is found in the first 64 KiB of such a file and of no other.
    read : Reader
    is_guess : bool
        Whether the mark fits files of other tools as well, so that it is tried after all others.
    """

    what: str
    mark: str
    read: Reader
    is_guess: bool = False


@dataclass(frozen=True, kw_only=True)
class Importer:
    """A format of files, registered by an entry point of the group ``relayd.importers``.

    Attributes
    ----------
    name : str
        As ``relayd import NAME`` spells it; the entry point has the same.
    kinds : tuple of FileKind
        In the order in which they are tried. The last that is no guess reads a file that was said
        to be of this format and is not recognised.
    needs_ends : bool
        Whether the files name no regions, so that ``--src`` and ``--dst`` must say between which
        two regions the tests were.
    version : str
        A regular expression whose first group is the version of the tool, in the first bytes.
    is_binary : bool
        Whether its files are no text, so that they stand in no log, and may contain NUL.
    order : int
        Importers with a lower number are tried first. Ours have 10 and more.
    """

    name: str
    kinds: tuple[FileKind, ...]
    needs_ends: bool = False
    version: str = r"(?!)"
    is_binary: bool = False
    order: int = 0

    @property
    def usual_kind(self) -> FileKind:
        """The kind of a file that was said to be of this format and is not recognised."""
        return next(kind for kind in reversed(self.kinds) if not kind.is_guess)


@cache
def format_table() -> Mapping[str, Any]:
    """Return the table of formats, ``formats.toml``: kinds ``refused`` and ``read``, and lines."""
    table = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
    for row in (*table["refused"], *table["read"]):
        row["mark"] = row["mark"] if isinstance(row["mark"], str) else "|".join(row["mark"])
    return table


def pattern_of(text: str) -> re.Pattern[str]:
    """Compile a pattern of the table, with the fragments that it names (``{HOST}``)."""
    fragments, name = format_table()["fragments"], re.compile("{([A-Z][A-Z0-9_]*)}")
    return re.compile(name.sub(lambda found: fragments[found[1]], text))


def importer_of(name: str, readers: Mapping[str, Reader]) -> Importer:
    """Return an importer as the table has it, with the readers of its kinds by form."""
    known, rows = format_table()["importers"], format_table()["read"]
    kinds = (
        FileKind(row["what"], row["mark"], readers[row.get("form", "")], row.get("is_guess", False))
        for row in rows
        if row["importer"] == name
    )
    order = 10 * (1 + [*known].index(name))
    return Importer(name=name, order=order, kinds=tuple(kinds), **known[name])
