"""Check that a service stays stable under load: ``make soak``.

Starts ``relayd serve`` on an empty store, asks it for plans without pause and for longer answers
once a second, reads its events, sends it samples, and watches its memory. New snapshots are made of
the samples meanwhile. After a warm-up, memory may grow by 3 % at most, and no call may fail. Exits
with 1 otherwise.

In the warm-up, what is bounded fills: the plans kept (three volumes for each link), the
samples that an estimate rests on (the newest 256 of each link and metric, and somewhat more time
than these take because links are drawn at random), and each worker loads the estimator with its
first snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random

from benchmarks.processes import growth, passing, watched_memory
from benchmarks.table import quantile
from planner.model.errors import RelaydError
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.client.asynchronous import AsyncWan
from tests.http.running import Served

MOST_GROWTH = 0.03
LEAST_WARM_UP_S = 180.0
SNAPSHOT_EVERY_S = 15.0
"""Four times as often as usual: more changes, and all workers have soon made one."""
SEND_EVERY_S = 0.25
_KEPT_OF_A_SERIES = 256
ENVIRONMENT = {
    "RELAYD_SERVE_REQUESTS_PER_S": "1e6",
    "RELAYD_SERVE_BURST": "1000000",
    "RELAYD_SERVE_SNAPSHOT_EVERY_S": str(SNAPSHOT_EVERY_S),
    "RELAYD_SERVE_ACCESS_LOG": "false",
}


class Load:
    """The load on a service, and what is observed meanwhile."""

    def __init__(self, wan: AsyncWan, regions: Sequence[str], seconds: float, samples: int) -> None:
        self._wan, self._regions, self._samples = wan, regions, samples
        self._due_s = time.monotonic()
        self._until_s = self._due_s + seconds
        self._last_event: int | None = None
        self.counts: Counter[str] = Counter()
        self.snapshots: set[str] = set()
        self.failures: Counter[str] = Counter()
        self.latency_s = array("d")

    async def all(self) -> None:
        """Ask and feed until time is up."""
        plans = (self._repeat(self._plan, 0.002, number) for number in range(4))
        others = ((self._longer, 1.0), (self._listen, 1.0), (self._send, 0.0))
        await asyncio.gather(*plans, *(self._repeat(act, s, 9) for act, s in others))

    async def _repeat(self, act: Callable[[Random], Awaitable[None]], s: float, seed: int) -> None:
        chance = Random(seed)
        while time.monotonic() < self._until_s:
            try:
                await act(chance)
            except RelaydError as error:
                self.failures[f"{type(error).__name__}: {error}"] += 1
            await asyncio.sleep(s)

    async def _plan(self, chance: Random) -> None:
        src, dst = chance.sample(self._regions, 2)
        began_s = time.perf_counter()
        plan = await self._wan.plan(src, dst, volume_gb=chance.choice([10.0, 100.0, 1000.0]))
        self.latency_s.append(time.perf_counter() - began_s)
        self.snapshots.add(plan.snapshot.id)
        self.counts["plans"] += 1

    async def _longer(self, chance: Random) -> None:
        """Ask for an answer of workers or of the store."""
        a, b, c = chance.sample(self._regions, 3)
        match chance.randrange(4):
            case 0:
                await self._wan.shuffle([(a, b, 100.0), (b, c, 200.0), (c, a, 50.0)])
            case 1:
                await self._wan.broadcast(a, [b, c], volume_gb=100.0)
            case 2:
                _ = [link async for link in self._wan.links(src=a)]
            case _:
                await self._wan.plans([{"src": a, "dst": b}, {"src": b, "dst": c, "vms": 4}])
        self.counts["longer answers"] += 1

    async def _listen(self, _: Random) -> None:
        """Read events, from the last one on where the stream has ended."""
        try:
            async with asyncio.timeout(self._until_s - time.monotonic()):
                async for event in self._wan.events(after=self._last_event):
                    self._last_event = event.id
                    self.counts["events"] += 1
        except TimeoutError:
            return

    async def _send(self, chance: Random) -> None:
        now_s, samples = time.time(), []
        for number in range(round(self._samples * SEND_EVERY_S)):
            src, dst = chance.sample(self._regions, 2)
            metric, value = chance.choice([("rtt_ms", 300.0), ("aggregate_mbps", 4000.0)])
            found, at_s = value * chance.uniform(0.9, 1.1), now_s - number * 1e-3
            connections = 64 if metric == "aggregate_mbps" else None
            samples.append(Sample(src, dst, metric, found, at_s, "soak", connections))  # type: ignore[arg-type]
        self._due_s += SEND_EVERY_S
        self.counts["samples"] += (await self._wan.ingest(samples)).accepted
        await asyncio.sleep(max(0.0, self._due_s - time.monotonic()))


async def _under_load(
    service: Served, regions: Sequence[str], seconds: float, samples: int
) -> Load:
    async with AsyncWan(service.url, attempts=1) as wan:
        load = Load(wan, regions, seconds, samples)
        await load.all()
    for line in service.lines():
        if line["level"] == "error":  # what was raised is at the end of a traceback
            load.failures[f"fault in the log: {str(line)[-900:]}"] += 1
    return load


def main() -> int:
    """Run the soak and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--samples-per-s", type=int, default=2000)
    parser.add_argument("--regions", type=int, default=24, help="that are asked about")
    parser.add_argument("--db", help="a store, or postgresql://... (default: a new SQLite file)")
    options = parser.parse_args()
    seconds, series = options.minutes * 60, 2 * options.regions * (options.regions - 1)
    warm_up_s = max(LEAST_WARM_UP_S, 1.28 * series * _KEPT_OF_A_SERIES / options.samples_per_s)
    if seconds < warm_up_s + 60:
        parser.error(f"the warm-up takes {warm_up_s / 60:.0f} minutes: soak for longer")
    known = load_catalogue().regions.values()
    regions = [region.id for region in known if region.baseline][: options.regions]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        db, log = options.db or f"{name}/soak.db", Path(name) / "log"
        service = Served(db, environment={**ENVIRONMENT, "XDG_DATA_HOME": name}, log=log)
        try:
            with watched_memory(service.process.pid) as memory_mb:
                rate = options.samples_per_s
                load = asyncio.run(_under_load(service, regions, seconds, rate))
        finally:
            service.stop()
    grown = growth(memory_mb, warm_up_s)
    for what, count in sorted(load.counts.items()):
        print(f"{what:<18}{count:>10,}   {count / seconds:,.1f} /s")
    print(f"snapshots         {len(load.snapshots):>10,}")
    if load.latency_s:
        p50_ms, p99_ms = (1e3 * quantile(load.latency_s, share) for share in (0.5, 0.99))
        print(f"latency p50, p99  {p50_ms:>10.1f} ms {p99_ms:.1f} ms")
    for at_s in (0, 60, warm_up_s, seconds / 2, seconds):
        near = min(memory_mb, key=lambda look: abs(look[0] - memory_mb[0][0] - at_s))[1]
        processes = " + ".join(f"{mb:.0f}" for mb in near.values())
        print(f"memory at {at_s:>5,.0f} s {sum(near.values()):>10.0f} MB = {processes}")
    if passed := passing(memory_mb):
        print(f"passing processes {len(passed):>10,}   up to {max(passed.values()):.0f} MB")
    print(f"grown by          {grown:>+10.1%}   after {warm_up_s:.0f} s")
    print(f"failures          {load.failures.total():>10}")
    for failure, count in load.failures.most_common(5):
        print(f"  {failure} ({count} times)")
    held = not load.failures and grown < MOST_GROWTH and len(load.snapshots) >= 2
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
