"""Transfers with starts and deadlines as a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

from planner.model.errors import InputError
from planner.model.units import parse_duration_s, parse_money_usd, parse_volume_gb
from planner.transfer.request import DEFAULT_CONNECTIONS, DEFAULT_VM_START_S, MOST_VOLUME_GB

RatesBound: TypeAlias = Literal["expected", "low"]
RATES_BOUNDS: tuple[RatesBound, ...] = ("expected", "low")

# A century: more is a slip of the unit.
MOST_S = 3.2e9
MOST_TRANSFERS = 10_000
DEFAULT_EXPLAIN = 10


@dataclass(frozen=True, slots=True)
class TimedTransfer:
    """One transfer that has a window of time; checked when made.

    Attributes
    ----------
    id : str
        Unique among all of a schedule.
    src, dst : str
        Region ids.
    volume_gb : float
    start_s : float
        Earliest start, from the schedule's time 0.
    deadline_s : float | None
        Latest end, from the schedule's time 0. Without one, the transfer takes what others leave.
    priority : int
        Higher goes first.
    value_usd : float | None
        What it is worth in time. Decides among equal priorities, by GB.

    Raises
    ------
    InputError
        If a figure is out of range, or the deadline is not after the start.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    start_s: float = 0.0
    deadline_s: float | None = None
    priority: int = 0
    value_usd: float | None = None

    def __post_init__(self) -> None:
        where = f"transfer {self.id}"
        if not self.id.strip():
            raise InputError("transfer", "has an empty id", value=self.id)
        if self.src == self.dst:
            raise InputError(f"{where}, dst", "is the source itself", value=self.dst)
        if not 0 < self.volume_gb <= MOST_VOLUME_GB:
            raise InputError(
                f"{where}, volume_gb",
                f"must be above 0 and at most {MOST_VOLUME_GB:g} GB",
                value=self.volume_gb,
            )
        if not 0 <= self.start_s <= MOST_S:
            raise InputError(
                f"{where}, start", "must be a time of 0 s or later", value=self.start_s
            )
        if self.deadline_s is not None and not self.start_s < self.deadline_s <= MOST_S:
            raise InputError(
                f"{where}, deadline",
                f"must be after the start ({self.start_s:g} s)",
                value=self.deadline_s,
                remedy="Both count from the schedule's time 0.",
            )
        if self.value_usd is not None and not 0 <= self.value_usd < inf:
            raise InputError(f"{where}, value_usd", "must be 0 or more", value=self.value_usd)

    @property
    def usd_per_gb(self) -> float:
        """What a GB of it is worth; 0 where that was not said."""
        return (self.value_usd or 0.0) / self.volume_gb


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """Transfers to admit and schedule, and what they may use; checked when made.

    Attributes
    ----------
    transfers : tuple of TimedTransfer
    rates : RatesBound
        Figures that guarantees rest on: what is expected of links and caps, or their low bounds.
    explain : int
        For how many of the refused to work out what would do.
    vms : int
        VMs in each region, of ends and of relays.
    vms_in : mapping
        Region to its own number.
    connections : int
        TCP connections that one VM opens, over all its transfers.
    relays : {"any", "none"}
    forbidden : frozenset of str
        Regions that must not relay.
    vm_start_s : float
        Time that each VM is paid for before it sends.

    Raises
    ------
    InputError
        If two transfers share an id, or there are none or too many.
    """

    transfers: tuple[TimedTransfer, ...]
    rates: RatesBound = "expected"
    explain: int = DEFAULT_EXPLAIN
    vms: int = 1
    vms_in: Mapping[str, int] = field(default_factory=dict)
    connections: int = DEFAULT_CONNECTIONS
    relays: str = "any"
    forbidden: frozenset[str] = frozenset()
    vm_start_s: float = DEFAULT_VM_START_S

    def __post_init__(self) -> None:
        if self.rates not in RATES_BOUNDS:
            raise InputError("rates", f"must be {' or '.join(RATES_BOUNDS)}", value=self.rates)
        if self.explain < 0:
            raise InputError("explain", "must be a whole number, 0 or more", value=self.explain)
        if len(self.transfers) > MOST_TRANSFERS:
            raise InputError(
                "transfers",
                f"are more than {MOST_TRANSFERS:,}",
                value=len(self.transfers),
                remedy="Schedule them in parts, each after the one before.",
            )
        seen: set[str] = set()
        for transfer in self.transfers:
            if transfer.id in seen:
                raise InputError("transfers", "have an id twice", value=transfer.id)
            seen.add(transfer.id)

    def described(self) -> dict[str, Any]:
        """Return what was asked, as plain values; the transfers are with the plan's."""
        return {
            "transfers": len(self.transfers),
            "rates": self.rates,
            "explain": self.explain,
            "vms": self.vms,
            "vms_in": dict(self.vms_in),
            "connections": self.connections,
            "relays": self.relays,
            "forbidden": sorted(self.forbidden),
            "vm_start_s": self.vm_start_s,
        }


# Names that people give a column, each with the field that it is.
_NAMES = {
    "volume": "volume_gb",
    "gb": "volume_gb",
    "start": "start_s",
    "deadline": "deadline_s",
    "value": "value_usd",
    "name": "id",
}


def timed_transfers(given: Any) -> tuple[TimedTransfer, ...]:
    """Return transfers from the shapes that people have them in.

    Parameters
    ----------
    given : iterable of TimedTransfer or of mappings, or a data frame
        With the fields of :class:`TimedTransfer`; ``volume``, ``start``, ``deadline`` and
        ``value`` may have units, such as ``1.5TB`` and ``2h``. Without an id, transfers are
        numbered from 1. Empty fields are left out.

    Raises
    ------
    InputError
        If a field is missing, unknown or not what it should be; names the transfer.
    """
    if hasattr(given, "to_dict") and hasattr(given, "columns"):
        given = given.to_dict("records")
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InputError("transfers", "must be a list, one entry a transfer", value=given)
    found = tuple(
        item if isinstance(item, TimedTransfer) else _transfer(item, number)
        for number, item in enumerate(given, 1)
    )
    if not found:
        raise InputError("transfers", "have nothing to move")
    return found


def _transfer(item: Any, number: int) -> TimedTransfer:
    if not isinstance(item, Mapping):
        raise InputError(f"transfer {number}", "must be a mapping of fields", value=item)
    known = {field_.name for field_ in fields(TimedTransfer)}
    entry: dict[str, Any] = {}
    for key, value in item.items():
        lowered = str(key).strip().lower()
        name = _NAMES.get(lowered, lowered)
        if name not in known:
            raise InputError(
                f"transfer {number}",
                "has an unknown field",
                value=key,
                remedy="Fields are id, src, dst, volume_gb, start, deadline, priority, value_usd.",
            )
        if name in entry:
            raise InputError(f"transfer {number}", f"has {name} twice", value=key)
        # NaN is how a data frame says that there is nothing.
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            continue
        entry[name] = value
    for name in ("src", "dst", "volume_gb"):
        if name not in entry:
            raise InputError(f"transfer {entry.get('id', number)}", f"has no {name}")
    label = str(entry.get("id", number))
    where = f"transfer {label}"
    return TimedTransfer(
        id=label,
        src=str(entry["src"]).strip(),
        dst=str(entry["dst"]).strip(),
        volume_gb=_figure(entry["volume_gb"], f"{where}, volume_gb", parse_volume_gb),
        start_s=_figure(entry.get("start_s", 0.0), f"{where}, start", parse_duration_s),
        deadline_s=None
        if entry.get("deadline_s") is None
        else _figure(entry["deadline_s"], f"{where}, deadline", parse_duration_s),
        priority=_whole(entry.get("priority", 0), f"{where}, priority"),
        value_usd=None
        if entry.get("value_usd") is None
        else _figure(entry["value_usd"], f"{where}, value_usd", parse_money_usd),
    )


def _figure(value: Any, where: str, parse: Any) -> float:
    if isinstance(value, bool):
        raise InputError(where, "is not a quantity", value=value)
    try:
        figure = float(value)
    except (TypeError, ValueError):
        return float(parse(str(value), where))
    if not isfinite(figure):
        raise InputError(where, "must be finite", value=value)
    return figure


def _whole(value: Any, where: str) -> int:
    figure = _figure(value, where, lambda text, name: _not_a_number(text, name))
    if figure != int(figure):
        raise InputError(where, "must be a whole number", value=value)
    return int(figure)


def _not_a_number(text: str, where: str) -> float:
    raise InputError(where, "is not a number", value=text)
