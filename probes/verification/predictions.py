"""Predictions of a plan, as a whole and for each path: read from its JSON document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS, MS_PER_S
from planner.model.verification import MEASURING_ERROR
from probes.campaign.costing import on_wire
from probes.campaign.probing import EXCHANGE_ROUND_TRIPS
from probes.samples import Sample

Question: TypeAlias = Literal["transfer", "shuffle", "broadcast"]
Judgement: TypeAlias = Literal["within", "below", "above"]
LimitKind: TypeAlias = Literal["egress cap", "ingress cap", "link"]
Limit: TypeAlias = tuple[LimitKind, tuple[str, ...]]
"""A kind, and the region or the two regions of a link."""
RttMs: TypeAlias = Callable[[str, str], float]
"""Round-trip time of a link, by its source and destination."""

ROUNDED_DOWN = 1 - 1e-9
"""Sums of figures that are equal differ by less."""
FULL_SHARE = 0.97
"""Share of a cap or link beyond which a plan fills it."""
LIMITED_SHARE = 0.97
"""A path that came this near to its rate limit could have carried more."""


@dataclass(frozen=True, slots=True)
class RateRange:
    """A steady throughput in Gbit/s that is expected, with bounds."""

    low_gbps: float
    expected_gbps: float
    high_gbps: float

    def scaled(self, share: float) -> RateRange:
        """Return the range scaled to a part of it."""
        return RateRange(self.low_gbps * share, self.expected_gbps * share, self.high_gbps * share)

    def of_one_run(self) -> RateRange:
        """Return the bounds within which one measurement should fall.

        Bounds of estimates hold a measurement's own error already; no bounds are closer than that.
        """
        most = 1 + MEASURING_ERROR
        return RateRange(
            min(self.low_gbps, self.expected_gbps / most),
            self.expected_gbps,
            max(self.high_gbps, self.expected_gbps * most),
        )

    def judged(self, achieved_gbps: float) -> Judgement:
        """Compare a throughput with this prediction, allowing for the error of one measurement."""
        bounds = self.of_one_run()
        if achieved_gbps < bounds.low_gbps:
            return "below"
        return "above" if achieved_gbps > bounds.high_gbps else "within"


@dataclass(frozen=True, slots=True)
class Stream:
    """One iperf3: the hosts that it goes through, and its connections."""

    hosts: tuple[str, ...]
    connections: int


@dataclass(frozen=True, slots=True)
class PlanPath:
    """One path of a plan, or one link of a broadcast's trees; after its run with its samples."""

    regions: tuple[str, ...]  # two for direct, three through a relay
    connections: int  # on each link, over all VMs
    rtt_ms: float  # of all links together
    rate: RateRange
    streams: tuple[Stream, ...] = ()
    most_gbps: float = inf  # rate limit of its run
    samples: tuple[Sample, ...] = ()  # one for each of its streams, as the tool gave them
    sent_gb: float = 0.0  # over one link, warm-up included

    @property
    def setup_s(self) -> float:
        """Time until all its connections are open."""
        each = max(stream.connections for stream in self.streams)
        return (each + EXCHANGE_ROUND_TRIPS) * self.rtt_ms / MS_PER_S

    @property
    def one_to_one(self) -> bool:
        """True if no VM is in two of its streams."""
        hosts = [host for stream in self.streams for host in stream.hosts]
        return len(set(hosts)) == len(hosts)

    @property
    def achieved_gbps(self) -> float:
        """Of all its streams together."""
        return sum(sample.value for sample in self.samples) / MBPS_PER_GBPS

    @property
    def is_rate_limited(self) -> bool:
        """True if it reached its rate limit, so that its own limit is not known."""
        return self.achieved_gbps >= LIMITED_SHARE * self.most_gbps

    def held(self, room: float) -> PlanPath:
        """Return it limited to a rate of a multiple of its prediction."""
        return replace(self, most_gbps=min(self.most_gbps, self.rate.expected_gbps * room))

    @property
    def links(self) -> list[tuple[str, str]]:
        """Its links in order."""
        return list(pairwise(self.regions))

    def on_wire(self, payload_gb: float) -> Iterator[tuple[str, str, float]]:
        """Yield source, destination and GB on the wire of each link, both ways."""
        each = -(-self.connections // len(self.streams))
        for src, dst in self.links:
            yield from on_wire(src, dst, payload_gb, each, len(self.streams))

    def limits(self) -> Iterator[Limit]:
        """Yield the caps and links that it takes a part of."""
        for src, dst in self.links:
            yield "egress cap", (src,)
            yield "ingress cap", (dst,)
            yield "link", (src, dst)


@dataclass(frozen=True, slots=True)
class PlanPrediction:
    """Prediction of a plan, to be verified: the rates of its paths at the same time."""

    plan_id: str
    snapshot_id: str
    src: str  # empty of a shuffle
    dst: str  # empty of a shuffle or broadcast
    verdict: str
    paths: tuple[PlanPath, ...]
    vms: dict[str, int]  # by region
    rate: RateRange  # of all paths together
    share: float = 1.0  # of the plan's VMs; rates and connections are in proportion
    question: Question = "transfer"

    @property
    def sets_rates(self) -> bool:
        """True if paths are to keep to their rates, which leave room for each other.

        A transfer has VMs of its own: its rate is the most that they carry.
        """
        return self.question != "transfer"

    @property
    def title(self) -> str:
        """The plan's subject, for messages."""
        if self.question == "shuffle":
            pairs = {(path.regions[0], path.regions[-1]) for path in self.paths}
            return f"shuffle of {len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}"
        if self.question == "broadcast":
            return f"broadcast from {self.src}"
        return f"{self.src} -> {self.dst}"

    def at_least(self, gbps: float) -> PlanPrediction:
        """Return the prediction without the paths that carry less; refuse it if all do."""
        paths = tuple(path for path in self.paths if path.rate.expected_gbps >= gbps)
        if not paths:
            raise InputError("plan", f"has no path of {gbps * MBPS_PER_GBPS:g} Mbit/s or more")
        return replace(self, paths=paths, rate=_total(paths))

    def with_vms(self, available: Mapping[str, int]) -> PlanPrediction:
        """Return the prediction for the VMs that there are, at most those planned.

        All rates are linear in the numbers of VMs, so the region with the smallest part of its
        VMs decides.

        Raises InputError if a region of the plan has no VM at all.
        """
        for region in self.vms:
            if not available.get(region):
                raise InputError(
                    "plan",
                    f"needs a VM in {region}, where the fleet has none",
                    remedy="Add a host there to the fleet file, or plan with the regions that it "
                    "has: `relayd measure verify` does.",
                )
        share = min(min(1.0, available[region] / count) for region, count in self.vms.items())
        if share == 1.0:
            return self
        paths = tuple(
            replace(
                path,
                rate=path.rate.scaled(share),
                connections=max(1, round(path.connections * share)),
            )
            for path in self.paths
        )
        vms = {region: min(available[region], count) for region, count in self.vms.items()}
        return replace(self, paths=paths, vms=vms, rate=self.rate.scaled(share), share=share)

    def filled(self, network: Network) -> dict[Limit, RateRange]:
        """Return the caps of regions' VMs and the links that it fills, with their estimates."""
        used_gbps: dict[Limit, float] = defaultdict(float)
        for path in self.paths:
            for limit in path.limits():
                used_gbps[limit] += path.rate.expected_gbps
        found = {}
        for (kind, regions), gbps in used_gbps.items():
            site = network.sites[regions[0]]
            caps = {"egress cap": site.egress_gbps, "ingress cap": site.ingress_gbps}
            one_vm = caps[kind] if kind in caps else network.link(*regions).aggregate_gbps
            rate = RateRange(one_vm.low, one_vm.expected, one_vm.high)
            first, last = self.vms[regions[0]], self.vms[regions[-1]]
            pairs = network.held_pairs(regions[0], regions[-1], first, last)
            rate = rate.scaled(pairs if kind == "link" else first)
            if gbps >= FULL_SHARE * rate.expected_gbps:
                found[kind, regions] = rate
        return found


def _total(paths: Iterable[PlanPath]) -> RateRange:
    """Return the range of paths' rates together, all of them low or high at once."""
    rates = [(p.rate.low_gbps, p.rate.expected_gbps, p.rate.high_gbps) for p in paths]
    return RateRange(*map(sum, zip(*rates, strict=True)))


def predicted(plan: Mapping[str, Any], rtt_ms: RttMs) -> PlanPrediction:
    """Read the document of a transfer's, a shuffle's or a broadcast's plan.

    Raises InputError if it is no such document.

    Parameters
    ----------
    plan : mapping
    rtt_ms : callable
        Of links, for plans that do not state it.
    """
    question: Question = (
        "shuffle" if "pairs" in plan else "broadcast" if "trees" in plan else "transfer"
    )
    try:
        paths = tuple(_paths(plan, question, rtt_ms))
        request = plan["request"]
        found = PlanPrediction(
            str(plan["plan_id"]),
            str(plan["snapshot"]["id"]),
            "" if question == "shuffle" else str(request["src"]),
            str(request["dst"]) if question == "transfer" else "",
            str(plan["verdict"]),
            paths,
            {str(region): int(count) for region, count in plan["vms"].items()},
            _range(plan) if question == "transfer" else _total(paths),
            question=question,
        )
        _check(found)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as fault:
        problem = (
            f"is not the plan of a transfer, shuffle or broadcast: {type(fault).__name__} {fault}"
        )
        raise InputError("plan", problem, remedy="Give a plan or its JSON.") from None
    return found


def _paths(plan: Mapping[str, Any], question: Question, rtt_ms: RttMs) -> Iterable[PlanPath]:
    if question == "shuffle":
        # All rates are in proportion to the volumes: the bounds of the duration hold for each.
        start_s = float(plan.get("vm_start_s", 0.0))
        low_s, duration_s, high_s = (
            float(plan[f"duration_s{end}"]) - start_s for end in ("_low", "", "_high")
        )
        whole = RateRange(duration_s / high_s, 1.0, duration_s / low_s)
        rows = [path for pair in plan["pairs"] for path in pair["paths"]]
    else:
        whole = _range(plan)
        rows = plan["paths"] if question == "transfer" else _links(plan["trees"])
    for row in rows:
        regions = tuple(map(str, row["regions"]))
        yield PlanPath(
            regions,
            int(row["connections"]),
            float(row["rtt_ms"])
            if question == "transfer"
            else sum(rtt_ms(*link) for link in pairwise(regions)),
            whole.scaled(_rate(row, "throughput_gbps") / whole.expected_gbps),
        )


def _links(trees: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the links of a broadcast's trees, each once: what all trees send over it together."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for tree in trees:
        for link in tree["legs"]:
            ends = str(link["src"]), str(link["dst"])
            row = found.setdefault(
                ends, {"regions": ends, "connections": 0, "throughput_gbps": 0.0}
            )
            row["connections"] += int(link["connections"])
            row["throughput_gbps"] += _rate(link, "throughput_gbps")
    return list(found.values())


def _range(plan: Mapping[str, Any]) -> RateRange:
    return RateRange(*(_rate(plan, f"throughput_gbps{end}") for end in ("_low", "", "_high")))


def _rate(content: Mapping[str, Any], name: str) -> float:
    gbps = float(content[name])
    if not (isfinite(gbps) and gbps >= 0):
        raise ValueError(f"{name} is {gbps}")
    return gbps


def _check(found: PlanPrediction) -> None:
    of_transfer, ways = found.question == "transfer", {path.regions for path in found.paths}
    for rate in (found.rate, *(path.rate for path in found.paths)):
        expected = rate.expected_gbps
        is_inside = rate.low_gbps * ROUNDED_DOWN <= expected <= rate.high_gbps / ROUNDED_DOWN
        if not (expected > 0 and is_inside):
            raise ValueError(f"a throughput of {expected} is outside of its bounds")
    if not 0 < len(found.paths) == len(ways):
        raise ValueError("it has no path, or one twice")
    for path in found.paths:
        way, count = " -> ".join(path.regions), len(path.regions)
        strays = of_transfer and (path.regions[0], path.regions[-1]) != (found.src, found.dst)
        if count not in (2, 3) or len(set(path.regions)) < count or strays:
            where = f" from {found.src} to {found.dst}" if of_transfer else ""
            raise ValueError(f"{way} does not lead{where} over at most one relay")
        if path.connections < 1 or not 0 <= path.rtt_ms < inf:
            raise ValueError(f"{way} has no connections or round-trip time")
        if missing := [name for name in path.regions if found.vms.get(name, 0) < 1]:
            raise ValueError(f"it has no VM in {missing[0]}, which is on a path")
