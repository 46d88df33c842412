"""Whether a service stays as it is under load: ``make soak``.

Starts ``relayd serve`` on an empty store, asks it for plans without pause, sends it samples, and
watches its memory. New snapshots are made of the samples meanwhile. After a warm-up, memory may
grow by 5 % at most, and no call may fail. Exits with 1 otherwise.

In the warm-up, what is bounded fills: the plans kept (three volumes for each of 552 links), the
samples that an estimate rests on (the newest 256 of each link and metric; 1,104 of these at 2,000
samples/s take 141 s, and somewhat more because links are drawn at random), and each worker loads
the estimator with its first snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from planner.model.errors import RelaydError
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.client.asynchronous import AsyncWan

SAMPLES_PER_S = 2000
MOST_GROWTH = 0.05
WARM_UP_S = 180.0
SNAPSHOT_EVERY_S = 15.0
"""Four times as often as usual: more changes, and all workers have soon made one."""
REGIONS = 24
_ROOT = Path(__file__).parents[1]


@dataclass
class Observed:
    """What was seen while the service was under load."""

    plans: int = 0
    samples: int = 0
    snapshots: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    memory_mb: list[tuple[float, list[float]]] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)


@contextmanager
def _service(db: str, folder: str) -> Iterator[tuple[str, int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "relayd", "serve", "--no-auth", "--db", db, "--port", "0"],
        cwd=_ROOT,
        env={
            **os.environ,
            "XDG_DATA_HOME": folder,
            "RELAYD_SERVE_REQUESTS_PER_S": "1e6",
            "RELAYD_SERVE_BURST": "1000000",
            "RELAYD_SERVE_SNAPSHOT_EVERY_S": str(SNAPSHOT_EVERY_S),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout
        for line in process.stdout:
            if found := re.search(r"serves at (http\S+)", line):
                break
        else:
            raise SystemExit("The service did not start.")
        yield found[1], process.pid
    finally:
        process.terminate()
        process.communicate()


def _memory_mb(pid: int) -> list[float]:
    """Return the memory of a process and its children: shared pages count by their share."""
    pids, found = [pid], []
    for number in pids:
        with suppress(OSError):
            children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
            pids += map(int, children)
            rollup = Path(f"/proc/{number}/smaps_rollup").read_text()
            found.append(float(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1]) / 1e3)  # type: ignore[index]
    return found


async def _ask(wan: AsyncWan, regions: Sequence[str], until_s: float, seen: Observed) -> None:
    chance = random.Random(id(wan))
    while time.monotonic() < until_s:
        src, dst = chance.sample(regions, 2)
        began_s = time.perf_counter()
        try:
            plan = await wan.plan(src, dst, volume_gb=chance.choice([10.0, 100.0, 1000.0]))
        except RelaydError as error:
            seen.failures.append(f"{type(error).__name__}: {error}")
            continue
        seen.latency_s.append(time.perf_counter() - began_s)
        del seen.latency_s[:-10_000]
        seen.snapshots.add(plan.snapshot.id)
        seen.plans += 1
        await asyncio.sleep(0.002)


async def _send(wan: AsyncWan, regions: Sequence[str], until_s: float, seen: Observed) -> None:
    chance = random.Random(1)
    due_s = time.monotonic()
    while time.monotonic() < until_s:
        now_s = time.time()
        samples = []
        for number in range(SAMPLES_PER_S // 4):
            src, dst = chance.sample(regions, 2)
            metric, value = chance.choice([("rtt_ms", 80.0), ("aggregate_mbps", 4000.0)])
            samples.append(
                Sample(
                    src,
                    dst,
                    metric,  # type: ignore[arg-type]
                    value * chance.uniform(0.9, 1.1),
                    now_s - number * 1e-3,
                    "soak",
                    64 if metric != "rtt_ms" else None,
                )
            )
        try:
            seen.samples += (await wan.ingest(samples)).accepted
        except RelaydError as error:
            seen.failures.append(f"{type(error).__name__}: {error}")
        due_s += 0.25
        await asyncio.sleep(max(0.0, due_s - time.monotonic()))


async def _watch(pid: int, until_s: float, seen: Observed) -> None:
    while time.monotonic() < until_s:
        seen.memory_mb.append((time.monotonic(), await asyncio.to_thread(_memory_mb, pid)))
        await asyncio.sleep(1.0)


async def _soak(url: str, pid: int, seconds: float) -> Observed:
    catalogue = load_catalogue()
    regions = [region.id for region in catalogue.regions.values() if region.baseline][:REGIONS]
    seen, until_s = Observed(), time.monotonic() + seconds
    async with AsyncWan(url, attempts=1) as wan:
        await asyncio.gather(
            *(_ask(wan, regions, until_s, seen) for _ in range(4)),
            _send(wan, regions, until_s, seen),
            _watch(pid, until_s, seen),
        )
    return seen


def growth(memory_mb: Sequence[tuple[float, list[float]]]) -> float:
    """Return how much memory grew after the warm-up: last third over first, less 1.

    Medians, because a snapshot that is being made takes memory for a moment.
    """
    steady_s = memory_mb[0][0] + WARM_UP_S
    steady = [sum(mb) for at_s, mb in memory_mb if at_s >= steady_s]
    third = max(1, len(steady) // 3)
    return median(steady[-third:]) / median(steady[:third]) - 1


def main(words: Sequence[str] | None = None) -> int:
    """Run the soak and say what was seen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0, help="at least 4")
    parser.add_argument("--db", help="a store, or postgresql://... (default: a new SQLite file)")
    options = parser.parse_args(words)
    if options.minutes < 4:
        parser.error("the warm-up takes 3 minutes: soak for 4 at least")
    with tempfile.TemporaryDirectory() as folder:
        db = options.db or str(Path(folder) / "soak.db")
        with _service(db, folder) as (url, pid):
            seen = asyncio.run(_soak(url, pid, options.minutes * 60))
    grown = growth(seen.memory_mb)
    latency_ms = sorted(1e3 * s for s in seen.latency_s)
    seconds = options.minutes * 60
    print(f"plans             {seen.plans:>10,}   {seen.plans / seconds:,.0f} /s")
    print(f"samples           {seen.samples:>10,}   {seen.samples / seconds:,.0f} /s")
    print(f"snapshots         {len(seen.snapshots):>10,}")
    if latency_ms:
        p99 = latency_ms[int(0.99 * (len(latency_ms) - 1))]
        print(f"latency p50, p99  {median(latency_ms):>10.1f} ms {p99:.1f} ms")
    for at_s in (0, 60, WARM_UP_S, seconds / 2, seconds):
        near = min(seen.memory_mb, key=lambda look: abs(look[0] - seen.memory_mb[0][0] - at_s))[1]
        processes = " + ".join(f"{mb:.0f}" for mb in near)
        print(f"memory at {at_s:>5,.0f} s {sum(near):>10.0f} MB = {processes}")
    print(f"grown by          {grown:>+10.1%}   after {WARM_UP_S:.0f} s")
    print(f"failures          {len(seen.failures):>10}")
    for failure in sorted(set(seen.failures))[:5]:
        print(f"  {failure}")
    held = not seen.failures and grown < MOST_GROWTH and len(seen.snapshots) >= 2
    print("held" if held else "NOT HELD")
    return 0 if held else 1


if __name__ == "__main__":
    sys.path.insert(0, str(_ROOT))
    sys.exit(main())
