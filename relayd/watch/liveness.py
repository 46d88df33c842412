"""Light probing of a fleet: every source in a rhythm of its own, and at once again where it counts.

Within one interval of its beginning an outage is known: each source looks a little more often than
that, by the time that it takes to look again until an outage is sure.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field

from planner.model.errors import StoreError
from planner.model.link_states import Pair
from probes.analysis.link_health import Look, suspicious
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.liveness import Manner, Observer
from probes.fleet.sessions import Sessions
from relayd.watch.budget import Purse
from relayd.watch.links import WatchedLinks

OVERHEAD_S = 0.15
"""What asking a host takes besides the look itself, until it is known better."""
LEAST_SHARE = 0.3
"""Of the interval, however long it takes to be sure."""
LEARNING = 0.2
MOST_AGAIN = 8
JITTER = 0.1


def period_s(
    interval_s: float, manner: Manner, looks: int, overhead_s: float = OVERHEAD_S
) -> float:
    """Return how often to look so that an outage is sure within an interval of its beginning."""
    sure_s = looks * (manner.look_s + overhead_s)
    return max(interval_s * LEAST_SHARE, interval_s - sure_s)


@dataclass
class Looking:
    """Looks from every region at those that it is to watch.

    Parameters
    ----------
    sessions : Sessions
        Of its own: ending what is left over must not end a campaign's probes.
    links : WatchedLinks
    purse : Purse
    manner : Manner
    interval_s : float
        Within which an outage is to be noticed.
    least_period_s : float
        What the budget allows.
    usd_per_look : mapping
        Pair of regions to what a look costs, the reply included.
    on_looked : callable
        Awaited after each source's looks.
    """

    sessions: Sessions
    links: WatchedLinks
    purse: Purse
    manner: Manner
    interval_s: float
    least_period_s: float
    usd_per_look: Mapping[Pair, float]
    on_looked: Callable[[], Awaitable[None]]
    on_note: Callable[[str], None] = lambda _: None
    loaded: Callable[[], bool] = lambda: False
    unreachable: dict[str, str] = field(default_factory=dict)
    remedies: dict[str, str] = field(default_factory=dict)
    last_look_s: float = 0.0
    overhead_s: float = OVERHEAD_S

    def __post_init__(self) -> None:
        self._observer = Observer(self.sessions, self.manner, self._usual_ms)
        self._hosts: dict[str, list[str]] = {}
        self._stopped = False
        for host in self.sessions.fleet:
            self._hosts.setdefault(host.region, []).append(host.name)
        self._random = random.Random()  # noqa: S311 - spreads starts, keeps no secret

    @property
    def period_s(self) -> float:
        """How often each source looks."""
        looks = self.links.policy.looks
        every_s = period_s(self.interval_s, self.manner, looks, self.overhead_s)
        return max(self.least_period_s, every_s)

    @property
    def noticed_within_s(self) -> float:
        """Within which an outage is noticed at most, at the pace at which hosts answer now."""
        look_s = self.manner.look_s + self.overhead_s
        return self.period_s + self.links.policy.looks * look_s

    def _usual_ms(self, src: str, dst: str) -> float:
        fleet = self.sessions.fleet
        return self.links.usual_ms.get((fleet[src].region, fleet[dst].region), 0.0)

    async def run(self) -> None:
        """Look until cancelled."""
        sources = dict.fromkeys(src for src, _ in self.links.healths)
        async with asyncio.TaskGroup() as group:
            for region in sources:
                group.create_task(self._watch(region))

    async def _watch(self, region: str) -> None:
        # Sources begin at different times, so that no region is looked at by all at once.
        await asyncio.sleep(self._random.uniform(0, self.period_s / 2))
        while True:
            began_s = time.monotonic()
            try:
                await self._round(region)
            except StoreError as error:
                self.on_note(f"{error} Light probing waits.")
            due_s = began_s + self.period_s * self._random.uniform(1 - JITTER, 1)
            await asyncio.sleep(max(0.05, due_s - time.monotonic()))

    async def _round(self, region: str) -> None:
        """Look at all neighbours, and again at those of which one look does not say enough."""
        targets = [dst for src, dst in self.links.healths if src == region]
        for number in range(1 + MOST_AGAIN):
            looks = await self._look(region, targets)
            if looks is None:
                break
            again = []
            for dst, look in looks.items():
                health = self.links.looked((region, dst), look, loaded=self.loaded())
                if suspicious(health, look, self.links.policy):
                    again.append(dst)
                if dst in self.unreachable and (dst, region) in self.links.healths:
                    # A look needs both directions: it stands in for the host that is silent.
                    self.links.looked((dst, region), look, loaded=self.loaded())
            if number == 0 or not again or self.links.changed:
                await self.on_looked()
            targets = [dst for dst in again if (region, dst) in self.links.answered]
            if not targets:
                break

    async def _look(self, region: str, targets: Collection[str]) -> dict[str, Look] | None:
        """Look from a region's first host that can be used; None if none can, or none may."""
        cost_usd = sum(self.usd_per_look[region, dst] for dst in targets)
        if not await self.purse.take(cost_usd, len(targets) * self.manner.look_gb):
            if not self._stopped:
                self.on_note("The budget of today is used up: nothing is sent until midnight UTC.")
            self._stopped = True
            return None
        self._stopped = False
        errors = []
        for host in self._hosts[region]:
            names = {self._hosts[dst][0]: dst for dst in targets}
            # Not while making sure of an outage, which must be quick.
            silent = frozenset(
                name
                for name, dst in names.items()
                if self.links.healths[region, dst].condition == "down"
            )
            began_s = time.monotonic()
            try:
                seen = await self._observer.look(host, list(names), silent)
            except ProbeError as error:
                if error.of_the_host:
                    self.sessions.forget(host)
                errors.append(error)
                continue
            self.last_look_s = time.time()
            if not silent:
                lost = any(look.received < look.sent for look in seen.values())
                quick_s = self.manner.look_s - (0.0 if lost else self.manner.wait_s)
                extra_s = max(OVERHEAD_S, time.monotonic() - began_s - quick_s)
                self.overhead_s += LEARNING * (extra_s - self.overhead_s)
            if self.unreachable.pop(region, None) is not None:
                self.remedies.pop(region, None)
                self.on_note(f"{region} can be asked again.")
            return {names[name]: look for name, look in seen.items()}
        if region not in self.unreachable:
            self.on_note(f"{errors[-1]} Its links are judged by what others see of it.")
        self.unreachable[region] = errors[-1].problem
        self.remedies[region] = errors[-1].remedy
        return None


def region_pairs(fleet: Fleet, pairs: Collection[tuple[str, str]]) -> list[Pair]:
    """Return the directed pairs of regions to watch: those of host pairs, or all."""
    region_of = fleet.region_of
    if pairs:
        wanted = ((region_of[src], region_of[dst]) for src, dst in pairs)
        return list(dict.fromkeys(pair for pair in wanted if pair[0] != pair[1]))
    regions = list(dict.fromkeys(region_of.values()))
    return [(src, dst) for src in regions for dst in regions if src != dst]
