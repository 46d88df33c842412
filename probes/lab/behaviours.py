"""Behaviours of hosts and links that can be set while a lab runs, and the impairments of pairs.

A person sets behaviours of a host or of a link by name (``loss_pct=1``). The emulator knows
only pairs: :meth:`~probes.lab.conditions.Conditions.impairment` combines the behaviours of a
pair's link and of both its hosts.
Rates and windows are the lab's own: they are not scaled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from planner.model.errors import InputError

UP, BLACKHOLE, RESET = "up", "blackhole", "reset"
OK, FILTERED, HANG = "ok", "filtered", "hang"

_DEFAULT_QUEUE_MS = 200.0
"""Queue of a capped path before it drops; caps of VMs drop at 50 ms of their own."""


def _number(low: float, high: float, default: float | None = None) -> Any:
    return field(default=default, metadata={"bounds": (low, high)})


def _word(*choices: str) -> Any:
    return field(default=choices[0], metadata={"choices": choices})


@dataclass(frozen=True, slots=True)
class _Settings:
    """Reading ``name=value`` into a frozen dataclass with bounds per field."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            name, value = entry.name, getattr(self, entry.name)
            if choices := entry.metadata.get("choices"):
                if value not in choices:
                    remedy = f"Give {' or '.join(choices)}."
                    raise InputError(name, "is not known", value=value, remedy=remedy)
            elif value is not None:
                low, high = entry.metadata["bounds"]
                if not isinstance(value, int | float) or not low <= value <= high:
                    remedy = f"Give {low:g} to {high:g}."
                    raise InputError(name, "is out of range", value=value, remedy=remedy)

    def with_settings(self, settings: Mapping[str, str | float]) -> Self:
        """Return a copy with these settings; the value ``default`` takes one back.

        Raises InputError for a name that does not exist or a value out of its range.
        """
        known = {entry.name: entry for entry in fields(self)}
        changes: dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                remedy = f"Behaviours here are {', '.join(known)}."
                raise InputError(name, "is not a behaviour", remedy=remedy)
            if value == "default":
                changes[name] = known[name].default
            elif "choices" in known[name].metadata:
                changes[name] = value
            else:
                try:
                    changes[name] = float(value)
                except ValueError:
                    changes[name] = math.nan
                if not math.isfinite(changes[name]):
                    raise InputError(name, "is not a number", value=value)
        return replace(self, **changes)

    def changes(self) -> dict[str, Any]:
        """Return the settings that differ from the default."""
        values = {entry: getattr(self, entry.name) for entry in fields(self)}
        return {entry.name: v for entry, v in values.items() if v != entry.default}


def _without_a_rate(name: str) -> InputError:
    problem = "needs a rate that holds after the burst"
    return InputError("burst_mb", problem, remedy=f"Set {name} with it.")


_RATE = (0.01, 100_000.0)
MOST_FILLING_S = 60.0
"""HTB counts no more than a minute in which nothing is sent."""
_WINDOW_KB = (3.0, 1_000_000.0)


@dataclass(frozen=True, slots=True)
class LinkBehaviour(_Settings):
    """Behaviour of one direction of a link."""

    # Round-trip time in place of the topology's; this direction takes half of it
    rtt_ms: float | None = _number(0.0, 10_000.0)
    loss_pct: float = _number(0.0, 100.0, 0.0)  # share of segments lost at random
    # Further one-way delay, uniform from 0 to this; packets of a pair stay in order
    jitter_ms: float = _number(0.0, 5_000.0, 0.0)
    # ``up``, ``blackhole`` (all is lost) or ``reset`` (TCP is answered with a reset, anything
    # else with "host unreachable")
    state: str = _word(UP, BLACKHOLE, RESET)
    rate_mbps: float | None = _number(*_RATE)  # cap of the path, in Mbit/s of IP packets
    # Queue of a capped path before it drops
    queue_ms: float = _number(1.0, 10_000.0, _DEFAULT_QUEUE_MS)
    # Bucket of tokens: so much passes before ``rate_mbps`` holds; it fills at that rate
    burst_mb: float = _number(0.0, 1e6, 0.0)
    # After so long, or so many MB, of one run of traffic, ``cut_mbps`` holds. A run begins
    # after 2 s without traffic.
    cut_after_s: float | None = _number(0.0, 86_400.0)
    cut_after_mb: float | None = _number(0.0, 1e9)
    cut_mbps: float | None = _number(*_RATE)
    # TCP receive window (kB of 1000 bytes) for new connections that send this way
    window_kb: float | None = _number(*_WINDOW_KB)

    def __post_init__(self) -> None:
        _Settings.__post_init__(self)
        if self.burst_mb and self.rate_mbps is None:
            raise _without_a_rate("rate_mbps")
        cut_at = self.cut_after_s is not None or self.cut_after_mb is not None
        if cut_at != (self.cut_mbps is not None):
            remedy = "Set the rate and when it begins together."
            problem = "and cut_after_s or cut_after_mb need each other"
            raise InputError("cut_mbps", problem, remedy=remedy)


@dataclass(frozen=True, slots=True)
class HostBehaviour(_Settings):
    """Behaviour of one host."""

    # ``up``, ``blackhole`` or ``reset``, towards every peer and over SSH alike
    state: str = _word(UP, BLACKHOLE, RESET)
    egress_mbps: float | None = _number(*_RATE)  # caps in place of the topology's (an unlucky VM)
    ingress_mbps: float | None = _number(*_RATE)
    flow_mbps: float | None = _number(*_RATE)
    # Bucket of tokens of the VM, for all that it sends: so much passes at the topology's
    # egress cap before ``egress_mbps`` holds; it fills at that rate, from when it is set
    burst_mb: float = _number(0.0, 1e6, 0.0)
    # TCP receive window (kB of 1000 bytes) for new connections, in place of the topology's
    window_kb: float | None = _number(*_WINDOW_KB)
    icmp: str = _word(OK, FILTERED)  # ``ok`` or ``filtered`` (in and out)
    # ``ok`` or ``hang`` (connections are accepted, nothing is ever answered)
    ssh: str = _word(OK, HANG)

    def __post_init__(self) -> None:
        _Settings.__post_init__(self)
        if self.burst_mb and self.egress_mbps is None:
            raise _without_a_rate("egress_mbps")
        most_mb = (self.egress_mbps or 0.0) * MOST_FILLING_S / 8
        if self.burst_mb > most_mb:
            problem = (
                f"would take longer than {MOST_FILLING_S:g} s to fill at egress_mbps, which Linux "
                "does not count"
            )
            remedy = f"Give at most {most_mb:g}, or a higher egress_mbps."
            raise InputError("burst_mb", problem, value=self.burst_mb, remedy=remedy)


@dataclass(frozen=True, slots=True)
class Impairment:
    """All that the emulator does to the packets of a pair besides delaying them.

    Rates are bytes/s, times s, and 0 or inf mean that there is no such limit.
    """

    state: str = UP
    icmp_filtered: bool = False
    loss: float = 0.0
    jitter_s: float = 0.0
    rate: float = math.inf
    queue_s: float = _DEFAULT_QUEUE_MS / 1e3
    burst_bytes: float = 0.0
    cut_after_s: float = math.inf
    cut_after_bytes: float = math.inf
    cut_rate: float = math.inf
    flow_rate: float = math.inf
