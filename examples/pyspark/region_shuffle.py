"""Counts words that lie in several regions: ``python -m examples.pyspark.region_shuffle``.

Spark decides what a reduce task gets by the partition function. Here the function gives every
region a range of partitions as wide as the fraction of keys that :meth:`relayd.Wan.place_reduce`
gives it, instead of an equal one.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from pyspark.sql import SparkSession

import relayd
from examples.words import DATA, buckets, durations, place
from planner.placement.plan import ReducePlacement


@dataclass(frozen=True)
class Outcome:
    """What was counted, which words each region's partition held, and what it rests on."""

    counts: Counter[str]
    words_of_region: dict[str, set[str]]
    placement: ReducePlacement


def partition_function(
    region_of_bucket: Sequence[str], regions: Sequence[str]
) -> Callable[[str], int]:
    """Return a function from keys to partitions: places of their buckets' regions in the list."""
    partition_of_bucket = [regions.index(region) for region in region_of_bucket]
    count = len(partition_of_bucket)

    def partition(word: str) -> int:
        return partition_of_bucket[crc32(word.encode()) % count]

    return partition


def count_words(data: Mapping[str, Sequence[str]], wan: relayd.Wan) -> Outcome:
    """Count the words of all regions, one reduce partition per region."""
    placement = place(wan, data)
    regions = list(data)
    # Workers run the same Python, whatever `python3` is on the path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("region-shuffle")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        context = spark.sparkContext
        words = context.union([context.parallelize(data[region], 1) for region in regions])
        partition = partition_function(buckets(placement.fractions), regions)
        counted = words.map(lambda word: (word, 1)).reduceByKey(
            lambda a, b: a + b, len(regions), partition
        )
        per_partition = counted.glom().collect()
    finally:
        spark.stop()
    counts: Counter[str] = Counter()
    for part in per_partition:
        counts.update(dict(part))
    held = {
        region: {word for word, _ in part}
        for region, part in zip(regions, per_partition, strict=True)
    }
    return Outcome(counts, held, placement)


def report(outcome: Outcome) -> str:
    """Say what was decided."""
    lines = []
    for region, share in outcome.placement.fractions.items():
        words = ", ".join(sorted(outcome.words_of_region[region])) or "none"
        lines.append(f"{region}: {share:.0%} of the keys: {words}")
    return "\n".join([*lines, durations(outcome.placement)])


if __name__ == "__main__":
    print(report(count_words(DATA, relayd.open())))
