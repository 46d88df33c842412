"""The runs that verify a plan: hosts, connections and duration, within limits of volume and cost.

Runs are shortened and held to their limits before they start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, lcm, sqrt
from typing import TypeAlias

from planner.model.errors import InputError
from planner.model.units import BITS_PER_BYTE, MS_PER_S
from probes.campaign.costing import worst_usd
from probes.campaign.probing import ROUND_TRIPS_OF_MANY, ROUND_TRIPS_OF_ONE_FLOW
from probes.campaign.throughput_tests import LEAST_MEASURED_S, LEAST_OMIT_S
from probes.fleet.hosts import Fleet
from probes.tools import MOST_STREAMS
from probes.tools.interface import OVERRUN_S
from probes.verification.predictions import Judgement, Limit, PlanPath, PlanPrediction, Stream

MOST_MEASURED_S = 600
RECHECK_S = 5
"""Measured time of a recheck of one link."""
MOST_RECHECKED = 8
"""Paths of a plan whose links are rechecked: those furthest from their predictions."""
ROOM = 1.25
"""Factor of its prediction that a run may reach, so that a prediction too low is noticed."""
MOST_ROOM, ROOM_STEP = 1e6, 1.02
"""Factor of the prediction that is no limit, and precision of the largest one that fits."""
LEAST_GBPS = 1e-4
"""Least rate of one of many paths: iperf3 writes whole segments, and below it few a second."""
LIMITS = "limits"
"""Kind of the run that shows whether the limits that a plan fills are real: paths may exceed it."""
AROUND_S = 4.0
"""Time for logins, servers and relays before and after a run."""
MOST_PAIRINGS = 7
"""Most iperf3 of one path through one host: more would only be for a more even division."""

Sent: TypeAlias = tuple[str, str, float]
"""Source and destination region, and GB on the wire."""
Price: TypeAlias = Callable[[str, str, float, float], float]
"""Source, destination, GB, and GB of all plans that are sent before, to USD."""


@dataclass
class Run:
    """Paths that are run at the same time, and afterwards their results.

    Its kind is ``plan``; ``direct``; ``limits``, in which the paths of a plan may carry more than
    planned; or ``apart`` for a recheck of one link.
    """

    kind: str
    prediction: PlanPrediction
    paths: tuple[PlanPath, ...]
    omit_s: int  # warm-up
    measured_s: int  # time that counts
    has_begun: bool = False  # and may have sent anything
    measured_at_s: float = 0.0  # its begin, seconds since 1970; 0 unless it ended in good order
    relays: dict[str, str] = field(default_factory=dict)  # host to the program that split TCP there

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

    @property
    def achieved_gbps(self) -> float:
        """Of all paths together."""
        return sum(path.achieved_gbps for path in self.paths)

    @property
    def judgement(self) -> Judgement:
        """The total compared with the prediction."""
        return self.prediction.rate.judged(self.achieved_gbps)

    def carried(self) -> dict[Limit, tuple[float, float]]:
        """Return predicted and achieved Gbit/s of all paths of each VM and link together."""
        found: dict[Limit, tuple[float, float]] = {}
        for path in self.paths:
            for limit in path.limits():
                predicted, achieved = found.get(limit, (0.0, 0.0))
                predicted += path.rate.expected_gbps
                found[limit] = (predicted, achieved + path.achieved_gbps)
        return found

    def sent(self, *, at_most: bool = False) -> Iterator[Sent]:
        """Yield the volume of every link, both ways: as expected, or at most.

        Senders may be late to end. A run that ended in good order has the volume that it sent.
        """
        span_s = self.omit_s + self.measured_s + (OVERRUN_S if at_most else 0.0)
        for path in self.paths:
            gbps = path.rate.expected_gbps
            if at_most:
                gbps = path.most_gbps if path.most_gbps < inf else path.rate.high_gbps
            gb = path.sent_gb if self.measured_at_s else gbps * span_s / BITS_PER_BYTE
            yield from path.on_wire(gb)


@dataclass(frozen=True, slots=True)
class VerificationLimits:
    """The limits of verifying one plan."""

    measured_s: int = 10  # of each run, at the longest
    most_gb: float = inf  # of all links together
    budget_usd: float = inf

    def __post_init__(self) -> None:
        seconds = f"must be from {LEAST_MEASURED_S} to {MOST_MEASURED_S}"
        within = LEAST_MEASURED_S <= self.measured_s <= MOST_MEASURED_S
        for option, is_right, problem, value in (
            ("--seconds", within, seconds, self.measured_s),
            ("--max-gb", self.most_gb > 0, "must be above 0", self.most_gb),
            ("--budget", self.budget_usd >= 0, "is negative", self.budget_usd),
        ):
            if not is_right:
                raise InputError(option, problem, value=value)

    def allow(self, sent: Sequence[Sent], price: Price) -> bool:
        """Tell whether these volumes may be sent."""
        return volume_gb(sent) <= self.most_gb and cost_usd(sent, price) <= self.budget_usd


def links_of(runs: Iterable[Run], *, at_most: bool = False) -> list[Sent]:
    """Return the volumes that runs send over all links, both ways."""
    return [link for run in runs for link in run.sent(at_most=at_most)]


def volume_gb(sent: Iterable[Sent]) -> float:
    """Return GB on the wire."""
    return sum(gb for _, _, gb in sent)


def cost_usd(sent: Sequence[Sent], price: Price) -> float:
    """Return the highest fees of volumes on the wire: their order is not known."""
    return worst_usd(sent, price, volume_gb(sent))


def available(fleet: Fleet) -> dict[str, int]:
    """Count the fleet's hosts in each region."""
    return dict(Counter(host.region for host in fleet))


def runs_of(
    predictions: Mapping[str, PlanPrediction],
    fleet: Fleet,
    limits: VerificationLimits,
    price: Price,
) -> list[Run]:
    """Return the runs that verify a plan, one after the other, within the limits.

    Raises InputError if even the shortest runs would exceed a limit; states what they need.

    Parameters
    ----------
    predictions : mapping
        Kind of run to its prediction, for the available VMs.
    fleet : Fleet
    limits : VerificationLimits
    price : Price
    """
    runs = [_run_of(kind, prediction, fleet) for kind, prediction in predictions.items()]

    def held(measured_s: int, room: float) -> list[Run]:
        """Limit the runs to rates of a multiple of their predictions."""
        return [
            replace(run, measured_s=measured_s, paths=tuple(path.held(room) for path in run.paths))
            for run in runs
        ]

    def fit(measured_s: int, room: float) -> bool:
        return limits.allow(links_of(held(measured_s, room), at_most=True), price)

    seconds = range(limits.measured_s, LEAST_MEASURED_S - 1, -1)
    measured_s = next((longest for longest in seconds if fit(longest, ROOM)), None)
    if measured_s is None:
        sent = links_of(held(LEAST_MEASURED_S, ROOM), at_most=True)
        gb, usd = volume_gb(sent), cost_usd(sent, price)
        too_much = gb > limits.most_gb
        raise InputError(
            "--max-gb" if too_much else "--budget",
            f"is too little: at least {gb:.3g} GB and {usd:.3g} USD are needed",
            value=limits.most_gb if too_much else limits.budget_usd,
        )
    if fit(measured_s, MOST_ROOM):
        return held(measured_s, inf)
    low, high = ROOM, MOST_ROOM
    while high > low * ROOM_STEP:
        middle = sqrt(low * high)
        low, high = (middle, high) if fit(measured_s, middle) else (low, middle)
    return held(measured_s, low)


def _run_of(kind: str, prediction: PlanPrediction, fleet: Fleet) -> Run:
    """Return the run of a prediction, as fast as it can.

    Raises InputError if it takes too many iperf3 or ports of one host.
    """
    hosts = {  # the first of each region in the fleet file represent the plan's VMs
        region: [host.name for host in fleet if host.region == region][:count]
        for region, count in prediction.vms.items()
    }
    together, room = len(prediction.paths) > 1, ROOM if kind == LIMITS else 1.0
    extra = [
        path.rate.of_one_run().high_gbps - path.rate.expected_gbps for path in prediction.paths
    ]
    paths = []
    for path, own in zip(prediction.paths, extra, strict=True):
        most, rate, connections = inf, path.rate, path.connections
        if kind == LIMITS:
            connections = ceil(ROOM * connections)
        if prediction.sets_rates:
            most = rate.expected_gbps * room
        else:
            # Others may exceed their shares.
            low = max(0.0, rate.low_gbps - (sum(extra) - own))
            rate = replace(rate, low_gbps=low)
            if together:
                # Paths that share VMs keep to their planned proportion: none gets more than its
                # share of the most that the plan may reach.
                most = rate.of_one_run().high_gbps
        path = replace(path, rate=rate, connections=connections, most_gbps=most)
        streams = streams_of(path, [hosts[region] for region in path.regions])
        paths.append(replace(path, streams=streams))
    _check_ports(paths, fleet)
    return Run(kind, prediction, tuple(paths), _omit_s(prediction.paths) + together, 0)


def apart(
    path: PlanPath, prediction: PlanPrediction, achieved_gbps: float, measured_s: int
) -> list[Run]:
    """Return a recheck of each link of a path by itself, to find the one that differs.

    Rates are limited to a little more than the path carried or was expected to carry; nothing more
    needs to be known.
    """
    runs = []
    most_gbps = min(path.most_gbps, ROOM * max(path.rate.high_gbps, achieved_gbps))
    for i, link in enumerate(path.links):
        streams = tuple(replace(s, hosts=s.hosts[i : i + 2]) for s in path.streams)
        one = PlanPath(link, path.connections, path.rtt_ms, path.rate, streams, most_gbps)
        runs.append(Run("apart", prediction, (one,), _omit_s([one]), min(measured_s, RECHECK_S)))
    return runs


def _check_ports(paths: Sequence[PlanPath], fleet: Fleet) -> None:
    """Refuse paths for which a host has too few probe ports: senders and relays listen."""
    listening = Counter(host for path in paths for s in path.streams for host in s.hosts[:-1])
    for name, count in listening.items():
        ports = fleet[name].last_port - fleet[name].first_port + 1
        if count > ports:
            raise InputError(
                "plan",
                f"takes {count} probe ports on {name}, which has {ports}",
                remedy="Widen `probe_ports` in the fleet file, or plan with fewer relays, "
                "--connections or --vms.",
            )


def streams_of(path: PlanPath, hosts: Sequence[Sequence[str]]) -> tuple[Stream, ...]:
    """Divide a path's connections over its hosts so that all hosts of a region carry the same.

    Raises InputError if that takes too many iperf3 at a time on one host.
    """
    counts = [len(names) for names in hosts]
    number = lcm(*counts)
    if number > min(counts) * MOST_PAIRINGS:
        number = max(counts)
    number *= max(1, ceil(path.connections / number / MOST_STREAMS))
    if number > min(counts) * MOST_PAIRINGS:
        problem = f"takes {number} iperf3 through one host on {' -> '.join(path.regions)}"
        remedy = "Plan with fewer --connections or --vms."
        raise InputError("plan", problem, value=path.connections, remedy=remedy)
    number = min(number, max(path.connections, 1))
    share, rest = divmod(path.connections, number)
    return tuple(
        Stream(tuple(names[i % len(names)] for names in hosts), share + (i < rest))
        for i in range(number)
    )


def _omit_s(paths: Sequence[PlanPath]) -> int:
    # Behind a relay the second link begins as the first does.
    longest_s = max(
        (ROUND_TRIPS_OF_MANY if path.connections > 1 else ROUND_TRIPS_OF_ONE_FLOW) * path.rtt_ms
        for path in paths
    )
    return max(LEAST_OMIT_S, ceil(longest_s / MS_PER_S))
