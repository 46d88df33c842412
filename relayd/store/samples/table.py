"""The table of samples: :class:`~probes.samples.Samples` as its rows, and back."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import AddressKind
from probes.samples import METRICS, OWN, ROW, Samples
from relayd.store.database import Database, Values

SETUP = ("tool", "src_zone", "dst_zone", "src_vm", "dst_vm")
"""What samples have in common in a row of ``setups``."""
KEY = (
    *("src_id", "dst_id", "metric_id", "measured_at_s", "value", "connections", "duration_s"),
    *("warmed_up", "setup_id", "detail_digest"),
)
IN_ORDER = " ORDER BY " + ", ".join(f"samples.{name}" for name in KEY)
"""The order of the table: nothing is sorted, and those of one time have one, too."""
_NUMBERS = (
    *("measured_at_s", "value", "connections", "duration_s", "warmed_up", "batch_id", "id"),
    "new_level",
)
"""Columns that are fields of samples as they are."""
_COLUMNS = (
    *_NUMBERS,
    "src_id",
    "dst_id",
    "metric_id",
    "setup_id",
    "detail",
    "address",
    "intervals",
)
_SELECT = f"SELECT {', '.join(f'samples.{name}' for name in _COLUMNS)} FROM "  # noqa: S608
_AT_ONCE = 50_000
TRUSTED_IMPORT = '%"trust": true%'
"""The options of a batch that was imported with ``--trust``."""


def table_rows(
    samples: Samples, ids: Sequence[NDArray[np.int64]], batch_id: int, numbers: range
) -> list[tuple[Any, ...]]:
    """Return samples as rows of the table, in the order of its key.

    Neighbours land on the same page then: a third faster.

    Parameters
    ----------
    ids : (sources, destinations, metrics, setups)
    batch_id : int
    numbers : range
        Ids of the samples.

    Raises
    ------
    UnicodeError
        If a detail holds U+0000.
    """
    rows = samples.rows
    texts = [samples.column(name) for name in ("detail", "address", "new_level", "intervals")]
    detail, address, new_level, intervals = texts
    src, dst, metric, setup = (column.tolist() for column in ids)
    numeric = (rows[name] for name in ("measured_at_s", "value", "connections", "duration_s"))
    columns: list[Any] = [
        *(src, dst, metric),
        *(column.tolist() for column in numeric),
        map(int, rows["warmed_up"].tolist()),
        setup,
        map(detail_digest, *texts),
        detail,
        repeat(batch_id, len(rows)),
        numbers,
        address,
        map(int, new_level),
        intervals,
    ]
    return sorted(zip(*columns, strict=True))


@lru_cache(maxsize=4096)  # many samples of a file say the same
def detail_digest(
    detail: str, address: AddressKind | None, new_level: bool, intervals: int | None
) -> int:
    """Return a number that differs where samples differ in these values alone; 0 without any."""
    refuse_nul(detail)
    stated = detail
    if address or new_level or intervals:
        stated += f"\n{address} {new_level} {intervals}"
    if not stated:
        return 0
    return int.from_bytes(blake2b(stated.encode(), digest_size=8).digest(), "big", signed=True)


def refuse_nul(*texts: str) -> None:
    """Raise for U+0000, which PostgreSQL cannot store: a store may move between engines."""
    if any("\0" in text for text in texts):
        raise UnicodeError("a text holds the character U+0000")


def read_samples(
    database: Database,
    of: str,
    values: Values = (),
    *,
    table: str = "used_samples AS samples",
    details: bool = True,
) -> Samples:
    """Return samples with who reported them: those that an operator confirmed are the own prober's.

    Parameters
    ----------
    of : str
        The rest of the query after ``FROM``: which samples, in which order.
    values : sequence or mapping
        In it.
    table : str
        What is read; it is called ``samples`` in the query.
    details : bool
        With what their tools said.
    """
    samples, parts = Samples(), list[NDArray[np.void]]()
    select = _SELECT if details else _SELECT.replace("samples.detail", "''")
    stream = database.stream(f"{select}{table} {of}", values)
    for columns in _chunks(stream):
        parts.append(rows := np.zeros(len(columns[0]), ROW))
        for name, column in zip(_NUMBERS, columns, strict=False):
            rows[name] = column
        *ids, detail, address, intervals = columns[len(_NUMBERS) :]
        for name, column in zip(("src", "dst", "source", "tool"), ids, strict=True):
            rows[name] = column  # ids, for now: names that came later are read after them
        part = Samples(rows, samples.names, samples.details)
        for name, column in (("detail", detail), ("address", address), ("intervals", intervals)):
            part.fill(name, column)
    if not parts:
        return samples
    found = Samples(np.concatenate(parts), samples.names, samples.details)
    _name(database, found)
    _add_sources(database, found)
    return found


def _chunks(stream: Iterator[Any]) -> Iterator[list[Any]]:
    while rows := list(islice(stream, _AT_ONCE)):
        yield list(zip(*rows, strict=True))


def _name(database: Database, samples: Samples) -> None:
    """Put numbers of names in place of the ids of the database."""
    rows, names = samples.rows, samples.names
    regions = dict(database.rows("SELECT id, name FROM regions"))
    for number in np.union1d(rows["src"], rows["dst"]).tolist():
        names[regions[number]]  # in the order of ids, which is that of the table
    for end in ("src", "dst"):
        rows[end] = _looked_up(rows[end], regions, lambda name: names[name])
    metrics = dict(database.rows("SELECT id, name FROM metrics"))
    rows["metric"] = _looked_up(rows["source"], metrics, METRICS.index)
    setups = {
        one[0]: one[1:]
        for one in database.rows("SELECT id, tool, src_zone, dst_zone, src_vm, dst_vm FROM setups")
    }
    setup = rows["tool"].copy()
    for place, name in enumerate(SETUP):
        rows[name] = _looked_up(setup, setups, lambda one, at=place: names[one[at]])


def _looked_up(ids: NDArray[Any], known: dict[int, Any], number_of: Any) -> NDArray[Any]:
    used, place = np.unique(ids, return_inverse=True)
    return np.array([number_of(known[one]) for one in used.tolist()], np.int32)[place]


def _add_sources(database: Database, samples: Samples) -> None:
    """Add who reported the samples, and when."""
    rows = samples.rows
    used, place = np.unique(rows["batch_id"], return_inverse=True)
    by = {
        number: (samples.names[source], at_s, bool(vouched))
        for number, source, at_s, vouched in database.stream(
            "SELECT id, source, imported_at_s, CASE WHEN options LIKE ? THEN 1 ELSE 0 END "
            "FROM batches WHERE id >= ? AND id <= ?",
            (TRUSTED_IMPORT, int(used[0]), int(used[-1])),
        )
    }
    for field, column in zip(
        ("source", "arrived_at_s", "vouched"),
        zip(*(by[number] for number in used.tolist()), strict=True),
        strict=False,
    ):
        rows[field] = np.array(column)[place]
    confirmed = [number for (number,) in database.rows("SELECT sample_id FROM confirmed_samples")]
    if confirmed:
        confirm(samples, confirmed)


def confirm(samples: Samples, ids: Collection[int]) -> None:
    """Make those samples that an operator confirmed the own prober's."""
    confirmed = np.isin(samples.rows["id"], list(ids))
    samples.rows["source"][confirmed] = samples.names[OWN]
    samples.rows["arrived_at_s"][confirmed] = np.inf
    samples.rows["vouched"][confirmed] = True
