"""Answers as text or JSON; listings also as CSV and Parquet, and on a screen by a pager."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, not_installed
from planner.model.network import Snapshot
from relayd.cli.text import formula_safe, page, shown_safely

Row = Mapping[str, Any]


def respond(options: argparse.Namespace, document: object, text: str | Callable[[], str]) -> int:
    """Print an answer, as JSON or as text for people; return the exit code."""
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        print(text() if callable(text) else text)
    return 0


def pick(of: object, names: str, **more: object) -> dict[str, Any]:
    """Return fields of an object by their names, and more."""
    return {name: getattr(of, name) for name in names.split()} | more


def snapshot_as_json(snapshot: Snapshot | None) -> dict[str, Any] | None:
    """Return the snapshot that a command made, as its JSON names it."""
    return None if snapshot is None else pick(snapshot, "id as_of")


def print_rows(
    options: argparse.Namespace,
    name: str,
    rows: Sequence[Row],
    *,
    shown: Callable[[], str] | None = None,
    document: Callable[[], object] | None = None,
) -> int:
    """Print rows with equal keys as the options ask for; return the exit code.

    Raises InputError if the file can't be written, or the format needs what is not there.

    Parameters
    ----------
    options : argparse.Namespace
        With ``json``, ``format`` and ``output``.
    name : str
        What the rows are; JSON has them under it.
    shown : callable, optional
        Returns what people see instead of a table of all.
    document : callable, optional
        Returns what JSON has, where that is more than the rows.
    """
    file = Path(options.output) if options.output else None
    by_name = {".csv": "csv", ".json": "json", ".parquet": "parquet"}
    named = by_name.get(file.suffix, "table") if file else "table"
    chosen = "json" if options.json else options.format or named
    if chosen == "parquet":
        _write_parquet(rows, file)
        return 0
    if chosen == "json":
        text = json.dumps(document() if document else {name: rows}, indent=2)
    elif chosen == "csv":
        text = _csv(rows)
    elif not rows:
        text = "None."
    elif shown:
        text = shown()
    else:
        cells = [["-" if value is None else str(value) for value in row.values()] for row in rows]
        text = page().table(tuple(rows[0]), cells, left=True)
    if file is not None:
        write_text(file, f"{text}\n")
    else:
        (print_paged if chosen == "table" else print)(text)
    return 0


def print_paged(shown: str) -> None:
    """Print text; through a pager (``PAGER``, else ``less``) where it is longer than the screen."""
    pager = shlex.split(os.environ.get("PAGER", "less"))
    long = shown.count("\n") + 1 >= shutil.get_terminal_size().lines
    if not (long and sys.stdout.isatty() and pager and shutil.which(pager[0])):
        print(shown)
        return
    # Ends at once where all fits after all, keeps colours, and leaves the text on the screen.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        safe = shown_safely(f"{shown}\n").encode()
        # The user's own choice of a program.
        subprocess.run(pager, input=safe, env=environment, check=False)  # noqa: S603


def _csv(rows: Sequence[Row]) -> str:
    def cell(value: object) -> object:
        if isinstance(value, (list, tuple)):
            value = " ".join(map(str, value))
        return formula_safe(value) if isinstance(value, str) else value

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows(map(cell, row) for row in [*rows[:1], *(row.values() for row in rows)])
    return stream.getvalue().removesuffix("\n")


def write_text(name: str | Path, text: str) -> None:
    """Write the file of ``--output``.

    Raises InputError if it can't be written.
    """
    with _writable(Path(name)):
        Path(name).write_text(text, encoding="utf-8", newline="")


def _write_parquet(rows: Sequence[Row], file: Path | None) -> None:
    if file is None:
        raise InputError("--format parquet", "needs --output FILE", remedy="Name the file.")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise not_installed("pyarrow", "parquet", "write Parquet") from None
    with _writable(file):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(map(dict, rows))), file)


@contextmanager
def _writable(file: Path) -> Iterator[None]:
    """Name the file of ``--output`` in what goes wrong while it is written."""
    try:
        yield
    except OSError as error:
        remedy = "Name a file in a folder that you may write to."
        problem = f"can't be written ({error.strerror or error})"
        raise InputError("--output", problem, value=str(file), remedy=remedy) from None
