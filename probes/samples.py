"""A sample: one measurement, with everything needed to judge it later.

Many are one structured array, :class:`Samples`; :class:`Sample` is a row of it that people see.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, get_args, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.model.estimate import AddressKind
from probes.metrics import MAX_DURATION_S, NAMES, Metric, number_of

ADDRESSES: tuple[AddressKind | None, ...] = (None, *get_args(AddressKind))


MAX_CONNECTIONS = 65_535
MAX_INTERVALS = 10**6
# A time in seconds since 1970 lies between 1973 and 2286; milliseconds do not fit in here.
MIN_TIME_S, MAX_TIME_S = 1e8, 1e10


class Sample(NamedTuple):
    """One measurement of one metric from one region to another.

    Bounds are those of samples from elsewhere.

    Attributes
    ----------
    src, dst : str
        Region ids (``provider:region``), without a zone.
    metric : Metric
        The name ends in the unit of ``value``.
    value : float
        As the tool gave it at the receiving side, not corrected.
    measured_at_s : float
        Start of the measurement, seconds since 1970 (UTC).
    tool : str
        ``iperf3``, ``ping``, ``skyplane``, ... with its version where known.
    connections : int | None
        Parallel TCP connections; None where the notion does not apply.
    duration_s : float | None
        Length of the measured interval, without omitted seconds.
    warmed_up : bool
        Whether slow start was left out (for instance by ``iperf3 -O``).
    src_zone, dst_zone : str
        Zone suffix (``a``), or ``""``.
    src_vm, dst_vm : str
        VM type name, or ``""``.
    detail : str
        JSON object with further figures of the tool, or ``""``: see :meth:`read_detail`.
    address : AddressKind | None
        Kind of address that it was measured over, where that is known.
    new_level : bool
        Whether a verification measured twice and found that the link has changed its level.
    intervals : int | None
        Number of the test's intervals whose median the value is; None where they were not kept.
    """

    src: str
    dst: str
    metric: Metric
    value: Annotated[float, Field(ge=0)]
    measured_at_s: Annotated[float, Field(ge=MIN_TIME_S, le=MAX_TIME_S)]
    tool: str
    connections: Annotated[int, Field(ge=1, le=MAX_CONNECTIONS)] | None = None
    duration_s: Annotated[float, Field(gt=0, le=MAX_DURATION_S)] | None = None
    warmed_up: bool = False
    src_zone: str = ""
    dst_zone: str = ""
    src_vm: str = ""
    dst_vm: str = ""
    detail: str = ""
    address: AddressKind | None = None
    new_level: bool = False
    intervals: Annotated[int, Field(ge=1, le=MAX_INTERVALS)] | None = None

    def read_detail(self) -> dict[str, Any]:
        """Return the tool's further figures; see :func:`read_detail`."""
        return read_detail(self.detail)

    def with_detail(self, **more: object) -> Self:
        """Return the sample with more in its detail."""
        return self._replace(detail=json.dumps(self.read_detail() | more))


def read_detail(text: str) -> dict[str, Any]:
    """Return a sample's detail as an object; empty where there is none, or it is malformed.

    Clients may have sent anything.
    """
    try:
        detail = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return detail if isinstance(detail, dict) else {}


TRANSFER = "transfer"
"""The tool of samples of finished transfers: something other than the path may have held them."""

KNOWN_LIMITS = "network", "application", "disk"
"""What a sample may state to have limited it (`limited_by` in its detail)."""

OWN = ""
"""The source of this store's own prober and of batches that its operator vouches for: trusted."""
FILES = "files"
"""The source of other files that whoever may write the store has imported."""


ROW = np.dtype(
    [
        ("src", "i4"),
        ("dst", "i4"),
        ("metric", "i1"),
        ("value", "f8"),
        ("measured_at_s", "f8"),
        ("tool", "i4"),
        ("connections", "i8"),
        ("duration_s", "f8"),
        ("warmed_up", "?"),
        ("src_zone", "i4"),
        ("dst_zone", "i4"),
        ("src_vm", "i4"),
        ("dst_vm", "i4"),
        ("detail", "i4"),
        ("address", "i1"),
        ("new_level", "?"),
        ("intervals", "i8"),
        # Its source and its arrival:
        ("source", "i4"),
        ("id", "i8"),
        ("batch_id", "i8"),
        ("arrived_at_s", "f8"),
        ("vouched", "?"),
    ]
)
"""A row of :class:`Samples`, with the fields of a :class:`Sample`, and its reporter.

Texts are numbers of names, the detail one of details, and 0 is the empty one. A metric is a place
in :data:`probes.metrics.NAMES`, an address in :data:`ADDRESSES`. Without a notion of connections,
duration or intervals, these are 0. ``arrived_at_s`` is infinite where that is not known.
"""
TEXTS = ("src", "dst", "tool", "src_zone", "dst_zone", "src_vm", "dst_vm", "source")
"""Fields that are numbers of names."""
_OPTIONAL = ("connections", "duration_s", "intervals")
Series: TypeAlias = tuple[str, str, Metric]
Rows: TypeAlias = NDArray[np.void]


def distinct(numbers: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the small numbers that occur, ascending, and the place of each one among them.

    This is :func:`numpy.unique` without sorting: numbers are not negative.
    """
    used = np.flatnonzero(np.bincount(numbers.reshape(-1)))
    places = np.zeros(int(used.max(initial=-1)) + 1, np.int64)
    places[used] = np.arange(len(used))
    return used, places[numbers]


class NameTable(dict[str, int]):
    """Numbers of names, in the order in which they were first asked for; 0 is ``""``."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__({"": 0})
        for name in names:
            self[name]

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number

    def numbers(self, names: Iterable[str]) -> NDArray[np.int32]:
        """Return the number of each name; new names get one."""
        return np.array([self[name] for name in names], np.int32)


@dataclass(frozen=True, slots=True)
class Samples:
    """Many samples as one array. Iterating yields each as a :class:`Sample`.

    Attributes
    ----------
    rows : structured array, length n
        Of :data:`ROW`.
    names, details : NameTable
        Texts and details by their numbers; parts of samples share them.
    """

    rows: Rows = field(default_factory=lambda: np.zeros(0, ROW))
    names: NameTable = field(default_factory=NameTable)
    details: NameTable = field(default_factory=NameTable)

    @classmethod
    def of(cls, samples: Iterable[Sample], source: str = OWN) -> Samples:
        """Return samples as an array.

        Raises InputError if a metric is not one that relayd knows; TypeError or OverflowError if a
        value or a time is no number.
        """
        columns = list(zip(*samples, strict=True))
        found = cls(np.zeros(len(columns[0]) if columns else 0, ROW))
        for name, column in zip(Sample._fields, columns, strict=False):
            found.fill(name, column)
        found.rows["source"] = found.names[source]
        found.rows["arrived_at_s"] = inf
        return found

    @classmethod
    def concat(cls, parts: Iterable[Samples]) -> Samples:
        """Return samples one after the other, with tables of their own unless all share them."""
        listed = list(parts)
        if not listed:
            return cls()
        first = listed[0]
        if all(one.names is first.names and one.details is first.details for one in listed):
            return cls(np.concatenate([one.rows for one in listed]), first.names, first.details)
        names, details = NameTable(first.names), NameTable(first.details)
        rows = [first.rows]
        for one in listed[1:]:
            renamed = one.with_names(names).rows.copy()
            renamed["detail"] = details.numbers(one.details)[renamed["detail"]]
            rows.append(renamed)
        return cls(np.concatenate(rows), names, details)

    @property
    def are_transfers(self) -> NDArray[np.bool_]:
        """Which of them are of transfers, length n."""
        return np.asarray(self.rows["tool"] == self.names.get(TRANSFER, -1))

    def with_names(self, names: NameTable) -> Samples:
        """Return samples whose texts are numbers among other names, to which theirs are added."""
        number = names.numbers(self.names)
        if (number == np.arange(len(number))).all():  # the same numbers: no copy
            return Samples(self.rows, names, self.details)
        rows = self.rows.copy()
        for text in TEXTS:
            rows[text] = number[rows[text]]
        return Samples(rows, names, self.details)

    def fill(self, name: str, values: Iterable[Any]) -> None:
        """Write a field of all samples, from values as a :class:`Sample` has them."""
        rows = self.rows
        if name in TEXTS:
            rows[name] = self.names.numbers(values)
        elif name == "detail":
            rows[name] = self.details.numbers(values)
        elif name == "metric":
            rows[name] = [number_of(value) for value in values]
        elif name == "address":
            rows[name] = [ADDRESSES.index(value) for value in values]
        elif name in _OPTIONAL:
            rows[name] = [value or 0 for value in values]
        elif rows.dtype[name].kind == "f":
            # Texts would be read as numbers otherwise; and there is no -0.0.
            rows[name] = [value + 0.0 for value in values]
        else:
            rows[name] = list(values)

    def column(self, name: str) -> list[Any]:
        """Return a field of all samples, with values as a :class:`Sample` has them."""
        values: list[Any] = self.rows[name].tolist()
        if name in TEXTS or name == "detail":
            texts = list(self.details if name == "detail" else self.names)
            return [texts[value] for value in values]
        if name == "metric":
            return [NAMES[value] for value in values]
        if name == "address":
            return [ADDRESSES[value] for value in values]
        return [value or None for value in values] if name in _OPTIONAL else values

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Sample]:
        """Yield each sample."""
        return map(Sample._make, zip(*map(self.column, Sample._fields), strict=True))

    @overload
    def __getitem__(self, places: int) -> Sample: ...
    @overload
    def __getitem__(self, places: slice | NDArray[Any] | list[int]) -> Samples: ...
    def __getitem__(self, places: Any) -> Sample | Samples:
        """Return one sample, or those in some places, or where a mask is true."""
        if isinstance(places, int | np.integer):
            return next(iter(Samples(self.rows[[int(places)]], self.names, self.details)))
        return Samples(self.rows[places], self.names, self.details)

    def in_order(self, order: NDArray[np.int64]) -> Samples:
        """Return the samples in an order; these themselves, and no copy, if they have it."""
        return self if (np.diff(order) == 1).all() else self[order]

    def regions(self) -> set[str]:
        """Return the regions at either end of any sample."""
        names = list(self.names)
        return {names[n] for end in ("src", "dst") for n in np.unique(self.rows[end]).tolist()}

    def of_metric(self, *metrics: Metric) -> Samples:
        """Return the samples of some metrics."""
        return self[np.isin(self.rows["metric"], [number_of(one) for one in metrics])]

    def mapped(self, name: str, function: Callable[[str], Any]) -> NDArray[Any]:
        """Apply a function to a text of each sample; it is called once for each text."""
        used, place = distinct(self.rows[name])
        names = list(self.names)
        return np.array([function(names[number]) for number in used.tolist()])[place]

    def groups(self) -> Iterator[tuple[Series, Samples]]:
        """Yield source, destination and metric with the samples of each, in the order they have.

        Series come in the order of their regions' numbers, and of metrics.
        """
        rows = self.rows
        ordered = self.in_order(np.lexsort((rows["metric"], rows["dst"], rows["src"])))
        keys = ordered.rows[["src", "dst", "metric"]]
        cuts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
        names = list(self.names)
        for part in np.split(ordered.rows, cuts) if len(keys) else ():
            src, dst, metric = (int(part[name][0]) for name in ("src", "dst", "metric"))
            series = names[src], names[dst], NAMES[metric]
            yield series, Samples(part, self.names, self.details)


class QuarantinedSample(NamedTuple):
    """A sample that can't be a measurement, and the reason: stored elsewhere, used nowhere.

    Attributes
    ----------
    id : int
        In a store; 0 before it is stored.
    batch_id : int
        The batch that brought it.
    batch : str
        That batch's name.
    reporter, address : str
        Name of the token that sent it, and from where; ``""`` for commands on the store itself.
    arrived_at_s : float
        Seconds since 1970 (UTC).
    decided_by, decided_at_s, decided_because, accepted_in
        Who accepted or rejected it, when and why, and the batch that has it since; None while it
        is open.
    """

    sample: Sample
    reason: str
    id: int = 0
    batch_id: int = 0
    batch: str = ""
    reporter: str = ""
    address: str = ""
    arrived_at_s: float = 0.0
    decided_by: str | None = None
    decided_at_s: float | None = None
    decided_because: str | None = None
    accepted_in: int | None = None


class SkippedRow(NamedTuple):
    """A row that an importer left out, or 0 where its number is not known, and the reason."""

    row: int
    reason: str
