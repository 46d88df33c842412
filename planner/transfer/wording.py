"""Decisions in sentences: the reason, the confidence, warnings, and why there is no plan.

Rates, durations and volumes are written by :mod:`planner.model.units`; what a plan gains, which
limits a request sets and which paths an option takes are written here, once for all sentences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, floor, inf

from planner.fields.shared import MOST_VMS
from planner.model.catalogue import VmType
from planner.model.errors import InfeasibleError
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.rate_cuts import burst_in_words, in_words
from planner.model.units import duration_text, gbps_text, too_short_texts
from planner.model.verification import Verified
from planner.solvers.joint import Gain, Risk
from planner.transfer.allocation import EQUAL
from planner.transfer.options import Option
from planner.transfer.request import TransferRequest
from planner.transfer.search import LEAST_LATENCY_GAIN_MS, Decision, TransferSearch
from planner.transfer.single_path import best_on_path

HARDLY_FASTER = 1.05
WELL_ABOVE = 1.25
"""Times what is documented: what the errors of a test don't explain."""
LOSS_WORTH_SAYING_PCT = 1.0
MOST_NAMED = 5
# Gains by raising a quota that are smaller are not worth saying.
WORTH_SAYING = 0.01

# ---- phrases -------------------------------------------------------------------------------------


def not_worth(who: str, gain: Gain, terms: str, margin: float, risk: Risk) -> str:
    """Explain why a plan that is better by expected figures is not recommended.

    Parameters
    ----------
    who : str
        Begins the sentence: what is better.
    terms : str
        What it is better in.
    """
    beats = f"the margin of {margin:.0%}"
    if gain.expected < 1 + margin:
        return f"{who} is only {_better(gain, terms)}, which does not beat {beats}."
    return (
        f"{who} may be {_better(gain, terms)}, but beats {beats} with a probability of "
        f"{gain.probability:.0%} only, which is too little where the attitude to risk is {risk}."
    )


def _better(gain: Gain, terms: str) -> str:
    return f"{gain.expected:.2f}x better in {terms} ({gain.low:.2f}x to {gain.high:.2f}x)"


def _limits(request: TransferRequest) -> str:
    limits = []
    if request.min_throughput_gbps:
        limits.append(f"{request.min_throughput_gbps:g} Gbit/s")
    if request.deadline_s:
        limits.append(f"the deadline of {duration_text(request.deadline_s)}")
    if request.budget_usd:
        limits.append(f"the budget of {request.budget_usd:g} USD")
    return " and ".join(limits)


def _terms(request: TransferRequest) -> str:
    return {
        "time": "time",
        "cost": "cost",
        "latency": "round-trip time",
        "value": f"cost plus time at {request.time_value_usd_per_h:g} USD/h",
    }[request.objective]


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' if count > 1 else ''}"


def _gain(option: Option, direct: Option) -> float:
    return option.allocation.rate_gbps / direct.allocation.rate_gbps


def _cost_ratio(option: Option, direct: Option) -> float:
    return option.allocation.cost_usd / max(direct.allocation.cost_usd, 1e-12)


def _age(days: float) -> str:
    if days < 1:
        return "less than a day old"
    if days < 90:
        return f"{days:.0f} day{'s' if days >= 1.5 else ''} old"
    return f"{days / 30.44:.0f} months old" if days < 730 else f"{days / 365.25:.1f} years old"


# ---- why this plan -------------------------------------------------------------------------------


class Reason:
    """Why this plan and no other; :meth:`text` is the answer."""

    def __init__(self, decision: Decision) -> None:
        self.decision, self.request = decision, decision.request
        self.search, self.figures = decision.search, decision.search.figures

    def text(self) -> str:
        """Return the reason in plain sentences."""
        chosen = self.decision.chosen
        state = self.search.network.states.get((self.request.src, self.request.dst))
        if state is None:
            return self._reason()
        if self.decision.direct is None and state.condition == "down":
            through = self._through(chosen)
            return f"The direct link {state}. {through} carries the transfer until it is back."
        return f"The direct link {state}. {self._reason()}"

    def _reason(self) -> str:
        decision = self.decision
        chosen, direct, gain = decision.chosen, decision.direct, decision.gain
        if direct is None:
            return f"{self._why_not_direct()} {self._through(chosen)} does."
        if chosen is not direct:
            return self._why_relay(chosen, direct)
        if decision.optimum is direct or not gain:
            return self._why_direct(direct)
        through, terms = self._through(decision.optimum), _terms(self.request)
        if gain.worth:
            return (
                f"{through} is {_better(gain, terms)}, but saves less than "
                f"{LEAST_LATENCY_GAIN_MS:g} ms."
            )
        return not_worth(through, gain, terms, self.request.margin, self.request.risk)

    def _why_direct(self, direct: Option) -> str:
        """Explain why the direct path is best: no relay is permitted, can do it, or pays."""
        request, best = self.request, self.decision.best_relay
        if request.relays == "none":
            return "Only the direct path was asked for."
        if not self.search.transfer.relays:
            return "No relay path is known or permitted."
        limits = _limits(request)
        if request.objective == "latency" and best:
            return (
                f"No relay{f' that meets {limits}' if limits else ''} lowers the round-trip time: "
                f"the nearest path, via {self._via(best)}, takes "
                f"{self.figures.path_rtt_ms(best.relays[0]):.0f} ms against "
                f"{self.figures.path_rtt_ms(None):.0f} ms."
            )
        relay, most = self.search.fastest_relay()
        if best is None or (most > HARDLY_FASTER and _gain(best, direct) <= 1 + EQUAL):
            fastest = self.search.fastest_at_any_cost(relay)
            if fastest is None:
                return f"No relay can meet {limits}."
            if fastest.allocation.cost_usd > (request.budget_usd or inf) * (1 + EQUAL):
                return self._too_dear(fastest, direct, most)
        if best is None:
            return f"No relay can meet {limits}."
        return self._why_not_relay(best, direct, most)

    def _why_not_relay(self, best: Option, direct: Option, most: float) -> str:
        request, gain, ratio = self.request, _gain(best, direct), _cost_ratio(best, direct)
        if max(gain, most) <= HARDLY_FASTER:
            much = "" if max(gain, most) <= 1 + EQUAL else "much "
            return self._none_is_faster(best, direct, f"{much}faster")
        carries = (
            f"{self._limit_of_direct()} The best relay, {self._via(best)}, carries {gain:.2f}x"
        )
        if request.hour_usd == inf and gain > 1 + EQUAL:
            return f"{carries}, but getting up to speed over two links takes longer than it saves."
        worth = {0: "which does not lower the cost", inf: "which is no sooner"}.get(
            request.hour_usd, f"which does not pay at {request.hour_usd:g} USD an hour"
        )
        return f"{carries} but costs {ratio:.1f}x, {worth}."

    def _none_is_faster(self, best: Option, direct: Option, faster: str) -> str:
        return (
            f"{self._limit_of_direct()} No relay is {faster}: the best, {self._via(best)}, "
            f"carries {_gain(best, direct):.2f}x and costs {_cost_ratio(best, direct):.1f}x."
        )

    def _too_dear(self, fastest: Option, direct: Option, most: float) -> str:
        """Say that the fastest relay is above the budget, or that it would be no faster."""
        gain = _gain(fastest, direct)
        if max(gain, most) <= 1 + EQUAL:
            return self._none_is_faster(fastest, direct, "faster")
        return (
            f"{self._limit_of_direct()} The fastest relay, {self._via(fastest)}, carries "
            f"{gain:.2f}x but costs {fastest.allocation.cost_usd:.4g} USD, more than the budget of "
            f"{self.request.budget_usd:g} USD."
        )

    def _why_relay(self, chosen: Option, direct: Option) -> str:
        if self.request.objective == "latency":
            rtt_ms, (relay,) = self.figures.path_rtt_ms, chosen.relays
            return (
                f"{self._through(chosen)} takes {rtt_ms(relay):.0f} ms where direct takes "
                f"{rtt_ms(None):.0f} ms."
            )
        gain, sure = self.decision.gain, ""
        if gain and gain.low < inf:  # infinite over a plan that costs nothing
            sure = f" ({gain.low:.2f}x to {gain.high:.2f}x better in {_terms(self.request)})"
        return (
            f"{self._through(chosen)} carries {gbps_text(chosen.allocation.rate_gbps)} Gbit/s "
            f"where direct carries {gbps_text(direct.allocation.rate_gbps)}{sure}, for "
            f"{_cost_ratio(chosen, direct):.2f}x the cost. {self._limit_of_direct()}"
        )

    def _why_not_direct(self) -> str:
        transfer = self.search.transfer
        if transfer.direct is None:
            return "Nothing is known of the direct path."
        most = best_on_path(transfer, None, time_value_usd_per_h=inf)
        reached = f" ({gbps_text(most.rate_gbps)} Gbit/s at most)" if most else ""
        return f"The direct path cannot meet {_limits(self.request)}{reached}."

    def _via(self, option: Option) -> str:
        """Return the region of a single relay."""
        return self.figures.regions[option.relays[0]]

    def _through(self, option: Option) -> str:
        names = " and ".join(self.figures.regions[relay] for relay in option.relays)
        if not names:
            return "The direct path"
        if option.allocation.direct_gbps:
            return f"A split over the direct path and {names}"
        return f"A relay at {names}"

    def _limit_of_direct(self) -> str:
        if self.search.transfer.direct is None:
            return ""
        src, dst, count = self.request.src, self.request.dst, self.request.connections
        rate, what = self.figures.binding(src, dst)
        gbps = f"{gbps_text(rate)} Gbit/s"
        together = "One connection carries" if count == 1 else f"{count} connections carry"
        return {
            "egress cap": f"{src} VMs send at most {gbps} each to anywhere.",
            "ingress cap": f"{dst} VMs receive at most {gbps} each from anywhere.",
            "connections": f"{together} {gbps} between one VM pair (window / RTT each).",
            "path": f"One VM pair reaches {gbps} on the direct path.",
        }[what]


# ---- how sure, and what to beware of -------------------------------------------------------------


def evidence(decision: Decision) -> tuple[dict[str, int], float | None, Verified | None]:
    """Return the number of links by source, the oldest sample and the last verification."""
    request, figures = decision.request, decision.search.figures
    estimates = [figures.deciding(*pair) for pair in _used_pairs(decision)]
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
    rests = " and ".join(_count(n, f"{source} link") for source, n in counts.items() if n)
    text = f"Rests on {rests}: {gbps_text(low_gbps)} to {gbps_text(high_gbps)} Gbit/s"
    if oldest_s is not None and now_s is not None:
        days = max(0.0, (now_s - oldest_s) / SECONDS_PER_DAY)
        text += f", oldest measurement {_age(days)}"
    if counts["baseline"]:
        text += "; baseline figures come from models, not from measuring these VMs"
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
    links = [network.link(*pair) for pair in _used_pairs(decision)]
    found = [
        f"{link.src} -> {link.dst} loses {link.loss_pct:.1f} % of packets."
        for link in links
        if link.loss_pct and link.loss_pct >= LOSS_WORTH_SAYING_PCT
    ]
    found += _states(decision)
    found += [said for link in links if (said := in_words(link, request.volume_gb))]
    found += verification(decision, now_s)
    counts = decision.search.figures.vms(decision.chosen.allocation)
    found += [said for region in counts if (said := _burst(decision, vm_types, region))]
    found += [
        f"The plan takes {count} VMs at {region}, where the fleet has {network.sites[region].vms}."
        for region, count in counts.items()
        if count > (network.sites[region].vms or count)
    ]
    if request.connections > 1 and not request.may_split:
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
    if vm and vm.burst_gbps and cap.expected > WELL_ABOVE * vm.egress_gbps:
        return (
            f"{vm.id} VMs at {region} have {vm.egress_gbps:g} Gbit/s for long by their "
            f"documentation, and bursts of minutes: the plan counts on {cap.expected:.3g}. "
            "Tests that outlast the bursts tell (`relayd probe --aggregate-time 15min`)."
        )
    if vm and vm.burstable:
        return f"{vm.id} at {region} is burstable: its caps hold only while credits last."
    return ""


def _states(decision: Decision) -> list[str]:
    """Warn of links that are down or degraded, of the direct path and of relays."""
    src, dst = decision.request.src, decision.request.dst
    states = decision.search.network.states
    used = [state for pair in _used_pairs(decision) if (state := states.get(pair))]
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


def _used_pairs(decision: Decision) -> list[tuple[str, str]]:
    allocation, pairs_of = decision.chosen.allocation, decision.search.figures.pairs_of
    pairs = pairs_of(None) if allocation.direct_gbps else []
    return pairs + [pair for relay in allocation.relay_gbps for pair in pairs_of(relay)]


# ---- why there is no plan, or no better one ------------------------------------------------------


def why_infeasible(search: TransferSearch, *, more_vms: bool = True) -> InfeasibleError:
    """Return the error that names the limit, in the order rate, deadline, budget.

    Each limit is compared with the best that the request's paths and VMs achieve without it, so the
    remedy suffices. Where quotas do not allow it, `more_vms` are no remedy.
    """
    request, transfer = search.request, search.transfer
    fastest = search.asking(
        replace(
            request, objective="time", budget_usd=None, deadline_s=None, min_throughput_gbps=None
        )
    ).optimum
    if fastest is None:
        return InfeasibleError(
            "no permitted path carries anything", "Permit more relays, or measure more links."
        )
    vms = max([transfer.src.quota, transfer.dst.quota, *[r.quota for r in transfer.relays]])
    most, floor_gbps = fastest.allocation.rate_gbps, request.min_throughput_gbps or 0.0
    who = f"{_count(vms, 'VM')} a region" if more_vms else "the VMs that quotas allow"
    reach = f"{who} and {_count(request.connections, 'connection')} reach"

    def or_vms(share: float) -> str:
        """Return the number of VMs that would suffice: rates grow in proportion to all quotas."""
        if not more_vms:
            return ""
        if request.vms_in or share == inf:
            return ", or raise `vms`"
        needed = ceil(vms * share * (1 - EQUAL))
        return f", or raise `vms` to {needed}" if needed <= MOST_VMS else ""

    if floor_gbps > most * (1 + EQUAL):
        lower = floor(most * 1000) / 1000  # rounded up, it would be out of reach again
        return InfeasibleError(
            f"{floor_gbps:g} Gbit/s is above the {most:.3f} Gbit/s that {reach} over all "
            "permitted paths",
            f"Ask for at most {lower:.3f} Gbit/s{or_vms(floor_gbps / most)}.",
        )
    if request.deadline_s is not None and fastest.duration_s > request.deadline_s * (1 + EQUAL):
        soonest_s = ceil(fastest.duration_s * (1 + EQUAL))
        left_s = request.deadline_s - fastest.ramp_up_s
        share = (fastest.duration_s - fastest.ramp_up_s) / left_s if left_s > 0 else inf
        deadline, takes = too_short_texts(request.deadline_s, fastest.duration_s)
        return InfeasibleError(
            f"the deadline of {deadline} is before the {takes} that the transfer takes at the "
            f"{most:.3f} Gbit/s that {reach}",
            f"Allow at least {soonest_s} s{or_vms(share)}.",
        )
    cheapest = search.asking(replace(request, objective="cost", budget_usd=None)).optimum
    if cheapest is not None and request.budget_usd is not None:
        cost = cheapest.allocation
        enough_usd = ceil(cost.cost_usd * (1 + EQUAL) * 100) / 100
        return InfeasibleError(
            f"a budget of {request.budget_usd:g} USD is below the cheapest plan, which costs "
            f"{cost.cost_usd:.4g} USD ({cost.egress_usd:.4g} egress, {cost.vm_usd:.4g} VMs)",
            f"Raise the budget to {enough_usd:.2f} USD or send less.",
        )
    return InfeasibleError(
        "the limits cannot be met together", "Loosen the deadline, the rate or the budget."
    )


def quota_gains(chosen: Option, free: Option, *, several: bool) -> list[str]:
    """Describe the gain from raising quotas."""
    faster = chosen.duration_s / free.duration_s
    saved_usd = chosen.allocation.cost_usd - free.allocation.cost_usd
    gains = []
    if faster >= 1 + WORTH_SAYING:
        gains.append(f"ends {faster:.3g}x sooner")
    if saved_usd >= WORTH_SAYING * chosen.allocation.cost_usd > 0:
        gains.append(f"costs {saved_usd:.2f} USD less")
    if not gains:
        return []
    return [f"With {'these quotas' if several else 'this quota'} raised it {' and '.join(gains)}."]
