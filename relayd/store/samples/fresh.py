"""Samples that a command has just stored: the snapshot that it makes need not read them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relayd.store.database import Database
from relayd.store.samples.decisions import last_decision
from relayd.store.samples.encoding import Encoded

MOST = 2**18
"""Samples that are kept: some 30 MB."""


class FreshSamples:
    """All samples of a store that was empty before, while they are few and each was new."""

    def __init__(self) -> None:
        self._parts: list[Encoded] | None = []
        self._count = 0

    def add(self, found: Encoded, new: int) -> None:
        """Take in samples of which so many were new: no more are kept unless all were."""
        self._count += len(found.numbers)
        if new < len(found.numbers) or self._count > MOST:
            self._parts = None
        elif self._parts is not None:
            self._parts.append(found)

    def columns(self, database: Database, through: int) -> list[Sequence[Any]] | None:
        """Return :data:`~relayd.store.samples.reading.COLUMNS`, in the order of the table's key.

        None unless these are all samples up to an id, and nobody has decided about any or
        summarised some.
        """
        if not self._parts or self._count != through or last_decision(database):
            return None
        if database.row("SELECT 1 FROM compactions LIMIT 1"):
            return None
        key = [np.concatenate(column) for column in zip(*(p.key for p in self._parts), strict=True)]
        order = np.lexsort(key[::-1])
        batch_ids, numbers, new_levels = (
            np.concatenate([getattr(part, name) for part in self._parts])[order]
            for name in ("batch_ids", "numbers", "new_levels")
        )
        places = order.tolist()
        texts = []
        for name in ("detail", "address", "intervals"):
            each = [one for part in self._parts for one in getattr(part, name).each()]
            texts.append([each[place] for place in places])
        detail, address, intervals = texts
        *read, _ = (column[order] for column in key)  # all but the digest of the detail
        found: list[Any] = [*read, detail, batch_ids, numbers, address, new_levels, intervals]
        return found
