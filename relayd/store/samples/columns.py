"""Samples as columns: what analyses of a whole store read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import AddressKind
from probes.samples import Metric, read_detail
from relayd.store.database import Database

ROW = np.dtype(
    [
        ("src", "i4"),
        ("dst", "i4"),
        ("at_s", "f8"),
        ("value", "f8"),
        ("connections", "i4"),
        ("duration_s", "f8"),
        ("setup", "i4"),
        ("warmed_up", "?"),
    ]
)
"""A sample: ids of regions and setup; 0 connections or seconds where the notion does not apply."""

_SELECT = (
    "SELECT src_id, dst_id, measured_at_s, value, connections, duration_s, setup_id, warmed_up "
    "FROM used_samples WHERE metric_id = (SELECT id FROM metrics WHERE name = ?) "
    "AND measured_at_s >= ? "
)
_DETAILS = (
    "SELECT src_id, dst_id, measured_at_s, value, duration_s, setup_id, detail "
    "FROM used_samples AS samples WHERE metric_id = (SELECT id FROM metrics WHERE name = ?) "
    "AND measured_at_s >= ? "
)
_IN_ORDER = "ORDER BY src_id, dst_id, metric_id, measured_at_s"


@dataclass(frozen=True)
class Setup:
    """How some samples were taken."""

    tool: str
    src_zone: str
    dst_zone: str
    src_vm: str
    dst_vm: str


@dataclass(frozen=True)
class Columns:
    """All samples of one metric, by source, destination and time.

    Attributes
    ----------
    metric : str
    regions : dict of int to str
    setups : dict of int to Setup
    rows : structured array, length n
        Fields ``src`` and ``dst`` (keys of ``regions``), ``at_s``, ``value``, ``connections`` and
        ``duration_s`` (0 where the notion does not apply), ``setup`` (a key of ``setups``),
        ``warmed_up`` (whether slow start was left out).
    """

    metric: str
    regions: dict[int, str]
    setups: dict[int, Setup]
    rows: NDArray[np.void]

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.rows)

    def by_pair(self) -> Iterator[tuple[str, str, NDArray[np.void]]]:
        """Yield source, destination and the rows of each pair, oldest first."""
        yield from (
            (self.regions[int(part["src"][0])], self.regions[int(part["dst"][0])], part)
            for part in _runs(self.rows)
        )


def _runs(rows: NDArray[np.void]) -> Iterator[NDArray[np.void]]:
    if not len(rows):
        return
    pair = rows["src"].astype("i8") << 32 | rows["dst"]
    cuts = np.flatnonzero(np.diff(pair)) + 1
    yield from np.split(rows, cuts)


def read_columns(
    database: Database,
    metric: Metric,
    *,
    since_s: float | None = None,
    pair: tuple[str, str] | None = None,
) -> Columns:
    """Read all samples of one metric.

    Parameters
    ----------
    database : Database
    metric : Metric
    since_s : float, optional
        Only what was measured at or after this time, seconds since 1970.
    pair : (src, dst), optional
        Only samples of this link.
    """
    regions = dict(database.rows("SELECT id, name FROM regions"))
    setups = read_setups(database)
    values: list[object] = [metric, -1e300 if since_s is None else since_s]
    of_pair = ""
    if pair is not None:
        of_pair = (
            "AND src_id = (SELECT id FROM regions WHERE name = ?) "
            "AND dst_id = (SELECT id FROM regions WHERE name = ?) "
        )
        values += pair
    rows = np.fromiter(database.stream(_SELECT + of_pair + _IN_ORDER, values), ROW)
    return Columns(metric, regions, setups, rows)


class DetailedTest(NamedTuple):
    """A sample, and what else its tool said."""

    src: str
    dst: str
    at_s: float
    value: float
    duration_s: float
    setup: Setup
    detail: dict[str, Any]


def read_details(
    database: Database, metric: Metric, *, since_s: float | None = None, steady: bool = False
) -> Iterator[DetailedTest]:
    """Yield the samples of a metric that have a detail, by link and time.

    Parameters
    ----------
    database : Database
    metric : Metric
    since_s : float, optional
    steady : bool
        Only tests that kept their intervals.
    """
    setups = read_setups(database)
    regions = dict(database.rows("SELECT id, name FROM regions"))
    rows = database.stream(
        _DETAILS + ("AND intervals IS NOT NULL " if steady else "AND detail <> '' ") + _IN_ORDER,
        (metric, -1e300 if since_s is None else since_s),
    )
    for src, dst, at_s, value, duration_s, setup, detail in rows:
        yield DetailedTest(
            regions[src], regions[dst], at_s, value, duration_s, setups[setup], read_detail(detail)
        )


def read_setups(database: Database) -> dict[int, Setup]:
    """Return how samples were taken, by number."""
    return {
        row[0]: Setup(*row[1:])
        for row in database.rows("SELECT id, tool, src_zone, dst_zone, src_vm, dst_vm FROM setups")
    }


class BothKinds(NamedTuple):
    """What a link had over private and over public addresses."""

    src: str
    dst: str
    private: NDArray[np.float64]
    public: NDArray[np.float64]


_BY_KIND = np.dtype([("src", "i4"), ("dst", "i4"), ("is_private", "?"), ("value", "f8")])


def has_both_address_kinds(database: Database) -> bool:
    """Return whether anything was probed over private addresses, and anything over public ones."""
    return all(
        database.row("SELECT 1 FROM used_samples AS samples WHERE address = ? LIMIT 1", (kind,))
        for kind in get_args(AddressKind)
    )


def read_address_kinds(
    database: Database, metric: Metric, *, since_s: float | None = None
) -> Iterator[BothKinds]:
    """Yield the values of links that were probed over both kinds of address.

    Parameters
    ----------
    database : Database
    metric : Metric
    since_s : float, optional
    """
    rows = np.fromiter(
        database.stream(
            "SELECT src_id, dst_id, address = 'private', value FROM used_samples AS samples "
            "WHERE metric_id = (SELECT id FROM metrics WHERE name = ?) AND measured_at_s >= ? "
            "AND src_id <> dst_id AND address IS NOT NULL ORDER BY src_id, dst_id",
            (metric, -1e300 if since_s is None else since_s),
        ),
        _BY_KIND,
    )
    regions = dict(database.rows("SELECT id, name FROM regions"))
    yield from by_address(rows, rows["is_private"], regions)


def by_address(
    rows: NDArray[np.void], is_private: NDArray[np.bool_], regions: Mapping[int, str]
) -> Iterator[BothKinds]:
    """Yield the values of links that have some of both kinds.

    Parameters
    ----------
    rows : structured array, length n
        By link; fields ``src``, ``dst`` and ``value``.
    is_private : array, length n
    regions : mapping of int to str
    """
    begin = 0
    for part in _runs(rows):
        kinds = is_private[begin : begin + len(part)]
        begin += len(part)
        private, public = (part["value"][kinds == kind] for kind in (True, False))
        if len(private) and len(public):
            src, dst = regions[int(part["src"][0])], regions[int(part["dst"][0])]
            yield BothKinds(src, dst, private, public)
