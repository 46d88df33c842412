"""Demands between sites in the shapes that people have them: mappings, matrices, data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from planner.fields.kinds import MOST_VOLUME_GB, Kind, Region, Volume, list_schema, object_schema
from planner.model.errors import InputError
from planner.model.units import parse_volume_gb

Pair: TypeAlias = tuple[str, str]

MOST_DEMANDS = 1_000_000
END_NAMES = dict.fromkeys(("source", "from"), "src")
END_NAMES |= dict.fromkeys(("destination", "dest", "target", "to"), "dst")
VOLUME_NAMES = ("volume_gb", "gb", "volume")


class Demands(dict[Pair, float]):
    """Source and destination to GB above 0, already checked.

    What they rest on, where that is more than a table, is in their `notes`: sentences.
    """

    notes: tuple[str, ...] = ()


class Pairs(Kind):
    """A volume for each of at least so many pairs, in any shape that :func:`demands_gb` reads.

    A matrix is kept until its rows and columns have names: the request's to give.
    """

    name, metavar = "pairs", "FILE"

    def __init__(self, title: str, *, least: int = 1) -> None:
        self.title, self.least = title, least

    def read(self, value: Any) -> Any:
        """Return the demands, or a matrix as it is; raises an InputError if it is neither."""
        if isinstance(value, Mapping) or hasattr(value, "columns"):
            return demands_gb(value, field="", least=self.least)
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise InputError("", "must be rows of source, destination and GB", value=value)
        return value

    def to_json(self, value: Mapping[Pair, float]) -> list[dict[str, Any]]:
        """Return one object for each pair."""
        return pair_rows(value)

    def schema(self) -> dict[str, Any]:
        """Return the schema of a list of pairs."""
        return list_schema(pair_row_schema(self.title), self.least, MOST_DEMANDS)


def pair_rows(volumes: Mapping[Pair, float]) -> list[dict[str, Any]]:
    """Return volumes as JSON has them: one object for each pair."""
    return [{"src": src, "dst": dst, "volume_gb": gb} for (src, dst), gb in volumes.items()]


def pair_row_schema(title: str) -> dict[str, Any]:
    """Return the schema of a pair's object."""
    properties: dict[str, Kind] = {"src": Region(), "dst": Region(), "volume_gb": Volume(0.0)}
    return object_schema(title, properties, properties)


def demands_gb(
    given: Any, regions: Sequence[str] | None = None, field: str = "demands", least: int = 1
) -> Demands:
    """Return demands as a mapping from source and destination to GB.

    Given ``{(src, dst): GB}``, ``{src: {dst: GB}}``, rows of ``src, dst, GB`` or of mappings with
    ``src``, ``dst`` and ``volume_gb``, a data frame with these columns or with sources as index (or
    as its column ``src``) and destinations as columns, or an array or lists of shape (n, n), row to
    column, of named `regions`. Data frames are those of pandas, Spark, Dask and Polars; tables of
    Arrow and arrays of xarray have labels, too. A volume is a number of GB or a text with a unit.

    Zeros, missing cells (NaN) of a data frame with sources as index, and what a site sends itself
    are left out. A volume that is no number (NaN), negative, infinite, too large or given twice, or
    fewer than `least` demands, are InputErrors, which call them `field`.
    """
    if type(given) is Demands:
        return given
    found: dict[Pair, float] = {}
    for src, dst, volume in _rows(given, regions, field):
        name = f"{field} {src} -> {dst}".strip()
        try:
            moved_gb = float(volume)
        except (TypeError, ValueError, OverflowError):
            if not isinstance(volume, str):
                raise InputError(name, "is not a number of GB", value=volume) from None
            moved_gb = parse_volume_gb(volume, name)
        if src == dst and moved_gb != moved_gb:
            continue  # the diagonal of a matrix
        if not isfinite(moved_gb) or moved_gb < 0:
            raise InputError(name, "must be a finite number of GB, 0 or more", value=volume)
        if moved_gb > MOST_VOLUME_GB:
            raise InputError(name, f"is more than {MOST_VOLUME_GB:g} GB", value=volume)
        if (src, dst) in found:
            raise InputError(name, "is given twice", value=volume, remedy="Add them up.")
        found[src, dst] = moved_gb
    moved = Demands((pair, gb) for pair, gb in found.items() if gb > 0 and pair[0] != pair[1])
    if len(moved) < least:
        raise InputError(field, "move nothing from one region to another")
    return moved


def _rows(given: Any, regions: Sequence[str] | None, field: str) -> list[tuple[str, str, Any]]:
    if isinstance(given, Mapping):
        return _of_mapping(given, field)
    given = _labelled(given)
    if hasattr(given, "columns"):  # of pandas
        targets = list(map(str, given.columns))
        if {"src", "dst"} <= set(targets):
            return _rows(given.to_dict("records"), None, field)
        sources = [str(region) for region in given.index]
        cells = _matrix(given.to_numpy().tolist(), sources, targets, field)
        # NaN is how a data frame says that there is nothing.
        return [cell for cell in cells if cell[2] == cell[2]]
    if hasattr(given, "shape"):
        if names := getattr(given.dtype, "names", None):  # rows of numpy with names of fields
            return _rows(
                [dict(zip(names, row, strict=True)) for row in given.tolist()], None, field
            )
        if not regions:
            problem = "must name the rows and columns of a matrix of demands"
            raise InputError("regions", problem, remedy="Give `regions` in the matrix's order.")
        return _matrix(given.tolist(), list(regions), list(regions), field)
    items = list(given)
    if regions and items and all(map(_is_row_of_numbers, items)):
        return _matrix(items, list(regions), list(regions), field)
    return [_row(item, f"{field} {number}".strip()) for number, item in enumerate(items, 1)]


def _labelled(given: Any) -> Any:
    """Return tables of Spark, Dask, Polars, Arrow and xarray as a data frame of pandas."""
    if hasattr(given, "coords") and getattr(given, "ndim", 0) == 2:  # of xarray
        names = [name for name in ("src", "dst") if name in given.dims]
        given = given.transpose(*names, ...)
        return given.to_pandas() if len(given.coords) >= 2 else given.to_numpy()
    for convert in ("compute", "toPandas", "to_pandas"):
        given = getattr(given, convert)() if hasattr(given, convert) else given
    if getattr(getattr(given, "index", None), "nlevels", 1) == 2:  # grouped by pairs
        given = given if hasattr(given, "columns") else given.to_frame("volume_gb")
        names = [name or end for name, end in zip(given.index.names, ("src", "dst"), strict=True)]
        given = given.rename_axis(names).reset_index()
    if not hasattr(given, "columns"):
        return given
    given = given.rename(columns=END_NAMES)
    if "dst" not in given.columns and len(given) and not isinstance(given.index[0], str):
        return given.set_index(given.columns[0])  # which has the sources
    return given


def _is_row_of_numbers(row: Any) -> bool:
    return isinstance(row, list | tuple) and not any(isinstance(cell, str) for cell in row[:2])


def _of_mapping(given: Mapping[Any, Any], field: str) -> list[tuple[str, str, Any]]:
    rows: list[tuple[str, str, Any]] = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            rows += [(str(key), str(dst), volume) for dst, volume in value.items()]
        elif isinstance(key, tuple) and len(key) == 2:
            rows.append((str(key[0]), str(key[1]), value))
        else:
            problem = "must map destinations to GB, for each source"
            remedy = "Write {(src, dst): GB} or {src: {dst: GB}}."
            raise InputError(field, problem, value=key, remedy=remedy)
    return rows


def _row(item: Any, field: str) -> tuple[str, str, Any]:
    if isinstance(item, Mapping):
        volume = next((item[name] for name in VOLUME_NAMES if name in item), None)
        if volume is None or len(item) != 3 or not {"src", "dst"} <= item.keys():
            raise InputError(field, "must be rows of src, dst and volume_gb", value=dict(item))
        return str(item["src"]), str(item["dst"]), volume
    if not isinstance(item, Sequence) or isinstance(item, str | bytes) or len(item) != 3:
        raise InputError(field, "must be rows of source, destination and GB", value=item)
    return str(item[0]), str(item[1]), item[2]


def _matrix(
    values: Sequence[Any], sources: list[str], targets: list[str], field: str
) -> list[tuple[str, str, Any]]:
    shape = (len(sources), len(targets))
    if len(values) != shape[0] or any(
        not isinstance(row, list | tuple) or len(row) != shape[1] for row in values
    ):
        raise InputError(field, f"must have shape {shape}, one row and column a region")
    return [
        (src, dst, values[i][j]) for i, src in enumerate(sources) for j, dst in enumerate(targets)
    ]
