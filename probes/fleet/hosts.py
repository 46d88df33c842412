"""Hosts of a fleet, and the guard that keeps probes among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from planner.model.errors import InputError

Addresses: TypeAlias = Literal["public", "private", "private-within-provider"]

PROBE_PORTS = (5201, 5216)
"""iperf3's usual port and the fifteen after it: a one-to-many probe takes one a destination."""


@dataclass(frozen=True, slots=True)
class Host:
    """A VM that relayd may log in to and measure from."""

    name: str  # unique in the fleet; the region where a region has one host
    region: str  # ``provider:region``
    host: str  # address, port and user of the login over SSH
    port: int
    user: str
    key: Path | None  # private key file; None for those of the SSH agent
    known_hosts: Path  # file with the host's key
    zone: str = ""  # suffix of the zone, or ``""``
    jump: str = ""  # name of the host to log in through, or ``""``
    vm_type: str = ""  # name of the VM type as catalogues write it, or ``""``
    private_address: str = ""  # its addresses for other hosts; ``""`` where there is none
    public_address: str = ""
    first_port: int = PROBE_PORTS[0]  # ports on which probes may listen
    last_port: int = PROBE_PORTS[1]
    egress_usd_per_gb: float | None = None  # overrides the catalogue's price
    # The VM's caps over all peers, where it differs from its type; to forecast by until they
    # are measured
    egress_mbps: float | None = None
    ingress_mbps: float | None = None

    @property
    def provider(self) -> str:
        """The part of the region before the colon."""
        return self.region.partition(":")[0]


@dataclass(frozen=True)
class Fleet:
    """Hosts by name."""

    hosts: Mapping[str, Host]  # name to :class:`Host`, in the order of the file
    addresses: Addresses = "public"  # addresses that probes use
    name: str = "fleet"  # name of the file in errors
    # Hosts that are only logged in through, by name
    jumps: Mapping[str, Host] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Host]:
        return iter(self.hosts.values())

    def __len__(self) -> int:
        return len(self.hosts)

    def __getitem__(self, name: str) -> Host:
        """Return a host.

        Raises InputError if it is not one of the fleet: the guard that keeps probes among its
        members.
        """
        host = self.hosts.get(name)
        if host is None:
            remedy = "Probes go only from and to hosts of the fleet file."
            raise InputError("host", f"is not a host of {self.name}", value=name, remedy=remedy)
        return host

    def login(self, name: str) -> Host:
        """Return a host or a jump host."""
        return self.jumps.get(name) or self[name]

    def target(self, src: str, dst: str) -> str:
        """Return the address at which one host probes another.

        This is the only place that tools get addresses from.
        """
        source, destination = self[src], self[dst]
        private = self.addresses == "private" or (
            self.addresses == "private-within-provider" and source.provider == destination.provider
        )
        named = destination.private_address if private else destination.public_address
        return named or destination.public_address or destination.private_address

    @property
    def region_of(self) -> dict[str, str]:
        """Host name to region."""
        return {host.name: host.region for host in self}
