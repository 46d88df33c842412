"""The reason for a decision, its confidence and its warnings, in sentences."""

from __future__ import annotations

from math import inf

from planner.model.catalogue import Catalogue
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.rate_cuts.averages import burst_in_words, in_words
from planner.model.units import duration_text, gbps_text
from planner.model.verification import Verified
from planner.solvers.joint import Gain, Risk
from planner.transfer.allocation import EQUAL
from planner.transfer.bottlenecks import Bottlenecks
from planner.transfer.decision import LEAST_LATENCY_GAIN_MS, Decider, Decision
from planner.transfer.options import Option
from planner.transfer.single_path import best_on_path

HARDLY_FASTER = 1.05
WELL_ABOVE = 1.25
"""Times what is documented: what the errors of a test don't explain."""
LOSS_WORTH_SAYING_PCT = 1.0
MOST_NAMED = 5


class Explanation:
    """Puts one decision into words."""

    def __init__(
        self,
        decider: Decider,
        decision: Decision,
        catalogue: Catalogue | None = None,
        now_s: float | None = None,
    ) -> None:
        self.decider = decider
        self.decision = decision
        self.request = decision.request
        self.network = decider.network
        self.regions = decider.regions
        self.catalogue = catalogue
        self.now_s = now_s
        self.bottlenecks = Bottlenecks(decider)

    def reason(self) -> str:
        """Return why this plan and no other, in plain sentences."""
        state = self.network.states.get((self.request.src, self.request.dst))
        if state is None:
            return self._reason()
        if self.decision.direct is None and state.condition == "down":
            through = self._through(self.decision.chosen)
            return f"The direct link {state}. {through} carries the transfer until it is back."
        return f"The direct link {state}. {self._reason()}"

    def _reason(self) -> str:
        decision = self.decision
        chosen, direct = decision.chosen, decision.direct
        if direct is None:
            return self._why_not_direct() + f" {self._through(chosen)} does."
        if chosen is not direct:
            return self._why_relay(chosen, direct)
        if decision.optimum is not direct and decision.gain:
            return self._why_no_gain(decision.gain)
        return self._why_direct(direct)

    def _why_no_gain(self, gain: Gain) -> str:
        """Return why the better plan by expected figures is not recommended."""
        through = self._through(self.decision.optimum)
        if gain.worth:
            return (
                f"{through} is {_better(gain, self._terms())}, but saves less than "
                f"{LEAST_LATENCY_GAIN_MS:g} ms."
            )
        return not_worth(through, gain, self._terms(), self.request.margin, self.request.risk)

    def _why_direct(self, direct: Option) -> str:
        """Return why the direct path is best: no relay may, can, or pays."""
        request, best = self.request, self.decision.best_relay
        if request.relays == "none":
            return "Only the direct path was asked for."
        if not self.decision.transfer.relays:
            return "No relay path is known or permitted."
        if request.objective == "latency" and best:
            limits = self._limits()
            return (
                f"No relay{f' that meets {limits}' if limits else ''} lowers the round-trip time: "
                f"the nearest path, via {self._via(best)}, takes "
                f"{self.decider.path_rtt_ms(best.relays[0]):.0f} ms against "
                f"{self.decider.path_rtt_ms(None):.0f} ms."
            )
        relay, most = self.decider.fastest_relay()
        if best is None or (most > HARDLY_FASTER and _gain(best, direct) <= 1 + EQUAL):
            fastest = self.decider.whatever_it_costs(relay)
            if fastest is None:
                return f"No relay can meet {self._limits()}."
            most_usd = request.budget_usd or inf
            if fastest.allocation.cost_usd > most_usd * (1 + EQUAL):
                return self._too_dear(fastest, direct, most)
        if best is None:
            return f"No relay can meet {self._limits()}."
        gain, ratio = _gain(best, direct), _cost_ratio(best, direct)
        if max(gain, most) <= HARDLY_FASTER:
            faster = "faster" if max(gain, most) <= 1 + EQUAL else "much faster"
            return (
                f"{self._limit_of_direct()} No relay is {faster}: the best, {self._via(best)}, "
                f"carries {gain:.2f}x and costs {ratio:.1f}x."
            )
        limit, via = self._limit_of_direct(), self._via(best)
        carries = f"{limit} The best relay, {via}, carries {gain:.2f}x"
        if request.hour_usd == inf and gain > 1 + EQUAL:
            return f"{carries}, but getting up to speed over two links takes longer than it saves."
        worth = (
            "which does not lower the cost"
            if request.hour_usd == 0
            else "which is no sooner"
            if request.hour_usd == inf
            else f"which does not pay at {request.hour_usd:g} USD an hour"
        )
        return f"{carries} but costs {ratio:.1f}x, {worth}."

    def _too_dear(self, fastest: Option, direct: Option, most: float) -> str:
        """Return that the fastest relay is above the budget, or that it would be no faster."""
        gain, cost_usd = _gain(fastest, direct), fastest.allocation.cost_usd
        too_much = f"more than the budget of {self.request.budget_usd:g} USD"
        if max(gain, most) <= 1 + EQUAL:
            return (
                f"{self._limit_of_direct()} No relay is faster: the best, {self._via(fastest)}, "
                f"carries {gain:.2f}x and costs {_cost_ratio(fastest, direct):.1f}x."
            )
        return (
            f"{self._limit_of_direct()} The fastest relay, {self._via(fastest)}, carries "
            f"{gain:.2f}x but costs {cost_usd:.4g} USD, {too_much}."
        )

    def _via(self, option: Option) -> str:
        """Return the region of a single relay."""
        return self.regions[option.relays[0]]

    def _why_relay(self, chosen: Option, direct: Option) -> str:
        if self.request.objective == "latency":
            (relay,) = chosen.relays
            return (
                f"{self._through(chosen)} takes {self.decider.path_rtt_ms(relay):.0f} ms where "
                f"direct takes {self.decider.path_rtt_ms(None):.0f} ms."
            )
        gain = self.decision.gain
        sure = ""
        if gain and gain.low < inf:  # infinite over a plan that costs nothing
            sure = f" ({gain.low:.2f}x to {gain.high:.2f}x better in {self._terms()})"
        ratio = _cost_ratio(chosen, direct)
        return (
            f"{self._through(chosen)} carries {gbps_text(chosen.allocation.rate_gbps)} Gbit/s "
            f"where direct carries {gbps_text(direct.allocation.rate_gbps)}{sure}, for "
            f"{ratio:.2f}x the cost. {self._limit_of_direct()}"
        )

    def _why_not_direct(self) -> str:
        transfer = self.decision.transfer
        if transfer.direct is None:
            return "Nothing is known of the direct path."
        most = best_on_path(transfer, None, time_value_usd_per_h=inf)
        reached = f" ({gbps_text(most.rate_gbps)} Gbit/s at most)" if most else ""
        return f"The direct path cannot meet {self._limits()}{reached}."

    def _limits(self) -> str:
        request, limits = self.request, []
        if request.min_throughput_gbps:
            limits.append(f"{request.min_throughput_gbps:g} Gbit/s")
        if request.deadline_s:
            limits.append(f"the deadline of {duration_text(request.deadline_s)}")
        if request.budget_usd:
            limits.append(f"the budget of {request.budget_usd:g} USD")
        return " and ".join(limits)

    def _through(self, option: Option) -> str:
        names = [self.regions[relay] for relay in option.relays]
        if not names:
            return "The direct path"
        via = "A relay at " + " and ".join(names)
        return (
            f"A split over the direct path and {' and '.join(names)}"
            if (option.allocation.direct_gbps)
            else via
        )

    def _terms(self) -> str:
        return {
            "time": "time",
            "cost": "cost",
            "latency": "round-trip time",
            "value": f"cost plus time at {self.request.time_value_usd_per_h:g} USD/h",
        }[self.request.objective]

    def _limit_of_direct(self) -> str:
        if self.decision.transfer.direct is None:
            return ""
        src, dst = self.request.src, self.request.dst
        rate, what = self.bottlenecks.binding(src, dst)
        return {
            "egress cap": f"{src} VMs send at most {gbps_text(rate)} Gbit/s each to anywhere.",
            "ingress cap": f"{dst} VMs receive at most {gbps_text(rate)} Gbit/s each from "
            "anywhere.",
            "connections": f"{self._connections()} {gbps_text(rate)} Gbit/s between one VM pair "
            "(window / RTT each).",
            "path": f"One VM pair reaches {gbps_text(rate)} Gbit/s on the direct path.",
        }[what]

    def _connections(self) -> str:
        count = self.request.connections
        return "One connection carries" if count == 1 else f"{count} connections carry"

    def confidence(self, low_gbps: float, high_gbps: float) -> str:
        """Return in a sentence what the figures rest on, their bounds and their age."""
        counts, oldest_s, verified = self.evidence()
        rests = " and ".join(
            f"{n} {source} link{'s' if n > 1 else ''}" for source, n in counts.items() if n
        )
        text = f"Rests on {rests}: {gbps_text(low_gbps)} to {gbps_text(high_gbps)} Gbit/s"
        if oldest_s is not None and self.now_s is not None:
            days = max(0.0, (self.now_s - oldest_s) / SECONDS_PER_DAY)
            text += f", oldest measurement {_age(days)}"
        if counts["baseline"]:
            text += "; baseline figures come from models, not from measuring these VMs"
        if verified and self.now_s is not None:
            text += f"; {verified.text(self.now_s)}"
        return text + "."

    def evidence(self) -> tuple[dict[str, int], float | None, Verified | None]:
        """Return how many links are of which source, the oldest sample, the last verification."""
        estimates = [self.bottlenecks.deciding(*pair) for pair in self._used_pairs()]
        counts = {
            source: sum(estimate.source == source for estimate in estimates)
            for source in ("measured", "inferred", "baseline")
        }
        times = [e.measured_at_s for e in estimates if e.measured_at_s is not None]
        verified = self.network.verified.get((self.request.src, self.request.dst))
        return counts, min(times, default=None), verified

    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know besides the plan."""
        found = []
        loss = [
            (link.src, link.dst, link.loss_pct)
            for pair in self._used_pairs()
            if (link := self.network.link(*pair)).loss_pct
            and link.loss_pct >= LOSS_WORTH_SAYING_PCT
        ]
        found += [f"{src} -> {dst} loses {pct:.1f} % of packets." for src, dst, pct in loss]
        found += self._states()
        found += [
            said
            for pair in self._used_pairs()
            if (said := in_words(self.network.link(*pair), self.request.volume_gb))
        ]
        found += self.verification()
        found += self._bursts()
        found += self._beyond_the_fleet()
        if self.request.connections > 1 and not self.request.may_split:
            found.append(
                f"{self.request.connections} connections are too few to divide over paths: only "
                "plans over one path were considered."
            )
        return tuple(found)

    def _bursts(self) -> list[str]:
        """Return where VMs send more at first than what lasts, as measured or by their type."""
        found = []
        types = self.catalogue.vm_types if self.catalogue else {}
        for region in self.decider.vms(self.decision.chosen.allocation):
            cap = self.network.sites[region].egress_gbps
            vm = types.get(self.network.sites[region].vm_type)
            if (cut := cap.origin.rate_cut) is not None:
                found.append(burst_in_words(self.network.sites[region], cut))
            elif vm and vm.burst_gbps and cap.expected > WELL_ABOVE * vm.egress_gbps:
                found.append(
                    f"{vm.id} VMs at {region} have {vm.egress_gbps:g} Gbit/s for long by their "
                    f"documentation, and bursts of minutes: the plan counts on {cap.expected:.3g}. "
                    "Tests that outlast the bursts tell (`relayd probe --aggregate-time 15min`)."
                )
            elif vm and vm.burstable:
                found.append(
                    f"{vm.id} at {region} is burstable: its caps hold only while credits last."
                )
        return found

    def _beyond_the_fleet(self) -> list[str]:
        """Return where a stated number of VMs made the plan take more than the fleet has."""
        counts, sites = self.decider.vms(self.decision.chosen.allocation), self.network.sites
        return [
            f"The plan takes {count} VMs at {region}, where the fleet has {sites[region].vms}."
            for region, count in counts.items()
            if count > (sites[region].vms or count)
        ]

    def verification(self) -> list[str]:
        """Return a warning if the last plan between these ends did not achieve its prediction."""
        verified = self.network.verified.get((self.request.src, self.request.dst))
        if verified is None or verified.held or self.now_s is None:
            return []
        since = (
            "these figures rest on the same snapshot"
            if verified.snapshot_id == self.network.snapshot.id
            else "these figures rest on measurements since then"
        )
        return [
            f"The last plan was {verified.text(self.now_s)}, where "
            f"{gbps_text(verified.low_gbps)} to {gbps_text(verified.high_gbps)} were predicted; "
            f"{since}."
        ]

    def _states(self) -> list[str]:
        """Return which links are down or degraded, of the direct path and of relays."""
        src, dst = self.request.src, self.request.dst
        states = self.network.states
        used = [state for pair in self._used_pairs() if (state := states.get(pair))]
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
            names = ", ".join(sorted(others)[:MOST_NAMED]) + (
                ", ..." if len(others) > MOST_NAMED else ""
            )
            found.append(f"Not considered as relays, because a link of theirs is down: {names}.")
        return found

    def _used_pairs(self) -> list[tuple[str, str]]:
        src, dst = self.request.src, self.request.dst
        allocation = self.decision.chosen.allocation
        pairs = [(src, dst)] if allocation.direct_gbps else []
        for relay in allocation.relay_gbps:
            pairs += [(src, self.regions[relay]), (self.regions[relay], dst)]
        return pairs


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


def not_worth(who: str, gain: Gain, terms: str, margin: float, risk: Risk) -> str:
    """Return why what is better by expected figures is not recommended.

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
