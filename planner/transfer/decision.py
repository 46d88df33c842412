"""Direct, relayed or split: the recommendation for one transfer.

A relay is recommended only when the *low* bound of its gain beats the margin, or when the direct
path cannot meet the request's limits at all. Gain is meant in the objective's own terms: time,
cost, or cost plus the value of time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple, TypeAlias

from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Bound, Network
from planner.model.pricing import Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H, duration_s
from planner.transfer.allocation import EQUAL, Allocation, Relay, Transfer
from planner.transfer.infeasibility import why_infeasible
from planner.transfer.optimum import fastest, least_value
from planner.transfer.problem import transfer_problem
from planner.transfer.relay_ranking import ranked_relays
from planner.transfer.request import DEFAULT_CANDIDATES, TransferRequest
from planner.transfer.single_path import best_on_path

# What one more relay must bring: each is one more thing to run and to fail.
SPLIT_GAIN = 0.01
# What a relay adds to each round trip (a userspace proxy on a loaded VM), and how much must be
# saved before a longer and more fragile path is worth it.
RELAY_PROCESSING_MS = 1.0
LEAST_LATENCY_GAIN_MS = 10.0

Solver: TypeAlias = Callable[[float], Allocation | None]


@dataclass(frozen=True, slots=True)
class Option:
    """An allocation with what it means for the request.

    Attributes
    ----------
    ramp_up_s : float
        Time to get up to speed on the slowest of its paths, 8.5 round trips a link.
    value_usd : float
        Cost plus duration at the request's value of time; the duration itself if that is
        infinite.
    """

    allocation: Allocation
    ramp_up_s: float
    duration_s: float
    value_usd: float

    @property
    def relays(self) -> tuple[int, ...]:
        """Positions of the relays that it uses."""
        return tuple(sorted(self.allocation.relay_gbps))


@dataclass(frozen=True, slots=True)
class Gain:
    """Throughput and objective value of one option over another, with bounds."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and everything that explains it.

    Attributes
    ----------
    chosen : Option
    direct, best_relay : Option | None
        Each the best of its kind; None if it can't meet the request's limits.
    fastest_direct : Option | None
        What the direct path gives at most, whatever the limits.
    alternatives : list of Option
        Single relays, best first.
    optimum : Option
        What the optimiser preferred on expected figures, chosen or not.
    gain : Gain | None
        Of the optimum over direct, in the objective's terms; None if either is missing.
    """

    request: TransferRequest
    transfer: Transfer
    chosen: Option
    direct: Option | None
    best_relay: Option | None
    alternatives: list[Option]
    optimum: Option
    gain: Gain | None
    fastest_direct: Option | None = None


class _Figures(NamedTuple):
    """Positions of both ends, and what the network carries from and to them at one bound."""

    src: int
    dst: int
    out_of_gbps: list[float]
    into_gbps: list[float]
    egress_gbps: list[float]
    ingress_gbps: list[float]

    @classmethod
    def of(cls, request: TransferRequest, network: Network, bound: Bound) -> _Figures:
        rates, position = network.rates(request.connections, bound), network.index
        out_of, into = rates.out_of(request.src), rates.into(request.dst)
        return cls(position[request.src], position[request.dst], out_of, into, *network.caps(bound))


class Decider:
    """Decides one request on one network.

    Parameters
    ----------
    request, network, prices
    candidates : int
        How many single relays to compare at most; what is decided does not depend on it.
    """

    def __init__(
        self,
        request: TransferRequest,
        network: Network,
        prices: Prices,
        candidates: int = DEFAULT_CANDIDATES,
    ) -> None:
        self.request = request
        self.candidates = candidates
        self.network = network
        self.prices = prices
        self.transfer = transfer_problem(request, network, prices)
        self.regions = list(network.sites)
        self._rtt_ms: dict[tuple[int | None, Bound], float] = {}
        self._figures: dict[Bound, _Figures] = {}

    def decide(self) -> Decision:
        """Return the decision.

        Raises
        ------
        InfeasibleError
            If no plan meets the limits.
        DataError
            If nothing is known of any path.
        """
        transfer = self.transfer
        if transfer.direct is None and not transfer.relays:
            if state := self.network.states.get((self.request.src, self.request.dst)):
                raise InfeasibleError(
                    f"the direct link {state}, and no relay is permitted whose links both carry "
                    "anything",
                    "Permit more relays, or wait until it is back.",
                )
            raise DataError(
                f"Nothing is known of any path from {self.request.src} to {self.request.dst} "
                "under these rules. Measure or import one of its links."
            )
        direct = self._direct_option()
        if self.request.objective == "latency":
            return self._least_latency(direct)
        single_relays = self._single_relays()
        optimum = self._optimum(direct, single_relays)
        if optimum is None:
            raise why_infeasible(self)
        gain = self.gain(optimum, direct) if direct and optimum is not direct else None
        chosen = optimum
        if gain and direct and gain.low < 1 + self.request.margin:
            chosen = direct
        listed = (single_relays + self._further_relays())[: self.candidates]
        return Decision(
            self.request,
            transfer,
            chosen,
            direct,
            listed[0] if listed else None,
            listed[1:],
            optimum,
            gain,
            direct or self._fastest_direct(),
        )

    def _least_latency(self, direct: Option | None) -> Decision:
        """Decide by round-trip time: a relay must gain both relatively and absolutely."""
        relays = sorted(self.transfer.relays, key=lambda r: (self.path_rtt_ms(r.region), r.region))
        options = self._options(relays[:DEFAULT_CANDIDATES])
        if direct is None and not options:
            raise why_infeasible(self)
        optimum = chosen = direct or options[0]
        gain = None
        if direct and options:
            (relay,) = options[0].relays
            saved_ms = self.path_rtt_ms(None) - self.path_rtt_ms(relay) - RELAY_PROCESSING_MS
            if saved_ms > 0:
                optimum = options[0]
                gain = Gain(
                    self.path_rtt_ms(None) / (self.path_rtt_ms(relay) + RELAY_PROCESSING_MS),
                    self.path_rtt_ms(None, "low")
                    / (self.path_rtt_ms(relay, "high") + RELAY_PROCESSING_MS),
                    self.path_rtt_ms(None, "high")
                    / (self.path_rtt_ms(relay, "low") + RELAY_PROCESSING_MS),
                )
                if gain.low >= 1 + self.request.margin and saved_ms >= LEAST_LATENCY_GAIN_MS:
                    chosen = optimum
        further = self._options(relays[DEFAULT_CANDIDATES : self.candidates])
        listed = (options + further)[: self.candidates]
        return Decision(
            self.request,
            self.transfer,
            chosen,
            direct,
            listed[0] if listed else None,
            listed[1:],
            optimum,
            gain,
            direct or self._fastest_direct(),
        )

    def optimum(self) -> Option | None:
        """Return the best plan that the request allows, whatever its bounds; None if none is."""
        return self._optimum(self._direct_option(), self._single_relays())

    # ---- options -----------------------------------------------------------------------------

    def _direct_option(self) -> Option | None:
        if self.transfer.direct is None:
            return None
        return self._best(lambda rate: self._on_path(None, rate))

    def _single_relays(self) -> list[Option]:
        """Return the few single relays worth a look, each carrying everything, best first."""
        return self._options(self._ranked(DEFAULT_CANDIDATES))

    def _further_relays(self) -> list[Option]:
        """Return what is listed beside them, and weighs nothing in the decision."""
        if self.candidates <= DEFAULT_CANDIDATES:
            return []
        return self._options(self._ranked(self.candidates)[DEFAULT_CANDIDATES:])

    def _ranked(self, most: int) -> list[Relay]:
        return ranked_relays(
            self.transfer,
            most,
            at_least_gbps=self.request.least_rate_gbps(),
            by_price=self.request.hour_usd == 0,
        )

    def _options(self, relays: Iterable[Relay]) -> list[Option]:
        return [option for relay in relays if (option := self._relay_option(relay))]

    def _optimum(self, direct: Option | None, single_relays: list[Option]) -> Option | None:
        """Return the best of all plans that the request allows."""
        request, transfer = self.request, self.transfer
        options = [direct] if direct else []
        if not request.may_split or request.relays == "one":
            relays: list[Option | None] = [self._relay_option(relay) for relay in transfer.relays]
            options += [option for option in relays if option]
            if request.may_split:
                options += [option for relay in transfer.relays if (option := self._beside(relay))]
        elif transfer.relays:
            options += single_relays[:1]
            split = self._best(lambda rate: self._anywhere(transfer, rate))
            options += [split] if split else []
        best = None
        for option in options:  # simpler plans come first
            worth = SPLIT_GAIN if best and len(option.relays) > len(best.relays) > 0 else EQUAL
            if best is None or option.value_usd < best.value_usd * (1 - worth):
                best = option
        return best

    def _on_path(self, relay: Relay | None, rate: float) -> Allocation | None:
        return best_on_path(
            self.transfer,
            relay,
            time_value_usd_per_h=self.request.hour_usd,
            at_least_gbps=rate,
            budget_usd=self.request.budget_usd or inf,
        )

    def _fastest_direct(self) -> Option | None:
        fastest_there_is = best_on_path(self.transfer, None, time_value_usd_per_h=inf)
        return self.option(fastest_there_is) if fastest_there_is else None

    def _anywhere(self, transfer: Transfer, rate: float) -> Allocation | None:
        hour_usd, budget_usd = self.request.hour_usd, self.request.budget_usd or inf
        if hour_usd == inf:
            best = fastest(transfer, budget_usd=budget_usd)
            return best if best and best.rate_gbps >= rate * (1 - EQUAL) else None
        return least_value(
            transfer, time_value_usd_per_h=hour_usd, at_least_gbps=rate, budget_usd=budget_usd
        )

    def _beside(self, relay: Relay) -> Option | None:
        """Return the best plan over the direct path and one relay."""
        whole = self.transfer
        part = Transfer(
            whole.volume_gb, whole.src, whole.dst, whole.direct, [relay], whole.vm_start_s
        )
        return self._best(lambda rate: self._anywhere(part, rate))

    def _relay_option(self, relay: Relay) -> Option | None:
        return self._best(lambda rate: self._on_path(relay, rate))

    def _best(self, solve: Solver) -> Option | None:
        """Solve, allowing for the ramp-up that the paths found need before a deadline."""
        ramp_s = 0.0
        for _ in range(4):
            rate = self.request.least_rate_gbps(ramp_s)
            allocation = solve(rate) if rate < inf else None
            if allocation is None:
                return None
            option = self.option(allocation)
            if self.request.deadline_s is None or option.ramp_up_s <= ramp_s:
                return option
            ramp_s = option.ramp_up_s
        return option if option.duration_s <= (self.request.deadline_s or inf) else None

    def option(self, allocation: Allocation, rate_gbps: float | None = None) -> Option:
        """Return an allocation's duration and value, by default at its expected rate."""
        rate = rate_gbps or allocation.rate_gbps
        ramp_s = self.path_ramp_up_s(None) if allocation.direct_gbps else 0.0
        for relay in allocation.relay_gbps:
            ramp_s = max(ramp_s, self.path_ramp_up_s(relay))
        time_s = duration_s(self.request.volume_gb, rate) + ramp_s
        hour_usd = self.request.hour_usd
        if hour_usd == inf:
            return Option(allocation, ramp_s, time_s, time_s)
        vm_usd = allocation.vm_usd
        if rate != allocation.rate_gbps:
            start_h = self.request.vm_start_s / S_PER_H
            hours = self.transfer.gbps_h / allocation.rate_gbps + start_h
            vm_usd *= (self.transfer.gbps_h / rate + start_h) / hours
        value = allocation.egress_usd + vm_usd + hour_usd * time_s / S_PER_H
        return Option(allocation, ramp_s, time_s, value)

    def path_rtt_ms(self, relay: int | None, bound: Bound = "expected") -> float:
        """Return the round-trip time of a path: the sum of its links'."""
        rtt_ms = self._rtt_ms.get((relay, bound))
        if rtt_ms is None:
            src, dst = self.request.src, self.request.dst
            if relay is None:
                rtt_ms = float(getattr(self.network.link(src, dst).rtt_ms, bound))
            else:
                via = self.regions[relay]
                first, second = self.network.link(src, via), self.network.link(via, dst)
                rtt_ms = float(getattr(first.rtt_ms, bound) + getattr(second.rtt_ms, bound))
            self._rtt_ms[relay, bound] = rtt_ms
        return rtt_ms

    def path_ramp_up_s(self, relay: int | None) -> float:
        """Return the time that a path takes to get up to speed."""
        return ramp_up_s(self.path_rtt_ms(relay))

    # ---- bounds ------------------------------------------------------------------------------

    def rate_at(self, allocation: Allocation, bound: Bound) -> float:
        """Return the rate of the same VMs and path shares at the estimates' bounds."""
        figures = self._figures.get(bound)
        if figures is None:
            figures = self._figures[bound] = _Figures.of(self.request, self.network, bound)
        src, dst, out_of, into, egress_gbps, ingress_gbps = figures
        rate = allocation.rate_gbps
        loads = [
            rate / (egress_gbps[src] * allocation.src_vms),
            rate / (ingress_gbps[dst] * allocation.dst_vms),
        ]
        out_use = in_use = 0.0
        if allocation.direct_gbps:
            pair_gbps = out_of[dst]
            if pair_gbps <= 0:
                return 0.0
            out_use = in_use = allocation.direct_gbps / pair_gbps
        for k, flow in allocation.relay_gbps.items():
            vm_gbps = min(out_of[k], into[k], ingress_gbps[k], egress_gbps[k])
            if vm_gbps <= 0:
                return 0.0
            out_use += flow / out_of[k]
            in_use += flow / into[k]
            loads.append(flow / (vm_gbps * allocation.relay_vms[k]))
        loads += [out_use / allocation.src_vms, in_use / allocation.dst_vms]
        possible = rate / max(loads)
        # An optimum often leaves a little room; its bounds still enclose it.
        return min(rate, possible) if bound == "low" else max(rate, possible)

    def gain(self, option: Option, over: Option) -> Gain:
        """Return how much better one option is than another, in the objective's terms."""

        def ratio(of: Bound, against: Bound) -> float:
            rate = self.rate_at(option.allocation, of)
            other_rate = self.rate_at(over.allocation, against)
            if rate <= 0:
                return 0.0
            better = self.option(option.allocation, rate)
            return times_better(better, self.option(over.allocation, other_rate))

        return Gain(times_better(option, over), ratio("low", "high"), ratio("high", "low"))


def times_better(option: Option, over: Option) -> float:
    """Return how many times less one option costs its user than another; 1 if both are free."""
    if option.value_usd > 0:
        return over.value_usd / option.value_usd
    return inf if over.value_usd > 0 else 1.0
