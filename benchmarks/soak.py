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
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.processes import Seen, growth, passing, watched_memory
from planner.model.errors import RelaydError
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.client.asynchronous import AsyncWan
from tests.http.running import Served

MOST_GROWTH = 0.03
LEAST_WARM_UP_S = 180.0
SNAPSHOT_EVERY_S = 15.0
"""Four times as often as usual: more changes, and all workers have soon made one."""
_KEPT_OF_A_SERIES = 256
ENVIRONMENT = {
    "RELAYD_SERVE_REQUESTS_PER_S": "1e6",
    "RELAYD_SERVE_BURST": "1000000",
    "RELAYD_SERVE_SNAPSHOT_EVERY_S": str(SNAPSHOT_EVERY_S),
    "RELAYD_SERVE_ACCESS_LOG": "false",
}


class Load(NamedTuple):
    """The load on the service, and its duration."""

    seconds: float
    samples_per_s: int
    regions: int

    @property
    def warm_up_s(self) -> float:
        """Time until bounded caches have filled."""
        series = 2 * self.regions * (self.regions - 1)
        return max(LEAST_WARM_UP_S, 1.28 * series * _KEPT_OF_A_SERIES / self.samples_per_s)


@dataclass
class Observed:
    """Observations while the service was under load."""

    plans: int = 0
    longer: int = 0
    events: int = 0
    samples: int = 0
    snapshots: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    memory_mb: Seen = field(default_factory=list)
    latency_s: array[float] = field(default_factory=lambda: array("d"))

    def failed(self, error: RelaydError) -> None:
        """Note a call that failed."""
        self.failures.append(f"{type(error).__name__}: {error}")


async def _ask(wan: AsyncWan, regions: Sequence[str], until_s: float, seen: Observed) -> None:
    chance = random.Random(id(wan))
    while time.monotonic() < until_s:
        src, dst = chance.sample(regions, 2)
        began_s = time.perf_counter()
        try:
            plan = await wan.plan(src, dst, volume_gb=chance.choice([10.0, 100.0, 1000.0]))
        except RelaydError as error:
            seen.failed(error)
            continue
        seen.latency_s.append(time.perf_counter() - began_s)
        seen.snapshots.add(plan.snapshot.id)
        seen.plans += 1
        await asyncio.sleep(0.002)


async def _ask_longer(
    wan: AsyncWan, regions: Sequence[str], until_s: float, seen: Observed
) -> None:
    """Ask once a second for answers of workers or of the store."""
    chance = random.Random(2)
    while time.monotonic() < until_s:
        a, b, c = chance.sample(regions, 3)
        try:
            match chance.randrange(4):
                case 0:
                    await wan.shuffle([(a, b, 100.0), (b, c, 200.0), (c, a, 50.0)])
                case 1:
                    await wan.broadcast(a, [b, c], volume_gb=100.0)
                case 2:
                    _ = [link async for link in wan.links(src=a)]
                case _:
                    await wan.plans([{"src": a, "dst": b}, {"src": b, "dst": c, "vms": 4}])
            seen.longer += 1
        except RelaydError as error:
            seen.failed(error)
        await asyncio.sleep(1.0)


async def _listen(wan: AsyncWan, until_s: float, seen: Observed) -> None:
    """Read events, and go on from the last one where the stream ends."""
    last: int | None = None
    while time.monotonic() < until_s:
        try:
            async with asyncio.timeout(until_s - time.monotonic()):
                async for event in wan.events(after=last):
                    last = event.id
                    seen.events += 1
        except TimeoutError:
            return
        except RelaydError as error:
            seen.failed(error)
            await asyncio.sleep(1.0)


async def _send(wan: AsyncWan, regions: Sequence[str], load: Load, seen: Observed) -> None:
    chance = random.Random(1)
    due_s = time.monotonic()
    until_s = due_s + load.seconds
    while time.monotonic() < until_s:
        now_s = time.time()
        samples = []
        for number in range(load.samples_per_s // 4):
            src, dst = chance.sample(regions, 2)
            metric, value = chance.choice([("rtt_ms", 300.0), ("aggregate_mbps", 4000.0)])
            found, at_s = value * chance.uniform(0.9, 1.1), now_s - number * 1e-3
            connections = 64 if metric == "aggregate_mbps" else None
            samples.append(Sample(src, dst, metric, found, at_s, "soak", connections))  # type: ignore[arg-type]
        try:
            seen.samples += (await wan.ingest(samples)).accepted
        except RelaydError as error:
            seen.failed(error)
        due_s += 0.25
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))


async def _soak(service: Served, regions: Sequence[str], load: Load) -> Observed:
    seen, until_s = Observed(), time.monotonic() + load.seconds
    with watched_memory(service.process.pid) as seen.memory_mb:
        async with AsyncWan(service.url, attempts=1) as wan:
            await asyncio.gather(
                *(_ask(wan, regions, until_s, seen) for _ in range(4)),
                _ask_longer(wan, regions, until_s, seen),
                _listen(wan, until_s, seen),
                _send(wan, regions, load, seen),
            )
    faults = [line for line in service.lines() if line["level"] == "error"]
    # What was raised is at the end of a traceback.
    seen.failures += [f"fault in the log: {str(fault)[-900:]}" for fault in faults]
    return seen


def main(words: Sequence[str] | None = None) -> int:
    """Run the soak and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--samples-per-s", type=int, default=2000)
    parser.add_argument("--regions", type=int, default=24, help="that are asked about")
    parser.add_argument("--db", help="a store, or postgresql://... (default: a new SQLite file)")
    options = parser.parse_args(words)
    load = Load(options.minutes * 60, options.samples_per_s, options.regions)
    settled_s = load.warm_up_s
    if load.seconds < settled_s + 60:
        parser.error(f"the warm-up takes {settled_s / 60:.0f} minutes: soak for longer")
    known = load_catalogue().regions.values()
    regions = [region.id for region in known if region.baseline][: load.regions]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        environment = {**ENVIRONMENT, "XDG_DATA_HOME": name}
        db = options.db or str(folder / "soak.db")
        service = Served(db, environment=environment, log=folder / "log")
        try:
            seen = asyncio.run(_soak(service, regions, load))
            # Before it is stopped: a service that does not stop takes no result with it.
            return _report(seen, load, settled_s)
        finally:
            service.stop()


def _report(seen: Observed, load: Load, settled_s: float) -> int:
    grown = growth(seen.memory_mb, settled_s)
    began_s = seen.memory_mb[0][0]
    latency_ms = sorted(1e3 * s for s in seen.latency_s)
    print(f"plans             {seen.plans:>10,}   {seen.plans / load.seconds:,.0f} /s")
    print(f"longer answers    {seen.longer:>10,}")
    print(f"samples           {seen.samples:>10,}   {seen.samples / load.seconds:,.0f} /s")
    print(f"snapshots         {len(seen.snapshots):>10,}")
    print(f"events            {seen.events:>10,}")
    if latency_ms:
        p99 = latency_ms[int(0.99 * (len(latency_ms) - 1))]
        print(f"latency p50, p99  {median(latency_ms):>10.1f} ms {p99:.1f} ms")
    for at_s in (0, 60, settled_s, load.seconds / 2, load.seconds):
        near = min(seen.memory_mb, key=lambda look: abs(look[0] - began_s - at_s))[1]
        processes = " + ".join(f"{mb:.0f}" for mb in near.values())
        print(f"memory at {at_s:>5,.0f} s {sum(near.values()):>10.0f} MB = {processes}")
    if passed := passing(seen.memory_mb):
        print(f"passing processes {len(passed):>10,}   up to {max(passed.values()):.0f} MB")
    print(f"grown by          {grown:>+10.1%}   after {settled_s:.0f} s")
    print(f"failures          {len(seen.failures):>10}")
    for failure in sorted(set(seen.failures))[:5]:
        print(f"  {failure}")
    held = not seen.failures and grown < MOST_GROWTH and len(seen.snapshots) >= 2
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
