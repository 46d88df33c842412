"""Counts words that lie in several regions: ``python -m examples.dask.region_shuffle``.

Every region is a Dask worker of its own, which carries the region's id as a resource. Map tasks ask
for the resource of the region that holds their data. Where the reduce tasks run is decided by a
scheduler plugin, from the fractions that :meth:`relayd.Wan.place_reduce` gives.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

from distributed import Client, Scheduler, SpecCluster, Worker, get_worker
from distributed.diagnostics.plugin import SchedulerPlugin

import relayd
from examples.words import BUCKETS, DATA, buckets, durations, place
from planner.placement.plan import ReducePlacement

LOCAL = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


class ReduceWhere(SchedulerPlugin):
    """Pins every task ``reduce-N`` to the workers of the region that bucket N goes to."""

    name = "relayd-reduce-where"

    def __init__(self, region_of_bucket: Sequence[str]) -> None:
        self.region_of_bucket = region_of_bucket

    async def start(self, scheduler: Scheduler) -> None:
        """Keep the scheduler, whose workers tell their regions."""
        self.scheduler = scheduler

    def update_graph(self, scheduler: Scheduler, **graph: Any) -> None:
        """Restrict the reduce tasks of a new graph before they are given to workers."""
        where: dict[str, list[str]] = {}
        for worker in scheduler.workers.values():
            for region in worker.resources:
                where.setdefault(region, []).append(worker.address)
        pinned: dict[Any, Collection[str] | str | None] = {}
        for key in graph["tasks"]:
            kind, _, number = str(key).partition("-")
            if kind == "reduce":
                pinned[key] = where[self.region_of_bucket[int(number)]]
        scheduler.set_restrictions(worker=pinned)


@dataclass(frozen=True)
class Outcome:
    """What was counted, where each bucket was reduced, and what it rests on."""

    counts: Counter[str]
    region_of_bucket: dict[int, str]
    placement: ReducePlacement


def split(words: Sequence[str]) -> dict[int, Counter[str]]:
    """Count words by the bucket that their key falls into."""
    found: dict[int, Counter[str]] = {}
    for word in words:
        found.setdefault(crc32(word.encode()) % BUCKETS, Counter())[word] += 1
    return found


def pick(parts: Mapping[int, Counter[str]], bucket: int) -> Counter[str]:
    """Return one bucket of what a region has counted."""
    return parts.get(bucket, Counter())


def merge(parts: Sequence[Counter[str]]) -> tuple[str, Counter[str]]:
    """Add up a bucket, and say in which region."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    (region,) = get_worker().state.total_resources
    return region, total


def count_words(data: Mapping[str, Sequence[str]], wan: relayd.Wan) -> Outcome:
    """Count the words of all regions, reduced where relayd's figures say."""
    placement = place(wan, data)
    workers = {
        region: {"cls": Worker, "options": {"resources": {region: 1}, "nthreads": 1, **LOCAL}}
        for region in data
    }
    scheduler = {"cls": Scheduler, "options": LOCAL}
    with (
        SpecCluster(workers=workers, scheduler=scheduler, silence_logs=logging.ERROR) as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(ReduceWhere(buckets(placement.fractions)))
        mapped = {
            region: client.submit(split, words, key=f"map-{region}", resources={region: 1})
            for region, words in data.items()
        }
        reduced = []
        for bucket in range(BUCKETS):
            parts = [
                client.submit(
                    pick, part, bucket, key=f"pick-{region}-{bucket}", resources={region: 1}
                )
                for region, part in mapped.items()
            ]
            reduced.append(client.submit(merge, parts, key=f"reduce-{bucket}"))
        found = client.gather(reduced)
    counts: Counter[str] = Counter()
    for _, part in found:
        counts.update(part)
    return Outcome(counts, {b: region for b, (region, _) in enumerate(found)}, placement)


def report(outcome: Outcome) -> str:
    """Return what was decided, for people."""
    placement = outcome.placement
    where = list(outcome.region_of_bucket.values())
    lines = [
        f"{region}: {share:.0%} of the keys, {where.count(region)} of {BUCKETS} buckets"
        for region, share in placement.fractions.items()
    ]
    words = ", ".join(f"{word} {count}" for word, count in outcome.counts.most_common(3))
    return "\n".join([*lines, durations(placement), f"most frequent: {words}"])


if __name__ == "__main__":
    print(report(count_words(DATA, relayd.open())))
