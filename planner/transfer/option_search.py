"""The ways to carry out one request: direct, over one relay, and the best of all.

What is decided among them is that of :mod:`planner.transfer.decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from math import inf
from typing import Self, TypeAlias

from planner.fields.shared import MOST_VMS
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import S_PER_H
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.comparison import OptionComparison
from planner.transfer.optimum import fastest, least_value  # not where direct is best
from planner.transfer.options import Option, OptionEvaluator
from planner.transfer.problem import Relay, TransferProblem, transfer_problem, within
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

_OF_VMS_AND_LIMITS = (
    "transfer",
    "direct_alone",
    "direct",
    "single_relays",
    "relay_rates_gbps",
    "choice",
)
"""What is worked out once for a number of VMs, and for limits."""
Solver: TypeAlias = Callable[[float], Allocation | None]


class OptionSearch(OptionEvaluator):
    """Finds the options of one request on one network.

    Parameters
    ----------
    request, network, prices
    unasked_vms : int
        Most VMs at sites for which the request states no number.
    """

    def __init__(
        self,
        request: TransferRequest,
        network: Network,
        prices: Prices,
        unasked_vms: int = MOST_VMS,
    ) -> None:
        super().__init__(request, network, prices)
        self.unasked_vms = unasked_vms
        # How many single relays to compare at most; what is decided does not depend on it.
        self.candidates = request.candidates
        self.comparison = OptionComparison(self)
        self._widest = transfer_problem(request, network, prices, unasked_vms)
        self._within: dict[int, Self] = {}
        self._relay_options: dict[int, Option | None] = {}

    def within(self, vms: int) -> Self:
        """Return who answers with at most so many VMs where the request states no number.

        Parameters
        ----------
        vms : int
            No more than there may be here.
        """
        if vms not in self._within:
            fewer = self._within[vms] = self._copy()
            fewer.unasked_vms = vms
        return self._within[vms]

    def asking(self, request: TransferRequest) -> Self:
        """Return who answers the request with another objective or other limits."""
        other = self._copy()
        other.request = request
        return other

    def direct_with(self, src_vms: int, dst_vms: int) -> Option | None:
        """Return the best direct plan with at most so many VMs at the ends, if it meets limits."""
        if self.network.has_private_links:  # then caps depend on which paths there are
            ends = {self.request.src: src_vms, self.request.dst: dst_vms}
            request = self.request.with_(vms_in={**self.request.vms_in, **ends}, relays="none")
            return type(self)(request, self.network, self.prices).direct
        widest = self._widest
        src, dst = widest.src.with_quota(src_vms), widest.dst.with_quota(dst_vms)
        return self._best_direct(widest.between(src, dst, ()))

    def _copy(self) -> Self:
        """Return another one that shares what depends on neither VMs nor limits."""
        other = object.__new__(type(self))
        kept = self.__dict__.items()
        other.__dict__.update({n: v for n, v in kept if n not in _OF_VMS_AND_LIMITS})
        other._within, other._relay_options = {}, {}
        return other

    @cached_property
    def transfer(self) -> TransferProblem:
        """The problem with the VMs that there may be."""
        return within(self._widest, self.request, self.regions, self.unasked_vms)

    @cached_property
    def direct_alone(self) -> TransferProblem:
        """The same problem without relays."""
        widest = self._widest
        alone = widest.between(widest.src, widest.dst, ())
        return within(alone, self.request, self.regions, self.unasked_vms)

    @cached_property
    def least_relayed_usd(self) -> float:
        """What the fee of any relay and its share of a relay VM come to at least."""
        start_h = self.request.vm_start_s / S_PER_H
        return min(
            [
                self.request.volume_gb * relay.usd_per_gb
                + relay.vm_usd_per_h * (self.gbps_h / relay.vm_gbps + start_h)
                for relay in self._widest.relays
                if relay.vm_gbps > 0
            ],
            default=inf,
        )

    def no_relay_pays(self, value_usd: float) -> bool:
        """Whether nothing that relays any of the volume has a lower value, or costs less.

        Leaving a relay's flow away makes any plan better whose relay costs more than the value
        (:func:`planner.transfer.optimum.that_can_pay`); a limit on the rate may demand the relay.
        """
        request = self.request
        if request.hour_usd == inf or request.objective == "latency" or request.least_rate_gbps():
            return False
        if value_usd <= 0:  # what is free is as good as this
            return False
        return self.least_relayed_usd >= max(value_usd, request.budget_usd or 0.0)

    @cached_property
    def direct(self) -> Option | None:
        """The best plan over the direct path; None if it can't meet the limits."""
        return self._best_direct(self.direct_alone)

    def _best_direct(self, alone: TransferProblem) -> Option | None:
        if alone.direct is None:
            return None
        return self._best(lambda rate: self._on_path(alone, None, rate))

    @cached_property
    def single_relays(self) -> list[Option]:
        """The few best single relays, each carrying everything, best first."""
        if self.request.objective != "latency":
            # Where the fastest don't meet the limits, cheaper ones may.
            return self._best_ranked() or sorted(
                self._options(self.transfer.relays), key=lambda one: one.value_usd
            )
        relays = sorted(self.transfer.relays, key=lambda r: (self.path_rtt_ms(r.region), r.region))
        # Where the nearest relays don't meet the limits, others may.
        nearest = relays[: max(DEFAULT_CANDIDATES, self.candidates)]
        return self._options(nearest) or self._options(relays)

    def _best_ranked(self) -> list[Option]:
        return self._options(self._ranked(DEFAULT_CANDIDATES))

    def first_ranked(self) -> Option | None:
        """Return the first of these, to decide with: the others need not be worked out for it."""
        options = map(self._relay_option, self._ranked(DEFAULT_CANDIDATES))
        return next(filter(None, options), None)

    def fastest_relay(self) -> tuple[Relay, float]:
        """Return the relay that carries most with all its VMs, and how often what direct does.

        There are relays; of equals the cheapest comes first, then the nearest.
        """
        rates = self.relay_rates_gbps
        most, rtt_ms = max(rates), self.relay_rtts_ms
        relay = min(
            (r for rate, r in zip(rates, self.transfer.relays, strict=True) if rate >= most),
            key=lambda r: (r.usd_per_gb, rtt_ms[r.region], r.region),
        )
        direct_gbps = greatest_rate_gbps(self.transfer, None)
        return relay, most / direct_gbps if direct_gbps else inf

    def whatever_it_costs(self, relay: Relay) -> Option | None:
        """Return the fastest plan through one relay that meets all limits but the budget."""
        request = self.request.with_(objective="time", budget_usd=None)
        return self.asking(request)._relay_option(relay)

    def further_relays(self) -> list[Option]:
        """Return further relays to list, which do not affect the decision."""
        if self.candidates <= DEFAULT_CANDIDATES or self.request.objective == "latency":
            return []
        further = self._options(self._ranked(self.candidates)[DEFAULT_CANDIDATES:])
        known = {option.relays for option in self.single_relays}
        return [option for option in further if option.relays not in known]

    @cached_property
    def relay_rates_gbps(self) -> list[float]:
        """What each relay of the problem carries with all its VMs."""
        return greatest_rates_gbps(self.transfer)

    def _ranked(self, most: int) -> list[Relay]:
        return ranked_relays(
            self.transfer.relays,
            self.relay_rates_gbps,
            most,
            rtt_ms=self.relay_rtts_ms,
            at_least_gbps=self.request.least_rate_gbps(),
            by_price=self.request.hour_usd == 0,
        )

    def _options(self, relays: Iterable[Relay]) -> list[Option]:
        return [option for relay in relays if (option := self._relay_option(relay))]

    def optimum(self, direct: Option | None, single_relay: Option | None) -> Option | None:
        """Return the best of all plans that the request allows.

        Parameters
        ----------
        direct : Option | None
        single_relay : Option | None
            The best single relay.
        """
        request, transfer = self.request, self.transfer
        options = [direct] if direct else []
        by_value = not request.may_split or request.relays == "one"
        if by_value:
            relays: list[Option | None] = [self._relay_option(relay) for relay in transfer.relays]
            options += [option for option in relays if option]
            if request.may_split:
                options += [option for relay in transfer.relays if (option := self._beside(relay))]
        elif transfer.relays:
            options += [single_relay] if single_relay else []
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

    def fastest_direct(self) -> Option | None:
        """Return what the direct path gives at most, whatever the limits."""
        fastest_there_is = best_on_path(self.direct_alone, None, time_value_usd_per_h=inf)
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
        part = self.transfer.between(self.transfer.src, self.transfer.dst, [relay])
        return self._best(lambda rate: self._anywhere(part, rate))

    def _relay_option(self, relay: Relay) -> Option | None:
        known = self._relay_options
        if relay.region not in known:
            known[relay.region] = self._best(lambda rate: self._on_path(self.transfer, relay, rate))
        return known[relay.region]

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
