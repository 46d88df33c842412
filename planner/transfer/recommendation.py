"""Recommends a plan for one transfer, and says what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.model.answer import Bottleneck, identified
from planner.model.catalogue import Catalogue
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.rate_cuts import with_first_rates, with_lasting_caps
from planner.model.units import MBPS_PER_GBPS, duration_s, duration_text
from planner.transfer import readings, wording
from planner.transfer.advice import Adviser
from planner.transfer.decision import (
    Decision,
    decide,
    most_vms_warnings,
    or_raise_quotas,
    quota_warnings,
    with_one_vm,
)
from planner.transfer.offers import Offered, at_other_worths, offers_of, outlined, verdict_of
from planner.transfer.optimum import cost_time_frontier, rate_duals
from planner.transfer.options import FLOW_LIMITS, MARGINAL, Option, faster
from planner.transfer.plan import (
    AsAchieved,
    DirectOption,
    FrontierPoint,
    OneVmOption,
    PathPlan,
    Plan,
    RelayOption,
)
from planner.transfer.request import TransferRequest

PER_VM = "Gbit/s per VM"
AT_ENDS = {
    "src connections": ("connections", 0),
    "dst connections": ("ingress cap", 1),
    "src cap": ("egress cap", 0),
    "dst cap": ("ingress cap", 1),
}
OF_LINKS = ("path into", "path out of")


def bottlenecks_of(decision: Decision) -> tuple[Bottleneck, ...]:
    """Return the binding constraints of the plan, most valuable first."""
    figures, allocation = decision.figures, decision.chosen.allocation
    src, dst = decision.request.src, decision.request.dst
    full = figures.full(allocation.flows)
    if full and (len(allocation.flows) == 1 or full.constraint != "interconnect"):
        return (full,)
    if not allocation.relay_vms:
        rate, what = figures.binding(src, dst)
        if what in FLOW_LIMITS:
            flow = figures.network.link(src, dst).per_flow_mbps.expected / MBPS_PER_GBPS
            return (Bottleneck(what, f"{src} -> {dst}", flow, "Gbit/s per connection"),)
        region = {"egress cap": src, "ingress cap": dst}.get(what, f"{src} -> {dst}")
        return (Bottleneck(what, region, rate, PER_VM),)
    whole = decision.search.transfer
    ends = replace(
        whole,
        src=replace(whole.src, quota=allocation.src_vms),
        dst=replace(whole.dst, quota=allocation.dst_vms),
    )
    used = [
        replace(path, quota=1 if path.region is None else allocation.relay_vms[path.region])
        for path in whole.paths
        if path.region in allocation.flows
    ]
    found = []
    for (resource, relay), gain in rate_duals(ends, used)[1].items():
        if at := AT_ENDS.get(resource):
            found.append(Bottleneck(at[0], (src, dst)[at[1]], gain, PER_VM))
        elif resource in OF_LINKS:
            what, link = figures.holding(relay, OF_LINKS.index(resource))
            where = {"egress cap": link[0], "ingress cap": link[1]}.get(what, " -> ".join(link))
            found.append(Bottleneck(what, where, gain, PER_VM))
        elif relay is None:
            found.append(Bottleneck("interconnect", f"{src} -> {dst}", gain, "Gbit/s in all"))
        else:
            found.append(Bottleneck("relay VM", figures.regions[relay], gain, PER_VM))
    binding = [b for b in found if b.gain_per_unit > MARGINAL]
    return tuple(sorted(binding, key=lambda b: -b.gain_per_unit))


def decided(
    request: TransferRequest,
    network: Network,
    prices: Prices,
    catalogue: Catalogue | None = None,
    *,
    begins: bool = True,
) -> Decision:
    """Decide alone, without advice; parameters and errors are those of :func:`recommend`."""
    refuse_without_vms(network, (request.src, request.dst), request.vms_in)
    if begins:
        network = with_first_rates(network, request.src, request.dst, request.volume_gb)
    if catalogue:
        network = with_lasting_caps(network, catalogue.vm_types, request.volume_gb)
    try:
        return decide(request, network, prices)
    except InfeasibleError as fault:
        raise or_raise_quotas(fault, request, network, prices) from None


def recommend(
    request: TransferRequest,
    network: Network,
    prices: Prices,
    *,
    catalogue: Catalogue | None = None,
    now_s: float | None = None,
    notes: tuple[str, ...] = (),
    begins: bool = True,
) -> Plan:
    """Return the recommended plan for one transfer.

    Parameters
    ----------
    catalogue : Catalogue, optional
        Lets the advice compare VM types.
    now_s : float, optional
        The time, seconds since 1970, to say how old the measurements are.
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.
    begins : bool
        Whether the transfer begins now; one in progress has spent what links carry at first.

    Raises
    ------
    InfeasibleError
        If no plan meets the request's limits, or quotas leave an end no VM; says which limit and
        what would do.
    DataError
        If nothing is known of any permitted path.
    """
    decision = decided(request, network, prices, catalogue, begins=begins)
    why = wording.reason(decision, catalogue) + readings.in_words(decision)
    figures, chosen = decision.figures, decision.chosen
    low, high = chosen.rate_at("low"), chosen.rate_at("high")
    paths, vms = _paths(decision), figures.vms(chosen.allocation)
    plan = Plan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        fees=figures.fee_lines(chosen.allocation),
        verdict=verdict_of(chosen.allocation),
        reason=why.lstrip(),
        throughput_gbps=chosen.allocation.rate_gbps,
        throughput_gbps_low=low,
        throughput_gbps_high=high,
        duration_s=chosen.duration_s,
        cost_usd=chosen.cost,
        paths=paths,
        vms=vms,
        direct=_direct(decision),
        best_relay=None,
        vm_start_s=chosen.vm_start_s,
        throughput_gbps_least=min(low, float(chosen.rates_gbps.min())),
    )
    if request.details == "decision":
        return identified(replace(plan, warnings=notes), without=("warnings",))
    relays, adviser = _relays(decision), Adviser(decision, catalogue)
    advice, worths = adviser.advice(), at_other_worths(decision) if request.frontier else []
    assumed = []
    if request.connections > 1:
        assumed = readings.warnings(paths, vms, network, chosen.gbps_if_slow)
    one_vm = with_one_vm(decision) if request.vms is None else None
    as_achieved, deadline_s = _as_achieved(decision), request.deadline_s
    late = []
    if as_achieved and deadline_s is not None and as_achieved.duration_s > deadline_s:
        late = [f"{as_achieved.text}: beyond the deadline of {duration_text(deadline_s)}."]
    plan = replace(
        plan,
        reason=f"{adviser.plain_copy} {why}".lstrip(),
        best_relay=relays[0] if relays else None,
        alternatives=tuple(relays[1:]),
        bottlenecks=bottlenecks_of(decision),
        advice=advice,
        warnings=(
            *notes,
            *late,
            *quota_warnings(decision),
            *most_vms_warnings(decision),
            *assumed,
            *wording.warnings(decision, catalogue.vm_types if catalogue else {}, now_s),
        ),
        confidence=wording.confidence(decision, low, high, now_s),
        frontier=_frontier(decision, worths) if request.frontier else (),
        measure_first=adviser.measure_first(),
        as_achieved=as_achieved,
        offers=offers_of(decision, [*worths, *adviser.outcomes]),
        one_vm=OneVmOption(**outlined(one_vm)) if one_vm else None,
    )
    verification = wording.verification(decision, now_s)
    lasting = [warning for warning in plan.warnings if warning not in verification]
    evidence = wording.evidence(decision)
    return identified(plan, lasting, *evidence, without=("warnings", "confidence"))


def _as_achieved(decision: Decision) -> AsAchieved | None:
    """Return the shares that transfers of the request's label reached, or else of its ends."""
    request, chosen = decision.request, decision.chosen
    shares = {(one.src, one.dst, one.label): one for one in decision.search.network.achieved}
    found = shares.get(("", "", request.label or "")) if request.label else None
    found = found or shares.get((request.src, request.dst, ""))
    if found is None:
        return None
    moving_s = duration_s(request.volume_gb, chosen.allocation.rate_gbps)
    return AsAchieved(
        "label" if found.label else "pair",
        *(found.median, found.low, found.high, found.transfers),
        chosen.duration_s + moving_s * (1 / found.median - 1),
    )


def _paths(decision: Decision) -> tuple[PathPlan, ...]:
    """Return the plan's paths: the direct one first, then those that carry most."""
    figures, allocation = decision.figures, decision.chosen.allocation
    flows = sorted(allocation.flows.items(), key=lambda flow: (flow[0] is not None, -flow[1]))
    fees, found = figures.fees.usd_per_gb(allocation), []
    for relay, flow_gbps in flows:
        regions = (decision.request.src, *(dst for _, dst in figures.pairs_of(relay)))
        found.append(
            PathPlan(
                regions,
                flow_gbps,
                flow_gbps / allocation.rate_gbps,
                decision.chosen.connections[relay],
                figures.path_rtt_ms(relay),
                fees[relay],
                wording.bottleneck_of_path(figures, relay, flow_gbps),
                addresses=figures.network.addresses(regions),
            )
        )
    return tuple(found)


def _direct(decision: Decision) -> DirectOption:
    shown, request = decision.fastest_direct, decision.request
    if shown is None:
        state = decision.search.network.states.get((request.src, request.dst))
        reason = f"the link is down since {state.since}" if state else "nothing is known of it"
        return DirectOption(False, None, None, None, None, reason)
    return DirectOption(
        feasible=decision.direct is not None,
        rtt_ms=decision.figures.path_rtt_ms(None),
        reason="" if decision.direct else "does not meet the request's limits",
        **_shown(shown),
    )


def _relays(decision: Decision) -> list[RelayOption]:
    """Return the relays to list, best first, each compared with the direct path."""
    direct, figures, options = decision.fastest_direct, decision.figures, decision.relays
    gains: Sequence[Sequence[float | None]] = [(None, None, None)] * len(options)
    chances: Sequence[float | None] = [None] * len(options)
    if direct and options:
        gains, chances = faster(options, direct), figures.probabilities(options, direct)
    usd = direct.allocation.cost_usd if direct else 0.0
    return [
        RelayOption(
            relay=figures.regions[option.relays[0]],
            rtt_ms=figures.path_rtt_ms(option.relays[0]),
            gain=gain[0],
            gain_low=gain[1],
            gain_high=gain[2],
            probability=chance,
            cost_ratio=option.allocation.cost_usd / usd if usd > 0 else None,
            **_shown(option),
        )
        for option, gain, chance in zip(options, gains, chances, strict=True)
    ]


def _shown(option: Option) -> dict[str, Any]:
    """Return the figures that an answer gives of an option over one path."""
    return {
        "throughput_gbps": option.allocation.rate_gbps,
        "throughput_gbps_low": option.rate_at("low"),
        "throughput_gbps_high": option.rate_at("high"),
        "duration_s": option.duration_s,
        "cost_usd": option.cost,
        "connections": max(option.connections.values()),
        "vms": option.figures.vms(option.allocation),
        "vm_start_s": option.vm_start_s,
    }


def _frontier(decision: Decision, others: Sequence[Offered]) -> tuple[FrontierPoint, ...]:
    """Return plans from the cheapest to the fastest, the chosen one and others among them.

    None is beaten in both cost and time. What beats the chosen plan in both on expected figures
    alone was not worth choosing, and is left out.
    """
    figures, hour_usd, chosen = decision.figures, decision.request.hour_usd, decision.chosen
    found = cost_time_frontier(decision.widest.transfer, fees=figures.fees)
    options = [Option(figures, allocation, hour_usd) for allocation in found]
    options += [way.option for way in others]

    def beats(one: Option, other: Option) -> bool:
        no_slower = one.duration_s <= other.duration_s * (1 + MARGINAL)
        return no_slower and one.allocation.cost_usd <= other.allocation.cost_usd * (1 + MARGINAL)

    kept = [chosen]
    for option in sorted(options, key=lambda one: (one.duration_s, one.allocation.cost_usd)):
        if not beats(option, chosen) and not any(beats(other, option) for other in kept):
            kept.append(option)
    return tuple(
        FrontierPoint(**outlined(option))
        for option in sorted(kept, key=lambda one: -one.duration_s)
    )
