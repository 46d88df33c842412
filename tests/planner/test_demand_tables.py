"""Demands in the tables of other tools, long and wide, read as one mapping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.fields.demands import demands_gb
from planner.model.errors import InputError
from planner.shuffle.request import ShuffleRequest

A, B, C = "aws:us-east-1", "gcp:us-east1", "azure:eastus"
LONG = pd.DataFrame({"src": [A, A, B], "dst": [B, C, A], "volume_gb": [1.0, 2.0, 4.0]})
WIDE = LONG.pivot_table(index="src", columns="dst", values="volume_gb")
RIGHT = {(A, B): 1.0, (A, C): 2.0, (B, A): 4.0}


def test_tables_of_pandas_and_numpy() -> None:
    for table in (
        LONG,
        LONG[["volume_gb", "dst", "src"]],
        LONG.rename(columns={"src": "source", "dst": "destination", "volume_gb": "gb"}),
        LONG.groupby(["src", "dst"])["volume_gb"].sum(),
        LONG.groupby(["dst", "src"]).sum(),
        WIDE,
        WIDE.reset_index(),
        WIDE.rename_axis(None).reset_index(),
        WIDE.stack().dropna().rename_axis([None, None]),
        LONG.to_records(index=False),
    ):
        assert demands_gb(table) == RIGHT
        assert ShuffleRequest(table).demands_gb == RIGHT


@pytest.mark.engines
def test_tables_of_dask() -> None:
    dask = pytest.importorskip("dask.dataframe")
    assert demands_gb(dask.from_pandas(LONG, npartitions=2)) == RIGHT


def test_tables_of_arrow_and_xarray() -> None:
    arrow = pytest.importorskip("pyarrow").Table
    assert demands_gb(arrow.from_pandas(LONG)) == RIGHT
    assert demands_gb(arrow.from_pandas(WIDE.reset_index(), preserve_index=False)) == RIGHT
    xarray = pytest.importorskip("xarray")
    square = WIDE.reindex(index=[A, B, C], columns=[A, B, C])
    for cells, dims in ((square, ("src", "dst")), (square.T, ("dst", "src"))):
        labels = {dims[0]: [A, B, C], dims[1]: [A, B, C]}
        assert demands_gb(xarray.DataArray(cells.to_numpy(), dims=dims, coords=labels)) == RIGHT


@given(
    st.integers(2, 5).flatmap(lambda n: st.lists(st.integers(0, 9), min_size=n * n, max_size=n * n))
)
def test_all_shapes_of_one_table_say_the_same(cells: list[int]) -> None:
    size = round(len(cells) ** 0.5)
    names = [f"aws:r{n}" for n in range(size)]
    matrix = np.array(cells, float).reshape(size, size)
    moved = matrix * (1 - np.eye(size))
    if not moved.any():
        with pytest.raises(InputError, match="nothing"):
            demands_gb(matrix, names)
        return
    wide = pd.DataFrame(matrix, index=names, columns=names)
    found = demands_gb(matrix, names)
    assert sum(found.values()) == moved.sum()
    for shape in (wide, wide.stack(), wide.reset_index(), wide.T.to_dict()):
        assert demands_gb(shape) == found


def test_what_is_wrong_in_a_table_is_told() -> None:
    wrong: dict[str, Any] = {
        "must be a finite number": LONG.assign(volume_gb=[1, 2, float("nan")]),
        "must be a finite number of GB": np.array([[0, float("nan")], [1, 0]]),
        "is given twice": pd.concat([LONG, LONG]),
        "must be rows of src, dst and volume_gb": LONG.assign(priority=1),
        "must have shape": np.array([[0, 1, 2]]),
        "is not a number of GB": [(A, B, 10**400)],
    }
    for said, table in wrong.items():
        with pytest.raises(InputError, match=said):
            demands_gb(table, [A, B])
