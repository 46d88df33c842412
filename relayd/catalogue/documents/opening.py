"""Opens price documents: regular files of text, JSON whole and tables row by row."""

from __future__ import annotations

import csv
import json
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from planner.model.errors import FormatError

_MOST_JSON_BYTES = 256 * 2**20  # takes some 2 GB of memory while it is read
_MOST_TABLE_BYTES = 2 * 2**30
_MOST_FILES = 5000
_HEAD_LINES = 8  # AWS's tables begin with five lines about themselves
PROVIDERS = ("aws", "azure", "gcp")

Text = Annotated[str, BeforeValidator(lambda value: value or "")]
"""Empty where it is null or missing."""
_IN_USD = "relayd counts in US dollars: get the document with the currency USD."
Dollars = Annotated[Literal["USD"], Field(description=_IN_USD)]
Usd = Annotated[float, Field(ge=0, le=10_000, description="It may be from 0 to 10,000.")]
Volume = Annotated[float, Field(ge=0, le=1e12, description="It may be from 0 to 1e12.")]


class DocumentRow(BaseModel):
    """An object or a row of a document, of which a reader names the fields that it needs.

    Messages have a field's title, else its name, and its description as the remedy.
    """

    model_config = ConfigDict(alias_generator=to_camel, allow_inf_nan=False)


R = TypeVar("R", bound=DocumentRow)


def checked(model: type[R], place: str, row: object) -> R:
    """Return a row of a document as a model.

    A FormatError names the place and the first field that is missing or invalid, with its value.
    """
    try:
        return model.model_validate(row)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
    path = fault["loc"]
    if not path:
        raise FormatError(place, "must be an object", value=row)
    field = next(info for info in model.model_fields.values() if _is_at(info, path))
    name = field.title or ".".join(map(str, path))
    if fault["type"] == "missing":
        raise FormatError(place, f"lacks the {name}", remedy="Download it again.")
    remedy = field.description or f"{fault['msg']}."
    raise FormatError(place, f"has an invalid {name}", value=fault["input"], remedy=remedy)


def _is_at(field: FieldInfo, path: tuple[str | int, ...]) -> bool:
    """Say whether a path in a row leads to a field, or into one."""
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    paths = (one.path if isinstance(one, AliasPath) else [one] for one in choices)
    return any(list(path[: len(one)]) == one for one in paths)


def items_of(where: str, items: object) -> Iterator[tuple[str, Any]]:
    """Yield each item of a list with its place, for messages."""
    if not isinstance(items, list):
        raise FormatError(where, "must be a list", value=items)
    return ((f"{where}, item {number}", item) for number, item in enumerate(items, 1))


class PriceDocument:
    """A file that may hold prices."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _readable(path):
            found = path.stat()
            if not stat.S_ISREG(found.st_mode):
                remedy = "Name a file or a folder."
                raise FormatError(str(path), "is not a regular file", remedy=remedy)
            with path.open("rb") as file:
                begins = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        self.is_json = begins in {b"{", b"["}
        self.modified_on = datetime.fromtimestamp(found.st_mtime, UTC).date().isoformat()
        most = _MOST_JSON_BYTES if self.is_json else _MOST_TABLE_BYTES
        if found.st_size > most:
            size = f"{found.st_size >> 20:,} MiB"
            remedy = "Import a part of it" + (
                ", or the same list as CSV, which AWS offers too." if self.is_json else "."
            )
            raise FormatError(
                str(path), f"is larger than {most >> 20:,} MiB", value=size, remedy=remedy
            )

    @cached_property
    def json(self) -> Any:
        """The document, if it is JSON, else None; a FormatError if it only begins like it."""
        if not self.is_json:
            return None
        try:
            with _readable(self.path):
                return json.loads(self.path.read_bytes().decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            if isinstance(error, FormatError):
                raise
            problem = f"is not valid JSON ({str(error)[:100]})"
            raise FormatError(str(self.path), problem, remedy="Download it again.") from None

    @cached_property
    def head(self) -> list[list[str]]:
        """The first rows of a table."""
        return list(islice(self._rows(), _HEAD_LINES))

    def table(self, needed: Sequence[str], after: int = 0) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each row with its place, for messages; `after` lines come before the head.

        A FormatError if a needed column is missing, a row is short, or the text is not UTF-8.
        """
        rows = islice(self._rows(), after, None)
        names = next(rows, [])
        if missing := [name for name in needed if name not in names]:
            problem = f"lacks the column {', '.join(missing)}"
            raise FormatError(str(self.path), problem, remedy=f"It has {', '.join(names)[:200]}.")
        for number, row in enumerate(filter(None, rows), after + 2):
            place = f"{self.path}, row {number}"
            if len(row) != len(names):
                problem = f"has {len(row)} columns where the head has {len(names)}"
                raise FormatError(place, problem, remedy="Download it again.")
            yield place, dict(zip(names, row, strict=True))

    def _rows(self) -> Iterator[list[str]]:
        with _readable(self.path), self.path.open(encoding="utf-8-sig", newline="") as file:
            yield from csv.reader(file, strict=True)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into an error that names it."""
    try:
        yield
    except OSError as error:
        problem = f"can't be read ({error.strerror or error})"
        remedy = "Name a file or folder that is there."
        raise FormatError(str(path), problem, remedy=remedy) from None
    except UnicodeDecodeError:
        remedy = "Archives must be unpacked first; text must be UTF-8."
        raise FormatError(str(path), "is not UTF-8 text", remedy=remedy) from None
    except csv.Error as error:
        raise FormatError(str(path), f"is not a table ({error})") from None


def files_of(path: Path) -> list[Path]:
    """Return the files to read of a path: itself, or what a folder has.

    A folder is SkyPilot's (``aws/vms.csv``, ``azure/vms.csv``, ``gcp/vms.csv``), or one with files
    of the others, JSON or CSV.
    """
    with _readable(path):
        if not path.is_dir():
            return [path]
        if path.name in PROVIDERS and (path / "vms.csv").is_file():
            return [path / "vms.csv"]
        found = [path / name / "vms.csv" for name in PROVIDERS]
        found = [file for file in found if file.is_file()]
        if not found:
            found = sorted(f for f in path.iterdir() if f.suffix.lower() in {".json", ".csv"})
    if not found:
        remedy = "SkyPilot's folder has aws/vms.csv or the like; others have .json or .csv files."
        raise FormatError(str(path), "is a folder without price documents", remedy=remedy)
    if len(found) > _MOST_FILES:
        raise FormatError(str(path), f"has over {_MOST_FILES:,} files", value=len(found))
    return found
