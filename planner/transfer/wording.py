"""Decisions in sentences: the reason, the confidence and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import inf

from planner.model.catalogue import Catalogue, VmType
from planner.model.link import Link
from planner.model.rate_cuts import burst_in_words, credits_in_words, in_words
from planner.model.throughput import ramp_up_s
from planner.model.units import (
    chance_text,
    duration_s,
    duration_text,
    gbps_text,
    rate_text,
    usd_text,
)
from planner.model.verification import Verified, ago
from planner.solvers.joint import DRAWS, ODD_RATE, Gain, Risk
from planner.transfer.allocation import EQUAL
from planner.transfer.decision import AS_GOOD, Decision, counted
from planner.transfer.options import Option, OptionEvaluator
from planner.transfer.request import CONNECTIONS_TO_SPLIT, TransferRequest
from planner.transfer.search import LEAST_LATENCY_GAIN_MS

HARDLY_FASTER = 1.05
LOSS_WORTH_SAYING_PCT = 1.0
MOST_NAMED = 5

# ---- phrases -------------------------------------------------------------------------------------


def not_worth(who: str, gain: Gain, terms: str, margin: float, risk: Risk) -> str:
    """Explain why a plan that is better by expected figures is not recommended.

    `who` begins the sentence, and `terms` are what it is better in.
    """
    beats = f"the margin of {margin:.0%}{' of all but fees' if gain.margin < margin else ''}"
    if gain.expected < 1 + gain.margin:
        return f"{who} is only {_better(gain, terms)}, which does not beat {beats}."
    return (
        f"{who} may be {_better(gain, terms)}, but the chance that it beats {beats} is "
        f"{chance_text(gain.probability)}: too little where the attitude to risk is {risk}."
    )


def _better(gain: Gain, terms: str) -> str:
    return f"{gain.expected:.2f}x better in {terms} ({gain.low:.2f}x to {gain.high:.2f}x)"


def plain_copy(links_gb: Iterable[tuple[Link | None, float]], vm_start_s: float) -> str:
    """Say that plain copies over one connection a link do, where they end before VMs have started.

    Parameters
    ----------
    links_gb : iterable of (Link | None, float)
        Direct links with the GB that each carries; None where there is no link.
    vm_start_s : float

    Returns
    -------
    str
        Empty where VMs start sooner.
    """
    takes_s = 0.0
    for link, gb in links_gb if vm_start_s else ():
        flow_gbps = link.rate_gbps(1) if link else 0.0
        if link is None or flow_gbps <= 0:
            return ""
        takes_s = max(takes_s, ramp_up_s(link.rtt_ms.expected) + duration_s(gb, flow_gbps))
        if takes_s > vm_start_s:
            return ""
    if not takes_s:
        return ""
    return (
        "A plain copy between hosts that run (scp, rsync or the provider's own tool) takes "
        f"{duration_text(takes_s)} over one connection, less than the {duration_text(vm_start_s)} "
        "until VMs have started: start none for this."
    )


def _limits(request: TransferRequest) -> str:
    limits = []
    if request.min_throughput_gbps:
        limits.append(f"{request.min_throughput_gbps:g} Gbit/s")
    if request.deadline_s:
        limits.append(f"the deadline of {duration_text(request.deadline_s)}")
    if request.budget_usd:
        limits.append(f"the budget of {usd_text(request.budget_usd)}")
    return " and ".join(limits)


def rule(decision: Decision) -> str:
    """Return in one line by which rule a plan was chosen."""
    request, made, widest = decision.request, decision.made, decision.widest.choice
    text = f"Least {terms_of(request)}"
    if made.gain and made.chosen is not made.optimum:
        through = _through(decision, made.optimum)
        text = f"{through} is not sure enough to gain {request.margin:.0%} in {terms_of(request)}"
    if widest and made.chosen is not widest.chosen:
        best, within = widest.chosen, f"within {AS_GOOD:.0%} of" if request.hour_usd else "of"
        text += (
            f"; fewest VMs {within} the least, egress aside: {sum(made.chosen.vms)}, where "
            f"{sum(best.vms)} take {duration_text(best.duration_s)} for "
            f"{usd_text(best.allocation.cost_usd)}"
        )
    return text


def terms_of(request: TransferRequest) -> str:
    """Name what plans are chosen by."""
    return {
        "time": "time",
        "cost": "cost",
        "latency": "round-trip time",
        "value": f"cost plus time at ${request.time_value_usd_per_h:g}/h",
    }[request.objective]


def _gain(option: Option, direct: Option) -> float:
    return option.allocation.rate_gbps / direct.allocation.rate_gbps


def _cost_ratio(option: Option, direct: Option) -> float:
    if not direct.allocation.cost_usd:
        return inf if option.allocation.cost_usd else 1.0
    return option.allocation.cost_usd / direct.allocation.cost_usd


# ---- why this plan -------------------------------------------------------------------------------


def reason(decision: Decision, catalogue: Catalogue | None = None) -> str:
    """Return in plain sentences why this plan and no other.

    Parameters
    ----------
    catalogue : Catalogue, optional
        Tells the partitions of regions, whose borders no relay crosses.
    """
    request = decision.request
    border = _border(decision, catalogue) if catalogue else ""
    state = decision.search.network.states.get((request.src, request.dst))
    if state is None:
        return border or _reason(decision)
    if decision.direct is None and state.condition == "down":
        through = _through(decision, decision.chosen)
        return f"The direct link {state}. {through} carries the transfer until it is back."
    return f"The direct link {state}. {border or _reason(decision)}"


def _reason(decision: Decision) -> str:
    request, chosen, direct = decision.request, decision.chosen, decision.direct
    optimum, gain = decision.made.optimum, decision.made.gain
    if direct is None:
        return f"{_why_not_direct(decision)} {_through(decision, chosen)} does."
    if chosen is not direct:
        return _why_relay(decision, direct)
    if optimum is direct or not gain:
        return _why_direct(decision, direct)
    through, terms = _through(decision, optimum), terms_of(request)
    if gain.worth:
        return (
            f"{through} is {_better(gain, terms)}, but saves less than "
            f"{LEAST_LATENCY_GAIN_MS:g} ms."
        )
    return not_worth(through, gain, terms, request.margin, request.risk)


def _border(decision: Decision, catalogue: Catalogue) -> str:
    """Name the border between partitions that every relay would cross; empty if there is none."""
    request = decision.request
    if decision.search.transfer.relays or request.relays == "none" or decision.direct is None:
        return ""
    named = request.relays not in {"any", "one"}
    names = [request.src, *([request.relays] if named else []), request.dst]
    parts = [catalogue.region(name) for name in names]
    sides = [
        f"the {region.partition} partition" if region.is_apart else "the standard partition"
        for region in parts
    ]
    crossed = next((pair for pair in pairwise(sides) if pair[0] != pair[1]), None)
    if crossed is None and (named or not parts[0].is_apart):
        return ""
    a, b = crossed or (sides[0], "the standard partition")
    who, via = (request.relays, request.relays) if named else ("A relay", "a region outside")
    return (
        f"{who} would cross from {a} to {b}, and `access` in the catalogue lets only the ends of "
        f"a transfer do that. To go by way of {via}, plan each of its two links as a transfer of "
        "its own, with accounts in both partitions."
    )


def _why_direct(decision: Decision, direct: Option) -> str:
    """Explain why the direct path is best: no relay is permitted, can do it, or pays."""
    request, best, search = decision.request, decision.best_relay, decision.search
    if request.relays == "none":
        return "Only the direct path was asked for."
    if not search.transfer.relays:
        return "No relay path is known or permitted."
    limits = _limits(request)
    if request.objective == "latency" and best:
        rtt_ms = decision.figures.path_rtt_ms
        return (
            f"No relay{f' that meets {limits}' if limits else ''} lowers the round-trip time: "
            f"the nearest path, via {_via(decision, best)}, takes "
            f"{rtt_ms(best.relays[0]):.0f} ms against {rtt_ms(None):.0f} ms."
        )
    relay, most = search.fastest_relay()
    option = best
    if best is None or (most > HARDLY_FASTER and _gain(best, direct) <= 1 + EQUAL):
        fastest = search.asking(objective="time", budget_usd=None).on_path(relay)
        if fastest and fastest.allocation.cost_usd > (request.budget_usd or inf) * (1 + EQUAL):
            option = fastest
        elif fastest is None:
            option = None
    if option is None:
        return f"No relay can meet {limits}."
    gain, ratio = _gain(option, direct), _cost_ratio(option, direct)
    reached, name, limit = max(gain, most), _via(decision, option), _limit_of_direct(decision)
    costs = f"costs {ratio:.1f}x as much" if ratio > HARDLY_FASTER else "costs as much"
    too_dear = option is not best
    if reached <= (1 + EQUAL if too_dear else HARDLY_FASTER):
        much = "" if reached <= 1 + EQUAL else "much "
        return f"{limit} No relay is {much}faster; the best, {name}, {costs}."
    if too_dear:
        return (
            f"{limit} The fastest relay, {name}, carries {gain:.2f}x but costs "
            f"{usd_text(option.allocation.cost_usd)}, more than the budget of "
            f"{usd_text(request.budget_usd or 0.0)}."
        )
    carries = f"{limit} The best relay, {name}, carries {gain:.2f}x"
    if request.hour_usd == inf and gain > 1 + EQUAL:
        return f"{carries}, but getting up to speed over two links takes longer than it saves."
    worth = {0: "which does not lower the cost", inf: "which is no sooner"}.get(
        request.hour_usd, f"which does not pay at ${request.hour_usd:g} an hour"
    )
    return f"{carries} but {costs}, {worth}."


def _why_relay(decision: Decision, direct: Option) -> str:
    chosen, gain = decision.chosen, decision.made.gain
    through = _through(decision, chosen)
    if decision.request.objective == "latency":
        rtt_ms = decision.figures.path_rtt_ms
        return (
            f"{through} takes {rtt_ms(chosen.relays[0]):.0f} ms where direct takes "
            f"{rtt_ms(None):.0f} ms."
        )
    sure = ""
    if gain and gain.low < inf:  # infinite over a plan that costs nothing
        terms = terms_of(decision.request)
        better = "as fast" if terms == "time" else f"as good in {terms}"
        sure = f" ({gain.low:.2f}x to {gain.high:.2f}x {better})"
    return (
        f"{through} carries {rate_text(chosen.allocation.rate_gbps)} "
        f"where direct carries {gbps_text(direct.allocation.rate_gbps)}{sure}, for "
        f"{_cost_ratio(chosen, direct):.2f}x the cost. {_limit_of_direct(decision)}"
    )


def _why_not_direct(decision: Decision) -> str:
    if decision.search.transfer.direct is None:
        return "Nothing is known of the direct path."
    most = decision.fastest_direct
    reached = f" ({rate_text(most.allocation.rate_gbps)} at most)" if most else ""
    return f"The direct path cannot meet {_limits(decision.request)}{reached}."


def _via(decision: Decision, option: Option) -> str:
    return decision.figures.regions[option.relays[0]]


def _through(decision: Decision, option: Option) -> str:
    names = " and ".join(decision.figures.regions[relay] for relay in option.relays)
    if not names:
        return "The direct path"
    if option.allocation.direct_gbps:
        return f"A split over the direct path and {names}"
    return f"A relay at {names}"


def bottleneck_of_path(figures: OptionEvaluator, relay: int | None, flow_gbps: float) -> str:
    """Return the constraint that binds one path: that of its slowest link."""
    if full := figures.full({relay: flow_gbps}):
        figure = f"{full.gain_per_unit:.3g} {full.unit}"
        return f"{full.constraint} at {full.region} ({figure})"
    rate, what, src, dst = figures.binding_on(relay)
    gbps = gbps_text(rate)
    flows = f"{figures.request.connections} connections {src} -> {dst} ({gbps} Gbit/s a VM pair"
    return {
        "egress cap": f"egress cap of {src} ({gbps} Gbit/s a VM)",
        "ingress cap": f"ingress cap of {dst} ({gbps} Gbit/s a VM)",
        "connections": f"{flows})",
        "flow cap": f"{flows}, at the cap of each flow)",
        "path": f"path {src} -> {dst} ({gbps} Gbit/s a VM pair)",
    }[what]


def _limit_of_direct(decision: Decision) -> str:
    src, dst, count = decision.request.src, decision.request.dst, decision.request.connections
    rate, what = decision.figures.binding(src, dst)
    gbps = f"{rate_text(rate)}"
    most_gbps = decision.direct.allocation.rate_gbps if decision.direct else 0.0
    if decision.figures.full({None: most_gbps}):
        return f"The limit is {bottleneck_of_path(decision.figures, None, most_gbps)}."
    together = "One connection carries" if count == 1 else f"{count} connections carry"
    return {
        "egress cap": f"{src} VMs send at most {gbps} each to anywhere.",
        "ingress cap": f"{dst} VMs receive at most {gbps} each from anywhere.",
        "connections": f"{together} {gbps} between one VM pair (window / RTT each).",
        "flow cap": f"{together} {gbps} between one VM pair: more, providers let no flow carry.",
        "path": f"One VM pair reaches {gbps} on the direct path.",
    }[what]


# ---- how sure, and what to beware of -------------------------------------------------------------


def evidence(decision: Decision) -> tuple[dict[str, int], float | None, Verified | None]:
    """Return the number of links by source, the oldest sample and the last verification."""
    request, figures = decision.request, decision.figures
    estimates = [figures.deciding(*pair) for pair in decision.used_pairs]
    counts = {
        source: sum(estimate.source == source for estimate in estimates)
        for source in ("measured", "inferred", "baseline")
    }
    times = [e.measured_at_s for e in estimates if e.measured_at_s is not None]
    verified = figures.network.verified.get((request.src, request.dst))
    return counts, min(times, default=None), verified


def confidence(decision: Decision, low_gbps: float, high_gbps: float, now_s: float | None) -> str:
    """Return in a sentence what the figures rest on, their bounds and their age."""
    counts, oldest_s, verified = evidence(decision)
    rests = " and ".join(counted(n, f"{source} link") for source, n in counts.items() if n)
    text = f"Rests on {rests}: {rate_text(low_gbps, high_gbps)}"
    if oldest_s is not None and now_s is not None:
        text += f", oldest measurement {ago(now_s - oldest_s)}"
    if counts["baseline"]:
        text += "; baseline figures come from models, not from measuring these VMs"
    if counts["baseline"] or counts["inferred"]:
        text += (
            f"; about 1 in {DRAWS} links that were not measured is {1 / ODD_RATE:.0f} times slower "
            "than estimated, or more"
        )
    if verified and now_s is not None:
        text += f"; {verified.text(now_s)}"
    return text + "."


def warnings(
    decision: Decision, vm_types: Mapping[str, VmType], now_s: float | None
) -> tuple[str, ...]:
    """Return the warnings that come with a plan.

    Parameters
    ----------
    vm_types : mapping
        Of the catalogue.
    now_s : float | None
        Seconds since 1970, where the time is known.
    """
    request, network = decision.request, decision.search.network
    links = [network.link(*pair) for pair in decision.used_pairs]
    found = [
        f"{link.src} -> {link.dst} loses {link.loss_pct:.1f} % of packets."
        for link in links
        if link.loss_pct and link.loss_pct >= LOSS_WORTH_SAYING_PCT
    ]
    found += _states(decision)
    found += [said for link in links if (said := in_words(link, request.volume_gb))]
    found += verification(decision, now_s)
    counts = decision.figures.vms(decision.chosen.allocation)
    found += [said for region in counts if (said := _burst(decision, vm_types, region))]
    found += [
        f"The plan takes {count} VMs at {region}, where the fleet has {network.sites[region].vms}."
        for region, count in counts.items()
        if count > (network.sites[region].vms or count)
    ]
    if 1 < request.connections < CONNECTIONS_TO_SPLIT:
        found.append(
            f"{request.connections} connections are too few to divide over paths: only plans over "
            "one path were considered."
        )
    return tuple(found)


def verification(decision: Decision, now_s: float | None) -> list[str]:
    """Return a warning if the last plan between these ends did not achieve its prediction."""
    network = decision.search.network
    verified = network.verified.get((decision.request.src, decision.request.dst))
    if verified is None or verified.held or now_s is None:
        return []
    since = "the same snapshot"
    if verified.snapshot_id != network.snapshot.id:
        since = "measurements since then"
    return [
        f"The last plan was {verified.text(now_s)}, where "
        f"{gbps_text(verified.low_gbps)} to {gbps_text(verified.high_gbps)} were predicted; "
        f"these figures rest on {since}."
    ]


def _burst(decision: Decision, vm_types: Mapping[str, VmType], region: str) -> str:
    """Warn of VMs that send more at first than in the long run, as measured or by their type."""
    site = decision.search.network.sites[region]
    cap, vm = site.egress_gbps, vm_types.get(site.vm_type)
    if (cut := cap.origin.rate_cut) is not None:
        return burst_in_words(site, cut)
    return credits_in_words(site, vm) if vm else ""


def _states(decision: Decision) -> list[str]:
    """Warn of links that are down or degraded, of the direct path and of relays."""
    src, dst = decision.request.src, decision.request.dst
    states = decision.search.network.states
    used = [state for pair in decision.used_pairs if (state := states.get(pair))]
    direct = states.get((src, dst))
    if direct and direct not in used:
        used.insert(0, direct)
    found = [f"{state}; plans will change once it is back." for state in used]
    others = {
        pair[1] if pair[0] == src else pair[0]
        for pair, state in states.items()
        if (pair[0] == src) != (pair[1] == dst) and state.condition == "down"
    }
    if others:
        names = ", ".join(sorted(others)[:MOST_NAMED])
        more = ", ..." if len(others) > MOST_NAMED else ""
        found.append(f"Not considered as relays, because a link of theirs is down: {names}{more}.")
    return found
