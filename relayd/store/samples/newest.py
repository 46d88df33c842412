"""The newest sample of each pair and metric in a span of time, without reading all samples."""

from __future__ import annotations

from typing import NamedTuple

from probes.samples import Metric
from relayd.store.database import Database

# The key of the table begins with link, metric and time: one descent into it for each.
_NEWEST = """
WITH newest AS (
    SELECT src.region_id AS src_id, dst.region_id AS dst_id,
        metrics.id AS metric_id, metrics.name AS metric, (
        SELECT samples.measured_at_s FROM used_samples AS samples
        WHERE samples.src_id = src.region_id AND samples.dst_id = dst.region_id
        AND samples.metric_id = metrics.id
        AND samples.measured_at_s > ? AND samples.measured_at_s <= ?
        ORDER BY samples.measured_at_s DESC LIMIT 1
    ) AS at_s
    FROM snapshots JOIN sites AS src ON src.snapshot_key = snapshots.key
    JOIN sites AS dst ON dst.snapshot_key = snapshots.key CROSS JOIN metrics
    WHERE snapshots.id = ? AND metrics.name IN ('rtt_ms', 'per_flow_mbps', 'aggregate_mbps')
)
SELECT src.name, dst.name, newest.metric, samples.value, samples.connections
FROM newest
JOIN used_samples AS samples ON samples.src_id = newest.src_id AND samples.dst_id = newest.dst_id
    AND samples.metric_id = newest.metric_id AND samples.measured_at_s = newest.at_s
JOIN regions AS src ON src.id = newest.src_id
JOIN regions AS dst ON dst.id = newest.dst_id
"""


class NewSample(NamedTuple):
    """What was measured of a link; 0 connections where that does not apply."""

    src: str
    dst: str
    metric: Metric
    value: float
    connections: int


def newest_samples(
    database: Database, snapshot: str, after_s: float, until_s: float
) -> list[NewSample]:
    """Return, for the pairs of a snapshot's regions, what was measured last in a span of time.

    Parameters
    ----------
    snapshot : str
        Id; one that was pruned has no regions.
    after_s, until_s : float
        Seconds since 1970; the end counts, the beginning does not.
    """
    return [NewSample(*row) for row in database.rows(_NEWEST, (after_s, until_s, snapshot))]
