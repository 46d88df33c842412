"""Lanes: a plan's paths divided among single VMs.

A lane is one chain of single VMs, with its share of the volume and of the connections. A path
over several VMs has as many lanes as the region with most of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil, inf
from typing import Any

from planner.fields.shared import MOST_CONNECTIONS, MOST_VMS
from planner.model.aliases import bucket_of
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.transfer.plan import Plan
from relayd.files import plan_of

_MOST_PATHS = 100
_MOST = 1e9
"""GB, Gbit/s or ms: beyond any plan, and small enough to calculate with."""
_ROUNDING = 1e-6
_ADDRESS = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_-]*\.)*[A-Za-z0-9_][A-Za-z0-9_-]*\.*")


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
    src_bucket, dst_bucket : str
        URLs of the buckets that were named as ends, such as ``s3://bucket``; empty where none was.
    """

    plan: Plan
    sources: tuple[Vm, ...]
    relays: tuple[Vm, ...]
    destinations: tuple[Vm, ...]
    lanes: tuple[Lane, ...]
    port: int
    src_bucket: str = ""
    dst_bucket: str = ""

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
    """Divide a plan into lanes; parameters and errors as of :func:`relayd.emit`.

    Raises InputError if the plan, an address or a bucket is wrong, or the ports would go above
    65535.

    Parameters
    ----------
    to_vms : bool
        Whether the receivers are the plan's VMs, rather than a store that takes any number of
        connections.
    """
    whole = _whole(plan_of(plan))
    paths, counts = whole.paths, whole.vms
    src, dst = paths[0].regions[0], paths[0].regions[-1]
    through = [path.regions[1] for path in paths if len(path.regions) == 3]
    addresses = _addresses(endpoints, counts)

    def vms(prefix: str, regions: Sequence[str]) -> tuple[Vm, ...]:
        places = [(region, i) for region in regions for i in range(counts[region])]
        return tuple(
            Vm(f"{prefix}_{k}", region, i + 1, counts[region], addresses.get((region, i), ""))
            for k, (region, i) in enumerate(places, 1)
        )

    sources, relays, destinations = vms("SRC", [src]), vms("RELAY", through), vms("DST", [dst])
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
        figures = path.share / wide, path.throughput_gbps / wide, ceil(path.connections / wide)
        for i in range(wide):
            ends = sources[i % len(sources)], destinations[i % len(destinations)]
            relay = own[i % len(own)] if own else None
            lanes.append(Lane(len(lanes) + 1, ends[0], relay, ends[1], *figures, path.rtt_ms))
    # Who sends a plan may have written it, and these go into scripts.
    buckets = {r.region_id: bucket_of(r.bucket, "plan") for r in whole.resolutions if r.bucket}
    if buckets and not all(re.fullmatch(r"[\w:-]+", name) for name in (whole.plan_id, src, dst)):
        raise InputError("plan", "has an id or an end that no plan has", value=whole.plan_id)
    fitting = buckets.get(src, ""), buckets.get(dst, "")
    return Emission(whole, sources, relays, destinations, tuple(lanes), port, *fitting)


def _whole(plan: Plan) -> Plan:
    """Refuse a plan whose figures fit no script."""
    volume_gb = plan.request.get("volume_gb")
    # Who sends a plan to a service may have written it: what is written for it stays small.
    fine = (
        isinstance(volume_gb, float | int)
        and not isinstance(volume_gb, bool)
        and 0 < volume_gb < _MOST
        and 0 < plan.duration_s < inf
        # JSON may hold halves of characters, which no file can.
        and not re.search("[\ud800-\udfff]", "".join([plan.plan_id, *plan.vms]))
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
        problem = "has a figure that no plan has, of its volume, time, VMs or paths"
        remedy = "Give what `relayd plan --json` printed, unchanged."
        raise InputError("plan", problem, value=plan.plan_id, remedy=remedy)
    return plan


def _addresses(
    endpoints: Mapping[str, str | Sequence[str]], counts: Mapping[str, int]
) -> dict[tuple[str, int], str]:
    """Return region and number of a VM, from 0, to its address."""
    found = {}
    for region, given in endpoints.items():
        listed = [given] if isinstance(given, str) else list(given)
        if region not in counts:
            problem, remedy = "is of a region that the plan does not use", ", ".join(counts)
            raise InputError("endpoint", problem, value=region, remedy=f"The plan uses {remedy}.")
        if len(listed) > counts[region]:
            problem = f"gives {len(listed)} addresses for the {counts[region]} VMs in {region}"
            raise InputError("endpoint", problem, value=listed)
        for i, address in enumerate(listed):
            if not _ADDRESS.fullmatch(address):  # it goes into scripts
                problem = "is neither an IPv4 address nor a host name"
                remedy = "Write REGION=203.0.113.7 or REGION=a.example.com; several with commas."
                raise InputError("endpoint", problem, value=address, remedy=remedy)
            found[region, i] = address
    return found


def must_be_address(vm: Vm) -> None:
    """Refuse a host name, as haproxy compares addresses.

    Raises InputError if the VM was given by a name.
    """
    try:
        ip_address(vm.address or "0.0.0.0")  # noqa: S104 - not given: checked where it runs
    except ValueError:
        problem = "must be an address: haproxy lets in this one alone"
        remedy = "Give the address that the relay sees connections come from."
        field = f"endpoint of {vm.region}"
        raise InputError(field, problem, value=vm.address, remedy=remedy) from None
