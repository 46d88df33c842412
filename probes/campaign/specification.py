"""Specification of a campaign: its links and phases, and the method of its probes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias

from planner.model.errors import InputError
from probes.analysis.udp import FEWEST_RATES
from probes.campaign.tasks import PHASES, Phase
from probes.fleet.hosts import Addresses, Fleet

RampMode: TypeAlias = Literal["first", "every", "never"]

WINDOW_BYTES = range(4_096, 2**30 + 1)
RATES = range(FEWEST_RATES, 51)
PACKET_BYTES = range(64, 65_507 + 1)  # payload of UDP over IPv4 at most
_ALGORITHM = re.compile(r"[a-z][a-z0-9_]{0,14}")  # TCP_CA_NAME_MAX is 16, with its end


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """The links and phases of a campaign, and the lengths of its probes.

    ``aggregate_first_s`` are the seconds that a probe of many connections measures first. It ends
    with them where they agree and lie within the bounds of the estimate.
    """

    phases: tuple[Phase, ...] = PHASES
    pairs: tuple[tuple[str, str], ...] = ()  # of hosts; empty to let the campaign choose
    thorough: bool = False  # all pairs, with one flow and with many
    connections: int = 64  # of a probe at most
    flow_s: float = 10.0  # longest duration of a probe, warm-up included
    aggregate_s: float = 5.0
    aggregate_first_s: float = 0.0  # 0 to measure once
    threshold: float = 0.01  # expected regret at which to stop

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
    """Tool and settings of probes; checked when made."""

    # Probes that try 1, 2, 4, ... connections: the first of each kind of sender, every, or none.
    ramp: RampMode = "first"
    # Whether one-flow probes last their whole time even where the median is known sooner: a rate
    # that falls late is only seen so.
    full_time: bool = False
    udp: bool = False
    udp_rates: int = 1  # growing ones at which UDP is offered
    udp_bytes: int = 0  # payload of each packet; 0 leaves it to the tool, which fits it to the path
    trace: bool = False  # whether the routes' hops are measured
    window_bytes: int = 0  # of TCP, to ask for; 0 leaves the systems' own
    congestion_control: str = ""  # to ask for; "" leaves the systems' own
    change_sysctls: bool = False  # as root, what a socket can't ask for
    addresses: Addresses | Literal[""] = ""  # of the hosts; "" leaves it to the fleet

    def __post_init__(self) -> None:
        ranges = (
            ("--tcp-window", self.window_bytes, 0, WINDOW_BYTES, "between 4 KiB and 1 GiB"),
            ("--udp-rates", self.udp_rates, 1, RATES, f"{RATES[0]} to {RATES[-1]}"),
            ("--udp-packet", self.udp_bytes, 0, PACKET_BYTES, "64 to 65507 bytes"),
        )
        for option, value, usual, within, words in ranges:
            if value != usual and value not in within:
                raise InputError(option, f"must be {words}", value=value)
        algorithm = self.congestion_control
        if algorithm and not _ALGORITHM.fullmatch(algorithm):
            problem, remedy = "is not the name of an algorithm", "For example: cubic, reno or bbr."
            raise InputError("--congestion-control", problem, value=algorithm, remedy=remedy)

    @property
    def sysctls(self) -> dict[str, str]:
        """Settings of each host to change, and their values.

        A socket gets twice the bytes that it asks for, within ``rmem_max`` and ``wmem_max``, and
        only root may ask for algorithms that ``tcp_allowed_congestion_control`` does not list.
        """
        wanted: dict[str, str] = {}
        if self.change_sysctls and self.window_bytes:
            wanted["net.core.rmem_max"] = wanted["net.core.wmem_max"] = str(self.window_bytes)
        if self.change_sysctls and self.congestion_control:
            wanted["net.ipv4.tcp_congestion_control"] = self.congestion_control
        return wanted

    def of(self, fleet: Fleet) -> Fleet:
        """Return the fleet as it is to be probed."""
        return replace(fleet, addresses=self.addresses) if self.addresses else fleet


AS_ASKED = Method(ramp="never")  # with as many connections as each task names, without ramps


def parse_pairs(words: Sequence[str], fleet: Fleet) -> tuple[tuple[str, str], ...]:
    """Read ``SRC>DST`` pairs; a region means each of its hosts.

    Raises InputError if one is not a pair of hosts or regions of the fleet.
    """
    pairs: dict[tuple[str, str], None] = {}
    for word in words:
        source, arrow, destination = word.partition(">")
        if not arrow:
            remedy = "Write SRC>DST in quotes, such as 'aws:us-east-1>gcp:us-east1'."
            raise InputError("--pairs", "is not a pair", value=word, remedy=remedy)
        ends: list[list[str]] = []
        for name in (source.strip(), destination.strip()):
            ends.append([host.name for host in fleet if name in ("*", host.name, host.region)])
            if not ends[-1]:
                problem = "names neither a host nor a region of the fleet"
                remedy = "`*` means all of them."
                raise InputError("--pairs", problem, value=name, remedy=remedy)
        pairs |= {
            (src, dst): None
            for src, dst in product(*ends)
            if fleet[src].region != fleet[dst].region
        }
    if words and not pairs:
        raise InputError("--pairs", "names no two different regions", value=" ".join(words))
    return tuple(pairs)
