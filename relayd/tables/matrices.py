"""One figure for every pair of regions, as a labelled matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from planner.model.aliases import resolve
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.estimate import Kind
from planner.model.network import Snapshot
from planner.model.notebook import html_table, shortened
from planner.model.pricing import NO_CATALOGUE
from relayd.tables.link_table import imported_pandas

if TYPE_CHECKING:
    import pandas as pd

MatrixMetric: TypeAlias = Literal[
    "per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age"
]
MATRIX_METRICS: tuple[MatrixMetric, ...] = get_args(MatrixMetric)
CellSources: TypeAlias = tuple[tuple[Kind | None, ...], ...]
UNITS = {
    "per-flow": "Mbit/s",
    "aggregate": "Gbit/s",
    "rtt": "ms",
    "fee": "USD/GB",
    "relay-gain": "ratio",
    "loss": "%",
    "age": "s",
}


@dataclass(frozen=True, slots=True, repr=False)
class Matrix:
    """A labelled matrix, row to column; NumPy takes it for its array of values.

    Attributes
    ----------
    metric, unit : str
    regions : tuple of str, length n
    values : array, shape (n, n)
        NaN on the diagonal and where no value is known.
    snapshot : Snapshot
    sources : tuple of n tuples of n, optional
        Basis of each value: ``measured``, ``inferred`` or ``baseline``, None where no value is
        known. A relay gain has the least sure source of the links that it compares. None for
        metrics that are no estimates (``fee``, ``loss``, ``age``).
    """

    metric: str
    unit: str
    regions: tuple[str, ...]
    values: NDArray[np.float64]
    snapshot: Snapshot
    sources: CellSources | None = None
    _catalogue: Catalogue = field(default=NO_CATALOGUE, compare=False)
    """Has the other names of regions; JSON leaves it out, as orjson does with such names."""

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """Value of one pair of regions; errors as of :meth:`among`."""
        return float(self.values[tuple(map(self._position, pair))])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype, copy=copy)

    def among(self, names: Sequence[str]) -> Matrix:
        """Part of it, of these regions by id, alias or city, in this order.

        Raises InputError if a name fits no region of it.
        """
        at = list(map(self._position, names))
        sources = self.sources and tuple(tuple(self.sources[i][j] for j in at) for i in at)
        regions, values = tuple(self.regions[i] for i in at), self.values[np.ix_(at, at)]
        return replace(self, regions=regions, values=values, sources=sources)

    def _position(self, name: str) -> int:
        own = self.regions
        if name not in own:
            name = resolve(name, self._catalogue, known=own, preferred=lambda: own).region_id
            if name not in own:
                raise InputError("region", "is not in this matrix", value=name)
        return own.index(name)

    def __repr__(self) -> str:
        """Name the metric, the number of regions, and the range of values."""
        known = np.sort(self.values[~np.isnan(self.values)]).tolist()
        values = (
            f"{len(known):,} values from {known[0]:.4g} to {known[-1]:.4g} {self.unit}, "
            f"median {known[len(known) // 2]:.4g}"
            if known
            else "no values"
        )
        return f"<Matrix {self.metric} of {len(self.regions)} regions: {values}>"

    def _repr_html_(self) -> str:
        shown = shortened(len(self.regions))
        names = ["…" if i is None else self.regions[i] for i in shown]
        rows = [
            [name, *("…" if i is None or j is None else _cell(self.values[i, j]) for j in shown)]
            for name, i in zip(names, shown, strict=True)
        ]
        return html_table(repr(self)[1:-1], ["", *names], rows)

    def to_frame(self, *, wide: bool = False) -> pd.DataFrame:
        """Return a data frame (needs pandas, the extra ``relayd[pandas]``).

        Parameters
        ----------
        wide : bool
            False for a row for each pair with a value: ``src``, ``dst``, ``value`` and, where
            values are estimates, ``source``. True for sources as index and destinations as
            columns.
        """
        pandas = imported_pandas()
        names = list(self.regions)
        if wide:
            frame: pd.DataFrame = pandas.DataFrame(self.values, names, names)
            return frame
        known = np.argwhere(~np.isnan(self.values)).tolist()
        columns: dict[str, list[object]] = {
            "src": [names[i] for i, _ in known],
            "dst": [names[j] for _, j in known],
            "value": [self.values[i, j] for i, j in known],
        }
        if self.sources is not None:
            columns["source"] = [self.sources[i][j] for i, j in known]
        tidy: pd.DataFrame = pandas.DataFrame(columns)
        return tidy


def _cell(value: float) -> str:
    return f"{value:.4g}" if value == value else ""
