"""Kinds of files, told by their first bytes: those of importers, and those that nothing reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from planner.model.errors import FormatError
from probes.importers.importer import FileKind, Importer, format_table
from probes.importers.text import LogPrefix, log_prefixes, logged_text, refuse_nul
from probes.plugins import registered

GROUP = "relayd.importers"


class RefusedKind(NamedTuple):
    """A kind of files that nothing reads: its name, its mark, and what to do instead."""

    what: str
    mark: str
    remedy: str


class _Known(NamedTuple):
    """A kind of files, and its importer where one reads it."""

    kind: FileKind | RefusedKind
    importer: Importer | None = None


class Identified(NamedTuple):
    """The kind of a file, its importer, both in words, and the log's prefix to each line."""

    importer: Importer
    kind: FileKind
    what: str
    prefix: LogPrefix | None


PREFIXED_BYTES = 8192
"""First bytes of a file, by which it is recognised behind a log's prefix."""
_JSON = re.compile(r"""(?m)^(?=[\[{]\s*["{])""")


@cache
def importers() -> Mapping[str, Importer]:
    """Return all importers by name, in the order in which they are tried.

    Raises
    ------
    RegistrationError
        If one can't be registered; names its distribution.
    """
    return {one.name: one for one in registered(GROUP, Importer, unique=["name"])}


@cache
def refused() -> tuple[RefusedKind, ...]:
    """Return the kinds that nothing reads."""
    return tuple(RefusedKind(**row) for row in format_table()["refused"])


@cache
def _known(*, guesses: bool) -> tuple[_Known, ...]:
    read = (
        _Known(kind, one)
        for one in importers().values()
        for kind in one.kinds
        if kind.is_guess is guesses
    )
    return tuple(read if guesses else (*map(_Known, refused()), *read))


def identified(head: bytes, name: str, wanted: str = "") -> Identified:
    """Say what a file is, by its first bytes.

    ``wanted`` is the format that a user has named, if any.

    Raises
    ------
    FormatError
        If it is empty, of a kind that nothing reads, plainly of another format than the one that
        was named, or of no known kind.
    """
    if not head:
        raise FormatError(name, "is empty", remedy="Was the tool's output written to it?")
    text = head.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    found, prefix = _kind_in_log(head)
    if found is None:
        guess = _kind(text, _known(guesses=True))[0]
        if guess and guess.importer and wanted in ("", guess.importer.name):
            found = guess
    if found is None and (usual := importers().get(wanted)):
        found = _Known(usual.usual_kind, usual)
    if found is None:
        remedy = f"Name its format: {', '.join(importers())}."
        problem = "is of no kind that relayd recognises"
        raise FormatError(name, problem, value=text.lstrip()[:60], remedy=remedy)
    kind, importer = found
    if isinstance(kind, RefusedKind):
        raise FormatError(name, f"is {kind.what}", remedy=kind.remedy)
    assert importer
    version = re.search(importer.version, text)
    what = f"{kind.what}, version {version[1]}" if version else kind.what
    if not importer.is_binary:
        refuse_nul(head, name)
    if wanted and importer.name != wanted:
        problem = f"is {what}, which the format {wanted} does not read"
        remedy = f"Use `relayd import {importer.name}`, or name no format."
        raise FormatError(name, problem, remedy=remedy)
    return Identified(importer, kind, what, None if importer.is_binary else prefix)


def _kind_in_log(head: bytes) -> tuple[_Known | None, LogPrefix | None]:
    """Find the kind of a file, behind what a log has put before its lines, or a few of its own.

    The prefix counts behind which a tool's output begins, else one behind which there is any.
    """
    found: tuple[_Known | None, LogPrefix | None] = None, None
    head = head.removeprefix(b"\xef\xbb\xbf")
    for prefix in log_prefixes(head):
        match = prefix.pattern.match
        lines = head[: PREFIXED_BYTES if prefix.pattern.pattern else None].split(b"\n")
        bare = [line[m.end() :] if (m := match(line)) else line for line in lines]
        text = b"\n".join(bare).decode("latin-1")
        kind, at = _kind(text)
        if kind is None and (begun := _JSON.search(text)):
            kind, at = _kind(text[begun.start() :])[0], begun.start()
            prefix = prefix._replace(skipped=text.count("\n", 0, begun.start()))
        if kind and (not text[:at].strip() or found[0] is None):
            found = kind, prefix if prefix.pattern.pattern or prefix.skipped else None
        if kind and not text[:at].strip():
            break
    if found[0] is None and (logged := logged_text(head))[0].strip():
        return _kind(logged[0].decode("latin-1"))[0], logged[1]
    return found


def _kind(text: str, known: Iterable[_Known] = ()) -> tuple[_Known | None, int]:
    """Return the first kind whose mark is in a text, and its place."""
    marks = ((one, re.search(one.kind.mark, text)) for one in known or _known(guesses=False))
    return next(((one, mark.start()) for one, mark in marks if mark), (None, 0))
