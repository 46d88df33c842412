"""What is wrong with a store, and where."""

from __future__ import annotations

from typing import NamedTuple

MOST = 100
"""Findings of a table that are kept: a disk that fails may damage every row."""


class Damage(NamedTuple):
    """Something that is not as it was stored, or as it should be.

    Attributes
    ----------
    table : str
        Empty where it is not in one table.
    row : str
        The key of the row, such as ``batch_id 3, id 17``; empty where it is not in one row.
    problem : str
        Such as ``is not what was stored``.
    """

    table: str
    row: str
    problem: str
