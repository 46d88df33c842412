"""Liveness probing of a fleet: each source at its own pace, and again at once where in doubt.

An outage is noticed within one interval of its beginning: each source probes somewhat more often
than that, by the time that the confirming probes take.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from planner.model.errors import StoreError
from planner.model.link_states import Pair
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.sessions import Sessions
from probes.liveness.link_health import LivenessProbe, suspicious
from probes.liveness.probing import LivenessProber, ProbeParameters
from relayd.store import Store
from relayd.store.campaigns import Spending
from relayd.times import utc_date
from relayd.watch.links import WatchedLinks
from relayd.watch.storage import StoreThread

OVERHEAD_S = 0.15
"""Initial estimate of the time that a probe takes on top of the pings themselves."""
LEAST_SHARE = 0.3
"""The period is at least this share of the interval, however long confirming takes."""
LEARNING = 0.2
MOST_REPEATS = 8
JITTER = 0.1


def period_s(
    interval_s: float,
    parameters: ProbeParameters,
    confirmations: int,
    overhead_s: float = OVERHEAD_S,
) -> float:
    """Return the time between probes with which an outage is confirmed within an interval."""
    sure_s = confirmations * (parameters.probe_s + overhead_s)
    return max(interval_s * LEAST_SHARE, interval_s - sure_s)


class LivenessBudget:
    """Today's budget for liveness probes.

    A block is reserved in the store before any of it is spent: a crash can lose the rest of a
    block but never spend it twice, and the store is asked once a block rather than once a probe.
    """

    def __init__(self, storage: StoreThread, daily_budget_usd: float, block_usd: float) -> None:
        self._storage = storage
        self._budget_usd, self._block_usd = daily_budget_usd, block_usd
        self._day = self._refused_day = ""
        self._reserved_usd = self._spent_usd = self._sent_gb = 0.0
        # Sources probe at the same time, and must not each reserve a block.
        self._lock = asyncio.Lock()

    @property
    def empty(self) -> bool:
        """True when today's budget is used up."""
        return self._refused_day == utc_date(time.time())

    async def spend(self, usd: float, sent_gb: float) -> str:
        """Spend on a probe that is about to be sent; return the day, "" if its budget is used up.

        Raises StoreError if the store can't reserve more just now.
        """
        async with self._lock:
            today = utc_date(time.time())
            if today != self._day or self._spent_usd + usd > self._reserved_usd:
                await self.settle()
                if self.empty or not await self._reserve(today, usd):
                    self._refused_day = today
                    return ""
            self._spent_usd += usd
            self._sent_gb += sent_gb
            return today

    async def give_back(self, day: str, usd: float, sent_gb: float) -> None:
        """Take back the money for a probe that could not be sent, unless its day is over."""
        async with self._lock:
            if day == self._day:
                self._spent_usd = max(0.0, self._spent_usd - usd)
                self._sent_gb = max(0.0, self._sent_gb - sent_gb)

    async def _reserve(self, today: str, usd: float) -> bool:
        def reserved(store: Store, amount: float) -> bool:
            spending = Spending(store.database)
            return spending.reserve(today, "liveness", amount, self._budget_usd)

        for amount in (max(self._block_usd, usd), usd):
            if await self._storage.do(partial(reserved, amount=amount)):
                self._day, self._reserved_usd = today, amount
                return True
        return False

    async def settle(self) -> None:
        """Return the unspent part of the reservation."""
        if not self._day:
            return
        day, figures = self._day, (self._reserved_usd, self._spent_usd, self._sent_gb)
        self._day, self._reserved_usd, self._spent_usd, self._sent_gb = "", 0.0, 0.0, 0.0
        await self._storage.do(
            lambda store: Spending(store.database).settle(day, "liveness", *figures)
        )


@dataclass
class LivenessMonitor:
    """Probes the watched links from each of their source regions."""

    # Not shared with a campaign: ending leftovers must not end a campaign's probes
    sessions: Sessions
    links: WatchedLinks
    budget: LivenessBudget
    parameters: ProbeParameters
    interval_s: float  # within which an outage is to be noticed
    least_period_s: float  # shortest period that the budget allows
    # Pair of regions to the price of a probe, the reply included
    usd_per_probe: Mapping[Pair, float]
    on_probed: Callable[[], Awaitable[None]]  # awaited after each source's probes
    on_note: Callable[[str], None] = lambda _: None
    loaded: Callable[[], bool] = lambda: False
    unreachable: dict[str, ProbeError] = field(default_factory=dict)
    last_probe_s: float = 0.0
    overhead_s: float = OVERHEAD_S

    def __post_init__(self) -> None:
        self._prober = LivenessProber(self.sessions, self.parameters, self._usual_ms)
        self._hosts: dict[str, list[str]] = {}
        self._noted_day = ""
        for host in self.sessions.fleet:
            self._hosts.setdefault(host.region, []).append(host.name)
        self._random = random.Random()  # noqa: S311 - spreads starts, keeps no secret

    @property
    def period_s(self) -> float:
        """Time between the probes of one source."""
        confirmations = self.links.policy.confirmations
        every_s = period_s(self.interval_s, self.parameters, confirmations, self.overhead_s)
        return max(self.least_period_s, every_s)

    @property
    def noticed_within_s(self) -> float:
        """Longest time until an outage is noticed, at the pace at which hosts answer now."""
        probe_s = self.parameters.probe_s + self.overhead_s
        return self.period_s + self.links.policy.confirmations * probe_s

    def _usual_ms(self, src: str, dst: str) -> float:
        fleet = self.sessions.fleet
        return self.links.usual_ms.get((fleet[src].region, fleet[dst].region), 0.0)

    async def run(self) -> None:
        """Probe until cancelled."""
        sources = dict.fromkeys(src for src, _ in self.links.healths)
        async with asyncio.TaskGroup() as group:
            for region in sources:
                group.create_task(self._watch(region))

    async def _watch(self, region: str) -> None:
        # Sources begin at different times, so that they do not all probe one region at once.
        await asyncio.sleep(self._random.uniform(0, self.period_s / 2))
        while True:
            began_s = time.monotonic()
            try:
                await self._round(region)
            except StoreError as error:
                self.on_note(f"{error} Liveness probing waits.")
            due_s = began_s + self.period_s * self._random.uniform(1 - JITTER, 1)
            await asyncio.sleep(max(0.05, due_s - time.monotonic()))

    async def _round(self, region: str) -> None:
        """Probe all neighbours, and repeat at once where one probe does not settle it."""
        targets = [dst for src, dst in self.links.healths if src == region]
        for number in range(1 + MOST_REPEATS):
            results = await self._probe(region, targets)
            if results is None:
                break
            again = []
            for dst, probe in results.items():
                health = self.links.observed((region, dst), probe, loaded=self.loaded())
                if suspicious(health, probe, self.links.policy):
                    again.append(dst)
                if dst in self.unreachable and (dst, region) in self.links.healths:
                    # A probe needs both directions: it also shows the silent host's link.
                    self.links.observed((dst, region), probe, loaded=self.loaded())
            if number == 0 or not again or self.links.changed:
                await self.on_probed()
            targets = [dst for dst in again if (region, dst) in self.links.answered]
            if not targets:
                break

    async def _probe(
        self, region: str, targets: Collection[str]
    ) -> dict[str, LivenessProbe] | None:
        """Probe from a region's first usable host; None without one, or without budget."""
        errors = []
        for host in self._hosts[region]:
            names = {self._hosts[dst][0]: dst for dst in targets}
            # Only where an outage is confirmed already: confirming one must be quick.
            silent = frozenset(
                name
                for name, dst in names.items()
                if self.links.healths[region, dst].condition == "down"
            )
            cost = self._cost(region, host, names, silent)
            if not (day := await self.budget.spend(*cost)):
                if self._noted_day != (today := utc_date(time.time())):
                    self._noted_day = today
                    self.on_note(
                        "The budget of today is used up: nothing is sent until midnight UTC."
                    )
                return None
            began_s, reached = time.monotonic(), False
            try:
                await self.sessions.session(host)
                reached = True
                results = await self._prober.probe(host, list(names), silent)
            except ProbeError as error:
                if not reached:
                    await self.budget.give_back(day, *cost)
                if error.of_the_host:
                    self.sessions.forget(host)
                errors.append(error)
                continue
            self.last_probe_s = time.time()
            if not silent:
                lost = any(probe.received < probe.sent for probe in results.values())
                quick_s = self.parameters.probe_s - (0.0 if lost else self.parameters.wait_s)
                extra_s = max(OVERHEAD_S, time.monotonic() - began_s - quick_s)
                self.overhead_s += LEARNING * (extra_s - self.overhead_s)
            if self.unreachable.pop(region, None) is not None:
                self.on_note(f"{region} can be used again.")
            return {names[name]: probe for name, probe in results.items()}
        if region not in self.unreachable:
            self.on_note(f"{errors[-1]} Its links are judged by the probes of others.")
        self.unreachable[region] = errors[-1]
        return None

    def _cost(
        self, region: str, host: str, names: Mapping[str, str], silent: Collection[str]
    ) -> tuple[float, float]:
        """Return the most that probes from a host and their answers take, in USD and GB."""
        gb = {name: self._prober.most_gb(host, name, silent=name in silent) for name in names}
        each_usd = {name: self.usd_per_probe[region, dst] for name, dst in names.items()}
        usd = sum(gb[name] / self.parameters.probe_gb * each_usd[name] for name in names)
        return usd, sum(gb.values())


def region_pairs(fleet: Fleet, pairs: Collection[tuple[str, str]]) -> list[Pair]:
    """Return the directed pairs of regions to watch: those of host pairs, or all."""
    region_of = fleet.region_of
    if pairs:
        wanted = ((region_of[src], region_of[dst]) for src, dst in pairs)
        return list(dict.fromkeys(pair for pair in wanted if pair[0] != pair[1]))
    regions = list(dict.fromkeys(region_of.values()))
    return [(src, dst) for src in regions for dst in regions if src != dst]
