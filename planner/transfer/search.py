"""The search for one transfer's plan: what each path and their best split give, and which to take.

A relay is recommended where that has the least expected regret at the margin and the attitude to
risk (:func:`planner.solvers.joint.worth`), in the objective's own terms: time, cost, or cost plus
the value of time; or where the direct path cannot meet the request's limits at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

from planner.fields.shared import MOST_VMS
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.solvers.joint import Gain
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.optimum import fastest, least_value
from planner.transfer.options import RELAY_PROCESSING_MS, Option, OptionEvaluator
from planner.transfer.problem import Relay, TransferProblem, transfer_problem
from planner.transfer.request import DEFAULT_CANDIDATES, TransferRequest
from planner.transfer.single_path import AS_FAST, best_on_path, greatest_rate_gbps, ranked_relays

# The least gain of one more relay: each is one more thing to run and to fail.
SPLIT_GAIN = 0.01
# Plans whose values differ by less are as good.
SAME = 1e-3
# Of round-trip time: how much must be saved before a longer and more fragile path is worth it.
LEAST_LATENCY_GAIN_MS = 10.0

Solver: TypeAlias = Callable[[float], Allocation | None]


class TransferChoice(NamedTuple):
    """The choice with some numbers of VMs.

    Attributes
    ----------
    chosen : Option
    direct : Option | None
        The best of the direct path; None if it can't meet the request's limits.
    optimum : Option
        What the optimiser preferred on expected figures, chosen or not.
    gain : Gain | None
        Of the optimum over direct, in the objective's terms; None if either is missing.
    """

    chosen: Option
    direct: Option | None
    optimum: Option
    gain: Gain | None


class TransferSearch:
    """The options of one request on one network with some greatest number of VMs.

    Parameters
    ----------
    request, network, prices
    unasked_vms : int
        Most VMs at sites for which the request states no number.
    like : TransferSearch, optional
        One for the same ends, to share what depends on neither VMs nor limits.
    """

    def __init__(
        self,
        request: TransferRequest,
        network: Network,
        prices: Prices,
        unasked_vms: int = MOST_VMS,
        *,
        like: TransferSearch | None = None,
    ) -> None:
        self.request, self.network, self.prices = request, network, prices
        self.unasked_vms = unasked_vms
        self.figures: OptionEvaluator = (
            like.figures if like else OptionEvaluator(request, network, prices)
        )
        self._within: dict[int, TransferSearch] = {}
        self._relay_options: dict[int, Option | None] = {}

    def within(self, vms: int) -> TransferSearch:
        """Return the search with at most so many VMs where the request states no number.

        Parameters
        ----------
        vms : int
            No more than there may be here.
        """
        if vms not in self._within:
            self._within[vms] = TransferSearch(
                self.request, self.network, self.prices, vms, like=self
            )
        return self._within[vms]

    def asking(self, request: TransferRequest) -> TransferSearch:
        """Return the search for a request with another objective or other limits."""
        return TransferSearch(request, self.network, self.prices, self.unasked_vms, like=self)

    @cached_property
    def transfer(self) -> TransferProblem:
        """The problem with the VMs that there may be."""
        return transfer_problem(self.request, self.network, self.prices, self.unasked_vms)

    # ---- the choice --------------------------------------------------------------------------

    @cached_property
    def choice(self) -> TransferChoice | None:
        """The choice; None if no plan meets the limits."""
        direct = self.direct
        if self.request.objective == "latency":
            return self._least_latency(direct)
        optimum = self.optimum
        if optimum is None or direct is None or optimum is direct:
            return TransferChoice(optimum, direct, optimum, None) if optimum else None
        gain = self.figures.gain(optimum, direct)
        return TransferChoice(optimum if gain.worth else direct, direct, optimum, gain)

    def _least_latency(self, direct: Option | None) -> TransferChoice | None:
        """Choose by round-trip time: a relay must gain both relatively and absolutely."""
        options = self.single_relays
        if direct is None or not options:
            only = direct or next(iter(options), None)
            return TransferChoice(only, direct, only, None) if only else None
        (relay,) = options[0].relays
        rtt_ms = self.figures.path_rtt_ms
        saved_ms = rtt_ms(None) - rtt_ms(relay) - RELAY_PROCESSING_MS
        if saved_ms <= 0:
            return TransferChoice(direct, direct, direct, None)
        gain = self.figures.gain(options[0], direct)
        chosen = options[0] if gain.worth and saved_ms >= LEAST_LATENCY_GAIN_MS else direct
        return TransferChoice(chosen, direct, options[0], gain)

    @cached_property
    def optimum(self) -> Option | None:
        """The best of all plans that the request allows, on expected figures."""
        request, transfer = self.request, self.transfer
        options = [self.direct] if self.direct else []
        by_value = not request.may_split or request.relays == "one"
        if by_value:
            options += self._options(transfer.relays)
            if request.may_split:
                options += [option for relay in transfer.relays if (option := self._split(relay))]
        elif transfer.relays:
            ranked = map(self._relay_option, self._ranked(DEFAULT_CANDIDATES))
            first = next(filter(None, ranked), None) or next(iter(self.single_relays), None)
            options += [first] if first else []
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

    # ---- the direct path ---------------------------------------------------------------------

    @cached_property
    def _direct_alone(self) -> TransferProblem:
        """The same problem without relays."""
        return self.transfer.between(self.transfer.src, self.transfer.dst, ())

    @cached_property
    def direct(self) -> Option | None:
        """The best plan over the direct path; None if it can't meet the limits."""
        return self._best_direct(self._direct_alone)

    def direct_with(self, src_vms: int, dst_vms: int) -> Option | None:
        """Return the best direct plan with at most so many VMs at the ends, if it meets limits."""
        if self.network.has_private_links:  # then caps depend on which paths there are
            ends = {self.request.src: src_vms, self.request.dst: dst_vms}
            request = self.request.with_(vms_in={**self.request.vms_in, **ends}, relays="none")
            return TransferSearch(request, self.network, self.prices).direct
        src, dst = (
            replace(self.transfer.src, quota=src_vms),
            replace(self.transfer.dst, quota=dst_vms),
        )
        return self._best_direct(self.transfer.between(src, dst, ()))

    def _best_direct(self, alone: TransferProblem) -> Option | None:
        if alone.direct is None:
            return None
        return self._best(lambda rate: self._on_path(alone, None, rate))

    def fastest_direct(self) -> Option | None:
        """Return the fastest option over the direct path, whatever the limits."""
        found = best_on_path(self._direct_alone, None, time_value_usd_per_h=inf)
        return self._option(found) if found else None

    # ---- single relays -----------------------------------------------------------------------

    @cached_property
    def single_relays(self) -> list[Option]:
        """The few best single relays, each carrying everything, best first."""
        relays = self.transfer.relays
        if self.request.objective != "latency":
            # Where the fastest don't meet the limits, cheaper ones may.
            return self._options(self._ranked(DEFAULT_CANDIDATES)) or sorted(
                self._options(relays), key=lambda one: one.value_usd
            )
        relays = sorted(relays, key=lambda r: (self.figures.path_rtt_ms(r.region), r.region))
        # Where the nearest relays don't meet the limits, others may.
        nearest = relays[: max(DEFAULT_CANDIDATES, self.request.candidates)]
        return self._options(nearest) or self._options(relays)

    def listed_relays(self) -> list[Option]:
        """Return as many single relays as the request lists, best first."""
        found, most = self.single_relays, self.request.candidates
        if most > DEFAULT_CANDIDATES and self.request.objective != "latency":
            further = self._options(self._ranked(most)[DEFAULT_CANDIDATES:])
            known = {option.relays for option in found}
            found = found + [option for option in further if option.relays not in known]
        return found[:most]

    def fastest_relay(self) -> tuple[Relay, float]:
        """Return the relay of greatest rate with all its VMs, and its ratio to the direct rate.

        There are relays; of equals the cheapest comes first, then the nearest.
        """
        rates = self._relay_rates_gbps
        most, rtt_ms = max(rates), self.figures.relay_rtts_ms
        relay = min(
            (r for rate, r in zip(rates, self.transfer.relays, strict=True) if rate >= most),
            key=lambda r: (r.usd_per_gb, rtt_ms[r.region], r.region),
        )
        direct_gbps = greatest_rate_gbps(self.transfer, None)
        return relay, most / direct_gbps if direct_gbps else inf

    def fastest_at_any_cost(self, relay: Relay) -> Option | None:
        """Return the fastest plan through one relay that meets all limits but the budget."""
        request = self.request.with_(objective="time", budget_usd=None)
        return self.asking(request)._relay_option(relay)

    @cached_property
    def _relay_rates_gbps(self) -> list[float]:
        """The rate of each relay of the problem with all its VMs."""
        return [greatest_rate_gbps(self.transfer, relay) for relay in self.transfer.relays]

    def _ranked(self, most: int) -> list[Relay]:
        return ranked_relays(
            self.transfer.relays,
            self._relay_rates_gbps,
            most,
            rtt_ms=self.figures.relay_rtts_ms,
            at_least_gbps=self.request.least_rate_gbps(),
            by_price=self.request.hour_usd == 0,
        )

    def _options(self, relays: Iterable[Relay]) -> list[Option]:
        return [option for relay in relays if (option := self._relay_option(relay))]

    def _relay_option(self, relay: Relay) -> Option | None:
        known = self._relay_options
        if relay.region not in known:
            known[relay.region] = self._best(lambda rate: self._on_path(self.transfer, relay, rate))
        return known[relay.region]

    # ---- solving -----------------------------------------------------------------------------

    def _option(self, allocation: Allocation) -> Option:
        return self.figures.option(allocation, self.request.hour_usd)

    def _on_path(
        self, transfer: TransferProblem, relay: Relay | None, rate: float
    ) -> Allocation | None:
        return best_on_path(
            transfer,
            relay,
            time_value_usd_per_h=self.request.hour_usd,
            at_least_gbps=rate,
            budget_usd=self.request.budget_usd or inf,
        )

    def _split(self, relay: Relay) -> Option | None:
        """Return the best plan over the direct path and one relay."""
        part = self.transfer.between(self.transfer.src, self.transfer.dst, [relay])
        return self._best(lambda rate: self._anywhere(part, rate))

    def _anywhere(self, transfer: TransferProblem, rate: float) -> Allocation | None:
        hour_usd, budget_usd = self.request.hour_usd, self.request.budget_usd or inf

        def solve(at_fees: TransferProblem) -> Allocation | None:
            if hour_usd == inf:
                best = fastest(at_fees, budget_usd=budget_usd)
                return best if best and best.rate_gbps >= rate * (1 - EQUAL) else None
            return least_value(
                at_fees, time_value_usd_per_h=hour_usd, at_least_gbps=rate, budget_usd=budget_usd
            )

        return self.figures.fees.best(
            transfer,
            solve,
            lambda found: (self._option(found).value_usd, found.cost_usd),
            budget_usd,
        )

    def _best(self, solve: Solver) -> Option | None:
        """Solve, allowing for the ramp-up that the paths found need before a deadline."""
        ramp_s = 0.0
        for _ in range(4):
            rate = self.request.least_rate_gbps(ramp_s)
            allocation = solve(rate) if rate < inf else None
            if allocation is None:
                return None
            option = self._option(allocation)
            if self.request.deadline_s is None or option.ramp_up_s <= ramp_s:
                return option
            ramp_s = option.ramp_up_s
        return option if option.duration_s <= (self.request.deadline_s or inf) else None


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision, and everything that explains it.

    Attributes
    ----------
    search : TransferSearch
        With the number of VMs that was decided on.
    widest : TransferSearch
        With all VMs that there may be.
    chosen, direct, optimum, gain
        See :class:`TransferChoice`.
    best_relay : Option | None
        The best single relay; None if none can meet the request's limits.
    alternatives : list of Option
        Further single relays, best first.
    fastest_direct : Option | None
        What the direct path gives at most, whatever the limits.
    """

    search: TransferSearch
    widest: TransferSearch
    chosen: Option
    direct: Option | None
    optimum: Option
    gain: Gain | None
    best_relay: Option | None
    alternatives: list[Option]
    fastest_direct: Option | None

    @property
    def request(self) -> TransferRequest:
        """The request that it is about."""
        return self.search.request


def _saves(option: Option, over: Option) -> bool:
    """Return whether an option costs clearly less."""
    return option.allocation.cost_usd < over.allocation.cost_usd * (1 - SPLIT_GAIN)


def _least_gain(option: Option, over: Option, *, by_value: bool) -> float:
    """Return the gain that an option needs over a simpler one, or over its equal."""
    if len(option.relays) > len(over.relays) > 0:
        return SPLIT_GAIN
    if option.is_one_relay and over.is_one_relay and not by_value:
        return AS_FAST
    return EQUAL
