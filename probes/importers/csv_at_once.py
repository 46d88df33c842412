"""Samples of many rows of a CSV file at once: what each cell means is read once, and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.importers import limits
from probes.sample_columns import Coded, SampleColumns
from probes.samples import Metric

_MOST_CELLS = 65_536
ABOUT_RATES = ("per_flow_mbps", "aggregate_mbps", "udp_mbps")


class CsvFigure(NamedTuple):
    """A column that has a figure, and how its unit becomes that of the metric."""

    at: int
    column: str
    metric: Metric
    factor: float


class CsvColumns(NamedTuple):
    """What the columns of a file are: by meaning, where others are and their factors."""

    figures: list[CsvFigure]
    others: dict[str, tuple[int, float]]
    unused: list[str]


class Cells(dict[str, int]):
    """What the cells of a column mean, each read once: most files repeat theirs.

    Of each cell it has the place of its meaning.

    Parameters
    ----------
    read : callable
        Returns what a cell means, or raises ValueError with the reason for which its row is
        skipped.
    """

    def __init__(self, read: Callable[[str], Any]) -> None:
        super().__init__()
        self._read = read
        self._meanings: list[Any] = []

    def __missing__(self, cell: str) -> int:
        meaning = self._read(cell.strip())
        self[cell] = place = len(self._meanings)
        self._meanings.append(meaning)
        return place

    def meaning(self, cell: str) -> Any:
        """Return what a cell means."""
        place = self[cell]
        found = self._meanings[place]
        self._forget()
        return found

    def coded(self, cells: Sequence[str]) -> Coded:
        """Return what many cells mean."""
        places = np.fromiter(map(self.__getitem__, cells), np.intp, len(cells))
        meanings: Sequence[Any] = self._meanings
        if len(meanings) > len(cells):
            used, places = np.unique(places, return_inverse=True)
            meanings = [meanings[place] for place in used.tolist()]
        self._forget()
        return Coded(meanings, places)

    def _forget(self) -> None:
        if len(self) >= _MOST_CELLS:
            self.clear()
            self._meanings = []


def volume_detail(volume_gb: float | None) -> str:
    """Return the detail of a transfer of a volume."""
    return json.dumps({"volume_gb": volume_gb})


def samples_at_once(
    cells: Sequence[Sequence[str]], columns: CsvColumns, readers: Mapping[str, Cells]
) -> SampleColumns | None:
    """Return the samples of many rows; None if anything is wrong with one of them."""
    count, metrics = len(cells[0]), [figure.metric for figure in columns.figures]

    def meaning(name: str) -> Coded:
        if name not in columns.others:
            return Coded.same(readers[name].meaning(""), count)
        return readers[name].coded(cells[columns.others[name][0]])

    values = [_values(cells[figure.at], figure) for figure in columns.figures]
    of_rows = np.array([one for one in values if one is not None])
    try:
        setting = {name: meaning(name) for name in readers if name != "measured_at"}
        times_s = _times_s(cells, columns, readers["measured_at"])
    except ValueError:
        return None
    if len(of_rows) < len(values) or np.isnan(of_rows).all(axis=0).any():
        return None
    if "transfer_s" in metrics and None in setting["volume"].each():
        return None
    # As the rows come, and of each the figures in their order.
    rows, figures = np.nonzero(~np.isnan(of_rows.T))
    at = setting if len(metrics) == 1 else {k: one.take(rows) for k, one in setting.items()}
    src, dst = (at[end].mapped(itemgetter(0)) for end in ("src", "dst"))
    if _has_loops(src, dst):
        return None
    about_rates = np.array([metric in ABOUT_RATES for metric in metrics])[figures]
    alone = np.array([metric == "per_flow_mbps" for metric in metrics])[figures]
    transfers = np.array([metric == "transfer_s" for metric in metrics])[figures]
    none = Coded.same(None, len(rows))
    src_zone, dst_zone = (
        _zone(at[f"{end}_zone"], at[end].mapped(itemgetter(1))) for end in ("src", "dst")
    )
    return SampleColumns(
        src,
        dst,
        Coded(metrics, figures),
        of_rows.T[rows, figures],
        times_s[rows],
        at["tool"],
        at["connections"].where(about_rates, None).where(~alone, 1),
        at["duration"].where(about_rates, None),
        at["warmed_up"].where(about_rates, other=False),
        src_zone,
        dst_zone,
        at["src_vm"],
        at["dst_vm"],
        at["volume"].mapped(volume_detail).where(transfers, ""),
        none,
        Coded.same(value=False, count=len(rows)),
        none,
    )


def _times_s(
    cells: Sequence[Sequence[str]], columns: CsvColumns, reader: Cells
) -> NDArray[np.float64]:
    if "measured_at" not in columns.others:
        return np.full(len(cells[0]), reader.meaning(""))
    written = cells[columns.others["measured_at"][0]]
    times_s = limits.numbers(written)  # each row may have its own
    if times_s is not None and limits.are_times(times_s).all():
        return times_s
    return np.array(reader.coded(written).each())


def _has_loops(src: Coded, dst: Coded) -> bool:
    """Return whether any source is its own destination."""
    numbers: dict[str, int] = {}
    ends = (
        np.array([numbers.setdefault(name, len(numbers)) for name in end.values])[end.codes]
        for end in (src, dst)
    )
    return bool(np.equal(*ends).any())


def _zone(stated: Coded, split_off: Coded) -> Coded:
    if not any(stated.values):
        return split_off
    both = zip(stated.each(), split_off.each(), strict=True)
    return Coded.of([one or other for one, other in both])


def _values(written: Sequence[str], figure: CsvFigure) -> NDArray[np.float64] | None:
    """Return a column's figures, NaN for empty cells; None if one can't be a measurement."""
    found, are_stated = limits.numbers(written), None
    if found is None:
        are_stated = np.array([bool(cell and not cell.isspace()) for cell in written])
        found = limits.numbers([written[place] for place in np.flatnonzero(are_stated).tolist()])
        if found is None:
            return None
    with np.errstate(over="ignore"):  # infinite then, which nothing can be
        found *= figure.factor
    if not limits.are_possible(figure.metric, found).all():
        return None
    if are_stated is None:
        return found
    values = np.full(len(written), np.nan)
    values[are_stated] = found
    return values
