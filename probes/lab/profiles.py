"""Profiles: from the catalogue and a TOML file to the topology of a lab.

A profile names VM types, sites, paths and the scale. Its figures are those of the real
network; caps, windows and path rates are multiplied by the scale, distances are not, so that
``window / RTT`` and the caps keep their ratio.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import combinations, permutations, zip_longest
from math import exp, inf
from pathlib import Path
from statistics import NormalDist
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.model.catalogue import Catalogue, Region
from planner.model.errors import FormatError, InputError
from planner.model.network import Network
from probes.lab.behaviours import LinkBehaviour
from probes.lab.topology import GOODPUT_SHARE, MAX_SITES, Site, Topology

DEFAULT_SCALE = 0.02

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SiteEntry(_Document):
    """One site of a profile: a new one, or one with other figures than the catalogue's."""

    region: str
    vm_type: str | None = None
    egress_mbps: Positive | None = None
    ingress_mbps: Positive | None = None
    flow_mbps: Positive | None = None
    window_kb: Positive | None = None


class LinkEntry(_Document):
    """Links between sites that match two patterns; later entries override earlier ones."""

    src: str
    dst: str
    one_way: bool = False
    rtt_ms: Annotated[float, Field(ge=0, le=10_000)] | None = None
    rate_mbps: Positive | None = None
    window_kb: Positive | None = None
    loss_pct: Annotated[float, Field(ge=0, le=100)] | None = None
    jitter_ms: Annotated[float, Field(ge=0, le=5_000)] | None = None


class LawEntry(_Document):
    """A path rate that falls with distance: ``min(limit, at_100_ms (RTT / 100 ms)^exponent)``.

    ``spread`` is the standard deviation of the logarithm of a factor that each pair has of its
    own; it is drawn from the pair's names, so it is the same in every lab.
    """

    src: str
    dst: str
    limit_mbps: Positive
    at_100_ms_mbps: Positive
    exponent: Annotated[float, Field(ge=-2, le=0)]
    spread: Annotated[float, Field(ge=0, le=2)] = 0.0

    def rate_mbps(self, src: str, dst: str, rtt_ms: float) -> float:
        """Return the path's rate between two regions."""
        drawn = hashlib.blake2b(f"{src} {dst}".encode(), digest_size=8).digest()
        share = (int.from_bytes(drawn, "big") + 0.5) / 2**64
        factor = 1.0
        if self.spread:
            factor = exp(NormalDist(0, self.spread).inv_cdf(share))
        far: float = self.at_100_ms_mbps * (max(rtt_ms, 1.0) / 100) ** self.exponent
        return min(self.limit_mbps, far * factor)


class Profile(_Document):
    """A profile as its file has it.

    ``regions`` are patterns of the catalogue's region ids; without it, the lab has the
    catalogue's baseline regions, unless the profile has sites of its own.
    """

    name: str
    summary: str = ""
    scale: Positive = 1.0
    regions: tuple[str, ...] | None = None
    vm_types: dict[str, str] = {}
    site: tuple[SiteEntry, ...] = ()
    link: tuple[LinkEntry, ...] = ()
    law: tuple[LawEntry, ...] = ()


def load_profile(path: Path) -> Profile:
    """Read a profile.

    Raises FormatError if it is not TOML or breaks a rule; names the entry and the value.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise FormatError("--profile", problem, value=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(str(path), f"is not TOML ({error})") from None
    try:
        return Profile.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FormatError(
            f"{path}: {where or 'profile'}",
            f"is wrong: {first['msg']}",
            value=None if isinstance(first["input"], dict) else first["input"],
            remedy="docs/lab.md describes profiles.",
        ) from None


def topology_of(
    profile: Profile,
    catalogue: Catalogue,
    rtt_ms: Callable[[Region, Region], float | None],
    *,
    regions: Sequence[str] | int | None = None,
    scale: float | None = None,
) -> Topology:
    """Build the topology of a lab.

    Raises InputError if a region, VM type or distance is not known.

    Parameters
    ----------
    profile : Profile
    catalogue : Catalogue
        Gives regions, coordinates and VM types.
    rtt_ms : callable
        Round-trip time of two regions where the profile has none; None where not known.
    regions : sequence of str or int, optional
        Regions, or their number; all by default.
    scale : float, optional
        In place of the profile's.
    """
    scale = profile.scale if scale is None else scale
    names = _chosen(_regions_of(profile, catalogue), regions)
    sites = tuple(_site(name, profile, catalogue, scale) for name in names)
    matrix = [[0.0] * len(names) for _ in names]
    links = {}

    def rtt_of(src: str, dst: str) -> float:
        """Return the round-trip time of two regions, or raise an InputError if it is not known."""
        entries = [*_links_of(profile, src, dst), *_links_of(profile, dst, src)]
        listed = [entry.rtt_ms for entry in entries if entry.rtt_ms is not None]
        rtt = listed[-1] if listed else rtt_ms(catalogue.region(src), catalogue.region(dst))
        if rtt is None:
            problem = "has no round-trip time"
            remedy = "Add a [[link]] entry with src, dst and rtt_ms to the profile."
            raise InputError(f"{profile.name} link", problem, value=f"{src} {dst}", remedy=remedy)
        return rtt

    for i, j in combinations(range(len(names)), 2):
        # The model may differ in the last digit between directions.
        rtt = round((rtt_of(names[i], names[j]) + rtt_of(names[j], names[i])) / 2, 3)
        matrix[i][j] = matrix[j][i] = rtt
        for pair in ((i, j), (j, i)):
            behaviour = _behaviour(profile, names[pair[0]], names[pair[1]], rtt, scale)
            if behaviour != LinkBehaviour():
                links[pair] = behaviour
    return Topology(sites, tuple(map(tuple, matrix)), links, profile.name, scale)


def topology_of_network(
    network: Network, *, regions: Sequence[str] | int | None = None, scale: float = DEFAULT_SCALE
) -> Topology:
    """Build a lab that behaves like the network of a graph of estimates.

    Measurements of the lab give the graph's expected figures, times the scale. A round-trip time
    is the mean of both directions.

    Raises InputError if a pair of the chosen regions has no link in either direction.
    """
    names = _chosen(list(network.sites), regions)
    if regions is None:
        names = names[:MAX_SITES]
    estimates = {(link.src, link.dst): link for link in network}
    matrix = [[0.0] * len(names) for _ in names]
    links = {}
    fastest = dict.fromkeys(network.sites, 0.0)
    for link in network:
        for name in (link.src, link.dst):
            fastest[name] = max(fastest[name], link.aggregate_gbps.expected * 1000)
    sites = []
    for name in names:
        site = network.sites[name]
        caps = [
            (fastest[name] if cap == inf else cap * 1000) * scale / GOODPUT_SHARE
            for cap in (site.egress_gbps.expected, site.ingress_gbps.expected)
        ]
        window = max(round(site.window_mb.expected * 1e6 * scale), 2 * 1448)
        sites.append(Site(name, caps[0], caps[1], window, vm_type=site.vm_type))
    for (i, src), (j, dst) in permutations(enumerate(names), 2):
        both = [estimates[pair] for pair in ((src, dst), (dst, src)) if pair in estimates]
        if not both:
            raise InputError("store", "has no link between", value=f"{src} {dst}")
        rtt = sum(link.rtt_ms.expected for link in both) / len(both)
        matrix[i][j] = round(rtt, 3)
        rate = both[0].aggregate_gbps.expected * 1000 * scale / GOODPUT_SHARE
        capped = rate < 0.999 * min(sites[i].egress_mbps, sites[j].ingress_mbps)
        window_kb = max(both[0].per_flow_mbps.expected * scale * rtt / 8, 3.0)
        links[i, j] = LinkBehaviour(rate_mbps=rate if capped else None, window_kb=window_kb)
    return Topology(tuple(sites), tuple(map(tuple, matrix)), links, "store", scale)


def _chosen(names: list[str], regions: Sequence[str] | int | None) -> list[str]:
    if isinstance(regions, int):
        return spread_over_providers(names, regions)
    return names if regions is None else list(regions)


def spread_over_providers(names: Sequence[str], count: int) -> list[str]:
    """Return a number of names, taking one of each provider in turn.

    Raises an InputError unless the number is from 1 to that of the names.
    """
    if not 1 <= count <= len(names):
        raise InputError("--regions", f"must be 1 to {len(names)} here", value=count)
    by_provider: dict[str, list[str]] = {}
    for name in names:
        by_provider.setdefault(name.partition(":")[0], []).append(name)
    rounds = zip_longest(*by_provider.values())
    return [name for taken in rounds for name in taken if name is not None][:count]


def _regions_of(profile: Profile, catalogue: Catalogue) -> list[str]:
    own = [entry.region for entry in profile.site if not any(c in entry.region for c in "*?[")]
    chosen = [region.id for region in catalogue.regions.values() if region.baseline]
    if (patterns := profile.regions) is not None:
        chosen = [name for name in catalogue.regions if any(fnmatchcase(name, p) for p in patterns)]
    elif not catalogue.regions.keys() >= set(own):
        chosen = []
    return list(dict.fromkeys([*chosen, *own]))


def _site(name: str, profile: Profile, catalogue: Catalogue, scale: float) -> Site:
    figures: dict[str, float] = {}
    provider = name.partition(":")[0]
    entries = [entry for entry in profile.site if fnmatchcase(name, entry.region)]
    type_id = profile.vm_types.get(name) or profile.vm_types.get(provider)
    for entry in entries:
        type_id = entry.vm_type or type_id
    type_id = type_id or catalogue.default_vm_types.get(provider)
    if type_id is not None:
        vm = catalogue.vm_types.get(type_id) or catalogue.vm_types.get(f"{provider}:{type_id}")
        if vm is None:
            raise InputError(f"{profile.name} vm_type", "is not in the catalogue", value=type_id)
        type_id = vm.id
        # Experiments end before network credits do.
        burst_gbps = vm.wan_burst_gbps if vm.burstable else 0.0
        figures = {
            "egress_mbps": max(vm.egress_gbps, burst_gbps) * 1000,
            "ingress_mbps": max(vm.ingress_gbps, burst_gbps) * 1000,
            "flow_mbps": vm.flow_gbps * 1000,
            "window_kb": vm.window_mb * 1000,
        }
    for entry in entries:
        figures |= entry.model_dump(exclude={"region", "vm_type"}, exclude_none=True)
    if missing := {"egress_mbps", "ingress_mbps", "window_kb"} - figures.keys():
        problem = f"has no {', '.join(sorted(missing))}"
        remedy = "Give them in a [[site]] entry of the profile, or name a vm_type."
        raise InputError(f"{profile.name} site {name}", problem, remedy=remedy)
    return Site(
        region=name,
        egress_mbps=figures["egress_mbps"] * scale,
        ingress_mbps=figures["ingress_mbps"] * scale,
        window_bytes=round(figures["window_kb"] * 1000 * scale),
        flow_mbps=figures.get("flow_mbps", inf) * scale,
        vm_type=type_id or "",
    )


def _links_of(profile: Profile, src: str, dst: str) -> list[LinkEntry]:
    return [
        entry
        for entry in profile.link
        if (fnmatchcase(src, entry.src) and fnmatchcase(dst, entry.dst))
        or (not entry.one_way and fnmatchcase(src, entry.dst) and fnmatchcase(dst, entry.src))
    ]


def _behaviour(profile: Profile, src: str, dst: str, rtt: float, scale: float) -> LinkBehaviour:
    behaviour = LinkBehaviour()
    for law in profile.law:
        if fnmatchcase(src, law.src) and fnmatchcase(dst, law.dst):
            behaviour = replace(behaviour, rate_mbps=law.rate_mbps(src, dst, rtt) * scale)
    for entry in _links_of(profile, src, dst):
        changes = entry.model_dump(exclude={"src", "dst", "one_way", "rtt_ms"}, exclude_none=True)
        for name in {"rate_mbps", "window_kb"} & changes.keys():
            changes[name] *= scale
        behaviour = replace(behaviour, **changes)
    return behaviour


def profile_names(folder: Path) -> Iterable[str]:
    """Names of the profiles in a folder: ``lab-<name>.toml``."""
    return sorted(path.stem.removeprefix("lab-") for path in folder.glob("lab-*.toml"))
