"""What the answers to all questions share: how they are identified and written, and their parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any, Literal

from planner.model.network import Network
from planner.model.notebook import Table, escaped, html_table

ID_DIGITS = 12


class Answer:
    """What every recommendation can do: turn into plain values and into JSON."""

    __slots__ = ()

    reason: str

    def model_dump(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return the plan as nested dicts; with ``mode="json"``, of JSON types alone."""
        content = dumped(self, as_json=mode == "json")
        assert isinstance(content, dict)
        return content

    def model_dump_json(self, indent: int | None = None) -> str:
        """Return the plan as a JSON document (RFC 8259: no NaN, no infinity)."""
        return json.dumps(self.model_dump("json"), indent=indent, allow_nan=False)

    def _repr_html_(self) -> str:
        """Return a table of what was decided, and the reason, for notebooks."""
        table = html_table(repr(self)[1:-1], *self._table())
        return f"{table}<p>{escaped(self.reason)}</p>"

    def _table(self) -> Table:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars for the whole transfer."""

    egress: float
    vm: float
    total: float

    @classmethod
    def of(cls, egress_usd: float, vm_usd: float) -> Cost:
        """Return a cost with its total."""
        return cls(egress_usd, vm_usd, egress_usd + vm_usd)


@dataclass(frozen=True, slots=True)
class Bounded:
    """A figure with its bounds."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A binding constraint and what one unit more of it would bring."""

    constraint: str
    region: str
    gain_per_unit: float
    unit: str


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do, its effect, and what it adds to the cost (negative: saves)."""

    action: str
    effect: str
    cost_usd: float


@dataclass(frozen=True, slots=True)
class OneMoreVm:
    """What one more VM in a region brings at least."""

    region: str
    duration_s: float
    saved_s: float


def answer_id(described: Mapping[str, Any], network: Network, *decided: object) -> str:
    """Return an id that hashes what was asked, what was known and what was decided."""
    # 500 and 500.0 are the same question.
    asked = sorted((k, float(v) if type(v) is int else v) for k, v in described.items())
    content = repr((asked, network.snapshot, *decided))
    return blake2b(content.encode(), digest_size=ID_DIGITS // 2).hexdigest()


def dumped(value: Any, *, as_json: bool) -> Any:
    """Return frozen dataclasses, dicts and sequences as nested dicts and lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: dumped(getattr(value, f.name), as_json=as_json) for f in fields(value)}
    if isinstance(value, dict):
        return {key: dumped(item, as_json=as_json) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset):
        items = sorted(value) if isinstance(value, frozenset) else value
        return [dumped(item, as_json=as_json) for item in items]
    if as_json and isinstance(value, float) and not isfinite(value):
        return None
    return value
