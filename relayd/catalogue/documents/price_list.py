"""Price documents as regular files of text, JSON whole and tables row by row; and their prices."""

from __future__ import annotations

import csv
import re
import stat
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from math import inf, nan
from pathlib import Path
from typing import Any, TypeAlias

from planner.fields.json_text import read_json
from planner.model.catalogue import Tier
from planner.model.errors import FormatError

_MOST_JSON_BYTES = 256 * 2**20  # takes some 2 GB of memory while it is read
_MOST_TABLE_BYTES = 2 * 2**30
_HEAD_LINES = 8  # AWS's tables begin with five lines about themselves
PROVIDERS = ("aws", "azure", "gcp")

_IN_USD = "relayd counts in US dollars: get the document with the currency USD."
MOST_USD, MOST_GB = 10_000.0, 1e12
_MISSING = object()


class DocumentRow:
    """An object or a row of a document, with its place; values are at paths of keys.

    A FormatError names the place and the path of what is missing or invalid, with its value.
    """

    def __init__(self, place: str, content: object) -> None:
        if not isinstance(content, Mapping):
            raise FormatError(place, "must be an object", value=content)
        self.place, self.content = place, content

    def at(self, *path: str | int, default: object = _MISSING) -> Any:
        """Return a value as it is; a default where it is missing, if there is one.

        Raises FormatError if it is missing and there is no default; names the place and the key.
        """
        found: Any = self.content
        for key in path:
            try:
                found = found[key]
            except (LookupError, TypeError):
                if default is not _MISSING:
                    return default
                problem = f"lacks the {'.'.join(map(str, path))}"
                raise FormatError(self.place, problem, remedy="Download it again.") from None
        return found

    def text(self, *path: str | int) -> str:
        """Return a text, empty where it is null or missing.

        Raises FormatError if it is something other than text.
        """
        found = self.at(*path, default="") or ""
        if not isinstance(found, str):
            raise self.invalid(path, found, "It must be text.")
        return found

    def figure(self, *path: str | int, most: float = MOST_USD, default: object = _MISSING) -> float:
        """Return a number from 0 on, which may be written as text; True is no number.

        Raises FormatError if it is missing without a default, no number, negative, or above `most`.
        """
        found = self.at(*path, default=default)
        try:
            number = nan if isinstance(found, bool) else float(found)
        except (TypeError, ValueError, OverflowError):
            number = nan
        if not 0 <= number <= most:
            raise self.invalid(path, found, f"It may be a number from 0 to {most:,g}.")
        return number

    def one_of(self, *path: str | int, words: Collection[str], remedy: str = "") -> str:
        """Return a text that must be one of some words.

        Raises FormatError if it is missing, or none of the words; lists them.
        """
        found = self.at(*path)
        if not isinstance(found, str) or found not in words:
            raise self.invalid(path, found, remedy or f"Known are {', '.join(words)}.")
        return found

    def check_usd(self, *path: str | int) -> None:
        """Refuse another currency than US dollars."""
        self.one_of(*path, words=("USD",), remedy=_IN_USD)

    def invalid(self, path: Sequence[str | int], value: object, remedy: str) -> FormatError:
        """Return the error that a value is invalid."""
        problem = f"has an invalid {'.'.join(map(str, path))}"
        return FormatError(self.place, problem, value=value, remedy=remedy)


def items_of(where: str, items: object) -> Iterator[DocumentRow]:
    """Yield each object of a list.

    Raises FormatError if it is no list.
    """
    if not isinstance(items, list):
        raise FormatError(where, "must be a list", value=items)
    return (DocumentRow(f"{where}, item {number}", item) for number, item in enumerate(items, 1))


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
            problem = f"is larger than {most >> 20:,} MiB"
            raise FormatError(str(path), problem, value=size, remedy=remedy)

    @cached_property
    def json(self) -> Any:
        """The document, if it is JSON, else None; a FormatError if it only begins like it."""
        if not self.is_json:
            return None
        try:
            with _readable(self.path):
                content = self.path.read_bytes().removeprefix(BOM_UTF8)
            return read_json(content)
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(str(self.path), str(error), remedy="Download it again.") from None

    @cached_property
    def head(self) -> list[list[str]]:
        """The first rows of a table."""
        return list(islice(self._rows(), _HEAD_LINES))

    def table(self, needed: Sequence[str], after: int = 0) -> Iterator[DocumentRow]:
        """Yield each row with its place, for messages; `after` lines come before the head.

        Raises FormatError if a needed column is missing, a row is short, or the text is not UTF-8.
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
            yield DocumentRow(place, dict(zip(names, row, strict=True)))

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

    Raises FormatError if a folder has no price documents, or a path cannot be read.
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
    return found


# ---- their prices --------------------------------------------------------------------------------

INTERNET = "other-provider"
"""Destination of traffic to the internet, which other providers are part of."""

Quota: TypeAlias = tuple[int, int, str]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,98}")


@dataclass
class PriceList:
    """Prices by VM type and region, and of traffic by source and destination."""

    # VM type id to region id to USD for an hour: on demand, Linux, shared
    vm_usd_per_h: dict[str, dict[str, float]] = field(default_factory=dict)
    # Region and destination (a region, or :data:`INTERNET`) to USD per GB by the volume in GB
    # of one month from which it holds
    traffic: dict[tuple[str, str], dict[float, float]] = field(default_factory=dict)
    # Region and family to the vCPUs that may run, those in use, and the place in the document
    quotas: dict[tuple[str, str], Quota] = field(default_factory=dict)
    # Family of VM types and region to USD for an hour of its parts, where types are not
    # priced
    parts: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    as_of: str = ""  # ``YYYY-MM-DD`` of the newest document; ``""`` where none says
    left_out: Counter[str] = field(default_factory=Counter)  # reason to how many rows were not used

    def add_vm(self, place: str, type_id: str, region: str, usd_per_h: float) -> None:
        """Add the price of a VM; of several for one region, the dearest counts.

        Raises FormatError if a name is invalid; says the place in the document.
        """
        _must_be_name(place, "VM type", type_id)
        _must_be_name(place, "region", region)
        if usd_per_h == 0:
            self.left_out["VM prices of 0"] += 1
            return
        by_region = self.vm_usd_per_h.setdefault(type_id, {})
        before = by_region.get(region, usd_per_h)
        if abs(before - usd_per_h) > 1e-6 * usd_per_h:
            self.left_out["lower prices where several are stated"] += 1
        by_region[region] = max(before, usd_per_h)

    def add_part(self, place: str, family: str, region: str, part: str, usd: float) -> None:
        """Add what a part of VMs costs for an hour; of several, the dearest counts."""
        _must_be_name(place, "region", region)
        parts = self.parts.setdefault((family, region), {})
        parts[part] = max(usd, parts.get(part, 0.0))

    def add_traffic(self, source: str, destination: str, from_gb: float, usd: float) -> None:
        """Add what a GB costs from a volume of the month on; of several, the dearest counts."""
        by_start = self.traffic.setdefault((source, destination), {})
        by_start[from_gb] = max(usd, by_start.get(from_gb, 0.0))

    def add_quota(self, place: str, region: str, family: str, vcpus: int, used: int) -> None:
        """Add what an account may run; of several for a region, the one that leaves least counts.

        Raises FormatError if the region's name is invalid.
        """
        _must_be_name(place, "region", region)
        quota = (vcpus, used, place)
        before = self.quotas.get((region, family), quota)
        self.quotas[region, family] = min(before, quota, key=lambda one: one[0] - one[1])

    @property
    def egress(self) -> dict[tuple[str, str], tuple[Tier, ...]]:
        """Tiers by source and destination.

        What is free at first is left out, as everywhere in the catalogue: all of the account
        shares it.
        """
        found: dict[tuple[str, str], tuple[Tier, ...]] = {}
        for pair, by_start in self.traffic.items():
            starts = sorted(by_start.items())
            while len(starts) > 1 and starts[0][1] == 0:
                del starts[0]
            ends = [*(start for start, _ in starts[1:]), inf]
            found[pair] = tuple(Tier(usd, end) for (_, usd), end in zip(starts, ends, strict=True))
        return found

    @property
    def is_empty(self) -> bool:
        """Whether there is no price in it, and no quota."""
        return not (self.vm_usd_per_h or self.traffic or self.parts or self.quotas)


def _must_be_name(place: str, what: str, name: str) -> None:
    if not _NAME.fullmatch(name.partition(":")[2]):
        raise FormatError(place, f"has an odd name of a {what}", value=name)
