"""Opens price documents: regular files of text, JSON whole and tables row by row."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from planner.model.errors import FormatError

_MOST_JSON_BYTES = 256 * 2**20  # takes some 2 GB of memory while it is read
_MOST_TABLE_BYTES = 2 * 2**30
_MOST_FILES = 5000
_HEAD_LINES = 8  # AWS's tables begin with five lines about themselves
PROVIDERS = ("aws", "azure", "gcp")


class PriceDocument:
    """A file that may hold prices.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        size = _regular(path).st_size
        self.is_json = self._begins_as_json()
        most = _MOST_JSON_BYTES if self.is_json else _MOST_TABLE_BYTES
        if size > most:
            remedy = "Import a part of it" + (
                ", or the same list as CSV, which AWS offers too." if self.is_json else "."
            )
            problem = f"is larger than {most >> 20:,} MiB"
            raise FormatError(str(path), problem, value=f"{size >> 20:,} MiB", remedy=remedy)

    @property
    def modified_on(self) -> str:
        """The date of the file."""
        return datetime.fromtimestamp(_regular(self.path).st_mtime, UTC).date().isoformat()

    @cached_property
    def json(self) -> Any:
        """The document, if it is JSON; else None.

        Raises
        ------
        FormatError
            If it begins like JSON and is none.
        """
        if not self.is_json:
            return None
        try:
            return json.loads(self.path.read_bytes().decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise _not_utf8(self.path) from None
        except (ValueError, RecursionError) as error:
            problem = f"is not valid JSON ({_clipped(error)})"
            raise FormatError(str(self.path), problem, remedy="Download it again.") from None

    @cached_property
    def head(self) -> list[list[str]]:
        """The first rows of a table."""
        return list(islice(self._rows(), _HEAD_LINES))

    def table(self, needed: Sequence[str], after: int = 0) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each row with its place, for messages.

        Parameters
        ----------
        needed : sequence of str
            Columns that must be there.
        after : int
            How many lines come before the head.

        Raises
        ------
        FormatError
            If a column is missing, a row is short, or the text is not UTF-8.
        """
        rows = islice(self._rows(), after, None)
        names = next(rows, [])
        if missing := [name for name in needed if name not in names]:
            remedy = f"It has {', '.join(names)[:200]}."
            raise FormatError(
                str(self.path), f"lacks the column {', '.join(missing)}", remedy=remedy
            )
        for number, row in enumerate(rows, after + 2):
            if not row:
                continue
            place = f"{self.path}, row {number}"
            if len(row) != len(names):
                problem = f"has {len(row)} columns where the head has {len(names)}"
                raise FormatError(place, problem, remedy="Download it again.")
            yield place, dict(zip(names, row, strict=True))

    def _rows(self) -> Iterator[list[str]]:
        try:
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                yield from csv.reader(file, strict=True)
        except UnicodeDecodeError:
            raise _not_utf8(self.path) from None
        except csv.Error as error:
            raise FormatError(str(self.path), f"is not a table ({error})") from None
        except OSError as error:
            raise _unreadable(self.path, error) from None

    def _begins_as_json(self) -> bool:
        try:
            with self.path.open("rb") as file:
                return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"{", b"["}
        except OSError as error:
            raise _unreadable(self.path, error) from None


def files_of(path: Path) -> list[Path]:
    """Return the files to read of a path: itself, or what a folder has.

    A folder is SkyPilot's (``aws/vms.csv``, ``azure/vms.csv``, ``gcp/vms.csv``), or one with files
    of the others, JSON or CSV.
    """
    try:
        if not path.is_dir():
            return [path]
        if path.name in PROVIDERS and (path / "vms.csv").is_file():
            return [path / "vms.csv"]
        found = [path / name / "vms.csv" for name in PROVIDERS]
        found = [file for file in found if file.is_file()]
        if not found:
            found = sorted(f for f in path.iterdir() if f.suffix.lower() in {".json", ".csv"})
    except OSError as error:
        raise _unreadable(path, error) from None
    if not found:
        remedy = "SkyPilot's folder has aws/vms.csv or the like; others have .json or .csv files."
        raise FormatError(str(path), "is a folder without price documents", remedy=remedy)
    if len(found) > _MOST_FILES:
        raise FormatError(str(path), f"has over {_MOST_FILES:,} files", value=len(found))
    return found


def text_of(place: str, row: object, name: str) -> str:
    """Return a text of a JSON object; an empty one where it is missing.

    Raises
    ------
    FormatError
        If it is no object, or the value is not text.
    """
    if not isinstance(row, Mapping):
        raise FormatError(place, "must be an object", value=row)
    value = row.get(name) or ""
    if not isinstance(value, str):
        raise FormatError(place, f"has a {name} that is not text", value=value)
    return value


def _regular(path: Path) -> Any:
    try:
        found = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise FormatError(str(path), "is not a regular file", remedy="Name a file or a folder.")
    return found


def _unreadable(path: Path, error: OSError) -> FormatError:
    problem = f"can't be read ({error.strerror or error})"
    return FormatError(str(path), problem, remedy="Name a file or folder that is there.")


def _not_utf8(path: Path) -> FormatError:
    remedy = "Archives must be unpacked first; text must be UTF-8."
    return FormatError(str(path), "is not UTF-8 text", remedy=remedy)


def _clipped(error: Exception) -> str:
    return str(error)[:100]
