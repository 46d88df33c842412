"""Lanes: a plan's paths divided among single VMs.

A lane is one chain of single VMs, with its share of the volume and of the connections. A path
over several VMs has as many lanes as the region with most of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil, inf
from typing import Any

from planner.fields.shared import MOST_CONNECTIONS, MOST_VMS
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.transfer.plan import Plan
from relayd.files.plans import plan_of

_MOST_PATHS = 100
_MOST = 1e9
"""GB, Gbit/s or ms: beyond any plan, and small enough to calculate with."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Vm:
    """One VM of a plan.

    Attributes
    ----------
    variable : str
        Shell variable that holds its address.
    region : str
    number, of : int
        Which of how many VMs of its region.
    address : str
        Empty where it was not given.
    """

    variable: str
    region: str
    number: int
    of: int
    address: str

    @property
    def words(self) -> str:
        """Which VM it is, in words."""
        which = f"VM {self.number} of {self.of}" if self.of > 1 else "the VM"
        return f"{which} in {self.region}"


@dataclass(frozen=True, slots=True)
class Lane:
    """One chain of VMs.

    Attributes
    ----------
    number : int
        From 1.
    src, dst : Vm
    relay : Vm | None
    share : float
        Of the plan's volume.
    throughput_gbps : float
    connections : int
        On each link.
    rtt_ms : float
        Of the whole path.
    """

    number: int
    src: Vm
    relay: Vm | None
    dst: Vm
    share: float
    throughput_gbps: float
    connections: int
    rtt_ms: float

    @property
    def vms(self) -> list[Vm]:
        """Its VMs, from the source on."""
        return [vm for vm in (self.src, self.relay, self.dst) if vm]

    @property
    def regions(self) -> str:
        """The path, in words."""
        return " -> ".join(vm.region for vm in self.vms)


@dataclass(frozen=True, slots=True)
class Emission:
    """A plan divided into lanes, ready to be written as a script.

    Attributes
    ----------
    plan : Plan
    sources, relays, destinations : tuple of Vm
    lanes : tuple of Lane
        Between single VMs.
    port : int
        Of the first lane at its destination; each further lane has the next.
    """

    plan: Plan
    sources: tuple[Vm, ...]
    relays: tuple[Vm, ...]
    destinations: tuple[Vm, ...]
    lanes: tuple[Lane, ...]
    port: int

    @property
    def volume_gb(self) -> float:
        """Volume to move."""
        return float(self.plan.request["volume_gb"])

    @property
    def relayed(self) -> tuple[Lane, ...]:
        """The lanes that pass a relay."""
        return tuple(lane for lane in self.lanes if lane.relay)

    def port_of(self, lane: Lane) -> int:
        """Return the port of a lane, at its relay and at its destination."""
        return self.port + lane.number - 1


def emission(
    plan: Answer | Mapping[str, Any] | str,
    endpoints: Mapping[str, str | Sequence[str]] = {},
    port: int = 5201,
    *,
    to_vms: bool = True,
) -> Emission:
    """Divide a plan into lanes.

    Parameters
    ----------
    plan : Plan, mapping or str
        Of one transfer; or its JSON.
    endpoints : mapping
        Region of the plan to the address of its VM, or to those of several.
    port : int
        Of the first lane.
    to_vms : bool
        Whether the receivers are the plan's VMs, rather than a store that takes any number of
        connections.

    Raises
    ------
    InputError
        If it is no plan of a transfer, an endpoint is of another region or no address, or the
        ports do not suffice.
    """
    whole = _whole(plan_of(plan))
    paths, counts = whole.paths, whole.vms
    src, dst = paths[0].regions[0], paths[0].regions[-1]
    through = [path.regions[1] for path in paths if len(path.regions) == 3]
    addresses = _addresses(endpoints, counts)
    sources = _vms("SRC", [src], counts, addresses)
    relays = _vms("RELAY", through, counts, addresses)
    destinations = _vms("DST", [dst], counts, addresses)
    # As many of a path as the region with most VMs has.
    widths = [
        max(counts[region] for region in (path.regions if to_vms else path.regions[:-1]))
        for path in paths
    ]
    if not 1 <= port <= 65_535 - sum(widths) + 1:
        raise InputError("port", f"must leave room for {sum(widths)} ports up to 65535", value=port)
    lanes: list[Lane] = []
    for path, wide in zip(paths, widths, strict=True):
        own = [vm for vm in relays if (vm.region,) == path.regions[1:-1]]
        for i in range(wide):
            lanes.append(
                Lane(
                    len(lanes) + 1,
                    sources[i % len(sources)],
                    own[i % len(own)] if own else None,
                    destinations[i % len(destinations)],
                    path.share / wide,
                    path.throughput_gbps / wide,
                    ceil(path.connections / wide),
                    path.rtt_ms,
                )
            )
    return Emission(whole, sources, relays, destinations, tuple(lanes), port)


def _whole(plan: Plan) -> Plan:
    """Refuse a plan whose figures fit no script."""
    volume_gb = plan.request.get("volume_gb")
    # Who sends a plan to a service may have written it: what is written for it stays small.
    fine = (
        isinstance(volume_gb, float | int)
        and not isinstance(volume_gb, bool)
        and 0 < volume_gb < _MOST
        and 0 < plan.duration_s < inf
        and _is_text(plan.plan_id, *plan.vms)
        and 0 < len({path.regions for path in plan.paths}) == len(plan.paths) <= _MOST_PATHS
        and all(0 <= vms <= MOST_VMS for vms in plan.vms.values())
        and all(
            len(path.regions) in {2, 3}
            and all(plan.vms.get(region, 0) > 0 for region in path.regions)
            and 0 < path.share <= 1 + _ROUNDING
            and 0 < path.connections <= MOST_CONNECTIONS * MOST_VMS
            and 0 < path.throughput_gbps < _MOST
            and 0 < path.rtt_ms < _MOST
            for path in plan.paths
        )
    )
    if not fine:
        raise InputError(
            "plan",
            "has a figure that no plan has, of its volume, time, VMs or paths",
            value=plan.plan_id,
            remedy="Give what `relayd plan --json` printed, unchanged.",
        )
    return plan


def _is_text(*words: str) -> bool:
    """Whether words can be written to a file: JSON may hold halves of characters."""
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


def _addresses(
    endpoints: Mapping[str, str | Sequence[str]], counts: Mapping[str, int]
) -> dict[str, list[str]]:
    found = {}
    for region, given in endpoints.items():
        listed = [given] if isinstance(given, str) else list(given)
        if region not in counts:
            raise InputError(
                "endpoint",
                "is of a region that the plan does not use",
                value=region,
                remedy=f"The plan uses {', '.join(counts)}.",
            )
        if len(listed) > counts[region]:
            raise InputError(
                "endpoint",
                f"gives {len(listed)} addresses for the {counts[region]} VMs in {region}",
                value=listed,
            )
        found[region] = [_checked(address) for address in listed]
    return found


def _checked(address: str) -> str:
    """Refuse what is neither an IPv4 address nor a host name: it goes into scripts."""
    labels = address.rstrip(".").split(".")
    fine = address.isascii() and all(
        label and all(c.isalnum() or c in "-_" for c in label) and label[0] != "-"
        for label in labels
    )
    if not fine:
        raise InputError(
            "endpoint",
            "is neither an IPv4 address nor a host name",
            value=address,
            remedy="Write REGION=203.0.113.7 or REGION=relay.example.com; several VMs with commas.",
        )
    return address


def must_be_address(vm: Vm, tool: str) -> None:
    """Refuse a host name where a tool compares addresses.

    Raises
    ------
    InputError
        If the VM was given by a name.
    """
    if not vm.address:
        return
    try:
        ip_address(vm.address)
    except ValueError:
        raise InputError(
            f"endpoint of {vm.region}",
            f"must be an address: {tool} lets in this one alone",
            value=vm.address,
            remedy="Give the address that the relay sees connections come from.",
        ) from None


def _vms(
    prefix: str,
    regions: Sequence[str],
    counts: Mapping[str, int],
    addresses: Mapping[str, list[str]],
) -> tuple[Vm, ...]:
    vms: list[Vm] = []
    for region in regions:
        known = addresses.get(region, [])
        for i in range(counts[region]):
            address = known[i] if i < len(known) else ""
            name = f"{prefix}_{len(vms) + 1}"
            vms.append(Vm(name, region, i + 1, counts[region], address))
    return tuple(vms)
