"""Direct, relayed or split: the recommendation for one transfer.

A relay is recommended where that has the least expected regret at the margin and the attitude to
risk (:mod:`planner.transfer.comparison`), in the objective's own terms: time, cost, or cost plus
the value of time; or where the direct path cannot meet the request's limits at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf
from typing import TypeAlias

from planner.fields.shared import MOST_VMS
from planner.model.errors import InfeasibleError, no_path
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.solvers.joint import Gain
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.comparison import RELAY_PROCESSING_MS, OptionComparison
from planner.transfer.infeasibility import why_infeasible
from planner.transfer.optimum import fastest, least_value
from planner.transfer.options import Option, OptionEvaluator
from planner.transfer.problem import Relay, TransferProblem, quotas_may_bind
from planner.transfer.request import DEFAULT_CANDIDATES, TransferRequest
from planner.transfer.single_path import (
    AS_FAST,
    best_on_path,
    greatest_rate_gbps,
    greatest_rates_gbps,
    ranked_relays,
)

# The least gain of one more relay: each is one more thing to run and to fail.
SPLIT_GAIN = 0.01
# Plans whose values differ by less are as good.
SAME = 1e-3
# Of round-trip time: how much must be saved before a longer and more fragile path is worth it.
LEAST_LATENCY_GAIN_MS = 10.0

Solver: TypeAlias = Callable[[float], Allocation | None]


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
    transfer: TransferProblem
    chosen: Option
    direct: Option | None
    best_relay: Option | None
    alternatives: list[Option]
    optimum: Option
    gain: Gain | None
    fastest_direct: Option | None = None


class Decider(OptionEvaluator):
    """Decides one request on one network."""

    def __init__(
        self,
        request: TransferRequest,
        network: Network,
        prices: Prices,
        unasked_vms: int = MOST_VMS,
    ) -> None:
        super().__init__(request, network, prices, unasked_vms)
        self.unasked_vms = unasked_vms
        # How many single relays to compare at most; what is decided does not depend on it.
        self.candidates = request.candidates
        self.comparison = OptionComparison(self)

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
            if quotas_may_bind(self.request, self.network):
                raise InfeasibleError(
                    "nothing is known of the direct path, and vCPU quotas leave no VM where a "
                    "relay is known",
                    "Measure the direct path.",
                )
            raise no_path(self.request.src, self.request.dst)
        decision = self.decision()
        if decision is None:
            most = [transfer.src.quota, transfer.dst.quota]
            most += [relay.quota for relay in transfer.relays]
            raise why_infeasible(
                self.request,
                max(most),
                self._optimum_of,
                more_vms=not quotas_may_bind(self.request, self.network),
            )
        return decision

    def decision(self) -> Decision | None:
        """Return the decision; None if no plan meets the limits."""
        direct = self.direct_option()
        if self.request.objective == "latency":
            return self._least_latency(direct)
        single_relays, further = self._single_relays(), self._further_relays()
        if not single_relays:  # where the fastest don't meet the limits, cheaper ones may
            relays = self.transfer.relays
            single_relays = sorted(self._options(relays), key=lambda one: one.value_usd)
            further = []
        optimum = self._optimum(direct, single_relays)
        if optimum is None:
            return None
        gain = None
        chosen = optimum
        if direct and optimum is not direct:
            gain = self.comparison.gain(optimum, direct)
            chosen = optimum if gain.worth else direct
        return self._decision(chosen, direct, single_relays + further, optimum, gain)

    def _least_latency(self, direct: Option | None) -> Decision | None:
        """Decide by round-trip time: a relay must gain both relatively and absolutely."""
        relays = sorted(self.transfer.relays, key=lambda r: (self.path_rtt_ms(r.region), r.region))
        # Where the nearest relays don't meet the limits, others may.
        nearest = relays[: max(DEFAULT_CANDIDATES, self.candidates)]
        options = self._options(nearest) or self._options(relays)
        if direct is None and not options:
            return None
        optimum = chosen = direct or options[0]
        gain = None
        if direct and options:
            (relay,) = options[0].relays
            saved_ms = self.path_rtt_ms(None) - self.path_rtt_ms(relay) - RELAY_PROCESSING_MS
            if saved_ms > 0:
                optimum = options[0]
                gain = self.comparison.gain(optimum, direct)
                if gain.worth and saved_ms >= LEAST_LATENCY_GAIN_MS:
                    chosen = optimum
        return self._decision(chosen, direct, options, optimum, gain)

    def _decision(
        self,
        chosen: Option,
        direct: Option | None,
        relays: list[Option],
        optimum: Option,
        gain: Gain | None,
    ) -> Decision:
        listed = relays[: self.candidates]
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

    def _optimum_of(self, request: TransferRequest) -> Option | None:
        """Return the best plan that another request allows, whatever its bounds; None if none."""
        other = Decider(request, self.network, self.prices, self.unasked_vms)
        return other._optimum(other.direct_option(), other._single_relays())

    # ---- options -----------------------------------------------------------------------------

    def direct_option(self) -> Option | None:
        """Return the best plan over the direct path; None if it can't meet the limits."""
        if self.transfer.direct is None:
            return None
        return self._best(lambda rate: self._on_path(None, rate))

    def _single_relays(self) -> list[Option]:
        """Return the few best single relays, each carrying everything, best first."""
        return self._options(self._ranked(DEFAULT_CANDIDATES))

    def fastest_relay(self) -> tuple[Relay, float]:
        """Return the relay that carries most with all its VMs, and how often what direct does.

        There are relays; of equals the cheapest comes first, then the nearest.
        """
        rates = greatest_rates_gbps(self.transfer)
        most, rtt_ms = max(rates), self.relay_rtts_ms
        relay = min(
            (r for rate, r in zip(rates, self.transfer.relays, strict=True) if rate >= most),
            key=lambda r: (r.usd_per_gb, rtt_ms[r.region], r.region),
        )
        direct_gbps = greatest_rate_gbps(self.transfer, None)
        return relay, most / direct_gbps if direct_gbps else inf

    def whatever_it_costs(self, relay: Relay) -> Option | None:
        """Return the fastest plan through one relay that meets all limits but the budget."""
        request = replace(self.request, objective="time", budget_usd=None)
        other = Decider(request, self.network, self.prices, self.unasked_vms)
        return other._relay_option(relay)

    def _further_relays(self) -> list[Option]:
        """Return further relays to list, which do not affect the decision."""
        if self.candidates <= DEFAULT_CANDIDATES:
            return []
        return self._options(self._ranked(self.candidates)[DEFAULT_CANDIDATES:])

    def _ranked(self, most: int) -> list[Relay]:
        return ranked_relays(
            self.transfer,
            most,
            rtt_ms=self.relay_rtts_ms,
            at_least_gbps=self.request.least_rate_gbps(),
            by_price=self.request.hour_usd == 0,
        )

    def _options(self, relays: Iterable[Relay]) -> list[Option]:
        return [option for relay in relays if (option := self._relay_option(relay))]

    def _optimum(self, direct: Option | None, single_relays: list[Option]) -> Option | None:
        """Return the best of all plans that the request allows."""
        request, transfer = self.request, self.transfer
        options = [direct] if direct else []
        by_value = not request.may_split or request.relays == "one"
        if by_value:
            relays: list[Option | None] = [self._relay_option(relay) for relay in transfer.relays]
            options += [option for option in relays if option]
            if request.may_split:
                options += [option for relay in transfer.relays if (option := self._beside(relay))]
        elif transfer.relays:
            options += single_relays[:1]
            split = self._best(lambda rate: self._anywhere(transfer, rate))
            options += [split] if split else []
        best = None
        for option in options:  # simpler plans come first, and of single relays the preferred one
            least = _least_gain(option, best, by_value=by_value) if best else 0.0
            if best is None or option.value_usd < best.value_usd * (1 - least):
                best = option
            elif option.value_usd <= best.value_usd * (1 + SAME) and _saves(option, best):
                best = option  # where time alone counts, the cheaper of two that are as fast
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

    def _anywhere(self, transfer: TransferProblem, rate: float) -> Allocation | None:
        hour_usd, budget_usd = self.request.hour_usd, self.request.budget_usd or inf

        def solve(at_fees: TransferProblem) -> Allocation | None:
            if hour_usd == inf:
                best = fastest(at_fees, budget_usd=budget_usd)
                return best if best and best.rate_gbps >= rate * (1 - EQUAL) else None
            return least_value(
                at_fees, time_value_usd_per_h=hour_usd, at_least_gbps=rate, budget_usd=budget_usd
            )

        return self.fees.best(
            transfer,
            solve,
            lambda found: (self.option(found).value_usd, found.cost_usd),
            budget_usd,
        )

    def _beside(self, relay: Relay) -> Option | None:
        """Return the best plan over the direct path and one relay."""
        part = replace(self.transfer, relays=[relay])
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


def _saves(option: Option, over: Option) -> bool:
    """Whether an option costs clearly less."""
    return option.allocation.cost_usd < over.allocation.cost_usd * (1 - SPLIT_GAIN)


def _least_gain(option: Option, over: Option, *, by_value: bool) -> float:
    """Return by how much an option must be better than a simpler one, or than its equal."""
    if len(option.relays) > len(over.relays) > 0:
        return SPLIT_GAIN
    if option.is_one_relay and over.is_one_relay and not by_value:
        return AS_FAST
    return EQUAL
