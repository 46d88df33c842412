"""A cache of answers as bytes, bounded in memory (least recently used first out)."""

from __future__ import annotations

from collections import OrderedDict

# Memory of an entry in addition to its key and value: two objects, a node of the table.
_OVERHEAD_BYTES = 250


class PlanCache:
    """Bytes by key; those that were not asked for longest go first.

    One cache belongs to one state of knowledge and goes with it, so nothing in it can be stale.

    Parameters
    ----------
    most_bytes : int
        Of keys, values and overhead together; 0 keeps nothing.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[str, bytes] = OrderedDict()
        self.used_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> bytes | None:
        """Return what was kept under a key."""
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def keep(self, key: str, value: bytes) -> None:
        """Keep a value; under two keys it counts twice, which is on the safe side."""
        cost = len(key) + _OVERHEAD_BYTES + len(value)
        if cost > self._most_bytes or key in self._entries:
            return
        self._entries[key] = value
        self.used_bytes += cost
        while self.used_bytes > self._most_bytes:
            old, gone = self._entries.popitem(last=False)
            self.used_bytes -= len(old) + _OVERHEAD_BYTES + len(gone)
