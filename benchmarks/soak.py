"""Check that a service stays stable under load: ``make soak``.

Starts ``relayd serve`` on an empty store, asks it for plans without pause and for longer answers
once a second, reads its events, sends it samples, and watches its memory. New snapshots are made of
the samples meanwhile. After a warm-up, memory may grow by 3 % at most, and no call may fail. Exits
with 1 otherwise.

``--replicas`` is nearer to operation: two services on a PostgreSQL server of their own watch hosts
on loopback. The one that probes is killed after 15 % of the time and comes back as standby, so
that the one which is asked takes over; half-way the database crashes and is away for some seconds.
Then 503s that say why are no failures.

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
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.processes import Seen, growth, passing, watched_memory
from planner.model.errors import RelaydError
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.client.asynchronous import AsyncWan
from relayd.client.errors import ServiceError
from tests.dashboard.fleets import fleet_file
from tests.http.running import Served, eventually
from tests.postgresql import PostgresqlServer, running_server
from tests.probes.fleet.machines import machines

MOST_GROWTH = 0.03
LEAST_WARM_UP_S = 180.0
SNAPSHOT_EVERY_S = 15.0
"""Four times as often as usual: more changes, and all workers have soon made one."""
_KEPT_OF_A_SERIES = 256
_AWAY_S = 5.0
_LEADER_CHANGES_AT, _DATABASE_CRASHES_AT = 0.15, 0.5
ENVIRONMENT = {
    "RELAYD_SERVE_REQUESTS_PER_S": "1e6",
    "RELAYD_SERVE_BURST": "1000000",
    "RELAYD_SERVE_SNAPSHOT_EVERY_S": str(SNAPSHOT_EVERY_S),
    "RELAYD_SERVE_ACCESS_LOG": "false",
}
WATCHING = {
    "RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": "1",
    "RELAYD_SERVE_WATCH_INTERVAL_S": "5",
    "RELAYD_SERVE_WATCH_CAMPAIGN_EVERY_S": "0",
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
    """Observations while the service was under load.

    Attributes
    ----------
    may_refuse : bool
        Whether a 503 with a reason is acceptable.
    """

    may_refuse: bool = False
    plans: int = 0
    longer: int = 0
    events: int = 0
    samples: int = 0
    snapshots: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    refused_at_s: list[float] = field(default_factory=list)
    memory_mb: Seen = field(default_factory=list)
    latency_s: array[float] = field(default_factory=lambda: array("d"))
    roles: list[str] = field(default_factory=list)

    def failed(self, error: RelaydError) -> None:
        """Note a call that failed; a 503 that says why may be clear enough."""
        if self.may_refuse and isinstance(error, ServiceError) and error.status == 503:
            self.refused[str(error)[:150]] += 1
            self.refused_at_s.append(time.monotonic())
        else:
            self.failures.append(f"{type(error).__name__}: {error}")


class Replicas:
    """Two services on a database that crashes, and the first that probes is killed."""

    def __init__(self, server: PostgresqlServer, db: str, folder: Path, fleet: Path) -> None:
        self._server, self._db, self._folder, self._fleet = server, db, folder, fleet
        self.number = 0
        self.prober = self._started()
        _wait_for("prober", self.prober)
        self.asked = self._started()

    def _started(self) -> Served:
        self.number += 1
        return Served(
            self._db,
            *("--fleet", str(self._fleet)),
            environment={**ENVIRONMENT, **WATCHING, "XDG_DATA_HOME": str(self._folder)},
            log=self._folder / f"{self.number}.log",
        )

    async def happen(self, load: Load, seen: Observed) -> None:
        """Kill the first prober, and later the database, and wait until all is well again."""
        began_s = time.monotonic()
        await asyncio.sleep(load.seconds * _LEADER_CHANGES_AT)
        await asyncio.to_thread(self.prober.kill)
        await asyncio.to_thread(_wait_for, "prober", self.asked)
        seen.roles.append(f"took over {time.monotonic() - began_s:.0f} s after the start")
        self.prober = await asyncio.to_thread(self._started)
        crash_s = began_s + load.seconds * _DATABASE_CRASHES_AT
        await asyncio.sleep(max(0.0, crash_s - time.monotonic()))
        await asyncio.to_thread(self._server.crash)
        await asyncio.sleep(_AWAY_S)
        await asyncio.to_thread(self._server.start)
        away_s = time.monotonic()
        await asyncio.to_thread(_wait_for, "prober", self.asked, self.prober)
        seen.roles.append(
            f"somebody probes again {time.monotonic() - away_s:.0f} s after the database's return"
        )

    def stop(self) -> None:
        """Stop both."""
        for service in (self.asked, self.prober):
            service.stop()


def _wait_for(role: str, *services: Served) -> None:
    def is_there() -> bool:
        watches = (service.get("/readyz").json["watch"] for service in services)
        return any(watch and watch["role"] == role for watch in watches)

    eventually(is_there, 120, otherwise=lambda: f"There is no {role}.")


@contextmanager
def _replicas(folder: Path, regions: Sequence[str]) -> Iterator[Replicas]:
    with ExitStack() as stack:
        server = stack.enter_context(running_server())
        fleet, _ = stack.enter_context(machines(folder, list(regions[:3])))
        replicas = Replicas(server, server.new_store(), folder, fleet_file(folder, fleet))
        stack.callback(replicas.stop)
        yield replicas


async def _ask(wan: AsyncWan, regions: Sequence[str], until_s: float, seen: Observed) -> None:
    chance = random.Random(id(wan))
    while time.monotonic() < until_s:
        src, dst = chance.sample(regions, 2)
        began_s = time.perf_counter()
        try:
            plan = await wan.plan(src, dst, volume_gb=chance.choice([10.0, 100.0, 1000.0]))
        except RelaydError as error:  # these rest on memory: a database that is away is no excuse
            seen.failures.append(f"{type(error).__name__}: {error}")
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


async def _soak(
    service: Served, regions: Sequence[str], load: Load, replicas: Replicas | None
) -> Observed:
    seen, until_s = Observed(may_refuse=bool(replicas)), time.monotonic() + load.seconds
    with watched_memory(service.process.pid) as seen.memory_mb:
        async with AsyncWan(service.url, attempts=1) as wan:
            await asyncio.gather(
                *(_ask(wan, regions, until_s, seen) for _ in range(4)),
                _ask_longer(wan, regions, until_s, seen),
                _listen(wan, until_s, seen),
                _send(wan, regions, load, seen),
                *([replicas.happen(load, seen)] if replicas else ()),
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
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--db", help="a store, or postgresql://... (default: a new SQLite file)")
    where.add_argument("--replicas", action="store_true", help="two, on PostgreSQL, that watch")
    options = parser.parse_args(words)
    load = Load(options.minutes * 60, options.samples_per_s, options.regions)
    settled_s = load.warm_up_s + (load.seconds * _LEADER_CHANGES_AT if options.replicas else 0)
    if load.seconds < settled_s + 60:
        parser.error(f"the warm-up takes {settled_s / 60:.0f} minutes: soak for longer")
    known = load_catalogue().regions.values()
    regions = [region.id for region in known if region.baseline][: load.regions]
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder, replicas = Path(name), None
        with ExitStack() as stack:
            if options.replicas:
                replicas = stack.enter_context(_replicas(folder, regions))
                service = replicas.asked
            else:
                environment = {**ENVIRONMENT, "XDG_DATA_HOME": name}
                db = options.db or str(folder / "soak.db")
                service = Served(db, environment=environment, log=folder / "log")
                stack.callback(service.stop)
            seen = asyncio.run(_soak(service, regions, load, replicas))
            # Before they are stopped: a service that does not stop takes no result with it.
            return _report(seen, load, settled_s)


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
    for text in seen.roles:
        print(f"  {text}")
    if seen.refused_at_s:
        first, last = (at_s - began_s for at_s in (seen.refused_at_s[0], seen.refused_at_s[-1]))
        count = len(seen.refused_at_s)
        print(f"clear 503s        {count:>10}   from {first:.0f} to {last:.0f} s")
        for text, times in seen.refused.most_common(5):
            print(f"  {times} times: {text}")
    print(f"failures          {len(seen.failures):>10}")
    for failure in sorted(set(seen.failures))[:5]:
        print(f"  {failure}")
    held = not seen.failures and grown < MOST_GROWTH and len(seen.snapshots) >= 2
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
