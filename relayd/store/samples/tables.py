"""Samples as rows of the table that estimates are made from, without an object for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.estimation.arrays.sample_table import ADDRESSES, ROW, Rows, SampleTable
from probes.samples import OWN
from relayd.store.samples.reading import BATCH, BatchSource, BatchSources, SampleNames

_ADDRESSES = {address: place for place, address in enumerate(ADDRESSES)}


class ReportedRows(NamedTuple):
    """Samples with who reported them, as :class:`probes.samples.Reported` has them.

    Attributes
    ----------
    rows : Rows
    arrived_at_s : array
    vouched : array of bool
    """

    rows: Rows
    arrived_at_s: NDArray[np.float64]
    vouched: NDArray[np.bool_]


class RowReader:
    """Makes rows of a table of rows of the database.

    Parameters
    ----------
    names : SampleNames
        Of the database.
    confirmed : set of int
        Ids of samples that an operator confirmed.
    table : SampleTable
        Gets the names that occur.
    """

    def __init__(self, names: SampleNames, confirmed: set[int], table: SampleTable) -> None:
        self._table = table
        self._confirmed = np.array(sorted(confirmed), np.int64)
        setups = names.setups
        self._regions = _Renumbered(names.regions, table.regions.__getitem__)
        self._metrics = _Renumbered(names.metrics, table.metrics.__getitem__)
        vms: tuple[Mapping[int, str], ...] = tuple(
            {number: setup[place] for number, setup in setups.items()} for place in (3, 4)
        )
        self._vms = [_Renumbered(of_end, table.vms.__getitem__) for of_end in vms]

    def read(
        self, columns: Sequence[Sequence[Any]], sources: BatchSources | Mapping[int, BatchSource]
    ) -> ReportedRows:
        """Return samples as rows of the table.

        Parameters
        ----------
        columns : sequence of sequences
            :data:`~relayd.store.samples.reading.COLUMNS`.
        sources : BatchSources or mapping
            Who reported the samples of a batch, by its id.
        """
        rows = np.zeros(len(columns[0]), ROW)
        for name, place in _PLACES.items():
            rows[name] = columns[place]
        rows["src"], rows["dst"] = (self._regions.of(np.array(columns[n])) for n in (0, 1))
        rows["metric"] = self._metrics.of(np.array(columns[2]))
        setups = np.array(columns[8])
        rows["src_vm"], rows["dst_vm"] = (of_end.of(setups) for of_end in self._vms)
        details, addresses = columns[9], columns[12]
        if addresses.count(None) < len(addresses):
            rows["address"] = list(map(_ADDRESSES.__getitem__, addresses))
        rows["detail"] = -1
        if details.count("") < len(details):
            for place in [place for place, detail in enumerate(details) if detail]:
                rows["detail"][place] = self._table.detail(details[place])
        return self._with_sources(rows, np.array(columns[BATCH]), sources)

    def _with_sources(
        self,
        rows: Rows,
        batch: NDArray[np.int64],
        sources: BatchSources | Mapping[int, BatchSource],
    ) -> ReportedRows:
        batches, number = np.unique(batch, return_inverse=True)
        of_batch = [sources[one] for one in batches.tolist()]
        confirmed = np.zeros(len(rows), np.bool_)
        if len(self._confirmed):
            confirmed = np.isin(rows["number"], self._confirmed)
        arrived_at_s = np.array([one.arrived_at_s for one in of_batch])[number]
        vouched = np.array([one.vouched for one in of_batch], np.bool_)[number] | confirmed
        names = sorted({one.source for one in of_batch} | ({OWN} if confirmed.any() else set()))
        numbers = {name: self._table.sources[name] for name in names}
        rows["source"] = np.array([numbers[one.source] for one in of_batch])[number]
        if confirmed.any():
            rows["source"][confirmed] = numbers[OWN]
        return ReportedRows(rows, arrived_at_s, vouched)


_PLACES = {
    "at_s": 3,
    "value": 4,
    "connections": 5,
    "duration_s": 6,
    "warmed_up": 7,
    "number": 11,
    "new_level": 13,
}


class _Renumbered:
    """Numbers in a table of what has other numbers in the database; given when first needed."""

    def __init__(self, names: Mapping[int, str], number_of: Callable[[str], int]) -> None:
        self._names, self._number_of = names, number_of
        self._known = np.full(max(names, default=0) + 1, -1, np.int32)

    def of(self, numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the table's numbers for those of the database."""
        found: NDArray[np.int32] = self._known[numbers]
        if (missing := found < 0).any():
            for number in set(numbers[missing].tolist()):
                self._known[number] = self._number_of(self._names[number])
            found = self._known[numbers]
        return found
