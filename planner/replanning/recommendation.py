"""Decides whether to keep a plan in progress, for the remaining volume on today's estimates.

Changing is not free: starting VMs costs money, connections on new paths get up to speed again, and
until the new VMs have started the old plan continues. VMs that already run need not start and pay
nothing for it. Both plans are projected by the same calculation
(:class:`.progress.Workload`) on the same network.

Noise must not flip plans. A change is recommended only if it gains the margin at the bounds: the
old plan as fast as its links can be, the new one as slow as its links can be. While the bounds
hold, a recommended change truly gains the margin, so changing back cannot; each further change must
gain another margin on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from operator import sub
from typing import NamedTuple

from planner.broadcast.recommendation import recommend_broadcast
from planner.model.achieved import RATE_OVER_S, after_achieving
from planner.model.answer import Bounded, Cost, Recommendation
from planner.model.calibration import with_links_at
from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices, fee_lines
from planner.model.quotas.sites import with_running
from planner.model.units import S_PER_H, duration_text, gbps_text, rate_text, usd_text
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.replanning.causes import OtherTransfer, cause_of
from planner.replanning.plan import ChangeCost, Continuation, Replan, ReplanVerdict
from planner.replanning.progress import AnyRequest, InProgress, Workload, without_limits
from planner.replanning.request import ReplanRequest
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

# A change that saves less is not worth making.
WORTH_S = 5.0
WORTH_USD = 0.05
# An observed rate this far outside the planned one means that the estimates are out of date.
SURPRISE = 0.8
# Attempts to leave room before a deadline for starting VMs and getting up to speed.
DEADLINE_ROUNDS = 4
OVERSHOOT = 1.2


def replan(
    request: ReplanRequest, network: Network, prices: Prices, others: Sequence[OtherTransfer] = ()
) -> Replan:
    """Return the advice to keep a plan in progress or to change it, with the gain.

    Raises InputError if the document is no plan, a figure is out of range, or nothing is left;
    DataError if nothing is known of a link of the plan any more.

    Parameters
    ----------
    network, prices
        As they are now.
    others : sequence of OtherTransfer
        That the network's VMs carry besides.
    """
    progress = InProgress(request)
    for region in progress.workload.regions:
        network.check_region(region, "plan", names="names a region that")
    network = with_running(network, progress.workload.vms)
    cause = cause_of(request, progress, network, others)
    return replace(_Replanner(progress, network, prices, request.changes).answer(), cause=cause)


class Projection(NamedTuple):
    """Remaining time and cost of a plan, from now to the end: at best, expected, at worst."""

    times_s: list[float]
    costs: list[Cost]

    def values(self, hour_usd: float) -> list[float]:
        """Return cost plus the value of time in USD, or the times in s where time alone counts."""
        if hour_usd == inf:
            return self.times_s
        both = zip(self.times_s, self.costs, strict=True)
        return [cost.total + hour_usd * time_s / S_PER_H for time_s, cost in both]

    def shown(self) -> Continuation:
        """Return it in the form of the answer."""
        fast, expected, slow = self.times_s
        return Continuation(expected, fast, slow, self.costs[1])


def _against(
    compared: Callable[[float, float], float], kept: list[float], changed: list[float]
) -> Bounded:
    """Compare keeping with changing: as expected, and at the bounds against and for changing."""
    return Bounded(*(compared(kept[i], changed[2 - i]) for i in (1, 0, 2)))


def _ratio(over: float, of: float) -> float:
    return over / of if of > 0 and min(over, of) < inf else 1.0


class _Replanner:
    """Decides one plan in progress."""

    def __init__(
        self, progress: InProgress, network: Network, prices: Prices, changes: int
    ) -> None:
        self.progress, self.network, self.prices = progress, network, prices
        self.request, self.old = progress.request, progress.workload
        self.needed = 1 + self.request.margin * (1 + changes)
        self.warnings: list[str] = []
        connections = self.request.connections
        alone = isinstance(self.request, TransferRequest)
        self.pair_connections = connections if alone else min(connections, PAIR_CONNECTIONS)
        # If the plan is kept, its VMs run and its connections are up to speed.
        self.share, times_s = self._after_achieving(self._transfer_s(self.old))
        egress_usd, usd_per_h = self.old.egress_usd(prices), self.old.vm_usd_per_h(prices)
        costs = [Cost.of(egress_usd, usd_per_h * time_s / S_PER_H) for time_s in times_s]
        self.keep = Projection(times_s, costs)

    def _after_achieving(self, times_s: list[float]) -> tuple[float, list[float]]:
        """Return the rate that the rest has over that by estimates, and the times of keeping.

        The plan's links count at that rate from here on, for other plans, too.
        """
        whole_s = self._transfer_s(self.progress.started)[1]
        if not 0 < times_s[1] < inf or not 0 < whole_s < inf:
            return 1.0, times_s
        share, over_s = self._achieved_share(whole_s)
        by_estimates = Bounded(*(times_s[1] / times_s[at] for at in (1, 2, 0)))
        rate = after_achieving(by_estimates, share, over_s)
        if rate is by_estimates:
            return 1.0, times_s
        self.network = with_links_at(rate, self.network, self.old.links_gb)
        found = [times_s[1] / bound for bound in (rate.high, rate.expected, rate.low)]
        return rate.expected, found

    def _achieved_share(self, whole_s: float) -> tuple[float, float]:
        """Return the ratio of its rate to today's estimate, and the time that the rate is of.

        All its volume takes `whole_s` by today's estimates. A mean rate between that of the plan
        and today's is a change on the way, which today's estimates know: then they hold.
        """
        of = self.progress
        today_gbps = of.planned_gbps * of.planned_s / whole_s
        if of.rate_gbps is not None:
            return of.rate_gbps / today_gbps, RATE_OVER_S
        steady_s = of.elapsed_s - of.started.ramp_up_s(self.network, frozenset())
        if steady_s <= 0 or not of.moved_gb:
            return 0.0, 0.0
        observed, known = 8 * of.moved_gb / steady_s, (of.planned_gbps, today_gbps)
        return observed / min(max(observed, min(known)), max(known)), steady_s

    def _transfer_s(self, workload: Workload) -> list[float]:
        of_vms = self.request.connections, self.pair_connections
        return workload.transfer_s(self.network, self.prices, *of_vms)

    def _change(self, new: Workload) -> tuple[Projection, ChangeCost] | None:
        """Project changing the plan; None if the old plan ends before the new VMs have started.

        Until they have, the old plan continues at its expected rate.
        """
        prices, old = self.prices, self.old
        more = {r: new.vms.get(r, 0) - old.vms.get(r, 0) for r in [*old.vms, *new.vms]}
        start = {region: n for region, n in more.items() if n > 0}
        stop = {region: -n for region, n in more.items() if n < 0}
        wait_s = self.request.starts_s(*(self.network.sites[region] for region in start))
        keep_s = self.keep.times_s[1]
        moved = wait_s / keep_s if keep_s > 0 else 1.0
        if moved >= 1:
            return None
        ramp_s, usd_per_h = new.ramp_up_s(self.network, old.routes), new.vm_usd_per_h(prices)
        starting = sum(n * prices.vm_usd_per_h(region) for region, n in start.items())
        egress_usd = moved * old.egress_usd(prices) + (1 - moved) * new.egress_usd(prices)
        fast_s, time_s, slow_s = self._transfer_s(new)
        # What holds the old plan below its estimates may be at its ends, and hold the new one, too.
        slow_s /= min(1.0, self.share)
        rest_s = [(1 - moved) * time_s + ramp_s for time_s in (fast_s, time_s, slow_s)]
        waiting_usd = (old.vm_usd_per_h(prices) + starting) * wait_s / S_PER_H
        costs = [Cost.of(egress_usd, waiting_usd + usd_per_h * s / S_PER_H) for s in rest_s]
        usd = (starting * wait_s + usd_per_h * ramp_s) / S_PER_H
        projection = Projection([wait_s + time_s for time_s in rest_s], costs)
        return projection, ChangeCost(start, stop, wait_s, ramp_s, usd)

    # ---- other plans -------------------------------------------------------------------------

    def _best_change(self) -> tuple[Recommendation, Projection, ChangeCost] | None:
        """Return the best other plan for the remaining volume: on any VMs, or on running ones."""
        asked, running = self._limits_left(), self.old.vms
        on_running = replace(
            asked,
            vms_in={region: max(1, n) for region, n in running.items()},
            avoid=[region for region in self.network.sites if region not in running],
            vms_running=True,
        )
        known = {"any", "one", "none", *running}
        if isinstance(on_running, TransferRequest) and on_running.relays not in known:
            on_running = replace(on_running, relays="any")
        found = []
        for answer in map(self._in_time, (asked, on_running)):
            workload = self._workload(answer) if answer else self.old
            changed = None if workload.is_like(self.old) else self._change(workload)
            if answer and changed:
                found.append((answer, *changed))
        hour_usd = self.request.hour_usd
        return min(found, key=lambda one: one[1].values(hour_usd)[1], default=None)

    def _in_time(self, request: AnyRequest) -> Recommendation | None:
        """Return a plan that meets the deadline, the change to it included, if any does."""
        answer = self._recommended(request)
        left_s = request.deadline_s
        for _ in range(DEADLINE_ROUNDS):
            changed = self._change(self._workload(answer)) if answer else None
            if changed is None or left_s is None or request.deadline_s is None:
                break
            late_s = changed[0].times_s[1] - left_s
            sooner_s = request.deadline_s - late_s * OVERSHOOT
            if late_s <= 0 or sooner_s <= 0:
                break
            request = replace(request, deadline_s=sooner_s)
            answer = self._recommended(request)
        return answer

    def _limits_left(self) -> AnyRequest:
        """Return the request with the rest of its deadline and budget."""
        request, progress = self.request, self.progress
        if request.deadline_s is not None:
            left_s = request.deadline_s - progress.since_asked_s
            if left_s <= 0:
                self.warnings.append("the deadline has passed; the rest is planned for least time")
                return without_limits(request)
            request = replace(request, deadline_s=left_s)
        if isinstance(request, TransferRequest) and request.budget_usd is not None:
            hours = progress.since_asked_s / S_PER_H
            spent_usd = progress.started.egress_usd(self.prices) - self.keep.costs[1].egress
            spent_usd += self.old.vm_usd_per_h(self.prices) * hours
            left_usd: float | None = request.budget_usd - spent_usd
            if request.budget_usd <= spent_usd:
                self.warnings.append("the budget is spent; the rest is planned without it")
                left_usd = None
            request = replace(request, budget_usd=left_usd)
        return request

    def _recommended(self, request: AnyRequest) -> Recommendation | None:
        """Return the answer to a request, or to one without its limits if they can't be met."""
        of = self.network, self.prices
        for asked in (request, without_limits(request)):
            try:
                if isinstance(asked, TransferRequest):
                    return recommend(asked, *of, begins=False)
                if isinstance(asked, ShuffleRequest):
                    return recommend_shuffle(asked, *of)
                return recommend_broadcast(asked, *of)
            except DataError:
                return None
            except InfeasibleError as fault:
                note = f"the limits can no longer be met: {fault}"
                own = asked is request and request.forbidden == self.request.forbidden
                if own and note not in self.warnings:
                    self.warnings.append(note)
        return None

    def _workload(self, answer: Recommendation) -> Workload:
        of_pairs = self.request.demands_gb if isinstance(self.request, ShuffleRequest) else None
        return Workload.of(answer.model_dump(), of_pairs or self.progress.remaining_gb)

    # ---- decision ----------------------------------------------------------------------------

    def answer(self) -> Replan:
        progress, hour_usd, keep = self.progress, self.request.hour_usd, self.keep
        other, change, cost = self._best_change() or (None, None, None)
        self._note_surprise()
        verdict: ReplanVerdict = "keep"
        reason = "No other plan is better on today's estimates."
        gain = saving_s = saving_usd = None
        if change:
            gain = _against(_ratio, keep.values(hour_usd), change.values(hour_usd))
            saving_s = _against(sub, keep.times_s, change.times_s)
            saving_usd = _against(sub, *([c.total for c in p.costs] for p in (keep, change)))
            if self._worth(change, gain, saving_s, saving_usd):
                verdict = "change"
            reason = self._reason(verdict, gain, saving_s, saving_usd)
        snapshot = progress.plan["snapshot"]
        hours_at = dict.fromkeys(self.old.vms, keep.times_s[1] / S_PER_H)
        fees = fee_lines(self.prices, self.old.links_gb, hours_at)
        return Replan(
            plan_id=str(progress.plan["plan_id"]),
            snapshot=self.network.snapshot,
            planned_on=str(snapshot["id"] if isinstance(snapshot, Mapping) else snapshot.id),
            kind=progress.kind,
            verdict=verdict,
            reason=reason,
            fees=other.fees if other and verdict == "change" else fees,
            elapsed_s=progress.elapsed_s,
            remaining_gb=progress.remaining_gb,
            observed_gbps=progress.observed_gbps,
            planned_gbps=progress.planned_gbps if progress.elapsed_s > 0 else None,
            keep=keep.shown(),
            change=change.shown() if change else None,
            saving_s=saving_s,
            saving_usd=saving_usd,
            gain=gain,
            needed_gain=self.needed,
            cost_of_change=cost,
            plan=other.model_dump("json") if other else None,
            warnings=tuple(self.warnings),
        )

    def _worth(
        self, change: Projection, gain: Bounded, saving_s: Bounded, saving_usd: Bounded
    ) -> bool:
        if self.request.deadline_s is not None:
            left_s = self.request.deadline_s - self.progress.since_asked_s
            kept, changed = self.keep.times_s, change.times_s
            # It must be certain that the old plan is late, or that the new one is not.
            if kept[0] > left_s >= changed[1] or kept[1] > left_s >= changed[2]:
                return True
            if kept[1] <= left_s < changed[1]:
                return False
        saves_usd = self.request.hour_usd < inf and saving_usd.low >= WORTH_USD
        return gain.low >= self.needed and (saving_s.low >= WORTH_S or saves_usd)

    def _note_surprise(self) -> None:
        observed, plan = self.progress.observed_gbps, self.progress.plan
        if observed is None:
            return
        expected = self.progress.planned_gbps
        low, high = (float(plan.get(f"throughput_gbps_{b}") or expected) for b in ("low", "high"))
        if not low * SURPRISE <= observed <= high / SURPRISE:
            needed_s = {}
            for link, gb in self.old.links_gb.items():
                rate = self.network.link(*link).rate_gbps(self.pair_connections)
                needed_s[" -> ".join(link)] = gb / rate if rate > 0 else inf
            slowest = max(needed_s, key=needed_s.__getitem__)
            self.warnings.append(
                f"the observed rate is {rate_text(observed)} and the planned one "
                f"{gbps_text(expected)}; the rest is expected at what it achieves. Measure "
                f"{slowest} to tell links from hosts"
            )
        now = 8 * self.progress.remaining_gb / max(self.keep.times_s[0], 1e-12)
        if self.progress.kind != "shuffle" and observed * SURPRISE > now:
            self.warnings.append(
                f"today's estimates allow the plan at most {rate_text(now)}, but it has "
                f"moved data at {gbps_text(observed)}; if it still does, keep it and measure again"
            )

    def _reason(
        self, verdict: ReplanVerdict, gain: Bounded, saving_s: Bounded, saving_usd: Bounded
    ) -> str:
        spans_s, sums_usd = (saving_s.expected, saving_s.low), (saving_usd.expected, saving_usd.low)
        brings, surely_brings = (
            f"ends {duration_text(abs(saved_s))} {'sooner' if saved_s >= 0 else 'later'} and costs "
            f"{usd_text(abs(saved_usd))} {'less' if saved_usd >= 0 else 'more'}"
            for saved_s, saved_usd in zip(spans_s, sums_usd, strict=True)
        )
        if verdict == "change":
            if gain.low < self.needed:
                return f"Changing meets the deadline, which the old plan misses; it {brings}."
            better = f"{gain.expected:.2f}x better, at least {gain.low:.2f}x"
            return f"Changing {brings}, the cost of changing included: {better}."
        if gain.expected <= 1:
            return f"The best other plan {brings}, the cost of changing included."
        if gain.low >= self.needed:
            return f"The best other plan {brings}: too little to justify a change."
        return (
            f"Changing {brings} if estimates are right, but at their worst it {surely_brings}: "
            "not enough to advise it."
        )
