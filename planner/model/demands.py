"""Demands between sites in the shapes that people have them: mappings, matrices, data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, TypeAlias

from planner.model.errors import InputError
from planner.transfer.request import MOST_VOLUME_GB

Pair: TypeAlias = tuple[str, str]


def demands_gb(given: Any, regions: Sequence[str] | None = None) -> dict[Pair, float]:
    """Return demands as a mapping from source and destination to GB.

    Parameters
    ----------
    given : mapping, sequence, data frame or array
        ``{(src, dst): GB}``, ``{src: {dst: GB}}``, rows of ``src, dst, GB``, a data frame with
        sources as index and destinations as columns, or an array of shape (n, n), row to column.
    regions : sequence of str, optional
        Names of an array's rows and columns.

    Returns
    -------
    dict
        Without zeros, without missing entries (NaN), and without what a site sends itself.

    Raises
    ------
    InputError
        If a volume is negative, infinite, too large or given twice, or nothing is to be moved.
    """
    found: dict[Pair, float] = {}
    for src, dst, volume in _rows(given, regions):
        name = f"demand {src} -> {dst}"
        try:
            volume_gb = float(volume)
        except (TypeError, ValueError):
            raise InputError(name, "is not a number of GB", value=volume) from None
        if volume_gb != volume_gb:
            continue
        if not isfinite(volume_gb) or volume_gb < 0:
            raise InputError(name, "must be a finite number of GB, 0 or more", value=volume)
        if volume_gb > MOST_VOLUME_GB:
            raise InputError(name, f"is more than {MOST_VOLUME_GB:g} GB", value=volume)
        if (src, dst) in found:
            raise InputError(name, "is given twice", value=volume, remedy="Add them up.")
        found[src, dst] = volume_gb
    moved = {pair: gb for pair, gb in found.items() if gb > 0 and pair[0] != pair[1]}
    if not moved:
        raise InputError("demands", "have nothing to move from one region to another")
    return moved


def _rows(given: Any, regions: Sequence[str] | None) -> list[tuple[str, str, Any]]:
    if isinstance(given, Mapping):
        rows: list[tuple[str, str, Any]] = []
        for key, value in given.items():
            if isinstance(value, Mapping):
                rows += [(str(key), str(dst), volume) for dst, volume in value.items()]
            elif isinstance(key, tuple) and len(key) == 2:
                rows.append((str(key[0]), str(key[1]), value))
            else:
                raise InputError(
                    "demands",
                    "need a source and a destination",
                    value=key,
                    remedy="Write {(src, dst): GB} or {src: {dst: GB}}.",
                )
        return rows
    if hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "to_numpy"):
        return _matrix(
            given.to_numpy(), [str(r) for r in given.index], list(map(str, given.columns))
        )
    if hasattr(given, "shape"):
        if regions is None:
            raise InputError(
                "regions",
                "must name the rows and columns of a matrix of demands",
                remedy="Pass regions=[...], in the matrix's order.",
            )
        return _matrix(given, list(regions), list(regions))
    rows = []
    for item in given:
        if isinstance(item, str | bytes) or len(item) != 3:
            raise InputError("demands", "must be rows of source, destination and GB", value=item)
        rows.append((str(item[0]), str(item[1]), item[2]))
    return rows


def _matrix(values: Any, sources: list[str], targets: list[str]) -> list[tuple[str, str, Any]]:
    if tuple(values.shape) != (len(sources), len(targets)):
        raise InputError(
            "demands",
            f"must have shape ({len(sources)}, {len(targets)}), one row and column a region",
            value=tuple(values.shape),
        )
    listed = values.tolist()
    return [
        (src, dst, listed[i][j]) for i, src in enumerate(sources) for j, dst in enumerate(targets)
    ]
