"""A job of Spark that groups records which lie in several places: ``PARTITIONS HOST:PARTS...``.

It says where its input is, as HDFS would, and leaves to Spark where it is grouped.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.serializers import CPickleSerializer

RECORDS, RECORD_BYTES = 48, 100_000


def records(seed: int) -> Iterator[tuple[int, bytes]]:
    """Make one part of the input, which no compression makes smaller."""
    draw = random.Random(seed)
    for _ in range(RECORDS):
        yield draw.getrandbits(30), draw.randbytes(RECORD_BYTES)


def seeds_at(context: SparkContext, parts: dict[str, int]) -> RDD[int]:
    """Return a number for each part, in a partition that prefers the host of the part."""
    jvm: Any = context._jvm
    pickled: Any = CPickleSerializer()
    utils = jvm.org.apache.spark.api.python.PythonUtils
    hosts = [host for host, count in parts.items() for _ in range(count)]
    located = jvm.java.util.ArrayList()
    for seed, host in enumerate(hosts):
        only = jvm.java.util.ArrayList()
        only.add(host)
        located.add(jvm.scala.Tuple2(pickled.dumps(seed), utils.toSeq(only)))
    of_bytes = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
    found = context._jsc.sc().makeRDD(utils.toSeq(located), of_bytes)
    return RDD(found.toJavaRDD(), context, pickled)


def main(partitions: int, parts: dict[str, int]) -> None:
    """Group all records by key, and see that none was lost."""
    context = SparkContext.getOrCreate()
    grouped = seeds_at(context, parts).flatMap(records).partitionBy(partitions)
    assert grouped.count() == RECORDS * sum(parts.values())
    context.stop()


if __name__ == "__main__":
    pairs = (word.rsplit(":", 1) for word in sys.argv[2:])
    main(int(sys.argv[1]), {host: int(count) for host, count in pairs})
