"""The decision on one transfer, its number of VMs, and the quotas that limit it.

Where no number of VMs is stated: the fewest that are nearly as good as the best. More VMs are
faster, and cost the hour in which they are started; the best of all numbers is often hardly better
than far fewer. Of those within :data:`AS_GOOD` of it, the plan with the fewest VMs in all is taken.
Fees are left out of that share. They are paid for the volume however many VMs send it, and next to
large fees no number of VMs would seem to matter.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from planner.model.errors import InfeasibleError, no_path
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import above_quotas, beyond_quotas, limited_texts, without_quotas
from planner.transfer.allocation import EQUAL
from planner.transfer.options import Option
from planner.transfer.problem import most_vms, quotas_may_bind
from planner.transfer.request import TransferRequest
from planner.transfer.search import Decision, TransferChoice, TransferSearch
from planner.transfer.wording import quota_gains, why_infeasible

# Share of what the best plan takes, VMs and time, that fewer VMs may take beyond it.
AS_GOOD = 0.05


def decide(request: TransferRequest, network: Network, prices: Prices) -> Decision:
    """Return the decision.

    Raises
    ------
    InfeasibleError
        If no plan meets the limits.
    DataError
        If nothing is known of any path.
    """
    widest = TransferSearch(request, network, prices)
    _refuse_without_paths(widest)
    best = widest.choice
    if best is None:
        raise why_infeasible(widest, more_vms=not quotas_may_bind(request, network))
    search, choice = _FewestVms(widest, best).found()
    listed = search.listed_relays()
    return Decision(
        search,
        widest,
        *choice,
        listed[0] if listed else None,
        listed[1:],
        choice.direct or search.fastest_direct(),
    )


def chosen_option(request: TransferRequest, network: Network, prices: Prices) -> Option | None:
    """Return the option chosen in the same way; None where no plan meets the limits."""
    if not all(most_vms(request, network.sites[end]) for end in (request.src, request.dst)):
        return None
    widest = TransferSearch(request, network, prices)
    best = widest.choice
    return _FewestVms(widest, best).found()[1].chosen if best else None


def with_one_vm(decision: Decision) -> Option | None:
    """Return the option chosen with one VM wherever no number is stated, if it meets the limits."""
    if max(decision.chosen.vms) == 1:
        return decision.chosen
    choice = decision.widest.within(1).choice
    return choice.chosen if choice else None


def slack(request: TransferRequest, option: Option) -> float:
    """Return the difference within which a value is as good as that of an option."""
    if request.hour_usd == inf:
        return AS_GOOD * option.value_usd
    if request.hour_usd == 0:  # nothing but cost counts, and fewer VMs are rarely dearer
        return EQUAL * option.value_usd
    return AS_GOOD * (option.value_usd - option.allocation.egress_usd)


def _refuse_without_paths(search: TransferSearch) -> None:
    request, network = search.request, search.network
    if search.transfer.direct or search.transfer.relays:
        return
    if state := network.states.get((request.src, request.dst)):
        raise InfeasibleError(
            f"the direct link {state}, and no relay is permitted whose links both carry anything",
            "Permit more relays, or wait until it is back.",
        )
    if quotas_may_bind(request, network):
        raise InfeasibleError(
            "nothing is known of the direct path, and vCPU quotas leave no VM where a relay is "
            "known",
            "Measure the direct path.",
        )
    raise no_path(request.src, request.dst)


class _FewestVms:
    """Finds the fewest VMs for one request: the least number that is as good as the best."""

    def __init__(self, widest: TransferSearch, best: TransferChoice) -> None:
        self.widest, self.best = widest, best
        self.request = widest.request
        self.worst = best.chosen.value_usd + slack(self.request, best.chosen)
        # A relay must be worth it against the best direct plan, not against one that lacks VMs.
        self.relays_may_do = bool(best.chosen.relays)

    def found(self) -> tuple[TransferSearch, TransferChoice]:
        """Return the choice with the fewest VMs in all, and the search that made it."""
        search, choice = self.widest, self.best
        most = self._most_undecided()
        first = 1 + bisect_left(range(1, most), 1, key=self._may_do)
        for vms in range(first, most):
            fewest = sum(choice.chosen.vms)
            # What is best of all numbers is best of these, too, where it needs no more.
            is_best = choice is self.best and choice.chosen is choice.optimum
            if vms >= fewest or (is_best and vms >= max(choice.chosen.vms)):
                break
            fewer = self.widest.within(vms)
            if not self.relays_may_do:
                if self._direct_will_do(vms, fewest):
                    return fewer, self._with_direct(fewer)
                continue
            # Where a relay was chosen, more VMs at the ends alone may be fewer in all.
            if choice is not self.best and not self._direct_will_do(vms, fewest):
                continue
            found = fewer.choice
            if found and self._is_as_good(found.chosen) and sum(found.chosen.vms) < fewest:
                search, choice = fewer, found
                if not found.chosen.relays:
                    break
        return search, choice

    def _with_direct(self, fewer: TransferSearch) -> TransferChoice:
        """Return the choice of the direct path with fewer VMs.

        The optimum that it was preferred to stays: a relay was compared with the best
        direct plan.
        """
        direct, best = fewer.direct, self.best
        assert direct
        optimum = direct if best.optimum is best.direct else best.optimum
        return TransferChoice(direct, direct, optimum, best.gain)

    def _most_undecided(self) -> int:
        """Return the greatest number of VMs at any site for which the request states none."""
        request, transfer = self.request, self.widest.transfer
        if request.vms is not None:
            return 1
        stated, regions = request.vms_in, self.widest.figures.regions
        quotas = [relay.quota for relay in transfer.relays if regions[relay.region] not in stated]
        ends = ((request.src, transfer.src), (request.dst, transfer.dst))
        quotas += [end.quota for region, end in ends if region not in stated]
        return max(quotas, default=1)

    def _may_do(self, vms: int) -> bool:
        """Return whether a plan with so many VMs is as good as the best."""
        if self._direct_will_do(vms):
            return True
        choice = self.widest.within(vms).choice if self.relays_may_do else None
        return choice is not None and self._is_as_good(choice.chosen)

    def _direct_will_do(self, vms: int, fewest: float = inf) -> bool:
        """Return whether a direct plan with fewer VMs in all is as good as the best."""
        direct = self.widest.within(vms).direct
        return direct is not None and sum(direct.vms) < fewest and self._is_as_good(direct)

    def _is_as_good(self, option: Option) -> bool:
        if self.request.objective == "latency":
            mine, best = (
                self.widest.figures.path_rtt_ms(one.relays[0] if one.relays else None)
                for one in (option, self.best.chosen)
            )
            if mine > best * (1 + EQUAL):
                return False
        return option.value_usd <= self.worst


# ---- vCPU quotas ---------------------------------------------------------------------------------


def quota_warnings(decision: Decision) -> list[str]:
    """Return warnings about quotas that limit a plan's VMs, and the gain from raising them.

    Raises
    ------
    InfeasibleError
        If no plan is possible without quotas.
    """
    search, chosen = decision.search, decision.chosen
    found = beyond_quotas(search.network, search.figures.vms(chosen.allocation))
    if not quotas_may_bind(search.request, search.network):
        return found
    free, wanted = _without_quotas(search.request, search.network, search.prices)
    if not wanted:
        return found
    gains = quota_gains(chosen, free, several=len(wanted) > 1)
    return [*found, *limited_texts(search.network, wanted), *gains]


def or_raise_quotas(
    fault: InfeasibleError, request: TransferRequest, network: Network, prices: Prices
) -> InfeasibleError:
    """Return the error, with the quotas to raise where that would make a plan possible."""
    if not quotas_may_bind(request, network):
        return fault
    try:
        _, wanted = _without_quotas(request, network, prices)
    except InfeasibleError:
        return fault
    return InfeasibleError(fault.limit, " ".join([fault.remedy, *limited_texts(network, wanted)]))


def _without_quotas(
    request: TransferRequest, network: Network, prices: Prices
) -> tuple[Option, dict[str, int]]:
    """Return the best plan without quotas, and its VMs where quotas allow fewer."""
    decision = decide(request, without_quotas(network), prices)
    vms = decision.search.figures.vms(decision.chosen.allocation)
    wanted = above_quotas(network, vms)
    return decision.chosen, {r: count for r, count in wanted.items() if r not in request.vms_in}
