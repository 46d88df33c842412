"""Remedies that cost less than a relay, the cheapest first.

A remedy is a change of the request. What it brings is the answer to the request so changed, over
the direct path alone, and is compared with the chosen plan, whichever that is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import ceil, inf
from operator import itemgetter
from typing import Any

import numpy as np

from planner.fields.shared import MOST_CONNECTIONS, MOST_VMS
from planner.model.answer import Advice, AdviceOutcome
from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.baseline.modelled_links import least_cap
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind
from planner.model.link_array import KINDS
from planner.model.network import Network
from planner.model.pricing import Prices, prices_on
from planner.model.quotas.sites import with_quotas
from planner.model.throughput import MBIT_PER_MB, ramp_up_s
from planner.model.units import (
    BITS_PER_BYTE,
    MBPS_PER_GBPS,
    S_PER_H,
    duration_s,
    duration_text,
    gbps_text,
    rate_text,
)
from planner.transfer import wording
from planner.transfer.allocation import greatest_rate_gbps
from planner.transfer.decision import Decision, chosen_option, slack
from planner.transfer.offers import Offered
from planner.transfer.options import FLOW_LIMITS, Option
from planner.transfer.plan import MeasureFirst
from planner.transfer.readings import link_to_ramp, ramp
from planner.transfer.search import TransferSearch

WORTH_ADVISING = 1.05  # do not advise what gains less than five percent
SAME_DURATION = 1e-6  # relative
UNLUCKY_SHARE = 0.85  # of the VM type's cap, reached by none of a VM's links
LINKS_TO_JUDGE_A_VM = 3
WORTH_A_CHANGE = 1.1  # of VM type: how many times faster, or cheaper
PROBE_S = 10.0
MOST_MORE_VMS = 7
# Probabilities that a relay is worth the margin between which a measurement may change the verdict.
UNDECIDED = (0.05, 0.95)
TRIAL_TRANSFERS = 50  # to come, for which what a trial shows is taken to hold
LEAST_SAVED_BY_VM_S = 5.0  # starting a VM to save less is not worthwhile


class Adviser:
    """Finds remedies for one decision; `outcomes` are what those found so far lead to."""

    def __init__(self, decision: Decision, catalogue: Catalogue | None = None) -> None:
        self.decision, self.catalogue = decision, catalogue
        self.request, self.figures = decision.request, decision.figures
        self.network, self.prices = decision.search.network, decision.search.prices
        self.outcomes: list[Offered] = []

    def advice(self) -> tuple[Advice, ...]:
        """Return the remedies, the cheapest first."""
        found: list[Advice] = []
        if self.decision.search.transfer.direct:
            found += self._more_connections_or_window()
            found += self._unlucky_vm()
            found += self._more_vms()
            found += self._other_vm_types()
        if self.plain_copy:
            change = {"connections": 1, "vms": 1, "vms_running": True}
            if copy := self._asked_again(change):
                action = "Copy it with scp, rsync or the provider's own tool from a host that runs"
                found.append(self._advice(action, change, copy))
        network, prices, count = self.network, self.prices, self.request.connections
        found += [to_measure(m.src, m.dst, network, prices, count) for m in self._settling_first()]
        return tuple(sorted(found, key=lambda advice: advice.cost_usd))

    @cached_property
    def plain_copy(self) -> str:
        """A sentence on a plain copy in place of VMs; empty where it takes longer than they do."""
        request, start_s = self.request, self.decision.chosen.vm_start_s
        link = self.network.links.get(request.src, {}).get(request.dst)
        return wording.plain_copy([(link, request.volume_gb)], start_s)

    # ---- asking again ------------------------------------------------------------------------

    def _asked_again(
        self,
        change: Mapping[str, Any],
        network: Network | None = None,
        prices: Prices | None = None,
    ) -> Option | None:
        """Return the answer to the request with a change and without relays, if there is one."""
        changed = self.request.with_(**change, relays="none")
        return chosen_option(changed, network or self.network, prices or self.prices)

    def _advice(self, action: str, change: dict[str, Any], option: Option) -> Advice:
        allocation, chosen = option.allocation, self.decision.chosen
        saved_s = chosen.duration_s - option.duration_s
        when = f"{duration_text(abs(saved_s))} {'sooner' if saved_s >= 0 else 'later'}"
        if abs(saved_s) <= SAME_DURATION * chosen.duration_s:
            when = "just as fast"
        advice = Advice(
            f"{action}, direct",
            f"{rate_text(allocation.rate_gbps)}, {when}",
            allocation.cost_usd - chosen.allocation.cost_usd,
            {**change, "relays": "none"},
            AdviceOutcome(allocation.rate_gbps, option.duration_s, option.cost),
        )
        why = f"{advice.effect}; it changes the request"
        self.outcomes.append(Offered(option, dict(advice.change or {}), action, why))
        return advice

    def _is_worth_it(self, option: Option | None) -> bool:
        """Return whether an option is clearly faster, or as fast and clearly cheaper."""
        if option is None:
            return False
        chosen = self.decision.chosen
        rate, cost_usd = option.allocation.rate_gbps, option.allocation.cost_usd
        if rate >= chosen.allocation.rate_gbps * WORTH_ADVISING:
            return option.duration_s < chosen.duration_s
        cheaper = cost_usd * WORTH_ADVISING <= chosen.allocation.cost_usd
        return cheaper and rate * WORTH_ADVISING >= chosen.allocation.rate_gbps

    def _pays(self, option: Option) -> bool:
        """Return whether an option is clearly better by the objective of the request."""
        value_usd = self.decision.chosen.value_usd
        egress_usd = self.decision.chosen.allocation.egress_usd
        return option.value_usd + slack(self.request.hour_usd, value_usd, egress_usd) < value_usd

    # ---- remedies ----------------------------------------------------------------------------

    def _more_connections_or_window(self) -> list[Advice]:
        src, dst = self.request.src, self.request.dst
        link = self.network.link(src, dst)
        rate, what = self.figures.binding(src, dst)
        if what not in FLOW_LIMITS:
            return []
        possible = min(
            inf if link.limited_by == "window" else link.aggregate_gbps.expected,
            least_cap(self.network.sites[src], self.network.sites[dst], link.address).expected,
        )
        if possible < rate * WORTH_ADVISING:
            return []
        found = []
        now = self.request.connections
        flow_gbps = link.per_flow_mbps.expected / MBPS_PER_GBPS
        connections = ceil(min(possible / flow_gbps, MOST_CONNECTIONS))
        more = self._asked_again({"connections": connections})
        if more and self._is_worth_it(more):
            action = f"Open {connections} connections a VM instead of {now}"
            found.append(self._advice(action, {"connections": connections}, more))
        return found + self._larger_window()

    def _larger_window(self) -> list[Advice]:
        """Advise raised windows, for as much as the flow caps of both ends let them bring."""
        if self.catalogue is None or self.request.hosts == "tuned":
            return []
        src, dst = self.request.src, self.request.dst
        between = self.network.with_(restricted_to=(src, dst))
        change = {"hosts": "tuned"}
        faster = self._asked_again(change, with_tuned_hosts(between, self.catalogue))
        if not faster or not self._is_worth_it(faster):
            return []
        allocation, rtt_ms = faster.allocation, self.network.link(src, dst).rtt_ms.expected
        pairs = min(allocation.src_vms, allocation.dst_vms)
        flow_gbps = allocation.rate_gbps / pairs / self.request.connections
        window_mb = flow_gbps * rtt_ms / MBIT_PER_MB  # Gbit/s are Mbit/ms
        ends = f"net.ipv4.tcp_wmem at {src}, tcp_rmem at {dst}"
        action = f"Raise TCP windows to {window_mb:.1f} MB ({ends})"
        return [self._advice(action, change, faster)]

    def _more_vms(self) -> list[Advice]:
        """Advise the fewest more VMs that make the direct path faster than the plan."""
        request, chosen = self.request, self.decision.chosen
        transfer, direct = self.decision.widest.transfer, self.decision.direct
        if direct is None:
            return []
        src, dst = transfer.src, transfer.dst
        # Where the number was left to the plan, the best of all is asked for at once.
        least = 1 if request.vms is not None else MOST_MORE_VMS
        for added in range(least, MOST_MORE_VMS + 1):
            src_vms, dst_vms = (
                max(end.quota, self.network.sites[at].may_run(min(end.quota + added, MOST_VMS)))
                for end, at in ((src, request.src), (dst, request.dst))
            )
            grown = replace(
                transfer, src=replace(src, quota=src_vms), dst=replace(dst, quota=dst_vms)
            )
            most_gbps = greatest_rate_gbps(grown, transfer.direct)
            if most_gbps < chosen.allocation.rate_gbps * WORTH_ADVISING:
                continue
            vms_in = {**request.vms_in, request.src: src_vms, request.dst: dst_vms}
            asked = request.with_(vms_in=vms_in, relays="none")
            faster = TransferSearch(asked, self.network, self.prices).direct
            if (
                faster
                and self._is_worth_it(faster)
                and (request.vms is not None or self._pays(faster))
                and chosen.duration_s - faster.duration_s >= LEAST_SAVED_BY_VM_S
            ):
                break
        else:
            return []
        more_at = [
            f"{vms} VMs at {region}"
            for region, vms, before in (
                (request.src, faster.allocation.src_vms, direct.allocation.src_vms),
                (request.dst, faster.allocation.dst_vms, direct.allocation.dst_vms),
            )
            if vms > before
        ]
        if not more_at:
            return []
        return [self._advice(f"Use {' and '.join(more_at)}", {"vms_in": vms_in}, faster)]

    def _other_vm_types(self) -> list[Advice]:
        """Advise suggested types that cost least as fast as now, and those of the best value."""
        catalogue, request, sites = self.catalogue, self.request, self.network.sites
        # With types that the request states, the network is no longer the one that was measured.
        if catalogue is None or self.decision.direct is None or request.vm_types:
            return []
        ends = request.src, request.dst
        if not all(sites[end].vm_type in catalogue.vm_types for end in ends):
            return []
        network, found = self.network.alone(*ends), list[Advice]()
        for types in dict.fromkeys(self._types_to_try(catalogue)):
            change = {"vm_types": {end: vm for end, vm in zip(ends, types, strict=True) if vm}}
            kept = network.kept.get((types, request.hosts))
            if kept is None or kept[0] is not catalogue:
                changed = with_vm_types(network, catalogue, change["vm_types"])
                if request.hosts == "tuned":
                    changed = with_tuned_hosts(changed, catalogue)
                kept = catalogue, with_quotas(changed, catalogue)
                network.kept[types, request.hosts] = kept
            changed = kept[1]
            option = self._asked_again(change, changed, prices_on(self.prices, changed))
            # A default is what would be advised: in its place, only a faster one is.
            before = {sites[end].vm_type for end in change["vm_types"]}
            as_fast = before.isdisjoint(catalogue.default_vm_types.values())
            if option and self._saves_enough(option, as_fast):
                new = " and ".join(f"{vm} at {end}" for end, vm in change["vm_types"].items())
                old = " and ".join(dict.fromkeys(sites[end].vm_type for end in change["vm_types"]))
                found.append(self._advice(f"Use {new} instead of {old}", change, option))
        return found

    def _saves_enough(self, option: Option, as_fast: bool) -> bool:
        """Return whether VMs are better by the objective, and faster or, if `as_fast`, cheaper."""
        chosen = self.decision.chosen
        faster = option.duration_s * WORTH_A_CHANGE <= chosen.duration_s
        cheaper = option.allocation.vm_usd * WORTH_A_CHANGE <= chosen.allocation.vm_usd
        same = as_fast and option.duration_s <= chosen.duration_s * WORTH_ADVISING
        return option.value_usd < chosen.value_usd and (faster or (cheaper and same))

    def _types_to_try(self, catalogue: Catalogue) -> list[tuple[str, ...]]:
        """Return types for both ends, the empty text where one stays: by estimates, the best.

        For each rate that some type carries, the cheapest types that carry it at either end; of
        those, the cheapest as fast as now, and that of the least cost plus time.
        """
        request, network, chosen = self.request, self.network, self.decision.chosen
        link = network.link(request.src, request.dst)
        rate, what = self.figures.binding(request.src, request.dst)
        most_gbps = request.connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        if what in {"path", *FLOW_LIMITS}:  # no VM is faster
            most_gbps = rate
        ends = [
            self._end_types(catalogue, request.src, link.address, sends=True),
            self._end_types(catalogue, request.dst, link.address, sends=False),
        ]
        rates = {min(gbps, most_gbps) for end in ends for _, gbps, _ in end}
        pairs = max(1, min(chosen.allocation.src_vms, chosen.allocation.dst_vms))
        ramp_s = ramp_up_s(link.rtt_ms.expected)
        lead_h, tried = (request.vm_start_s + ramp_s) / S_PER_H, []
        for gbps in sorted(one for one in rates if one * WORTH_ADVISING >= rate):
            enough = [next((vm for vm in end if vm[1] >= gbps), None) for end in ends]
            if None in enough:
                continue
            usd_per_h = sum(vm[0] for vm in enough if vm)
            hours = duration_s(request.volume_gb, gbps * pairs) / S_PER_H
            vm_usd = usd_per_h * pairs * (hours + lead_h)
            value = hours if request.hour_usd == inf else vm_usd + request.hour_usd * hours
            tried.append((vm_usd, value, tuple(vm[2] for vm in enough if vm)))
        best = [min(tried, key=itemgetter(k))[2] for k in (0, 1)] if tried else []
        return [types for types in best if any(types)]

    def _end_types(
        self, catalogue: Catalogue, region: str, address: AddressKind, *, sends: bool
    ) -> list[tuple[float, float, str]]:
        """Return price, rate and id of types for an end, cheapest first; no id for that it has."""
        site = self.network.sites[region]
        now = catalogue.vm_types[site.vm_type]
        cap = (site.egress if sends else site.ingress)(address).expected
        others = catalogue.cheapest_by_rate[now.provider, address, sends]
        return sorted([(now.price_usd_per_h, cap, ""), *others])

    def _unlucky_vm(self) -> list[Advice]:
        """Advise another VM if no measured link comes near the type's cap (GLOBECOM 2015, V)."""
        if self.catalogue is None:
            return []
        src = self.request.src
        site = self.network.sites[src]
        vm = self.catalogue.vm_types.get(site.vm_type)
        cap = vm.egress_gbps if vm else 0.0
        links = self.network.links
        cells = links.row(links.index[src])
        is_measured = links.kinds(cells, "aggregate_gbps") == KINDS.index("measured")
        measured: list[float] = cells["aggregate_gbps"]["high"][is_measured].tolist()
        if len(measured) < LINKS_TO_JUDGE_A_VM or max(measured) >= UNLUCKY_SHARE * cap:
            return []
        return [
            Advice(
                f"Recreate the VM at {src}",
                f"it reaches {rate_text(max(measured))} at best, where a "
                f"{site.vm_type} reaches {gbps_text(cap)}",
                0.0,
            )
        ]

    def measure_first(self) -> tuple[MeasureFirst, ...]:
        """Return the measurements to make: for the reading, a contradiction or the verdict."""
        found = [*self._ramp_first(), *self._contradicted_first(), *self._settling_first()]
        return tuple({(one.src, one.dst, one.kind): one for one in reversed(found)}.values())[::-1]

    def _ramp_first(self) -> tuple[MeasureFirst, ...]:
        """Return the ramp that tells which reading of a slow link is right, where plans differ."""
        ends, now = link_to_ramp(self.decision), self.request.connections
        if ends is None or now < (link := self.network.link(*ends)).measured_connections:
            return ()
        src, dst = (self.network.sites[end] for end in ends)
        most_gbps = least_cap(src, dst, link.address).expected
        return (ramp(link, most_gbps, now, self.prices),)

    def _contradicted_first(self) -> list[MeasureFirst]:
        """Return tests of the links whose measurements transfers contradict."""
        found, paths = [], (None, *self.decision.chosen.relays)
        for pair in dict.fromkeys(pair for one in paths for pair in self.figures.pairs_of(one)):
            link = self.network.links.get(pair[0], {}).get(pair[1])
            told = link and link.aggregate_gbps.origin.figures
            if told and told.transfers and told.is_contradicted:
                reason = (
                    f"transfers reached {rate_text(told.transfers.gbps)} a VM pair, where other "
                    "rates were measured"
                )
                found.append(self._test_of(pair, reason))
        return found

    def _test_of(self, pair: tuple[str, str], reason: str) -> MeasureFirst:
        count = self.request.connections
        volume_gb = self.network.link(*pair).rate_gbps(count) * PROBE_S / BITS_PER_BYTE
        usd = volume_gb * self.prices.egress_usd_per_gb(*pair, volume_gb)
        return MeasureFirst(
            *pair, "flow" if count == 1 else "aggregate", PROBE_S, volume_gb, usd, reason
        )

    def _settling_first(self) -> tuple[MeasureFirst, ...]:
        """Return the measurement that would settle the verdict, where that may change it.

        Bounds leave it open; or what trying the other path should save over
        :data:`TRIAL_TRANSFERS` is more than the test costs.
        """
        made, chosen = self.decision.made, self.decision.chosen
        gain, optimum = made.gain, made.optimum
        if gain is None:
            return ()
        paths = (None, *optimum.relays)
        pairs = [pair for path in paths for pair in self.figures.pairs_of(path)]
        widest = max(pairs, key=lambda pair: self.figures.deciding(*pair).relative_width)
        if not self.figures.deciding(*widest).relative_width:  # VMs that no one tried may open it
            return ()
        relays = " and ".join(self.figures.regions[relay] for relay in optimum.relays)
        reason = (
            f"its bounds are the widest of those that leave open whether a relay at {relays} is "
            "worth the margin"
        )
        test = self._test_of(widest, reason)
        other = made.direct if chosen.relays else optimum
        saved_usd = 0.0
        if other and self.request.hour_usd < inf:
            apart = chosen.values - other.values
            saved_usd = TRIAL_TRANSFERS * float(np.nan_to_num(apart, posinf=0.0).clip(0.0).mean())
        is_open = UNDECIDED[0] <= gain.probability <= UNDECIDED[1]
        return (test,) if is_open or saved_usd > test.cost_usd else ()


def to_measure(src: str, dst: str, network: Network, prices: Prices, connections: int) -> Advice:
    """Return the advice to measure the link whose bounds decide most."""
    volume_gb = network.link(src, dst).rate_gbps(connections) * PROBE_S / BITS_PER_BYTE
    return Advice(
        f"Measure {src} -> {dst}",
        f"the widest bounds in this decision; {volume_gb:.1f} GB in {PROBE_S:.0f} s would tighten "
        "it",
        volume_gb * prices.egress_usd_per_gb(src, dst, volume_gb),
    )
