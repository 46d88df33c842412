"""What every tool can say: its command, its server's command, and what its output means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from probes.fleet.failures import Cause, ProbeError
from probes.fleet.hosts import Host
from probes.fleet.session import Output
from probes.importers.options import ImportOptions
from probes.importers.steady import Interval
from probes.samples import Sample, Skipped


@dataclass(frozen=True, slots=True)
class Test:
    """One run of a tool between two hosts.

    Attributes
    ----------
    src, dst : Host
        Data flows from ``src`` to ``dst``, wherever the tool's client runs.
    address : str
        Of the host that does not run the client, from :meth:`~probes.fleet.hosts.Fleet.target`.
    port : int
        For the tool's server; 0 where there is none.
    connections : int
    duration_s, omit_s : float
        Measured time, and time before it that is left out.
    window_bytes : int
        TCP window to ask for; 0 leaves the system's.
    congestion_control : str
        Algorithm of TCP to ask for; ``""`` leaves the system's.
    udp_mbps : float
        Rate to offer over UDP; 0 for TCP.
    most_mbps : float
        Rate of payload that all TCP connections together are held to; 0 for none.
    interval_s : float
        How often the tool reports.
    """

    __test__ = False  # not a test of pytest

    src: Host
    dst: Host
    address: str
    port: int = 0
    connections: int = 1
    duration_s: float = 10.0
    omit_s: float = 0.0
    window_bytes: int = 0
    congestion_control: str = ""
    udp_mbps: float = 0.0
    most_mbps: float = 0.0
    interval_s: float = 1.0

    def options(self, measured_at_s: float, *, client_at_dst: bool = False) -> ImportOptions:
        """Return what the importers need to know that the output does not say."""
        client, server = (self.dst, self.src) if client_at_dst else (self.src, self.dst)
        return ImportOptions(
            src=client.region,
            dst=server.region,
            src_vm=client.vm_type,
            dst_vm=server.vm_type,
            measured_at_s=measured_at_s,
            connections=self.connections or None,
            duration_s=self.duration_s,
            name=f"the output from {client.name}",
        )

    @property
    def is_private(self) -> bool:
        """Whether the address is one that is private alone."""
        return any(
            self.address == host.private_address != host.public_address
            for host in (self.src, self.dst)
        )

    def settled(self, sample: Sample, measured_at_s: float) -> Sample:
        """Return a sample with its zones, the kind of address, and the controller's time.

        Hosts' clocks may be off.
        """
        detail = json.loads(sample.detail) if sample.detail else {}
        detail["address"] = "private" if self.is_private else "public"
        return sample._replace(
            measured_at_s=measured_at_s,
            src_zone=self.src.zone,
            dst_zone=self.dst.zone,
            detail=json.dumps(detail),
        )


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave.

    Attributes
    ----------
    samples : tuple of Sample
    sent_gb : float
        What was sent from ``src`` to ``dst``, warm-up included.
    intervals : tuple of Interval
        Of the measured time, where the tool gives them.
    detail : dict
        What else it said.
    """

    samples: tuple[Sample, ...]
    sent_gb: float = 0.0
    intervals: tuple[Interval, ...] = ()
    detail: dict[str, object] = field(default_factory=dict)


class Tool(Protocol):
    """A measuring tool."""

    @property
    def name(self) -> str:
        """Name of the program."""

    @property
    def client_at_dst(self) -> bool:
        """Whether the client runs where the data arrives."""

    def server(self, test: Test) -> list[str] | None:
        """Return the command of the server on the other host; None where none is needed."""

    def ready_words(self) -> bytes:
        """Return what the server prints when it listens; empty if it prints nothing."""

    def command(self, test: Test) -> list[str]:
        """Return the client's command."""

    def limit_s(self, test: Test) -> float:
        """Return the time after which the client must have ended."""

    def read(self, output: Output, test: Test, measured_at_s: float) -> Result:
        """Read what the client said.

        Raises
        ------
        ProbeError
            If it failed, loudly or quietly, or its figures can't be a measurement.
        """


# What tools say, in lower case, and what it means.
_CAUSES: tuple[tuple[str, Cause], ...] = (
    ("busy", "busy"),
    ("address already in use", "busy"),
    ("refused", "busy"),
    ("timed out", "filtered"),
    ("unreachable", "filtered"),
    ("no route", "filtered"),
    ("no reply", "filtered"),
    ("no space left", "no-space"),
)


_REMEDIES: tuple[tuple[str, str], ...] = (
    (
        "socket buffer size",
        "Ask for a smaller --tcp-window, or let --change-sysctls raise "
        "net.core.rmem_max and wmem_max for the length of the campaign.",
    ),
    (
        "tcp_congestion",
        "Load the algorithm's module on the host (`modprobe tcp_bbr`), or name one "
        "of /proc/sys/net/ipv4/tcp_available_congestion_control.",
    ),
)


def failure(host: Host, tool: str, words: str) -> ProbeError:
    """Return the error for what a tool says about its failure."""
    lower = words.lower()
    cause: Cause = next((cause for part, cause in _CAUSES if part in lower), "tool")
    said = words if words.lower().startswith(tool) else f"{tool} failed: {words or 'silently'}"
    remedy = next((remedy for part, remedy in _REMEDIES if part in lower), "")
    if cause == "filtered" and tool in ("iperf3", "nuttcp"):
        remedy = "Open the probe ports between the fleet's hosts (`probe_ports` in the fleet file)."
    return ProbeError(host.name, cause, said, remedy)


def only_samples(host: Host, tool: str, outcomes: Sequence[Sample | Skipped]) -> list[Sample]:
    """Return the samples that an importer found.

    Raises
    ------
    ProbeError
        If it left anything out, or found nothing: of a single run, all must be of use.
    """
    for outcome in outcomes:
        if isinstance(outcome, Skipped):
            raise failure(host, tool, outcome.reason)
    if not outcomes:
        raise ProbeError(host.name, "output", f"{tool} said nothing that can be read")
    return [outcome for outcome in outcomes if isinstance(outcome, Sample)]
