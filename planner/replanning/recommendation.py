"""Whether to keep a plan in progress or change it, for what is left and on today's estimates.

Changing is not free: VMs that start are paid while they do, connections on new paths get up to
speed again, and until the new VMs have started the old plan continues. VMs that run already have
been paid for and need not start. Both plans are projected by the same calculation
(:mod:`planner.replanning.workload`) on the same network.

Noise must not flip plans. A change is recommended only if it gains the margin at the bounds: the
old plan as fast as its links can be, the new one as slow as its links can be. While the bounds
hold, a recommended change truly gains the margin, so changing back cannot; each further change must
gain another margin on top.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from operator import sub

from planner.broadcast.recommendation import recommend_broadcast
from planner.model.answer import Answer, Bounded, Cost
from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import with_running
from planner.model.units import S_PER_H, duration_text, gbps_text
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.replanning.plan import ChangeCost, Continuation, Replan, ReplanVerdict
from planner.replanning.progress import AnyRequest, InProgress, in_progress, without_limits
from planner.replanning.request import ReplanRequest
from planner.replanning.workload import AtBounds, Workload, workload_of
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


def replan(request: ReplanRequest, network: Network, prices: Prices) -> Replan:
    """Return whether to keep a plan in progress or to change it, and what that gains.

    Parameters
    ----------
    request : ReplanRequest
    network, prices
        As they are now.

    Raises
    ------
    InputError
        If the document is no plan, a figure is out of range, or nothing is left.
    DataError
        If nothing is known of a link of the plan any more.
    """
    progress = in_progress(request)
    for region in progress.workload.regions:
        network.check_region(region, "plan", names="names a region that")
    network = with_running(network, progress.workload.vms)
    return _Replanner(progress, network, prices, request.changes).answer()


@dataclass(frozen=True)
class Projection:
    """How long a plan still takes and costs, from now to the end."""

    times_s: AtBounds
    costs: tuple[Cost, Cost, Cost]

    @property
    def totals_usd(self) -> AtBounds:
        """Its costs at the bounds."""
        fast, expected, slow = self.costs
        return fast.total, expected.total, slow.total

    def values(self, hour_usd: float) -> AtBounds:
        """Return cost plus the value of time in USD, or the times in s where time alone counts."""
        if hour_usd == inf:
            return self.times_s
        fast, expected, slow = (
            usd + hour_usd * time_s / S_PER_H
            for time_s, usd in zip(self.times_s, self.totals_usd, strict=True)
        )
        return fast, expected, slow

    def shown(self) -> Continuation:
        """Return it in the form of the answer."""
        fast, expected, slow = self.times_s
        return Continuation(expected, fast, slow, self.costs[1])


def _against(
    compared: Callable[[float, float], float], kept: AtBounds, changed: AtBounds
) -> Bounded:
    """Compare keeping with changing: as expected, and at the bounds against and for changing."""
    return Bounded(
        compared(kept[1], changed[1]), compared(kept[0], changed[2]), compared(kept[2], changed[0])
    )


def _ratio(over: float, of: float) -> float:
    return over / of if of > 0 and min(over, of) < inf else 1.0


class _Replanner:
    """Decides one plan in progress."""

    def __init__(
        self, progress: InProgress, network: Network, prices: Prices, changes: int
    ) -> None:
        self.progress, self.network, self.prices = progress, network, prices
        self.request = progress.request
        self.needed = 1 + self.request.margin * (1 + changes)
        self.warnings: list[str] = []
        connections = self.request.connections
        alone = isinstance(self.request, TransferRequest)
        self.pair_connections = connections if alone else min(connections, PAIR_CONNECTIONS)
        self.keep = self._kept(progress.workload)

    # ---- projections -------------------------------------------------------------------------

    def _transfer_s(self, workload: Workload) -> AtBounds:
        return workload.transfer_s(self.network, self.request.connections, self.pair_connections)

    def _kept(self, workload: Workload) -> Projection:
        """Project keeping the plan: its VMs run, and its connections are up to speed."""
        times_s = self._transfer_s(workload)
        egress_usd, usd_per_h = workload.egress_usd(self.prices), workload.vm_usd_per_h(self.prices)
        fast, expected, slow = (Cost.of(egress_usd, usd_per_h * s / S_PER_H) for s in times_s)
        return Projection(times_s, (fast, expected, slow))

    def _change(self, new: Workload) -> tuple[Projection, ChangeCost] | None:
        """Project changing the plan; None if the old plan ends before the new VMs have started.

        Until they have, the old plan continues at its expected rate.
        """
        prices, old = self.prices, self.progress.workload
        more = {r: new.vms.get(r, 0) - old.vms.get(r, 0) for r in [*old.vms, *new.vms]}
        start = {region: n for region, n in more.items() if n > 0}
        stop = {region: -n for region, n in more.items() if n < 0}
        wait_s, keep_s = self.request.vm_start_s if start else 0.0, self.keep.times_s[1]
        moved = wait_s / keep_s if keep_s > 0 else 1.0
        if moved >= 1:
            return None
        ramp_s = new.ramp_up_s(self.network, old.routes)
        hourly_old, hourly_new = old.vm_usd_per_h(prices), new.vm_usd_per_h(prices)
        starting = sum(n * prices.vm_usd_per_h(region) for region, n in start.items())
        egress_usd = moved * old.egress_usd(prices) + (1 - moved) * new.egress_usd(prices)
        rest_s = [(1 - moved) * time_s + ramp_s for time_s in self._transfer_s(new)]
        fast_s, expected_s, slow_s = (wait_s + time_s for time_s in rest_s)
        waiting_usd = (hourly_old + starting) * wait_s / S_PER_H
        fast, expected, slow = (
            Cost.of(egress_usd, waiting_usd + hourly_new * time_s / S_PER_H) for time_s in rest_s
        )
        projection = Projection((fast_s, expected_s, slow_s), (fast, expected, slow))
        usd = (starting * wait_s + hourly_new * ramp_s) / S_PER_H
        return projection, ChangeCost(start, stop, wait_s, ramp_s, usd)

    # ---- other plans -------------------------------------------------------------------------

    def _others(self) -> list[tuple[Answer, Workload]]:
        """Return other plans for what is left: the best, and the best on VMs already running."""
        asked = self._limits_left()
        running = self.progress.workload.vms
        on_running = replace(
            asked,
            vms_in={region: max(1, n) for region, n in running.items()},
            avoid=[region for region in self.network.sites if region not in running],
        )
        known = {"any", "one", "none", *running}
        if isinstance(on_running, TransferRequest) and on_running.relays not in known:
            on_running = replace(on_running, relays="any")
        answers = (self._in_time(request) for request in (asked, on_running))
        return [(answer, self._course(answer)) for answer in answers if answer]

    def _in_time(self, request: AnyRequest) -> Answer | None:
        """Return a plan that meets the deadline, the change to it included, if any does."""
        answer = self._recommended(request)
        left_s = request.deadline_s
        for _ in range(DEADLINE_ROUNDS):
            changed = self._change(self._course(answer)) if answer else None
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
        request = self.request
        if request.deadline_s is not None:
            left_s = request.deadline_s - self.progress.elapsed_s
            if left_s <= 0:
                self.warnings.append("the deadline has passed; the rest is planned for least time")
                return without_limits(request)
            request = replace(request, deadline_s=left_s)
        if isinstance(request, TransferRequest) and request.budget_usd is not None:
            left_usd = request.budget_usd - self._spent_usd()
            if left_usd <= 0:
                self.warnings.append("the budget is spent; the rest is planned without it")
                left_usd = inf
            request = replace(request, budget_usd=left_usd if left_usd < inf else None)
        return request

    def _spent_usd(self) -> float:
        progress, prices = self.progress, self.prices
        egress_usd = progress.started.egress_usd(prices) - progress.workload.egress_usd(prices)
        hours = (progress.elapsed_s + self.request.vm_start_s) / S_PER_H
        return egress_usd + progress.workload.vm_usd_per_h(prices) * hours

    def _recommended(self, request: AnyRequest) -> Answer | None:
        try:
            return _recommend(request, self.network, self.prices)
        except InfeasibleError as fault:
            note = f"the limits can no longer be met: {fault}"
            if request.forbidden == self.request.forbidden and note not in self.warnings:
                self.warnings.append(note)
        except DataError:
            return None
        try:
            return _recommend(without_limits(request), self.network, self.prices)
        except (InfeasibleError, DataError):
            return None

    def _course(self, answer: Answer) -> Workload:
        left_gb = self.progress.left_gb
        if isinstance(self.request, ShuffleRequest):
            left_gb = self.request.demands_gb
        return workload_of(answer.model_dump(), left_gb)

    # ---- decision ----------------------------------------------------------------------------

    def answer(self) -> Replan:
        progress, hour_usd = self.progress, self.progress.hour_usd
        best: tuple[Answer, Projection, ChangeCost] | None = None
        for other, workload in self._others():
            if workload.is_like(progress.workload):
                continue
            changed = self._change(workload)
            if changed is None:
                continue
            change, cost = changed
            if best is None or change.values(hour_usd)[1] < best[1].values(hour_usd)[1]:
                best = other, change, cost
        self._note_surprise()
        verdict: ReplanVerdict = "keep"
        gain = saving_s = saving_usd = None
        if best:
            change = best[1]
            gain = _against(_ratio, self.keep.values(hour_usd), change.values(hour_usd))
            saving_s = _against(sub, self.keep.times_s, change.times_s)
            saving_usd = _against(sub, self.keep.totals_usd, change.totals_usd)
            if self._worth(change, gain, saving_s, saving_usd):
                verdict = "change"
        snapshot = progress.plan["snapshot"]
        return Replan(
            plan_id=str(progress.plan["plan_id"]),
            snapshot=self.network.snapshot,
            planned_on=str(snapshot["id"] if isinstance(snapshot, Mapping) else snapshot.id),
            kind=progress.kind,
            verdict=verdict,
            reason=self._reason(verdict, best[1] if best else None, gain),
            elapsed_s=progress.elapsed_s,
            remaining_gb=progress.remaining_gb,
            observed_gbps=progress.observed_gbps,
            planned_gbps=progress.planned_gbps if progress.elapsed_s > 0 else None,
            keep=self.keep.shown(),
            change=best[1].shown() if best else None,
            saving_s=saving_s,
            saving_usd=saving_usd,
            gain=gain,
            needed_gain=self.needed,
            cost_of_change=best[2] if best else None,
            plan=best[0].model_dump("json") if best else None,
            warnings=tuple(self.warnings),
        )

    def _worth(
        self, change: Projection, gain: Bounded, saving_s: Bounded, saving_usd: Bounded
    ) -> bool:
        if self.request.deadline_s is not None:
            left_s = self.request.deadline_s - self.progress.elapsed_s
            kept, changed = self.keep.times_s, change.times_s
            # One must be certain: that the old plan is late, or that the new one is not.
            if kept[0] > left_s >= changed[1] or kept[1] > left_s >= changed[2]:
                return True
            if kept[1] <= left_s < changed[1]:
                return False
        if gain.low < self.needed:
            return False
        return saving_s.low >= WORTH_S or (
            self.progress.hour_usd < inf and saving_usd.low >= WORTH_USD
        )

    def _note_surprise(self) -> None:
        observed, plan = self.progress.observed_gbps, self.progress.plan
        if observed is None:
            return
        low = float(plan.get("throughput_gbps_low") or self.progress.planned_gbps)
        high = float(plan.get("throughput_gbps_high") or self.progress.planned_gbps)
        planned = gbps_text(self.progress.planned_gbps)
        if not low * SURPRISE <= observed <= high / SURPRISE:
            src, dst = self._tightest_link()
            self.warnings.append(
                f"the observed rate is {gbps_text(observed)} Gbit/s and the planned one {planned}; "
                f"measure {src} -> {dst} to base the decision on current rates"
            )
        now = 8 * self.progress.remaining_gb / max(self.keep.times_s[0], 1e-12)
        if self.progress.kind != "shuffle" and observed * SURPRISE > now:
            self.warnings.append(
                f"today's estimates allow the plan at most {gbps_text(now)} Gbit/s, but it has "
                f"moved data at {gbps_text(observed)}; if it still does, keep it and measure again"
            )

    def _tightest_link(self) -> tuple[str, str]:
        links = self.progress.workload.links_gb

        def need_s(link: tuple[str, str]) -> float:
            rate = self.network.link(*link).rate_gbps(self.pair_connections)
            return links[link] / rate if rate > 0 else inf

        return max(links, key=need_s)

    def _reason(
        self, verdict: ReplanVerdict, change: Projection | None, gain: Bounded | None
    ) -> str:
        if change is None or gain is None:
            return "No other plan is better on today's estimates."
        saved_s = self.keep.times_s[1] - change.times_s[1]
        saved_usd = self.keep.costs[1].total - change.costs[1].total
        brings = (
            f"ends {duration_text(abs(saved_s))} {'sooner' if saved_s >= 0 else 'later'} and costs "
            f"{abs(saved_usd):.2f} USD {'less' if saved_usd >= 0 else 'more'}"
        )
        if verdict == "change":
            if gain.low < self.needed:
                return f"Changing meets the deadline, which the old plan misses; it {brings}."
            return (
                f"Changing {brings}, the cost of changing included: {gain.expected:.2f}x better, "
                f"at least {gain.low:.2f}x."
            )
        if gain.expected <= 1:
            return f"The best other plan {brings}, the cost of changing included."
        if gain.low >= self.needed:
            return f"The best other plan {brings}: too little to justify a change."
        return (
            f"Changing {brings}, but is certain to be only {gain.low:.2f}x better, below the "
            f"{self.needed:.2f}x that keeps noise from flipping plans."
        )


def _recommend(request: AnyRequest, network: Network, prices: Prices) -> Answer:
    if isinstance(request, TransferRequest):
        return recommend(request, network, prices, begins=False)
    if isinstance(request, ShuffleRequest):
        return recommend_shuffle(request, network, prices)
    return recommend_broadcast(request, network, prices)
