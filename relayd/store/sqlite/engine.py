"""SQLite's own module, without what the standard library adds for dates, which loads slowly."""

from __future__ import annotations

TYPE_CHECKING = False  # to type checkers true
if TYPE_CHECKING:
    import sqlite3
else:
    # All that `sqlite3` has but for the conversion of `datetime`'s objects: a store has none.
    try:
        import _sqlite3 as sqlite3
    except ImportError:
        import sqlite3

__all__ = ["sqlite3"]
