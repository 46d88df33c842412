"""The search for one transfer's plan: what each path and their best split give, and which to take.

A relay is recommended where that has the least expected regret at the margin and the attitude to
risk (:func:`planner.solvers.joint.worth`), in the objective's own terms: time, cost, or cost plus
the value of time; or where the direct path cannot meet the request's limits at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.fields.shared import MOST_VMS
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, duration_s
from planner.solvers.joint import Draws, Gain, worth
from planner.transfer.allocation import (
    EQUAL,
    Allocation,
    best_on_path,
    greatest_rate_gbps,
    is_simple,
)
from planner.transfer.optimum import fastest, least_value
from planner.transfer.options import RELAY_PROCESSING_MS, Option, OptionEvaluator
from planner.transfer.problem import (
    MOST_PATHS,
    NO_RELAYS,
    End,
    Relays,
    TransferPath,
    TransferProblem,
)
from planner.transfer.request import CONNECTIONS_TO_SPLIT, DEFAULT_CANDIDATES, TransferRequest
from planner.transfer.whole_connections import MOST_DIVIDED, divisions, roundings

# The least gain of more paths: each is one more thing to run and to fail.
SPLIT_GAIN = 0.02
# The least gain of each path beyond the first few.
PATH_GAIN = 0.05
# Of the duration: the least that a split over nearer paths might save to be looked for.
NEARER_GAIN = 0.01
# Plans whose values differ by less are as good.
AS_GOOD_VALUE = 1e-3
# Of round-trip time: how much must be saved before a longer and more fragile path is worth it.
LEAST_LATENCY_GAIN_MS = 10.0
# Relays as fast as the fastest within this share, or within the same step below it, are ranked by
# price, then by distance: repeated measurements of a link differ by 3.8 % in the median (60 pairs
# of the January 2022 grid), so that nothing is known of smaller differences.
AS_FAST = 0.05
# Attempts at a split in whole connections, and at one without the longest path.
ROUNDS = 4

Solver: TypeAlias = Callable[[float], Allocation | None]


class TransferChoice(NamedTuple):
    """The choice with some numbers of VMs.

    Attributes
    ----------
    direct : Option | None
        The best of the direct path; None if it can't meet the request's limits.
    optimum : Option
        What the optimiser preferred on expected figures, chosen or not.
    gain : Gain | None
        Of the optimum over direct, in the objective's terms; None if either is missing.
    left_out : Option | None
        The split that would be the optimum on expected figures alone.
    """

    chosen: Option
    direct: Option | None
    optimum: Option
    gain: Gain | None
    left_out: Option | None = None


class TransferSearch:
    """The options of one request on one network with some greatest number of VMs.

    Parameters
    ----------
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
        self._relay_options: dict[int | None, Option | None] = {}

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

    def asking(self, **change: object) -> TransferSearch:
        """Return the search for the request with another objective or other limits."""
        request = self.request.with_(**change)
        return TransferSearch(request, self.network, self.prices, self.unasked_vms, like=self)

    @cached_property
    def ends(self) -> TransferProblem:
        """The problem with the VMs that there may be, without relays."""
        whole, request = self.figures.whole, self.request
        src, dst = (
            End(end.cap_gbps, end.vm_usd_per_h, self._most(region, end.quota))
            for region, end in ((request.src, whole.src), (request.dst, whole.dst))
        )
        return replace(whole, src=src, dst=dst, relays=NO_RELAYS)

    @property
    def least_duration_s(self) -> float:
        """A time that no plan is below: that with all VMs at both ends full."""
        ends = self.ends.src, self.ends.dst
        return duration_s(self.ends.volume_gb, min([end.cap_gbps * end.quota for end in ends]))

    @cached_property
    def transfer(self) -> TransferProblem:
        """The problem with the VMs that there may be."""
        relays, request = self.figures.whole.relays, self.request
        if self.unasked_vms < MOST_VMS and request.vms is None:
            rows = relays.rows.copy()
            rows["quota"] = np.minimum(rows["quota"], self.unasked_vms)
            for region in request.vms_in:
                same = rows["region"] == self.network.index.get(region)
                rows["quota"][same] = relays.rows["quota"][same]
            relays = Relays(rows)
        return replace(self.ends, relays=relays)

    def _most(self, region: str, vms: int) -> int:
        """Return the most VMs at a site, of those that there may be."""
        is_stated = self.request.vms is not None or region in self.request.vms_in
        return vms if is_stated else min(vms, self.unasked_vms)

    # ---- the choice --------------------------------------------------------------------------

    @cached_property
    def choice(self) -> TransferChoice | None:
        """The choice; None if no plan meets the limits."""
        direct = self.direct
        if self.request.objective == "latency":
            return self._least_latency(direct)
        optimum, left_out = self._robust_optimum
        if optimum is None or direct is None or optimum is direct:
            return TransferChoice(optimum, direct, optimum, None, left_out) if optimum else None
        gain = self.figures.gain(optimum, direct)
        return TransferChoice(optimum if gain.worth else direct, direct, optimum, gain, left_out)

    def _least_latency(self, direct: Option | None) -> TransferChoice | None:
        """Choose by round-trip time: a relay must gain both relatively and absolutely."""
        nearest = next(iter(self.single_relays), None)
        if direct is None or nearest is None:
            only = direct or nearest
            return TransferChoice(only, direct, only, None) if only else None
        rtt_ms = self.figures.path_rtt_ms
        saved_ms = rtt_ms(None) - rtt_ms(nearest.relays[0]) - RELAY_PROCESSING_MS
        if saved_ms <= 0:
            return TransferChoice(direct, direct, direct, None)
        gain = self.figures.gain(nearest, direct)
        chosen = nearest if gain.worth and saved_ms >= LEAST_LATENCY_GAIN_MS else direct
        return TransferChoice(chosen, direct, nearest, gain)

    @property
    def optimum(self) -> Option | None:
        """The best of all plans that the request allows, on expected figures."""
        return self._robust_optimum[0]

    @cached_property
    def _robust_optimum(self) -> tuple[Option | None, Option | None]:
        """The optimum, and the split that was left out for it."""
        request, transfer = self.request, self.transfer
        options = [self.direct] if self.direct else []
        by_value = request.connections < CONNECTIONS_TO_SPLIT or request.relays == "one"
        if by_value:
            options += self._options(transfer.relays)
            if request.may_split:
                splits = (self._best_anywhere([relay], options[:1]) for relay in transfer.relays)
                options += [option for option in splits if option]
        elif transfer.relays:
            ranked = map(self.on_path, self._best_ranked)
            first = next(filter(None, ranked), None) or next(iter(self.single_relays), None)
            options += [first] if first else []
            options += self._splits(options) if request.may_split else []
        best = None
        for option in options:  # simpler plans come first, and of single relays the preferred one
            if best is None:
                best = option
                continue
            least = EQUAL  # the gain that it needs
            if len(option.allocation.flows) > len(best.allocation.flows):
                least = SPLIT_GAIN
            elif option.is_one_relay and best.is_one_relay and not by_value:
                least = AS_FAST
            # Where time alone counts, the clearly cheaper of two that are as fast.
            cost_usd, saves = best.allocation.cost_usd, False
            if option.value_usd <= best.value_usd * (1 + AS_GOOD_VALUE):
                saves = option.allocation.cost_usd < cost_usd * (1 - SPLIT_GAIN)
                saves = saves and option.rate_at("low") >= best.rate_at("low") * (1 - AS_FAST)
            if saves or option.value_usd < best.value_usd * (1 - least):
                best = option
        return self._robust(best, options)

    def _splits(self, alone: Sequence[Option]) -> list[Option]:
        """Return the best split, and those without its longest paths where they end sooner.

        A split waits for its longest path to be up to speed: of a small volume, much of the time.
        """
        relays, found = self.transfer.relays, list[Option]()
        for _ in range(ROUNDS):
            split = self._best_anywhere(relays, alone)
            found += [split] if split else []
            ramps_s = ramp_up_s(self.figures.relay_rtts_ms[relays.rows["region"]])
            least_s = float(ramps_s.min())
            longest_s = split.ramp_up_s if split else float(ramps_s.max())
            best = min([*alone, *found], key=lambda one: one.value_usd, default=None)
            if best and longest_s - least_s <= NEARER_GAIN * best.duration_s:
                break
            nearer = ramps_s < (longest_s if split else (least_s + longest_s) / 2)
            if not nearer.any():
                break
            relays = Relays(relays.rows[nearer])
        return found

    def _robust(
        self, best: Option | None, options: list[Option]
    ) -> tuple[Option | None, Option | None]:
        """Return the best option, or one over a single path and the split that has more regret.

        Each of a split's links may carry less than expected. It also moves connections from one
        path to others: if each of them is slow, and not a path that ends, it carries less than
        planned; all connections on one path carry what they did when it was measured. A split that
        is clearly cheaper need only be as fast. A relay that would not be chosen over the direct
        path displaces none.
        """
        alone = [one for one in options if len(one.allocation.flows) == 1]
        if best is None or best in alone or not alone:
            return best, None
        rival, margin = min(alone, key=lambda one: one.value_usd), SPLIT_GAIN
        if best.value_usd > rival.value_usd * (1 - SPLIT_GAIN):
            margin = -AS_FAST
        if worth(rival.values / best.values, margin, self.request.risk):
            return best, None
        if self.direct and rival.relays and not self.figures.gain(rival, self.direct).worth:
            return best, None
        return rival, best

    @cached_property
    def direct(self) -> Option | None:
        """The best plan over the direct path; None if it can't meet the limits."""
        return self.on_path(self.ends.direct)

    def fastest_direct(self) -> Option | None:
        """Return the fastest option over the direct path, whatever the limits."""
        found = best_on_path(self.ends, self.ends.direct, time_value_usd_per_h=inf)
        return self._option(found) if found else None

    # ---- single relays -----------------------------------------------------------------------

    @cached_property
    def single_relays(self) -> list[Option]:
        """The few best single relays, each carrying everything, best first."""
        if self.request.objective != "latency":
            # Where the fastest don't meet the limits, cheaper ones may.
            return self._options(self._best_ranked) or sorted(
                self._options(self.transfer.relays), key=lambda one: one.value_usd
            )
        rtt_ms = self.figures.path_rtt_ms
        relays = sorted(self.transfer.relays, key=lambda one: (rtt_ms(one.region), one.region))
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

    def fastest_relay(self) -> tuple[TransferPath, float]:
        """Return the relay of greatest rate with all its VMs, and its ratio to the direct rate.

        There are relays; of equals the cheapest comes first, then the nearest.
        """
        most, rtt_ms = float(self._relay_rates_gbps.max()), self.figures.relay_rtts_ms
        relay = min(
            (
                self.transfer.relays[at]
                for at in np.flatnonzero(self._relay_rates_gbps >= most).tolist()
            ),
            key=lambda r: (r.usd_per_gb, rtt_ms[r.region or 0], r.region),
        )
        direct_gbps = greatest_rate_gbps(self.transfer, self.transfer.direct)
        return relay, most / direct_gbps if direct_gbps else inf

    @cached_property
    def _relay_rates_gbps(self) -> Draws:
        """The rate of each relay of the problem with all its VMs: :func:`greatest_rate_gbps`."""
        src, dst, rows = self.ends.src, self.ends.dst, self.transfer.relays.rows
        into, out = rows["in_gbps"] * src.quota, rows["out_gbps"] * dst.quota
        caps_gbps = min(src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)
        forwarded = rows["vm_gbps"] * rows["quota"]
        least = np.minimum(np.minimum(into, out), np.minimum(forwarded, caps_gbps))
        return np.asarray(least)

    @cached_property
    def _best_ranked(self) -> list[TransferPath]:
        return self._ranked(DEFAULT_CANDIDATES)

    def _ranked(self, most: int) -> list[TransferPath]:
        """Return the best of the relays that carry what limits demand, best first.

        If cost alone counts, fees rank them, and speed only among equals; otherwise, time in steps
        of :data:`AS_FAST`, then fees. Among equals, the nearest comes first.
        """
        least = self.request.least_rate_gbps(self.figures.vm_start_s()) * (1 - EQUAL)
        able = np.flatnonzero(self._relay_rates_gbps >= least)
        if not len(able):
            return []
        rows, rates = self.transfer.relays.rows[able], self._relay_rates_gbps[able]
        fees, regions = rows["usd_per_gb"], rows["region"]
        rtts_ms = self.figures.relay_rtts_ms[regions]
        first = fees, -rates
        if self.request.hour_usd:
            times_s = BITS_PER_BYTE * self.request.volume_gb / rates + ramp_up_s(rtts_ms)
            first = ((1 - times_s.min() / times_s) / AS_FAST).astype(int), fees
        order = np.lexsort([regions, rtts_ms, *first[::-1]])
        return [self.transfer.relays[k] for k in able[order[:most]].tolist()]

    def _options(self, relays: Iterable[TransferPath]) -> list[Option]:
        return [option for relay in relays if (option := self.on_path(relay))]

    # ---- solving -----------------------------------------------------------------------------

    def _option(self, allocation: Allocation) -> Option:
        return Option(self.figures, allocation, self.request.hour_usd)

    def on_path(self, path: TransferPath | None) -> Option | None:
        """Return the best plan over one path, if any meets the limits."""
        if path is None:
            return None
        if path.region not in self._relay_options:
            problem = replace(self.ends, lead_s=self.figures.lead_s([path.region]))
            self._relay_options[path.region] = self._best(
                lambda rate: best_on_path(
                    problem,
                    path,
                    time_value_usd_per_h=self.request.hour_usd,
                    at_least_gbps=rate,
                    budget_usd=self.request.budget_usd or inf,
                )
            )
        return self._relay_options[path.region]

    def _best_anywhere(
        self, relays: Iterable[TransferPath], alone: Sequence[Option]
    ) -> Option | None:
        """Return the best plan over the direct path and some relays.

        More than :data:`~planner.transfer.problem.MOST_PATHS` only where each brings
        :data:`PATH_GAIN`, or where fewer do not meet the limits. None where no number of paths
        brings :data:`SPLIT_GAIN` over one alone.
        """
        transfer = self.transfer
        if relays is not transfer.relays:
            transfer = replace(transfer, relays=Relays.of(relays))
            transfer = replace(transfer, lead_s=self.figures.lead_s(transfer.regions))
        free = self._best_split(replace(transfer, most_paths=inf, least_part=0.0))
        if free is None and self.request.deadline_s is not None:
            # Of many paths, one may be too slow to get up to speed.
            return self._best_split(transfer)
        if free is None or is_simple(transfer, free.allocation):
            return free
        rival, least = min(alone, key=lambda one: one.value_usd, default=None), 1 - SPLIT_GAIN
        if (
            rival
            and free.value_usd >= rival.value_usd * least
            and free.allocation.cost_usd >= rival.allocation.cost_usd * least
        ):
            return None
        best = None
        for most in range(MOST_PATHS, max(MOST_PATHS, len(free.allocation.flows)) + 1):
            more = self._best_split(replace(transfer, most_paths=most))
            if more and (best is None or more.value_usd <= best.value_usd * (1 - PATH_GAIN)):
                best = more
            if best and (best is not more or free.value_usd > best.value_usd * (1 - PATH_GAIN)):
                break
        return best or free

    def _best_split(self, transfer: TransferProblem) -> Option | None:
        """Return the best plan of a transfer with other relays or limits to paths."""
        hour_usd, budget_usd = self.request.hour_usd, self.request.budget_usd or inf

        def at_rate(rate: float) -> Allocation | None:
            def quickest(at_fees: TransferProblem) -> Allocation | None:
                best = fastest(at_fees, budget_usd=budget_usd)
                return best if best and best.rate_gbps >= rate * (1 - EQUAL) else None

            def optimum(at_fees: TransferProblem) -> Allocation | None:
                if hour_usd == inf:
                    return quickest(at_fees)
                return least_value(
                    at_fees,
                    time_value_usd_per_h=hour_usd,
                    at_least_gbps=rate,
                    budget_usd=budget_usd,
                )

            return self.figures.fees.best(
                transfer,
                lambda at_fees: self._with_whole_connections(at_fees, rate, optimum, quickest),
                lambda found: (self._option(found).value_usd, found.cost_usd),
                budget_usd,
            )

        return self._best(at_rate)

    def _with_whole_connections(
        self,
        transfer: TransferProblem,
        at_least_gbps: float,
        *solvers: Callable[[TransferProblem], Allocation | None],
    ) -> Allocation | None:
        """Return the first solution whose paths' connections, each rounded up, the source may open.

        Where they are more, all divisions of few connections are compared; of many, those in which
        some are rounded down. Where none meets the limits, each solver is asked again with as many
        less.
        """
        begun, vms = transfer, transfer.src.quota
        # Each VM that there may be has its part of what the sites of both ends allow.
        if (share := self._opened_by(vms) / self.request.connections) < vms:
            begun = transfer.with_connections(share / vms)
        for solve in solvers:
            problem, found = begun, solve(begun)
            if found is None:
                return None
            for _ in range(ROUNDS):
                excess, opens = self._excess(found)
                if excess <= 0:
                    return found
                few, each = opens <= MOST_DIVIDED, self.request.connections
                if few:
                    limits = at_least_gbps, self.request.budget_usd or inf
                    of = self._opened_by, self.request.hour_usd, *limits
                    problems = divisions(transfer, each, *of)
                else:
                    counts = self.figures.connections(found)
                    problems = roundings(transfer, found, counts, excess, each)
                whole = (one for one in map(solve, problems) if one and self._excess(one)[0] <= 0)
                best = min(whole, key=lambda one: self._option(one).value_usd, default=None)
                if best or few:
                    return best
                problem = problem.with_connections(1 - excess / opens)
                if (found := solve(problem)) is None:
                    break
        return None

    def _excess(self, found: Allocation) -> tuple[int, int]:
        """Return by how much an allocation's connections exceed those opened, and these."""
        opens = self._opened_by(found.src_vms)
        return sum(self.figures.connections(found).values()) - opens, opens

    def _opened_by(self, vms: int) -> int:
        """Return the connections that VMs of the source open, as far as the ends' sites allow."""
        return int(self.figures.opens(vms, self.figures.ends))

    def _best(self, solve: Solver) -> Option | None:
        """Solve, allowing for the VM start and ramp-up that paths need before a deadline."""
        lead_s = self.figures.vm_start_s()
        for _ in range(4):
            rate = self.request.least_rate_gbps(lead_s)
            allocation = solve(rate) if rate < inf else None
            if allocation is None:
                return None
            option = self._option(allocation)
            if self.request.deadline_s is None or option.lead_s <= lead_s:
                return option
            lead_s = option.lead_s
        return option if option.duration_s <= (self.request.deadline_s or inf) else None
