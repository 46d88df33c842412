"""Which series each reporter has brought: a metric of a link, over one kind of address.

Each takes time and memory in every snapshot for ever, so one token may bring only so many. Those of
commands on the store itself are not counted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from planner.model.errors import InputError
from relayd.store.database import Database

Series: TypeAlias = tuple[int, int, int, bool]
"""Ids of source region, destination region and metric, and whether over private addresses."""


def note_series(database: Database, source: str, found: Collection[Series], most: int) -> None:
    """Note the series that a source sends, within the transaction that stores them.

    Parameters
    ----------
    source : str
        As of batches.
    most : int
        How many it may bring in all; 0 for no limit.

    Raises
    ------
    InputError
        If they would be more.
    """
    new = database.change_many(
        "INSERT INTO reported_series VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        sorted((source, src, dst, metric, int(private)) for src, dst, metric, private in found),
    )
    if not new or not most:
        return
    (count,) = database.row("SELECT count(*) FROM reported_series WHERE source = ?", (source,))
    if count > most:
        raise InputError(
            "series",
            f"would be {count:,}, more than the {most:,} that it may report",
            value=source,
            remedy="Nothing of the batch was stored. A series is one metric of a link: send fewer, "
            "or let the operator raise `max_series` of the service, or make a token that may send "
            "more (`relayd token create NAME --max-series N`).",
        )


def series_by_source(database: Database) -> dict[str, int]:
    """Return how many series each source has brought."""
    counts = database.rows("SELECT source, count(*) FROM reported_series GROUP BY source")
    return {source: int(count) for source, count in counts}
