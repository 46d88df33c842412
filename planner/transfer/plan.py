"""A plan: what to do, why, and what each alternative would give and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Advice, Bottleneck, Cost, PathShare, PlanOnVms
from planner.model.estimate import AddressKind, Kind
from planner.model.text.blocks import (
    advice_block,
    answer_text,
    figures_text,
    private_text,
    ways_table,
)
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import chance_text, duration_text, gbps_text, usd_text, volume_text

Verdict: TypeAlias = Literal["direct", "relay", "split"]


@dataclass(frozen=True, slots=True)
class PathPlan(PathShare):
    """One path of a plan and what it carries.

    Attributes
    ----------
    bottleneck : str
        The constraint that binds the path.
    """

    rtt_ms: float
    egress_usd_per_gb: float
    bottleneck: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOption:
    """Figures of a way that carries everything over one path.

    Attributes
    ----------
    throughput_gbps_low, throughput_gbps_high : float | None
        Bounds with the same VMs.
    connections : int | None
        TCP connections on each link, over all VMs.
    vms : dict of str to int
        VMs by region.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    """

    throughput_gbps_low: float | None = None
    throughput_gbps_high: float | None = None
    connections: int | None = None
    vms: dict[str, int] = field(default_factory=dict)
    vm_start_s: float = 0.0


@dataclass(frozen=True, slots=True)
class DirectOption(PathOption):
    """The direct path, whatever the verdict.

    Attributes
    ----------
    feasible : bool
        Whether it meets the request's limits. If not, the figures are those of the fastest
        direct transfer there is; None where nothing is known of the path.
    reason : str
        Why it is not feasible.
    """

    feasible: bool
    throughput_gbps: float | None
    duration_s: float | None
    cost_usd: Cost | None
    rtt_ms: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RelayOption(PathOption):
    """A single relay carrying everything.

    Attributes
    ----------
    gain : float | None
        Throughput over that of direct; None where there is no direct path.
    gain_low, gain_high : float | None
        Its 90 % range, where errors that both paths share cancel.
    probability : float | None
        That it is better than direct by the margin, in the objective's terms.
    cost_ratio : float | None
        Cost over that of direct.
    """

    relay: str
    throughput_gbps: float
    gain: float | None
    gain_low: float | None
    duration_s: float
    cost_usd: Cost
    cost_ratio: float | None
    rtt_ms: float
    gain_high: float | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One point of the cost-time frontier."""

    throughput_gbps: float
    duration_s: float
    cost_usd: Cost
    verdict: Verdict
    relays: tuple[str, ...]
    vms: dict[str, int]


@dataclass(frozen=True, slots=True)
class OneVmOption(FrontierPoint):
    """The recommendation with one VM in each region for which no number was stated."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A way to carry out the transfer: what one compares, and how to ask for it.

    Attributes
    ----------
    throughput_gbps, duration_s : float | None
        None of a managed service, whose time no one knows.
    faster : float | None
        Chance that it takes less time than direct; None of direct itself and where not known.
    evidence : str | None
        The weakest that its rates rest on.
    limit : str
        What binds the path that carries most.
    why : str
        The rule by which it is recommended, or what it is for.
    change : dict
        The answer to ``{**plan.request, **change}`` has it, too.
    emit : str
        What ``--emit`` calls a managed service.
    """

    name: str
    verdict: Verdict | Literal["service"]
    relays: tuple[str, ...]
    throughput_gbps: float | None
    duration_s: float | None
    cost_usd: Cost
    vms: dict[str, int]
    paths: tuple[tuple[str, ...], ...] = ()
    addresses: tuple[AddressKind, ...] = ()
    faster: float | None = None
    evidence: Kind | None = None
    limit: str = ""
    recommended: bool = False
    why: str = ""
    change: dict[str, Any] = field(default_factory=dict)
    emit: str = ""


@dataclass(frozen=True, slots=True)
class MeasureFirst:
    """A measurement that would settle what the plan leaves open.

    Attributes
    ----------
    kind : str
        ``aggregate``: with as many connections as a VM opens; ``flow``: with one; ``ramp``: with
        more and more.
    volume_gb : float
        What is sent, at the rate that is expected.
    """

    src: str
    dst: str
    kind: Literal["aggregate", "flow", "ramp"]
    duration_s: float
    volume_gb: float
    cost_usd: float
    reason: str


@dataclass(frozen=True, slots=True)
class AsAchieved:
    """The share of their plans' rates that the last transfers reached, and the time by it.

    It tells of programs and moves no decision.

    Attributes
    ----------
    of : str
        ``pair``, or ``label`` where the request has one that transfers had.
    median, low, high : float
        Shares, with the 5th and the 95th percentile.
    transfers : int
    duration_s : float
        At the median share of this plan's rate.
    """

    of: Literal["pair", "label"]
    median: float
    low: float
    high: float
    transfers: int
    duration_s: float

    @property
    def text(self) -> str:
        """It as a sentence without its full stop."""
        what = {"pair": "between these regions", "label": "of this label"}[self.of]
        last = "last transfer" if self.transfers == 1 else f"last {self.transfers} transfers"
        return (
            f"As achieved: {self.median:.2f} of the planned rate ({self.low:.2f} to "
            f"{self.high:.2f}) by the {last} {what}, which takes {duration_text(self.duration_s)}"
        )


@dataclass(frozen=True, slots=True)
class CopyService:
    """A service that copies between buckets without VMs of one's own.

    Attributes
    ----------
    name, emit : str
        What people call it, and ``--emit``.
    usd_per_gb : float
        Its own fee.
    cost_usd : float
        With egress and requests of the direct path, for the whole volume.
    source, as_of : str
        TextPage and month of the fee.
    unconfirmed : bool
        Whether the page itself was not read.
    """

    name: str
    emit: str
    usd_per_gb: float
    cost_usd: float
    source: str
    as_of: str
    unconfirmed: bool


@dataclass(frozen=True, slots=True)
class Plan(PlanOnVms):
    """A recommendation for one transfer.

    Attributes
    ----------
    throughput_gbps_least : float | None
        The least of its draws: of 64 links that were not measured, one is far below its class.
    as_achieved : AsAchieved | None
        None where no transfer of the pair or the label has finished that followed a plan.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    vcpus : dict of str to int
        Of all its VMs by region, where their type is known; as a catalogue states them.
    vm_types : dict of str to str
        By region.
    offers : tuple of Offer
        All ways to carry it out that the answer knows, the recommended one first.
    services : tuple of CopyService
        Where both ends are buckets: what copies them instead, the cheapest first.
    """

    request: dict[str, Any]
    verdict: Verdict
    reason: str
    throughput_gbps: float
    throughput_gbps_low: float
    throughput_gbps_high: float
    duration_s: float
    cost_usd: Cost
    paths: tuple[PathPlan, ...]
    vms: dict[str, int]
    direct: DirectOption
    best_relay: RelayOption | None
    alternatives: tuple[RelayOption, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    advice: tuple[Advice, ...] = ()
    confidence: str = ""
    frontier: tuple[FrontierPoint, ...] = ()
    measure_first: tuple[MeasureFirst, ...] = ()
    one_vm: OneVmOption | None = None
    """None where numbers of VMs were stated, or where one can't meet the limits."""
    vm_start_s: float = 0.0
    vcpus: dict[str, int] = field(default_factory=dict)
    vm_types: dict[str, str] = field(default_factory=dict)
    throughput_gbps_least: float | None = None
    services: tuple[CopyService, ...] = ()
    offers: tuple[Offer, ...] = ()
    as_achieved: AsAchieved | None = None

    @property
    def rtt_ms(self) -> float:
        """Round-trip time of its longest path."""
        return max(path.rtt_ms for path in self.paths)

    def text(
        self, page: TextPage = PLAIN, *, candidates: bool = False, assumed: bool = False
    ) -> str:
        """Return the text for people: verdict and reason, the comparison, advice, certainty."""
        request, relay = self.request, self.best_relay
        rule = self.offers[0].why if self.offers else ""
        note = " (assumed; say --volume)" if assumed else ""
        until = f", within {duration_text(s)}" if (s := request.get("deadline_s")) else ""
        split = len(self.paths) > 1 or self.verdict != "direct"
        figures = figures_text(
            self.duration_s, self.cost_usd, self.vms, self.vm_types, _connections(self)
        )
        return answer_text(
            page,
            self,
            _verdict(self),
            f"{request['src']} -> {request['dst']}, {volume_text(request['volume_gb'])}{note}"
            f"{until}\n{figures}",
            ways_table(page, _ways(self)),
            page.filled(f"{self.as_achieved.text}." if self.as_achieved else ""),
            page.filled(_services(self)),
            page.table_of(
                self.paths if split else (),
                "path | Gbit/s=throughput_gbps | share | connections | RTT=rtt_ms | "
                "$/GB=egress_usd_per_gb",
                path=lambda path: " -> ".join(path.regions) + private_text(path),
            ),
            page.filled(_limit(self)),
            page.filled(f"Chosen by: {rule}." if "fewest VMs" in rule else ""),
            page.table_of(
                self.offers if candidates else (),
                "offer=name | Gbit/s=throughput_gbps | time=duration_s | $ total=cost_usd.total | "
                "sooner than direct=faster | VMs=vms | rests on=evidence",
                name=lambda one: one.name + " (chosen)" * one.recommended,
                faster=lambda one: "-" if one.faster is None else chance_text(one.faster),
            ),
            page.table_of(
                self.frontier,
                "frontier | Gbit/s=throughput_gbps | time=duration_s | $ total=cost_usd.total | "
                "VMs=vms",
                frontier=lambda one: one.verdict + f" ({', '.join(one.relays)})" * bool(one.relays),
            ),
            page.filled(_chances(relay)) if relay and relay.probability is not None else "",
            advice_block(page, self.advice),
            page.filled(_carried_out(self)),
            vm_start_s=self.vm_start_s,
            sure=self.confidence,
        )

    def __repr__(self) -> str:
        """Describe the plan in one line."""
        return (
            f"<Plan {self.plan_id}: {self.verdict}, {self.throughput_gbps:.2f} Gbit/s, "
            f"{self.duration_s:.0f} s, ${self.cost_usd.total:.2f}>"
        )


def _services(plan: Plan) -> str:
    said = [
        f"{one.name} for {usd_text(one.cost_usd)} (its own fee: ${one.usd_per_gb:g} a GB"
        f"{', unconfirmed' * one.unconfirmed}; --emit {one.emit})"
        for one in plan.services
    ]
    return f"Without VMs, in a time not known: {', or '.join(said)}." if said else ""


def _chances(relay: RelayOption) -> str:
    return (
        f"The best relay carries {relay.gain_low:.2f}x to {relay.gain_high:.2f}x what direct does "
        f"(90 %). Chance that a relay pays: {chance_text(relay.probability or 0.0)}."
    )


def _carried_out(plan: Plan) -> str:
    relays = ", or --emit haproxy for relays of any TCP tool" if plan.verdict != "direct" else ""
    return f"To carry it out, add --emit rclone for a script that copies files or buckets{relays}."


def _verdict(plan: Plan) -> str:
    if plan.verdict == "direct":
        return "Send it direct."
    relays = [path.regions[1] for path in plan.paths if len(path.regions) == 3]
    if plan.verdict == "relay":
        return f"Relay it through {relays[0]}."
    direct = "the direct path and " if any(len(p.regions) == 2 for p in plan.paths) else ""
    return f"Split it over {direct}{', '.join(relays)}."


def _ways(plan: Plan) -> list[tuple[str, Any]]:
    direct, best, one = plan.direct, plan.best_relay, plan.one_vm
    misses = "" if direct.feasible or direct.throughput_gbps is None else " (misses the limits)"
    ways: list[tuple[str, Any]] = [
        (f"direct{misses}", direct),
        (f"best relay, {best.relay}" if best else "best relay (none)", best),
        (f"chosen: {plan.verdict}", plan),
    ]
    if one and max(plan.vms.values()) > 1:
        name = "direct" if one.verdict == "direct" else f"{one.verdict}, {', '.join(one.relays)}"
        ways.append((f"one VM a region: {name}", one))
    return ways


def _connections(plan: Plan) -> str:
    most, each = max(path.connections for path in plan.paths), ""
    if len(plan.paths) > 1:
        each = " a path at most"
    elif most > plan.request["connections"]:
        each = f" ({plan.request['connections']} a VM)"
    return f"; {most} TCP connections{each}"


def _limit(plan: Plan) -> str:
    """Name the limit, unless the reason has said so."""
    binding = next(iter(plan.bottlenecks), None)
    gbps = gbps_text(binding.gain_per_unit) if binding else ""
    if binding is None or f"{gbps} Gbit/s" in plan.reason:
        return ""
    return f"Limit: {binding.constraint} at {binding.region} ({gbps} {binding.unit})."
