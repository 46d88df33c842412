"""Behaviours of hosts and links that can be set while a lab runs, and the impairments of pairs.

A person sets behaviours of a host or of a link by name (``loss_pct=1``). The emulator knows
only pairs: :func:`impairment_of` combines the behaviours of a pair's link and of both its hosts.
Rates and windows are the lab's own: they are not scaled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from planner.model.errors import InputError

UP, BLACKHOLE, RESET = "up", "blackhole", "reset"
OK, FILTERED, HANG = "ok", "filtered", "hang"

_DEFAULT_QUEUE_MS = 200.0
"""Queue of a capped path before it drops; caps of VMs drop at 50 ms of their own."""


class _Settings:
    """Reading ``name=value`` into a frozen dataclass with bounds per field."""

    _numbers: ClassVar[Mapping[str, tuple[float, float]]]
    _choices: ClassVar[Mapping[str, tuple[str, ...]]]

    def __post_init__(self) -> None:
        for name, (low, high) in self._numbers.items():
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and low <= value <= high):
                raise InputError(
                    name, "is out of range", value=value, remedy=f"Give {low:g} to {high:g}."
                )
        for name, choices in self._choices.items():
            if getattr(self, name) not in choices:
                raise InputError(
                    name,
                    "is not known",
                    value=getattr(self, name),
                    remedy=f"Give {' or '.join(choices)}.",
                )

    def with_settings(self, settings: Mapping[str, str | float]) -> Self:
        """Return a copy with these settings; the value ``default`` takes one back.

        Raises
        ------
        InputError
            For a name that does not exist or a value out of its range.
        """
        known = {entry.name: entry.default for entry in fields(self)}  # type: ignore[arg-type]
        changes: dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                raise InputError(
                    name, "is not a behaviour", remedy=f"Behaviours here are {', '.join(known)}."
                )
            changes[name] = known[name] if value == "default" else self._read(name, value)
        return replace(self, **changes)  # type: ignore[type-var]

    def changes(self) -> dict[str, Any]:
        """Return the settings that differ from the default."""
        return {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)  # type: ignore[arg-type]
            if getattr(self, entry.name) != entry.default
        }

    def _read(self, name: str, value: str | float) -> str | float:
        if name in self._choices:
            return str(value)
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InputError(name, "is not a number", value=value)
        return number


_RATE = (0.01, 100_000.0)
MOST_FILLING_S = 60.0
"""HTB counts no more than a minute in which nothing is sent."""
_WINDOW_KB = (3.0, 1_000_000.0)


@dataclass(frozen=True, slots=True)
class LinkBehaviour(_Settings):
    """Behaviour of one direction of a link.

    Attributes
    ----------
    rtt_ms : float | None
        Round-trip time in place of the topology's; this direction takes half of it.
    loss_pct : float
        Share of segments lost at random.
    jitter_ms : float
        Further one-way delay, uniform from 0 to this; packets of a pair stay in order.
    state : str
        ``up``, ``blackhole`` (all is lost) or ``reset`` (TCP is answered with a reset,
        anything else with "host unreachable").
    rate_mbps : float | None
        Cap of the path, in Mbit/s of IP packets.
    queue_ms : float
        Queue of a capped path before it drops.
    burst_mb : float
        Bucket of tokens: so much passes before ``rate_mbps`` holds; it fills at that rate.
    cut_after_s, cut_after_mb : float | None
        After so long, or so many MB, of one run of traffic, ``cut_mbps`` holds. A run
        begins after 2 s without traffic.
    cut_mbps : float | None
    window_kb : float | None
        TCP receive window (kB of 1000 bytes) for new connections that send this way.
    """

    rtt_ms: float | None = None
    loss_pct: float = 0.0
    jitter_ms: float = 0.0
    state: str = UP
    rate_mbps: float | None = None
    queue_ms: float = _DEFAULT_QUEUE_MS
    burst_mb: float = 0.0
    cut_after_s: float | None = None
    cut_after_mb: float | None = None
    cut_mbps: float | None = None
    window_kb: float | None = None

    _numbers: ClassVar = {
        "rtt_ms": (0.0, 10_000.0),
        "loss_pct": (0.0, 100.0),
        "jitter_ms": (0.0, 5_000.0),
        "rate_mbps": _RATE,
        "queue_ms": (1.0, 10_000.0),
        "burst_mb": (0.0, 1e6),
        "cut_after_s": (0.0, 86_400.0),
        "cut_after_mb": (0.0, 1e9),
        "cut_mbps": _RATE,
        "window_kb": _WINDOW_KB,
    }
    _choices: ClassVar = {"state": (UP, BLACKHOLE, RESET)}

    def __post_init__(self) -> None:
        _Settings.__post_init__(self)
        if self.burst_mb and self.rate_mbps is None:
            raise InputError(
                "burst_mb",
                "needs a rate that holds after the burst",
                remedy="Set rate_mbps with it.",
            )
        cut_at = self.cut_after_s is not None or self.cut_after_mb is not None
        if cut_at != (self.cut_mbps is not None):
            raise InputError(
                "cut_mbps",
                "and cut_after_s or cut_after_mb need each other",
                remedy="Set the rate and when it begins together.",
            )


@dataclass(frozen=True, slots=True)
class HostBehaviour(_Settings):
    """Behaviour of one host.

    Attributes
    ----------
    state : str
        ``up``, ``blackhole`` or ``reset``, towards every peer and over SSH alike.
    egress_mbps, ingress_mbps, flow_mbps : float | None
        Caps in place of the topology's (an unlucky VM).
    burst_mb : float
        Bucket of tokens of the VM, for all that it sends: so much passes at the topology's egress
        cap before ``egress_mbps`` holds; it fills at that rate, from when it is set.
    window_kb : float | None
        TCP receive window (kB of 1000 bytes) for new connections, in place of the topology's.
    icmp : str
        ``ok`` or ``filtered`` (in and out).
    ssh : str
        ``ok`` or ``hang`` (connections are accepted, nothing is ever answered).
    """

    state: str = UP
    egress_mbps: float | None = None
    ingress_mbps: float | None = None
    flow_mbps: float | None = None
    burst_mb: float = 0.0
    window_kb: float | None = None
    icmp: str = OK
    ssh: str = OK

    _numbers: ClassVar = {
        "egress_mbps": _RATE,
        "ingress_mbps": _RATE,
        "flow_mbps": _RATE,
        "burst_mb": (0.0, 1e6),
        "window_kb": _WINDOW_KB,
    }
    _choices: ClassVar = {
        "state": (UP, BLACKHOLE, RESET),
        "icmp": (OK, FILTERED),
        "ssh": (OK, HANG),
    }

    def __post_init__(self) -> None:
        _Settings.__post_init__(self)
        if not self.burst_mb:
            return
        if self.egress_mbps is None:
            raise InputError(
                "burst_mb",
                "needs a rate that holds after the burst",
                remedy="Set egress_mbps with it.",
            )
        most_mb = self.egress_mbps * MOST_FILLING_S / 8
        if self.burst_mb > most_mb:
            raise InputError(
                "burst_mb",
                f"would take longer than {MOST_FILLING_S:g} s to fill at egress_mbps, which Linux "
                "does not count",
                value=self.burst_mb,
                remedy=f"Give at most {most_mb:g}, or a higher egress_mbps.",
            )


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


NO_IMPAIRMENT = Impairment()


def impairment_of(
    link: LinkBehaviour, source: HostBehaviour, destination: HostBehaviour, flow_mbps: float
) -> Impairment:
    """Combine behaviours to the impairment of the packets from one host to another.

    Parameters
    ----------
    link : LinkBehaviour
        Of this direction.
    source, destination : HostBehaviour
    flow_mbps : float
        Cap of a single connection of the source; inf where other caps are lower.
    """
    states = (source.state, destination.state, link.state)
    state = RESET if RESET in states else UP
    if BLACKHOLE in states:
        state = BLACKHOLE
    return Impairment(
        state=state,
        icmp_filtered=FILTERED in (source.icmp, destination.icmp),
        loss=link.loss_pct / 100,
        jitter_s=link.jitter_ms / 1e3,
        rate=_bytes_per_s(link.rate_mbps),
        queue_s=link.queue_ms / 1e3,
        burst_bytes=link.burst_mb * 1e6,
        cut_after_s=math.inf if link.cut_after_s is None else link.cut_after_s,
        cut_after_bytes=math.inf if link.cut_after_mb is None else link.cut_after_mb * 1e6,
        cut_rate=_bytes_per_s(link.cut_mbps),
        flow_rate=_bytes_per_s(flow_mbps),
    )


def _bytes_per_s(rate_mbps: float | None) -> float:
    return math.inf if rate_mbps is None else rate_mbps * 1e6 / 8
