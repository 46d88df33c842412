"""JSON that others wrote: one reader for files, requests and documents (RFC 8259)."""

from __future__ import annotations

import json
from typing import Any


class _RefusedError(ValueError):
    """Of what a document holds."""


class RepeatedValues(list[Any]):
    """The different values of a key that an object names several times."""


def read_json(text: str | bytes, *, keep_repeated: bool = False) -> Any:
    """Return the value of a JSON text; bytes are UTF-8.

    Where repeated keys are kept, a key that an object names with several values has a
    :class:`RepeatedValues` of them; else it is refused, as all values but one would be lost.

    If it is not JSON, a ValueError has a clause that follows the name of the text. Its cause is a
    :class:`json.JSONDecodeError` where one place is wrong, and a :class:`RecursionError` where it
    nests too deep.
    """
    hook = _with_repeated if keep_repeated else _unique
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        return json.loads(decoded, object_pairs_hook=hook, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise ValueError(f"is not JSON: {error.msg}, {place}") from error
    except RecursionError as error:
        raise ValueError("nests too deep") from error
    except _RefusedError:
        raise
    except ValueError:  # of Python, where it would take long
        raise ValueError("holds a whole number of thousands of digits") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for at, key in enumerate(keys) if key in keys[:at])
        raise _RefusedError(f"names the key {twice[:80]!r} twice")
    return value


def _with_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        for key, last in value.items():
            values = [one for name, one in pairs if name == key]
            if any(one != last for one in values):
                value[key] = RepeatedValues(values)
    return value


def _refuse(constant: str) -> None:
    raise _RefusedError(f"holds {constant}, which is no JSON number")
