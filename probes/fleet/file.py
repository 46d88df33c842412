"""The fleet file: TOML, checked entry by entry."""

from __future__ import annotations

import getpass
import ipaddress
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from planner.model.baseline.changed_hosts import with_vm_types
from planner.model.baseline.modelled_links import CAP_ERROR, within
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, Estimate, Origin
from planner.model.link import Site
from planner.model.link_array import KINDS, LinkArray, bounds_of, taken
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from probes.fleet.hosts import PROBE_PORTS, Addresses, Fleet, Host
from probes.importers.options import split

MOST_HOSTS = 20_000
# RFC 1123 names and addresses: nothing here can be an option of a tool or a word of a shell.
_NAME = re.compile(r"(?!-)[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?")


def _address(value: str) -> str:
    text = value.strip()
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        if _NAME.fullmatch(text):
            return text
        raise ValueError("must be an IP address or a host name") from None
    if address.is_multicast or address.is_unspecified:
        raise ValueError("is no address of one machine")
    return str(address)


def _matching(pattern: str, words: str) -> AfterValidator:
    def check(value: str) -> str:
        """Return a value, or raise a ValueError if it does not match the pattern."""
        if not re.fullmatch(pattern, value):
            raise ValueError(words)
        return value

    return AfterValidator(check)


def _region(value: str) -> str:
    if split(value) is None:
        raise ValueError("must be provider:region, such as aws:us-east-1")
    return value


def _ascending(value: tuple[int, int]) -> tuple[int, int]:
    if value[0] > value[1]:
        raise ValueError("must be [first, last] with first <= last")
    return value


_LABEL = r"[A-Za-z0-9][A-Za-z0-9:._#-]{0,127}"
_OF_LABELS = "must consist of letters, digits, `:`, `.`, `_` and `-`"
Port = Annotated[int, Field(ge=1, le=65_535, strict=True)]
Mbps = Annotated[float | None, Field(gt=0, le=1e6, allow_inf_nan=False)]
Address = Annotated[str, AfterValidator(lambda value: _address(value) if value else value)]
User = Annotated[
    str,
    _matching(
        r"(?:[A-Za-z_][A-Za-z0-9_.@-]{0,63})?", "must be a user name: letters, digits, dots, dashes"
    ),
]


class _Login(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, defer_build=True)

    host: Annotated[str, AfterValidator(_address)]
    port: Port = 22
    user: User = ""
    key: str = ""
    known_hosts: str = ""


class _Jump(_Login):
    name: Annotated[str, _matching(_LABEL, _OF_LABELS)]


class _Host(_Login):
    region: Annotated[str, AfterValidator(_region)]
    name: Annotated[str, _matching(f"(?:{_LABEL})?", _OF_LABELS)] = ""
    zone: str = Field(default="", pattern=r"^[a-z0-9-]{0,32}$")
    jump: str = ""
    vm_type: str = Field(default="", pattern=r"^(?:[a-z0-9-]+:)?[A-Za-z0-9._-]{0,64}$")
    private_address: Address = ""
    public_address: Address = ""
    probe_ports: Annotated[tuple[Port, Port], AfterValidator(_ascending)] = PROBE_PORTS
    egress_usd_per_gb: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    egress_mbps: Mbps = None
    ingress_mbps: Mbps = None


class _FleetFile(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    addresses: Addresses = "public"
    user: str = ""
    key: str = ""
    known_hosts: str = ""
    host: list[_Host] = Field(default_factory=list, max_length=MOST_HOSTS)
    jump: list[_Jump] = Field(default_factory=list, max_length=MOST_HOSTS)


def load_fleet(path: Path) -> Fleet:
    """Read a fleet file.

    Paths in it are relative to its folder; ``~`` is the user's home.

    Raises InputError if it can't be read, is not TOML, or an entry is wrong: names entry, field
    and remedy.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = f"can't be read ({error.strerror or error})"
        remedy = "Name one by --fleet or RELAYD_FLEET; configs/fleet.example.toml shows one."
        raise InputError("fleet file", problem, value=str(path), remedy=remedy) from None
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        remedy = "Text is written in quotes, and each host begins with `[[host]]`."
        raise InputError(str(path), f"is not valid TOML: {error}", remedy=remedy) from None
    return fleet_of(document, path.name, path.parent)


def fleet_of(document: dict[str, Any], name: str, folder: Path) -> Fleet:
    """Check a fleet document; raises an InputError if an entry is wrong; see :func:`load_fleet`."""
    try:
        file = _FleetFile.model_validate(document)
    except ValidationError as error:
        raise _explained(name, error) from None
    if not file.host:
        raise InputError(name, "has no `[[host]]` entry", remedy="Add one for each VM.")
    hosts: dict[str, Host] = {}
    seen = Counter[str]()
    for entry in file.host:
        label = entry.name
        if not label:
            seen[entry.region] += 1
            number = seen[entry.region]
            label = entry.region if number == 1 else f"{entry.region}#{number}"
        if label in hosts:
            problem, remedy = "is used by two hosts", "Give each host a name of its own."
            raise InputError(f"{name}: host.name", problem, value=label, remedy=remedy)
        hosts[label] = _host(entry, label, file, folder)
    jumps = {
        entry.name: Host(entry.name, "", entry.host, entry.port, *_identity(entry, file, folder))
        for entry in file.jump
    }
    places: dict[tuple[str, int], str] = {}
    for host in hosts.values():
        if host.jump and host.jump not in jumps:
            problem = "names no `[[jump]]` entry"
            remedy = "Add a `[[jump]]` with this name, or remove the line."
            raise InputError(f"{name}: {host.name}, jump", problem, value=host.jump, remedy=remedy)
        place = (host.host, host.port)
        if not host.jump and place in places:
            raise InputError(
                f"{name}: {host.name}, host",
                f"is the same machine as {places[place]}",
                value=f"{host.host}:{host.port}",
                remedy="List each VM once.",
            )
        places[place] = host.name
    return Fleet(hosts, file.addresses, name, jumps)


def _host(entry: _Host, label: str, file: _FleetFile, folder: Path) -> Host:
    region, zone = split(entry.region) or ("", "")
    as_given = ("jump", "private_address", "egress_usd_per_gb", "egress_mbps", "ingress_mbps")
    return Host(
        label,
        region,
        entry.host,
        entry.port,
        *_identity(entry, file, folder),
        zone=entry.zone or zone,
        vm_type=entry.vm_type.rpartition(":")[2],
        # A VM that is logged in to directly is reached by others the same way.
        public_address=entry.public_address or ("" if entry.private_address else entry.host),
        first_port=entry.probe_ports[0],
        last_port=entry.probe_ports[1],
        **entry.model_dump(include=set(as_given)),
    )


def _identity(entry: _Login, file: _FleetFile, folder: Path) -> tuple[str, Path | None, Path]:
    key = entry.key or file.key
    known = entry.known_hosts or file.known_hosts or "~/.ssh/known_hosts"
    try:
        user = entry.user or file.user or getpass.getuser()
    except (OSError, KeyError):  # as in containers whose user id has no name
        problem = "is missing, and the user who runs this has no name to log in with"
        raise InputError("user", problem, remedy="Add `user = ...` to the fleet file.") from None
    path = _path("key", key, folder) if key else None
    return user, path, _path("known_hosts", known, folder)


def _path(field: str, name: str, folder: Path) -> Path:
    try:
        return folder / Path(name).expanduser()
    except RuntimeError:
        problem = "begins with a home folder that is not known"
        remedy = "Write `~/` for your own, or the whole path."
        raise InputError(field, problem, value=name, remedy=remedy) from None


def _explained(name: str, error: ValidationError) -> InputError:
    """Turn the first problem that pydantic found into one sentence about one entry."""
    first = error.errors(include_url=False)[0]
    where, kind = first["loc"], first["type"]
    field = f"{name}: " + ".".join(str(part) for part in where)
    if len(where) >= 2 and isinstance(where[1], int):
        field = ", ".join([f"{name}: [[{where[0]}]] number {where[1] + 1}", *map(str, where[2:3])])
    if kind == "missing":
        return InputError(field, "is missing", remedy="Every host has one.")
    if kind == "extra_forbidden":
        remedy = "docs/measuring.md lists the fields."
        return InputError(field, "is not a field of a fleet file", remedy=remedy)
    message, value = first["msg"].removeprefix("Value error, "), first.get("input")
    shown = value if isinstance(value, str | int | float | bool) else None
    return InputError(field, message[:1].lower() + message[1:], value=shown)


STATED = Origin("baseline", "fleet-file")


@dataclass(frozen=True, slots=True)
class FleetSite:
    """The VMs of a fleet in one region."""

    vms: int
    vm_type: str = ""  # id of the catalogue; ``""`` where it is not known
    egress_gbps: float | None = None  # caps of one VM, where its owner states them
    ingress_gbps: float | None = None
    # Name of the network of their private addresses; ``""`` where these are not used
    private_network: str = ""


def fleet_sites(fleet: Fleet, catalogue: Catalogue) -> dict[str, FleetSite]:
    """Return the VMs of each region; where hosts of one differ, as the last in the file is."""
    sites: dict[str, FleetSite] = {}
    for host in fleet:
        before = sites.get(host.region, FleetSite(0))
        vm_type = f"{host.provider}:{host.vm_type.removeprefix('Standard_')}"
        networks = {"public": "", "private": "the fleet's"}
        sites[host.region] = FleetSite(
            before.vms + 1,
            vm_type if vm_type in catalogue.vm_types else before.vm_type,
            _gbps(host.egress_mbps) or before.egress_gbps,
            _gbps(host.ingress_mbps) or before.ingress_gbps,
            networks.get(fleet.addresses, f"the fleet's at {host.provider}")
            if host.private_address
            else "",
        )
    return sites


def _gbps(mbps: float | None) -> float | None:
    return mbps / MBPS_PER_GBPS if mbps else None


def with_fleet(network: Network, catalogue: Catalogue, fleet: Mapping[str, FleetSite]) -> Network:
    """Return a network with a fleet's VMs at the sites where it has any.

    Measurements with VMs of another type give way to models. Stated caps hold until the caps of
    those VMs are measured.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
    fleet : mapping
        Region to its VMs; regions that the network lacks are left out.
    """
    here = {region: vms for region, vms in fleet.items() if region in network.sites}
    if not here:
        return network
    vm_types = {region: vms.vm_type for region, vms in here.items() if vms.vm_type}
    network = with_vm_types(network, catalogue, vm_types)
    sites = {**network.sites, **{name: _site(network.sites[name], here[name]) for name in here}}
    links, others = (_within_caps(found, sites) for found in (network.usual, network.others))
    return network.with_(sites=sites, links=links, others=others)


def _site(site: Site, vms: FleetSite) -> Site:
    out, into = site.private_egress_gbps, site.private_ingress_gbps
    return replace(
        site,
        egress_gbps=_stated(site.egress_gbps, vms.egress_gbps),
        ingress_gbps=_stated(site.ingress_gbps, vms.ingress_gbps),
        vms=vms.vms,
        private_egress_gbps=out and _stated(out, vms.egress_gbps),
        private_ingress_gbps=into and _stated(into, vms.ingress_gbps),
        private_network=vms.private_network or site.private_network,
    )


def _stated(cap_gbps: Estimate, stated_gbps: float | None) -> Estimate:
    if stated_gbps is None or cap_gbps.source == "measured":
        return cap_gbps
    return within(stated_gbps, CAP_ERROR, STATED)


def _within_caps(links: LinkArray, sites: Mapping[str, Site]) -> LinkArray:
    """Return links whose rates, unless they were measured, are within the caps of their ends."""
    if not links:
        return links
    cells = taken(links.whole)
    rate = cells["aggregate_gbps"]
    measured = links.kinds(cells, "aggregate_gbps") == KINDS.index("measured")
    for number, address in enumerate(ADDRESS_KINDS, 1):
        egress = bounds_of(site.egress(address) for site in sites.values())[:, None]
        ingress = bounds_of(site.ingress(address) for site in sites.values())
        caps = np.where(egress["expected"] <= ingress["expected"], egress, ingress)
        over = (cells["address"] == number) & ~measured & (rate["expected"] > caps["expected"])
        for bound in BOUNDS:
            rate[bound][over] = np.minimum(rate[bound], caps[bound])[over]
    return links.with_cells(cells)
