"""The runs that verify a plan: hosts, connections and duration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, inf, lcm

from planner.model.errors import InputError
from planner.model.units import BITS_PER_BYTE, MS_PER_S
from probes.campaign.costing import on_wire
from probes.fleet.hosts import Fleet
from probes.tools.interface import OVERRUN_S
from probes.tools.iperf3 import MOST_STREAMS
from probes.verification.predictions import PathPrediction, PlanPrediction

# A window opens within about nine round trips, and many flows share the way up; behind a relay the
# second link begins as the first does.
ROUND_TRIPS_OF_ONE_FLOW = 9.0
ROUND_TRIPS_OF_MANY = 6.0
LEAST_OMIT_S = 2
LEAST_MEASURED_S = 3
MOST_MEASURED_S = 600
RECHECK_S = 5
"""Measured time of a recheck of one link."""
MOST_RECHECKED = 8
"""Paths of a plan whose links are rechecked: those furthest from their predictions."""
ROOM = 1.25
"""How far above its prediction a run may go, so that a prediction too low is noticed."""
LEAST_GBPS = 1e-4
"""Least rate of one of many paths: iperf3 writes whole segments, and below it few a second."""
LIMITS = "limits"
"""Kind of the run that shows whether what a plan fills is full: its paths may go further."""
AROUND_S = 4.0
"""Time for logins, servers and relays before and after a run."""
EXCHANGE_ROUND_TRIPS = 8
MOST_PAIRINGS = 7
"""Most iperf3 of one path through one host: more would only be for a more even division."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One iperf3: the hosts that it goes through, and its connections."""

    hosts: tuple[str, ...]
    connections: int


@dataclass(frozen=True, slots=True)
class PathRun:
    """A path to be run.

    Attributes
    ----------
    path : PathPrediction
    streams : tuple of Stream
    most_gbps : float
        Rate limit; infinite without one.
    setup_s : float
        Until all its connections are open.
    """

    path: PathPrediction
    streams: tuple[Stream, ...]
    most_gbps: float
    setup_s: float

    def on_wire(self, payload_gb: float) -> Iterator[tuple[str, str, float]]:
        """Yield source, destination and GB on the wire of each link, both ways."""
        each = ceil(self.path.connections / len(self.streams))
        for src, dst in pairwise(self.path.regions):
            yield from on_wire(src, dst, payload_gb, each, len(self.streams))

    @property
    def one_to_one(self) -> bool:
        """Whether no VM is in two of its streams."""
        hosts = [host for stream in self.streams for host in stream.hosts]
        return len(set(hosts)) == len(hosts)


@dataclass(frozen=True, slots=True)
class Run:
    """Paths that are run at the same time.

    Attributes
    ----------
    kind : str
        ``plan``; ``direct``; ``limits``, in which the paths of a plan may carry more than planned;
        or ``apart`` for a recheck of one link.
    prediction : PlanPrediction
    paths : tuple of PathRun
    omit_s, measured_s : int
        Warm-up, and what counts.
    """

    kind: str
    prediction: PlanPrediction
    paths: tuple[PathRun, ...]
    omit_s: int
    measured_s: int

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part."""
        return frozenset(
            host for path in self.paths for stream in path.streams for host in stream.hosts
        )

    @property
    def duration_s(self) -> float:
        """With setup and teardown."""
        return self.omit_s + self.measured_s + max(p.setup_s for p in self.paths) + AROUND_S

    def sent(self, *, at_most: bool = False) -> Iterator[tuple[str, str, float]]:
        """Yield source, destination and GB on the wire of what every link carries, both ways.

        As expected, or the most that it may be: senders may be late to end.
        """
        span_s = self.omit_s + self.measured_s + (OVERRUN_S if at_most else 0.0)
        for run in self.paths:
            gbps = run.path.rate.expected_gbps
            if at_most:
                gbps = run.most_gbps if run.most_gbps < inf else run.path.rate.high_gbps
            gb = gbps * span_s / BITS_PER_BYTE
            yield from run.on_wire(gb)


def hosts_by_region(fleet: Fleet, vms: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the hosts that represent a plan's VMs: the first of each region in the fleet file."""
    found: dict[str, list[str]] = {region: [] for region in vms}
    for host in fleet:
        if host.region in found and len(found[host.region]) < vms[host.region]:
            found[host.region].append(host.name)
    return found


def available(fleet: Fleet) -> dict[str, int]:
    """Return how many hosts the fleet has in each region."""
    counts: dict[str, int] = {}
    for host in fleet:
        counts[host.region] = counts.get(host.region, 0) + 1
    return counts


def run_of(kind: str, prediction: PlanPrediction, fleet: Fleet, measured_s: int) -> Run:
    """Return the run of a prediction, as fast as it can.

    Raises
    ------
    InputError
        If it takes too many iperf3 or ports of one host.
    """
    hosts = hosts_by_region(fleet, prediction.vms)
    together = len(prediction.paths) > 1
    of_plan = prediction.paths
    if kind == LIMITS:
        of_plan = tuple(replace(p, connections=ceil(ROOM * p.connections)) for p in of_plan)
    paths = []
    for path in of_plan if prediction.sets_rates else _beside_each_other(of_plan):
        streams = streams_of(path, [hosts[region] for region in path.regions])
        most = inf
        if prediction.sets_rates:
            most = path.rate.expected_gbps * (ROOM if kind == LIMITS else 1.0)
        elif together:
            # Paths that share VMs keep to their planned proportion: none gets more than its share
            # of the most that the plan may reach.
            most = path.rate.of_one_run().high_gbps
        each = max(stream.connections for stream in streams)
        setup_s = (each + EXCHANGE_ROUND_TRIPS) * path.rtt_ms / MS_PER_S
        paths.append(PathRun(path, streams, most, setup_s))
    _check_ports(paths, fleet)
    omit_s = _omit_s(prediction.paths) + together
    return Run(kind, prediction, tuple(paths), omit_s, measured_s)


def apart(
    path: PathRun, prediction: PlanPrediction, achieved_gbps: float, measured_s: int
) -> list[Run]:
    """Return a recheck of each link of a path by itself, to find the one that differs.

    Rates are limited to a little more than the path carried or was expected to carry; nothing more
    needs to be known.
    """
    runs = []
    for i, (src, dst) in enumerate(pairwise(path.path.regions)):
        link = replace(path.path, regions=(src, dst))
        streams = tuple(replace(s, hosts=s.hosts[i : i + 2]) for s in path.streams)
        most_gbps = ROOM * max(path.path.rate.high_gbps, achieved_gbps)
        run = PathRun(link, streams, min(path.most_gbps, most_gbps), path.setup_s)
        runs.append(Run("apart", prediction, (run,), _omit_s([link]), min(measured_s, RECHECK_S)))
    return runs


# ---- inside ------------------------------------------------------------------------------------


def _check_ports(paths: Sequence[PathRun], fleet: Fleet) -> None:
    """Refuse what one host has too few probe ports for: senders and relays listen."""
    listening = Counter(host for path in paths for s in path.streams for host in s.hosts[:-1])
    for name, count in listening.items():
        host = fleet[name]
        ports = host.last_port - host.first_port + 1
        if count > ports:
            raise InputError(
                "plan",
                f"takes {count} probe ports on {name}, which has {ports}",
                remedy="Widen `probe_ports` in the fleet file, or plan with fewer relays, "
                "--connections or --vms.",
            )


def _beside_each_other(paths: Sequence[PathPrediction]) -> Sequence[PathPrediction]:
    """Return paths with low bounds that allow for the others exceeding their shares."""

    def extra_gbps(path: PathPrediction) -> float:
        return path.rate.of_one_run().high_gbps - path.rate.expected_gbps

    extra = sum(map(extra_gbps, paths))
    found = []
    for path in paths:
        low_gbps = max(0.0, path.rate.low_gbps - (extra - extra_gbps(path)))
        found.append(replace(path, rate=replace(path.rate, low_gbps=low_gbps)))
    return found


def streams_of(path: PathPrediction, hosts: Sequence[Sequence[str]]) -> tuple[Stream, ...]:
    """Divide a path's connections over its hosts so that all hosts of a region carry the same.

    Raises
    ------
    InputError
        If that takes too many iperf3 at a time on one host.
    """
    counts = [len(names) for names in hosts]
    number = lcm(*counts)
    if number > min(counts) * MOST_PAIRINGS:
        number = max(counts)
    number *= max(1, ceil(path.connections / number / MOST_STREAMS))
    if number > min(counts) * MOST_PAIRINGS:
        raise InputError(
            "plan",
            f"takes {number} iperf3 through one host on {' -> '.join(path.regions)}",
            value=path.connections,
            remedy="Plan with fewer --connections or --vms.",
        )
    number = min(number, max(path.connections, 1))
    share, rest = divmod(path.connections, number)
    return tuple(
        Stream(tuple(names[i % len(names)] for names in hosts), share + (i < rest))
        for i in range(number)
    )


def _omit_s(paths: Sequence[PathPrediction]) -> int:
    longest_s = 0.0
    for path in paths:
        many = path.connections > 1
        round_trips = ROUND_TRIPS_OF_MANY if many else ROUND_TRIPS_OF_ONE_FLOW
        longest_s = max(longest_s, round_trips * path.rtt_ms / MS_PER_S)
    return max(LEAST_OMIT_S, ceil(longest_s))
