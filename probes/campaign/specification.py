"""Specification of a campaign: its links and phases, and the method of its probes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from planner.model.errors import InputError
from probes.analysis.udp import FEWEST_RATES
from probes.campaign.tasks import PHASES, Phase
from probes.fleet.hosts import Addresses, Fleet

RampMode: TypeAlias = Literal["first", "every", "never"]

SMALLEST_WINDOW_BYTES, LARGEST_WINDOW_BYTES = 4_096, 2**30
MOST_RATES = 50
SMALLEST_PACKET_BYTES, LARGEST_PACKET_BYTES = 64, 65_507  # payload of UDP over IPv4 at most
_ALGORITHM = re.compile(r"[a-z][a-z0-9_]{0,14}")  # TCP_CA_NAME_MAX is 16, with its end


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """The links and phases of a campaign, and the lengths of its probes.

    Attributes
    ----------
    phases : tuple of Phase
    pairs : tuple of (source host, destination host)
        Only these; empty to let the campaign choose.
    thorough : bool
        All pairs, with one flow and with many.
    connections : int
        At most, of a probe.
    flow_s, aggregate_s : float
        Longest duration of a probe, warm-up included.
    aggregate_first_s : float
        Seconds that a probe of many connections measures first. It ends with them where they agree
        and lie within the bounds of the estimate; 0 to measure once.
    threshold : float
        Expected regret at which to stop: share of throughput lost for lack of measurements.
    """

    phases: tuple[Phase, ...] = PHASES
    pairs: tuple[tuple[str, str], ...] = ()
    thorough: bool = False
    connections: int = 64
    flow_s: float = 10.0
    aggregate_s: float = 5.0
    aggregate_first_s: float = 0.0
    threshold: float = 0.01

    @property
    def flow_first_s(self) -> float:
        """Longest time of one connection at the beginning of each probe of many; 0 for none.

        Where the same pairs are measured with one connection and with many, one probe does both,
        and no VM is needed a second time.
        """
        same_pairs = bool(self.pairs) or self.thorough
        both = {"per-flow", "aggregate"} <= set(self.phases) and self.connections > 1
        return self.flow_s if same_pairs and both else 0.0


@dataclass(frozen=True, slots=True)
class Method:
    """Tool and settings of probes.

    Attributes
    ----------
    tool : {"iperf3", "nuttcp"}
        For throughput.
    ramp : {"first", "every", "never"}
        Probes of many connections that try 1, 2, 4, ...: the first of each kind of sender, every
        one, or none.
    full_time : bool
        Whether one-flow probes last their whole time even where the median is known sooner: a
        rate that falls late is only seen so.
    udp, trace : bool
        Whether UDP capacity and the routes' hops are measured too.
    udp_rates : int
        Number of growing rates at which UDP is offered.
    udp_bytes : int
        Payload of each UDP packet; 0 leaves it to the tool, which fits it to the path.
    window_bytes : int
        TCP window to ask for; 0 leaves the systems' own.
    congestion_control : str
        TCP's algorithm to ask for; ``""`` leaves the systems' own.
    change_sysctls : bool
        Whether settings that a socket can't ask for are changed for the whole host meanwhile, as
        root.
    addresses : {"", "public", "private", "private-within-provider"}
        Addresses of the hosts that probes use; ``""`` leaves it to the fleet.
    """

    tool: str = "iperf3"
    ramp: RampMode = "first"
    full_time: bool = False
    udp: bool = False
    udp_rates: int = 1
    udp_bytes: int = 0
    trace: bool = False
    window_bytes: int = 0
    congestion_control: str = ""
    change_sysctls: bool = False
    addresses: Addresses | Literal[""] = ""

    def __post_init__(self) -> None:
        window = self.window_bytes
        if window and not SMALLEST_WINDOW_BYTES <= window <= LARGEST_WINDOW_BYTES:
            raise InputError("--tcp-window", "must be between 4 KiB and 1 GiB", value=window)
        if not (self.udp_rates == 1 or FEWEST_RATES <= self.udp_rates <= MOST_RATES):
            raise InputError(
                "--udp-rates", f"must be {FEWEST_RATES} to {MOST_RATES}", value=self.udp_rates
            )
        if self.udp_bytes and not SMALLEST_PACKET_BYTES <= self.udp_bytes <= LARGEST_PACKET_BYTES:
            raise InputError(
                "--udp-packet",
                f"must be {SMALLEST_PACKET_BYTES} to {LARGEST_PACKET_BYTES} bytes",
                value=self.udp_bytes,
            )
        algorithm = self.congestion_control
        if algorithm and not _ALGORITHM.fullmatch(algorithm):
            raise InputError(
                "--congestion-control",
                "is not the name of an algorithm",
                value=algorithm,
                remedy="Such as cubic, reno or bbr.",
            )
        if self.tool != "iperf3" and (self.udp or (algorithm and not self.change_sysctls)):
            what = "--udp" if self.udp else "--congestion-control"
            raise InputError(
                what,
                f"is more than {self.tool} can do",
                remedy="Use iperf3" + ("." if self.udp else ", or add --change-sysctls."),
            )

    @property
    def sysctls(self) -> dict[str, str]:
        """Settings to change on each host, only those that a socket can't ask for, and values.

        A socket gets twice the bytes that it asks for, within ``rmem_max`` and ``wmem_max``.
        """
        wanted: dict[str, str] = {}
        if self.change_sysctls and self.window_bytes:
            wanted["net.core.rmem_max"] = wanted["net.core.wmem_max"] = str(self.window_bytes)
        if self.change_sysctls and self.congestion_control and self.tool != "iperf3":
            wanted["net.ipv4.tcp_congestion_control"] = self.congestion_control
        return wanted

    def of(self, fleet: Fleet) -> Fleet:
        """Return the fleet as it is to be probed."""
        return replace(fleet, addresses=self.addresses) if self.addresses else fleet


AS_ASKED = Method(ramp="never")
"""With as many connections as each task names, without ramps."""


def parse_pairs(words: Sequence[str], fleet: Fleet) -> tuple[tuple[str, str], ...]:
    """Read ``SRC>DST`` pairs; a region means each of its hosts.

    Raises
    ------
    InputError
        If one is not a pair of hosts or regions of the fleet.
    """
    pairs: dict[tuple[str, str], None] = {}
    for word in words:
        source, arrow, destination = word.partition(">")
        if not arrow:
            raise InputError(
                "--pairs",
                "is not a pair",
                value=word,
                remedy="Write SRC>DST in quotes, such as 'aws:us-east-1>gcp:us-east1'.",
            )
        for src in _named(source.strip(), fleet):
            for dst in _named(destination.strip(), fleet):
                if fleet[src].region != fleet[dst].region:
                    pairs[src, dst] = None
    if words and not pairs:
        raise InputError("--pairs", "names no two different regions", value=" ".join(words))
    return tuple(pairs)


def _named(name: str, fleet: Fleet) -> list[str]:
    if name == "*":
        return list(fleet.hosts)
    names = [host.name for host in fleet if name in (host.name, host.region)]
    if not names:
        raise InputError(
            "--pairs",
            "names neither a host nor a region of the fleet",
            value=name,
            remedy="`*` means all of them.",
        )
    return names
