"""Reading JSON from strangers: stricter than the standard library, within limits.

What two readers may understand differently is refused: the same key twice, NaN and Infinity.
"""

from __future__ import annotations

import json
import re
from typing import Any

from relayd.http.responses.problems import ProblemError

MOST_DEPTH = 32
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def read_json(content: bytes, what: str = "The body") -> Any:
    """Return the value of a JSON document.

    Raises
    ------
    ProblemError
        400 where it is not JSON (RFC 8259), not UTF-8, names a key twice, or nests too deep.
    """
    _refuse_deep(content, what)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise _malformed(what, f"is not UTF-8 (byte {error.start})") from None
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno} column {error.colno}"
        raise _malformed(what, f"is not JSON: {where}") from None
    except (ValueError, RecursionError) as error:
        raise _malformed(what, str(error)) from None


def _refuse_deep(content: bytes, what: str) -> None:
    if content.count(b"{") + content.count(b"[") <= MOST_DEPTH:
        return
    depth = 0
    for token in _TOKEN.findall(content):
        if token in b"[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise _malformed(what, f"nests deeper than {MOST_DEPTH} levels")
        elif token in b"]}":
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"names the key {key[:80]!r} twice")
            seen.add(key)
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"is not JSON: {constant} is not a number there")


def _malformed(what: str, problem: str) -> ProblemError:
    return ProblemError(400, "malformed", f"{what} {problem}.")
