"""Liveness probing of a fleet: each source at its own pace, and again at once where in doubt.

An outage is noticed within one interval of its beginning: each source probes somewhat more often
than that, by the time that the confirming probes take.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

from planner.model.catalogue import Catalogue
from planner.model.errors import StoreError
from planner.model.link_states import Pair
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.sessions import Sessions
from probes.liveness.link_health import LivenessProbe, suspicious
from probes.liveness.probing import LivenessProber, ProbeParameters, parameters_for
from relayd.campaigns.inputs import MeasuredFleet
from relayd.store import Store
from relayd.store.campaigns import Spending
from relayd.times import utc_date
from relayd.watch.links import WatchedLinks
from relayd.watch.settings import DAY_S, WatchOptions
from relayd.watch.storage import StoreThread

OVERHEAD_S = 0.15
"""Initial estimate of the time that a probe takes on top of the pings themselves."""
LEAST_SHARE = 0.3
"""The period is at least this share of the interval, however long confirming takes."""
LEARNING = 0.2
MOST_REPEATS = 8
JITTER = 0.1
BLOCK_S = 15.0
"""Liveness probes of this long are paid for in advance. A kill leaves that much spent: the store
does not know which of them were sent."""
LIVENESS_SHARE = 0.5
"""Share of the daily budget for liveness probes; beyond that they are sent less often."""
USUAL_FAR_MS = 300.0


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


class LivenessMonitor:
    """Probes the watched links from each of their source regions.

    The usual round-trip times of the links set how long a probe waits. Where probes would take over
    half of the daily budget, they are sent less often.

    Parameters
    ----------
    sessions : Sessions
        Not shared with a campaign: ending leftovers must not end a campaign's probes.
    on_probed : callable
        Awaited after each source's probes.
    loaded : callable
        Tells whether a campaign is filling queues now.
    """

    def __init__(
        self,
        sessions: Sessions,
        catalogue: Catalogue,
        options: WatchOptions,
        links: WatchedLinks,
        storage: StoreThread,
        *,
        on_probed: Callable[[], Awaitable[None]],
        on_note: Callable[[str], None],
        loaded: Callable[[], bool],
    ) -> None:
        self._sessions, self._links, self._interval_s = sessions, links, options.interval_s
        self._on_probed, self._on_note, self._loaded = on_probed, on_note, loaded
        longest_ms = max(links.usual_ms.values(), default=USUAL_FAR_MS)
        self._parameters = parameters_for(self._interval_s, longest_ms)
        self._prober = LivenessProber(sessions, self._parameters, self._usual_ms)
        # Requests and replies pay where they leave.
        meter = MeasuredFleet(sessions.fleet, catalogue, None).meter()
        each_gb = self._parameters.probe_gb / 2
        self._usd_per_probe = {
            (src, dst): meter.price(src, dst, each_gb) + meter.price(dst, src, each_gb)
            for src, dst in links.healths
        }
        self._overhead_s, self._least_period_s = OVERHEAD_S, 0.0
        per_round_usd = sum(self._usd_per_probe.values())
        most_usd = LIVENESS_SHARE * options.daily_budget_usd
        if per_round_usd * DAY_S / self.period_s > most_usd > 0:
            self._least_period_s = per_round_usd * DAY_S / most_usd
            on_note(
                f"Liveness probes of {len(links.healths)} links every {options.interval_s:g} s "
                "would take over half of the daily budget: they are sent every "
                f"{self.period_s:.0f} s."
            )
        self.usd_per_day = per_round_usd * DAY_S / self.period_s
        block_usd = self.usd_per_day * BLOCK_S / DAY_S
        self.budget = LivenessBudget(storage, options.daily_budget_usd, block_usd)
        self.unreachable: dict[str, ProbeError] = {}
        self.last_probe_s = 0.0
        self._noted_day = ""
        self._hosts: dict[str, list[str]] = {}
        for host in sessions.fleet:
            self._hosts.setdefault(host.region, []).append(host.name)
        self._random = random.Random()  # noqa: S311 - spreads starts, keeps no secret

    @property
    def period_s(self) -> float:
        """Time between the probes of one source."""
        confirmations = self._links.policy.confirmations
        every_s = period_s(self._interval_s, self._parameters, confirmations, self._overhead_s)
        return max(self._least_period_s, every_s)

    @property
    def noticed_within_s(self) -> float:
        """Longest time until an outage is noticed, at the pace at which hosts answer now."""
        probe_s = self._parameters.probe_s + self._overhead_s
        return self.period_s + self._links.policy.confirmations * probe_s

    def _usual_ms(self, src: str, dst: str) -> float:
        fleet = self._sessions.fleet
        return self._links.usual_ms.get((fleet[src].region, fleet[dst].region), 0.0)

    async def run(self) -> None:
        """Probe until cancelled."""
        sources = dict.fromkeys(src for src, _ in self._links.healths)
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
                self._on_note(f"{error} Liveness probing waits.")
            due_s = began_s + self.period_s * self._random.uniform(1 - JITTER, 1)
            await asyncio.sleep(max(0.05, due_s - time.monotonic()))

    async def _round(self, region: str) -> None:
        """Probe all neighbours, and repeat at once where one probe does not settle it."""
        targets = [dst for src, dst in self._links.healths if src == region]
        for _ in range(1 + MOST_REPEATS):
            results = await self._probe(region, targets)
            if results is None:
                break
            again = []
            for dst, probe in results.items():
                health = self._links.observed((region, dst), probe, loaded=self._loaded())
                if suspicious(health, probe, self._links.policy):
                    again.append(dst)
                if dst in self.unreachable and (dst, region) in self._links.healths:
                    # A probe needs both directions: it also shows the silent host's link.
                    self._links.observed((dst, region), probe, loaded=self._loaded())
            await self._on_probed()
            targets = [dst for dst in again if (region, dst) in self._links.answered]
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
                if self._links.healths[region, dst].condition == "down"
            )
            cost = self._cost(region, host, names, silent)
            if not (day := await self.budget.spend(*cost)):
                if self._noted_day != (today := utc_date(time.time())):
                    self._noted_day = today
                    self._on_note(
                        "The budget of today is used up: nothing is sent until midnight UTC."
                    )
                return None
            began_s, reached = time.monotonic(), False
            try:
                await self._sessions.session(host)
                reached = True
                results = await self._prober.probe(host, list(names), silent)
            except ProbeError as error:
                if not reached:
                    await self.budget.give_back(day, *cost)
                if error.of_the_host:
                    self._sessions.forget(host)
                errors.append(error)
                continue
            self.last_probe_s = time.time()
            if not silent:
                lost = any(probe.received < probe.sent for probe in results.values())
                quick_s = self._parameters.probe_s - (0.0 if lost else self._parameters.wait_s)
                extra_s = max(OVERHEAD_S, time.monotonic() - began_s - quick_s)
                self._overhead_s += LEARNING * (extra_s - self._overhead_s)
            if self.unreachable.pop(region, None) is not None:
                self._on_note(f"{region} can be used again.")
            return {names[name]: probe for name, probe in results.items()}
        if region not in self.unreachable:
            self._on_note(f"{errors[-1]} Its links are judged by the probes of others.")
        self.unreachable[region] = errors[-1]
        return None

    def _cost(
        self, region: str, host: str, names: Mapping[str, str], silent: Collection[str]
    ) -> tuple[float, float]:
        """Return the most that probes from a host and their answers take, in USD and GB."""
        gb = {name: self._prober.most_gb(host, name, silent=name in silent) for name in names}
        each_usd = {name: self._usd_per_probe[region, dst] for name, dst in names.items()}
        usd = sum(gb[name] / self._parameters.probe_gb * each_usd[name] for name in names)
        return usd, sum(gb.values())


def region_pairs(fleet: Fleet, pairs: Collection[tuple[str, str]]) -> list[Pair]:
    """Return the directed pairs of regions to watch: those of host pairs, or all."""
    region_of = fleet.region_of
    if pairs:
        wanted = ((region_of[src], region_of[dst]) for src, dst in pairs)
        return list(dict.fromkeys(pair for pair in wanted if pair[0] != pair[1]))
    regions = list(dict.fromkeys(region_of.values()))
    return [(src, dst) for src in regions for dst in regions if src != dst]
