"""Topology of a lab: its sites, their caps and windows, and the distances.

Plain values, no I/O. Everything is in the lab's own (scaled) units.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from typing import Any

from planner.model.errors import FormatError, InputError
from probes.lab.behaviours import LinkBehaviour

MAX_SITES = 250
"""Sites of one lab: they are numbered in the last byte of an IPv4 address."""

SEGMENT_BYTES = 1448
"""TCP payload of a full segment at an MTU of 1500 with timestamps (RFC 7323)."""

GOODPUT_SHARE = SEGMENT_BYTES / 1500
"""Share of a cap that is payload: caps count whole IP packets."""


@dataclass(frozen=True, slots=True)
class Site:
    """One emulated datacenter with one VM in it."""

    region: str  # region id, unique in a lab
    egress_mbps: float  # caps of the VM in Mbit/s of IP packets, over all peers together
    ingress_mbps: float
    window_bytes: int  # TCP receive window of its connections
    flow_mbps: float = math.inf  # cap of a single TCP connection that the VM sends on
    vm_type: str = ""  # the VM type that the figures stand for, or ``""``

    def __post_init__(self) -> None:
        if not self.region or any(c.isspace() or not c.isprintable() for c in self.region):
            raise InputError("region", "is not a name", value=self.region)
        for name in ("egress_mbps", "ingress_mbps", "flow_mbps"):
            value = getattr(self, name)
            unlimited = name == "flow_mbps" and value == math.inf
            if not unlimited and not 0.01 <= value <= 100_000:
                problem = "is not a rate that a lab can hold"
                remedy = "Give 0.01 to 100000 Mbit/s after scaling."
                raise InputError(f"{self.region} {name}", problem, value=value, remedy=remedy)
        if not 2 * SEGMENT_BYTES <= self.window_bytes <= 2**30:
            problem = "is not a window that TCP can work with"
            remedy = f"After scaling it must be {2 * SEGMENT_BYTES} bytes to 1 GiB."
            raise InputError(
                f"{self.region} window", problem, value=self.window_bytes, remedy=remedy
            )


@dataclass(frozen=True, slots=True)
class Topology:
    """A lab: sites, round-trip times and behaviours of links."""

    sites: tuple[Site, ...]  # in order; a site's index names it everywhere in the lab
    rtt_ms: tuple[tuple[float, ...], ...]  # square and symmetric; the diagonal is not used
    # ``(source, destination)`` indices to the behaviour of that direction
    links: Mapping[tuple[int, int], LinkBehaviour] = field(default_factory=dict)
    profile: str = ""  # name of the profile that it was made from
    scale: float = 1.0  # factor of caps and windows

    def __post_init__(self) -> None:
        count = len(self.sites)
        if not 1 <= count <= MAX_SITES:
            raise InputError("sites", f"must be 1 to {MAX_SITES}", value=count)
        regions = [site.region for site in self.sites]
        if len(set(regions)) != count:
            twice = next(name for name in regions if regions.count(name) > 1)
            raise InputError("sites", "name the same region twice", value=twice)
        if len(self.rtt_ms) != count or any(len(row) != count for row in self.rtt_ms):
            raise InputError("rtt_ms", f"is not a {count} x {count} matrix")
        for i, row in enumerate(self.rtt_ms):
            for j, value in enumerate(row):
                back, field = self.rtt_ms[j][i], f"rtt_ms of {regions[i]} and {regions[j]}"
                if i != j and not 0 <= value <= 10_000:
                    raise InputError(field, "must be 0 to 10000 ms", value=value)
                if i != j and value != back:
                    problem = "is not the same in both directions"
                    raise InputError(field, problem, value=(value, back))

    def index(self, region: str) -> int:
        """Return the index of a site by its region id.

        Raises InputError if the lab has no such site; names similar ones.
        """
        names = [site.region for site in self.sites]
        if region in names:
            return names.index(region)
        ends = [name for name in names if name.partition(":")[2] == region]
        if len(ends) == 1:
            return names.index(ends[0])
        near = ends or get_close_matches(region, names, n=3, cutoff=0.4)
        hint = "`relayd measure lab status` lists them."
        if near:
            hint = f"Did you mean {' or '.join(near)}?"
        raise InputError("region", "is not a site of this lab", value=region, remedy=hint)

    def expected_flow_mbps(self, source: int, destination: int) -> float:
        """Goodput that one TCP connection reaches in steady state, in Mbit/s.

        The least of window / RTT and of the payload's share of every cap on the way.
        """
        link = self.links.get((source, destination), LinkBehaviour())
        rtt_ms = self.rtt_ms[source][destination] if link.rtt_ms is None else link.rtt_ms
        window_bits = self.window_of(destination, source) * 8
        by_window = window_bits / rtt_ms / 1000 if rtt_ms else math.inf
        flow = self.sites[source].flow_mbps * GOODPUT_SHARE
        return min(by_window, flow, self.expected_aggregate_mbps(source, destination))

    def expected_aggregate_mbps(self, source: int, destination: int) -> float:
        """Goodput that many connections of one pair reach together, in Mbit/s."""
        link = self.links.get((source, destination), LinkBehaviour())
        caps = [self.sites[source].egress_mbps, self.sites[destination].ingress_mbps]
        if link.rate_mbps is not None:
            caps.append(link.rate_mbps)
        return min(caps) * GOODPUT_SHARE

    def window_of(self, site: int, peer: int) -> int:
        """Receive window in bytes of a site for connections to or from a peer."""
        link = self.links.get((peer, site))
        if link is None or link.window_kb is None:
            return whole_segments(self.sites[site].window_bytes)
        return whole_segments(round(link.window_kb * 1000))

    def to_json(self) -> str:
        """Write it as JSON, for another process to read."""
        return json.dumps(
            {
                "profile": self.profile,
                "scale": self.scale,
                "sites": [
                    {k: v for k, v in asdict(site).items() if v != math.inf} for site in self.sites
                ],
                "rtt_ms": self.rtt_ms,
                "links": [
                    {"source": i, "destination": j, **link.changes()}
                    for (i, j), link in self.links.items()
                ],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Topology:
        """Read the JSON of :meth:`to_json`; raises FormatError if it is damaged."""
        try:
            content: dict[str, Any] = json.loads(text)
            links = {}
            for entry in content["links"]:
                pair = (int(entry.pop("source")), int(entry.pop("destination")))
                links[pair] = LinkBehaviour(**entry)
            return cls(
                sites=tuple(Site(**entry) for entry in content["sites"]),
                rtt_ms=tuple(tuple(map(float, row)) for row in content["rtt_ms"]),
                links=links,
                profile=content["profile"],
                scale=float(content["scale"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError("topology", f"can't be read ({error})") from error


def whole_segments(window_bytes: int) -> int:
    """Round a window to whole TCP segments: a sender does not fill a part of one."""
    return max(round(window_bytes / SEGMENT_BYTES), 2) * SEGMENT_BYTES


def private_address(index: int) -> str:
    """Address of a site on its private network."""
    return f"10.77.0.{index + 1}"


def public_address(index: int) -> str:
    """Address of a site as seen from outside (RFC 2544 range, routed nowhere)."""
    return f"198.18.0.{index + 1}"
