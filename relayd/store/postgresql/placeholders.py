"""Translates placeholders of values in SQL to those of the driver."""

from __future__ import annotations

import re
from functools import lru_cache

# Texts, type casts and comments are left alone; the driver wants percent signs doubled.
_TOKEN = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|\?|:([A-Za-z_]\w*)|%")


@lru_cache(maxsize=512)
def translated_sql(sql: str) -> str:
    """Return a statement with ``?`` as ``%s`` and ``:name`` as ``%(name)s``."""
    return _TOKEN.sub(_translated, sql)


def _translated(match: re.Match[str]) -> str:
    found = match[0]
    if found == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return found.replace("%", "%%")
