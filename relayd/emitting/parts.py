"""Part sizes of uploads: enough parts for the planned connections, within the stores' limits."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from relayd.emitting.lanes import Lane

MIB = 1024**2
# Each connection should get a few parts, or the last ones are waited for alone.
PARTS_A_CONNECTION = 4
# Between two parts a connection is idle for about a round trip; with parts this many times what it
# sends in one, that is 5 %.
ROUND_TRIPS_A_PART = 20
# Beyond this a part that fails costs more than larger ones gain.
USUAL_MOST_MIB = 64


@dataclass(frozen=True, slots=True)
class PartLimits:
    """Limits of a store: MiB of a part, and parts of an object."""

    least_mib: int
    most_mib: int
    parts: int


STORES = {
    # "Amazon S3 multipart upload limits": 5 MiB (but the last) to 5 GiB, 1 to 10,000 parts.
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html (2026-11)
    "aws": PartLimits(5, 5 * 1024, 10_000),
    # "Scalability and performance targets for Blob storage": blocks to 4000 MiB, 50,000 blocks.
    # https://learn.microsoft.com/azure/storage/blobs/scalability-targets (2026-11)
    "azure": PartLimits(1, 4000, 50_000),
    # "Parallel composite uploads": objects to 5 TiB, of at most 32 components, to which gcloud
    # keeps by itself: it takes larger ones where it must (its property
    # storage/parallel_composite_upload_component_size, Google Cloud SDK 528.0.0).
    # https://cloud.google.com/storage/docs/parallel-composite-uploads (2026-11)
    "gcp": PartLimits(1, 5 * 1024**2 // 32, 5 * 1024**2),
}


def part_mib(lane: Lane, volume_gb: float, limits: PartLimits) -> int:
    """Return the size of parts in MiB, as if the lane's share were one object.

    Large enough that a connection is hardly idle between parts and that the parts do not exceed
    the store's number; small enough that each connection gets a few; within the store's sizes.
    """
    volume_bytes = volume_gb * 1e9 * lane.share
    in_flight = lane.throughput_gbps * 1e9 / 8 / lane.connections * lane.rtt_ms / 1000.0
    busy = in_flight * ROUND_TRIPS_A_PART
    balanced = volume_bytes / (lane.connections * PARTS_A_CONNECTION)
    wanted = max(busy, min(balanced, USUAL_MOST_MIB * MIB))
    # Balance comes before idleness: a part that never runs beside others gains nothing.
    wanted = min(wanted, balanced)
    mib = max(ceil(wanted / MIB), ceil(volume_bytes / limits.parts / MIB), limits.least_mib)
    return min(mib, limits.most_mib)


def side_by_side(connections: int) -> tuple[int, int]:
    """Return how many files to send at once, and how many parts of each.

    Their product is the number of connections, or as little more as there are factors for.
    """
    parts = max(p for p in range(1, int(connections**0.5) + 1) if connections % p == 0)
    if parts * parts * 4 < connections:  # no balanced factors: a prime, for instance
        parts = int(connections**0.5)
    return ceil(connections / parts), parts
