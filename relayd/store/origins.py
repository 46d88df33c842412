"""Origins of a snapshot's estimates, each once, without the counts and times of their samples."""

from __future__ import annotations

import json
from functools import lru_cache
from json import loads

from planner.model.estimate import Figures, Origin, figures_as_json, figures_of
from relayd.store.database import Database

_ORIGINS = "SELECT number, kind, method, address, figures FROM origins WHERE snapshot_key = ?"


def save_origins(database: Database, key: int, numbers: dict[Origin, int]) -> None:
    """Save the origins of a snapshot under their numbers."""
    rows = []
    for origin, number in numbers.items():
        figures = None if origin.figures is None else json.dumps(figures_as_json(origin.figures))
        row = (key, number, origin.kind, origin.method, origin.address, figures)
        rows.append(row)
    database.insert("origins", rows)


def read_origins(database: Database, key: int) -> dict[int, Origin]:
    """Return the origins of a snapshot by number.

    Raises
    ------
    StoreError
        If one is not what was stored.
    """
    found = {}
    for number, kind, method, address, figures in database.rows(_ORIGINS, (key,)):
        # By position: names take longer to be put in order, and there are many.
        found[number] = Origin(kind, method, 0, 0, None, None, address, _figures(figures))
    return found


@lru_cache(maxsize=1024)
def _figures(text: str | None) -> Figures | None:
    if text is None:
        return None
    return figures_of(loads(text))
