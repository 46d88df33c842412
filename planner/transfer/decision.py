"""The decision on one transfer, its number of VMs, and the quotas that limit it.

Where no number of VMs is stated: the fewest that are nearly as good as the best. More VMs are
faster, and cost the hour in which they are started; the best of all numbers is often hardly better
than far fewer. Of those within :data:`AS_GOOD` of it, the plan with the fewest VMs in all is taken.
Fees are left out of that share. They are paid for the volume however many VMs send it, and next to
large fees no number of VMs would seem to matter.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf

from planner.fields.shared import MOST_VMS
from planner.model.errors import InfeasibleError, no_path
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import above_quotas, beyond_quotas, limited_texts, without_quotas
from planner.model.units import (
    duration_text,
    enough,
    more_usd_text,
    start_texts,
    too_short_texts,
    usd_text,
)
from planner.transfer.allocation import EQUAL
from planner.transfer.options import Option, OptionEvaluator
from planner.transfer.problem import quotas_may_bind
from planner.transfer.request import TransferRequest
from planner.transfer.search import TransferChoice, TransferSearch

# Share of what the best plan takes, VMs and time, that fewer VMs may take beyond it.
AS_GOOD = 0.05
# Gains by raising a quota that are smaller are not worth saying.
WORTH_SAYING = 0.01


def counted(count: int, thing: str) -> str:
    """Return a number of things in words."""
    return f"{count} {thing}{'s' if count > 1 else ''}"


@dataclass(frozen=True)
class Decision:
    """A decision, and everything that explains it.

    Attributes
    ----------
    search, widest : TransferSearch
        With the number of VMs that was decided on, and with all VMs that there may be.
    made : TransferChoice
        The choice of that search.
    chosen : Option
        What is recommended: what was chosen, or one to try.
    """

    search: TransferSearch
    widest: TransferSearch
    made: TransferChoice
    chosen: Option

    @property
    def request(self) -> TransferRequest:
        """The request that it is about."""
        return self.search.request

    @property
    def figures(self) -> OptionEvaluator:
        """The figures that it rests on."""
        return self.search.figures

    @property
    def direct(self) -> Option | None:
        """The best of the direct path; None if it can't meet the request's limits."""
        return self.made.direct

    @cached_property
    def relays(self) -> list[Option]:
        """The single relays to list, best first; none if none can meet the request's limits.

        With no more VMs a region than a direct plan that is chosen uses, where so many will do.
        """
        most, fewer = max(self.chosen.vms), None
        if self.request.vms is None and not self.chosen.relays and most < self.search.unasked_vms:
            fewer = self.search.within(most).listed_relays()
        return fewer or self.search.listed_relays()

    @property
    def best_relay(self) -> Option | None:
        """The best single relay."""
        return next(iter(self.relays), None)

    @cached_property
    def fastest_direct(self) -> Option | None:
        """The best of the direct path, or else the fastest, whatever the limits."""
        return self.direct or self.search.fastest_direct()

    @property
    def used_pairs(self) -> list[tuple[str, str]]:
        """The links of what is recommended."""
        return [p for path in self.chosen.allocation.flows for p in self.figures.pairs_of(path)]


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
    if widest.choice is None:
        raise _why_infeasible(widest, more_vms=not quotas_may_bind(request, network))
    search, made = _with_fewest_vms(widest, widest.choice)
    return Decision(search, widest, made, made.chosen)


def chosen_option(request: TransferRequest, network: Network, prices: Prices) -> Option | None:
    """Return the option chosen in the same way; None where no plan meets the limits."""
    if not all(request.vm_limits.most(network.sites[end]) for end in (request.src, request.dst)):
        return None
    widest = TransferSearch(request, network, prices)
    return _with_fewest_vms(widest, widest.choice)[1].chosen if widest.choice else None


def with_one_vm(decision: Decision) -> Option | None:
    """Return the option chosen with one VM wherever no number is stated, if it meets the limits."""
    if max(decision.chosen.vms) == 1:
        return decision.chosen
    choice = decision.widest.within(1).choice
    return choice.chosen if choice else None


def slack(hour_usd: float, value_usd: float, egress_usd: float) -> float:
    """Return the difference within which another value is as good.

    Parameters
    ----------
    hour_usd : float
        What an hour is worth.
    value_usd : float
        Cost plus time, or the time alone where an hour's worth is infinite.
    egress_usd : float
        The fees in it.
    """
    if hour_usd == inf:
        return AS_GOOD * value_usd
    if hour_usd == 0:  # nothing but cost counts, and fewer VMs are rarely dearer
        return EQUAL * value_usd
    return AS_GOOD * (value_usd - egress_usd)


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


def _why_infeasible(search: TransferSearch, *, more_vms: bool) -> InfeasibleError:
    """Return the error that names the limit, in the order rate, deadline, budget.

    Each limit is compared with the best that the request's paths and VMs achieve without it, so the
    remedy suffices. Where quotas do not allow it, `more_vms` are no remedy.
    """
    request, transfer = search.request, search.transfer
    fastest = search.asking(
        objective="time", budget_usd=None, deadline_s=None, min_throughput_gbps=None
    ).optimum
    if fastest is None:
        return InfeasibleError(
            "no permitted path carries anything", "Permit more relays, or measure more links."
        )
    of_relays = transfer.relays.rows["quota"].tolist()
    vms = max([transfer.src.quota, transfer.dst.quota, *of_relays])
    most, floor_gbps = fastest.allocation.rate_gbps, request.min_throughput_gbps or 0.0
    who = f"{counted(vms, 'VM')} a region" if more_vms else "the VMs that quotas allow"
    reach = f"{who} and {counted(request.connections, 'connection')} reach"

    def or_vms(share: float) -> str:
        """Return the number of VMs that would suffice: rates grow in proportion to all quotas."""
        if not more_vms or request.vms_in or share == inf:
            return ", or raise `vms`" if more_vms else ""
        needed = ceil(vms * share * (1 - EQUAL))
        return f", or raise `vms` to {needed}" if needed <= MOST_VMS else ""

    if floor_gbps > most * (1 + EQUAL):
        lower = floor(most * 1000) / 1000  # rounded up, it would be out of reach again
        return InfeasibleError(
            f"{floor_gbps:g} Gbit/s is above the {most:.3f} Gbit/s that {reach} over all "
            "permitted paths",
            f"Ask for at most {lower:.3f} Gbit/s{or_vms(floor_gbps / most)}.",
            min_throughput_gbps=lower,
        )
    if request.deadline_s is not None and fastest.duration_s > request.deadline_s * (1 + EQUAL):
        allow, enough_s = enough(fastest.duration_s * (1 + EQUAL))
        left_s = request.deadline_s - fastest.lead_s
        share = (fastest.duration_s - fastest.lead_s) / left_s if left_s > 0 else inf
        vms_too = or_vms(share) if left_s > 0 else ""
        starting, running = start_texts(fastest.vm_start_s)
        deadline, takes = too_short_texts(request.deadline_s, fastest.duration_s)
        return InfeasibleError(
            f"the deadline of {deadline} is before the {takes} that the transfer takes at the "
            f"{most:.3f} Gbit/s that {reach}{starting}",
            f"Allow at least {allow}{vms_too}{running}.",
            deadline_s=enough_s,
        )
    cheapest = search.asking(objective="cost", budget_usd=None).optimum
    if cheapest is not None and request.budget_usd is not None:
        cost = cheapest.allocation
        enough_usd = ceil(cost.cost_usd * (1 + EQUAL) * 100) / 100
        return InfeasibleError(
            f"a budget of {usd_text(request.budget_usd)} is below the cheapest plan, which costs "
            f"{usd_text(cost.cost_usd)} ({usd_text(cost.egress_usd)} egress, "
            f"{usd_text(cost.vm_usd)} VMs)",
            f"Raise the budget to {usd_text(enough_usd)} or send less.",
            budget_usd=enough_usd,
        )
    return InfeasibleError(
        "the limits cannot be met together", "Loosen the deadline, the rate or the budget."
    )


def _with_fewest_vms(
    widest: TransferSearch, best: TransferChoice
) -> tuple[TransferSearch, TransferChoice]:
    """Return the choice with the fewest VMs in all that is as good, and the search that made it."""
    request, figures = widest.request, widest.figures
    value_usd, egress_usd = best.chosen.value_usd, best.chosen.allocation.egress_usd
    worst = value_usd + slack(request.hour_usd, value_usd, egress_usd)
    # A relay must be worth it against the best direct plan, not against one that lacks VMs.
    relays_may_do = bool(best.chosen.relays)

    def rtt_ms(option: Option) -> float:
        return figures.path_rtt_ms(option.relays[0] if option.relays else None)

    def is_as_good(option: Option | None) -> bool:
        if option is None or option.value_usd > worst:
            return False
        return request.objective != "latency" or rtt_ms(option) <= rtt_ms(best.chosen) * (1 + EQUAL)

    def may_do(vms: int) -> bool:
        fewer = widest.within(vms)
        if request.hour_usd == inf and fewer.least_duration_s > worst:
            return False
        if is_as_good(fewer.direct):
            return True
        return relays_may_do and fewer.choice is not None and is_as_good(fewer.choice.chosen)

    search, choice, most = widest, best, _most_undecided(widest)
    # With as many VMs as the best direct plan has, that plan is found again, and `may_do` holds: so
    # the least number for which it holds is not above that.
    enough = max(best.direct.vms) if best.direct and is_as_good(best.direct) else most
    for vms in range(1 + bisect_left(range(1, min(most, enough)), 1, key=may_do), most):
        fewest = sum(choice.chosen.vms)
        # What is best of all numbers is best of these, too, where it needs no more.
        is_best = choice is best and choice.chosen is choice.optimum
        if vms >= fewest or (is_best and vms >= max(choice.chosen.vms)):
            break
        fewer = widest.within(vms)
        direct = fewer.direct
        direct_will_do = direct and sum(direct.vms) < fewest and is_as_good(direct)
        if not relays_may_do:
            if direct and direct_will_do:
                # The optimum that it was preferred to stays: that was compared with the best.
                optimum = direct if best.optimum is best.direct else best.optimum
                return fewer, TransferChoice(direct, direct, optimum, best.gain)
            continue
        # Where a relay was chosen, more VMs at the ends alone may be fewer in all.
        if choice is not best and not direct_will_do:
            continue
        found = fewer.choice
        if found and is_as_good(found.chosen) and sum(found.chosen.vms) < fewest:
            search, choice = fewer, found
            if not found.chosen.relays:
                break
    return search, choice


def _most_undecided(search: TransferSearch) -> int:
    """Return the greatest number of VMs at any site for which the request states none."""
    request, transfer, regions = search.request, search.transfer, search.figures.regions
    if request.vms is not None:
        return 1
    quotas = [
        quota
        for at, quota in transfer.relays.rows[["region", "quota"]].tolist()
        if not request.vms_in or regions[at] not in request.vms_in
    ]
    ends = ((request.src, transfer.src), (request.dst, transfer.dst))
    quotas += [end.quota for region, end in ends if region not in request.vms_in]
    return max(quotas, default=1)


# ---- limits of VMs ------------------------------------------------------------------------------


def most_vms_warnings(decision: Decision) -> list[str]:
    """Say that a plan takes the most VMs that it may unasked, and what one more would bring."""
    request, search, chosen = decision.request, decision.search, decision.chosen
    counts = decision.figures.vms(chosen.allocation)
    sites = {r: search.network.sites[r] for r in counts if r not in request.vms_in}
    full = [
        region
        for region, site in sites.items()
        if not (site.vms or site.quotas) and counts[region] >= request.vm_limits.unasked
    ]
    if request.vms is not None or not full:
        return []
    limits = " and ".join(f"{counted(counts[region], 'VM')} at {region}" for region in full)
    text = f"Limited to {limits}"
    if len(chosen.allocation.flows) == 1:
        (path,) = chosen.allocation.flows
        wider = request.with_(
            vms_in={**request.vms_in, **{region: counts[region] + 1 for region in full}},
            relays="none" if path is None else search.figures.regions[path],
        )
        more = TransferSearch(wider, search.network, search.prices)
        option = more.on_path(more.transfer.paths[-1])
        if option and option.value_usd < chosen.value_usd * (1 - EQUAL):
            saved_s = chosen.duration_s - option.duration_s
            dearer = more_usd_text(option.allocation.cost_usd - chosen.allocation.cost_usd)
            text += f": one more there is {duration_text(saved_s)} sooner {dearer}"
    return [f"{text}. Raise `vms`, or state your vCPU quotas in a catalogue file."]


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
    faster, gains = chosen.duration_s / free.duration_s, []
    cost_usd = chosen.allocation.cost_usd
    saved_usd = cost_usd - free.allocation.cost_usd
    if faster >= 1 + WORTH_SAYING:
        gains.append(f"ends {faster:.3g}x sooner")
    if saved_usd >= WORTH_SAYING * cost_usd > 0:
        gains.append(f"costs {usd_text(saved_usd)} less")
    found += limited_texts(search.network, wanted)
    if gains:
        these = "these quotas" if len(wanted) > 1 else "this quota"
        found.append(f"With {these} raised it {' and '.join(gains)}.")
    return found


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
    remedy = " ".join([fault.remedy, *limited_texts(network, wanted)])
    return InfeasibleError(fault.limit, remedy, **fault.change)


def _without_quotas(
    request: TransferRequest, network: Network, prices: Prices
) -> tuple[Option, dict[str, int]]:
    """Return the best plan without quotas, and its VMs where quotas allow fewer."""
    decision = decide(request, without_quotas(network), prices)
    wanted = above_quotas(network, decision.figures.vms(decision.chosen.allocation))
    return decision.chosen, {r: count for r, count in wanted.items() if r not in request.vms_in}
