"""Everything measured on a link as a series: samples, and summaries of old ones."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from probes.analysis.binning import Points, points
from probes.samples import Metric
from relayd.store.database import Database
from relayd.store.samples.reading import StoredSamples

_PAIR = (
    "WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?)"
)
_METRICS = (
    "SELECT metrics.name, sum(count), min(first_at_s), max(last_at_s) FROM ("  # noqa: S608
    "SELECT metric_id, count(*) AS count, min(measured_at_s) AS first_at_s, "
    f"max(measured_at_s) AS last_at_s FROM used_samples {_PAIR} GROUP BY metric_id UNION ALL "
    "SELECT metric_id, sum(samples) AS count, min(first_at_s) AS first_at_s, "
    f"max(last_at_s) AS last_at_s FROM sample_summaries {_PAIR} GROUP BY metric_id"
    ") AS found JOIN metrics ON metrics.id = metric_id GROUP BY metrics.name ORDER BY metrics.name"
)
_SUMMARIES = (
    "SELECT first_at_s, last_at_s, samples, least, median, most "  # noqa: S608
    "FROM sample_summaries "
    f"{_PAIR} AND metric_id = (SELECT id FROM metrics WHERE name = ?) "
    "AND last_at_s >= ? AND first_at_s <= ? ORDER BY first_at_s"
)


class MetricSeen(NamedTuple):
    """How much there is of one metric of a link."""

    metric: Metric
    samples: int
    first_at_s: float
    last_at_s: float


class LinkSeries(NamedTuple):
    """The measurements of one metric of a link, over some time.

    Attributes
    ----------
    samples : Points
        The oldest first.
    connections : array
        Of each sample; 0 where the notion does not apply.
    compacted : Points
        What samples that are no longer kept one by one were made into.
    """

    samples: Points
    connections: np.ndarray
    compacted: Points


def metrics_seen(database: Database, src: str, dst: str) -> list[MetricSeen]:
    """Return which metrics of a link were measured, by name."""
    return [
        MetricSeen(metric, int(count), first_at_s, last_at_s)
        for metric, count, first_at_s, last_at_s in database.rows(_METRICS, (src, dst, src, dst))
    ]


def link_series(
    database: Database,
    src: str,
    dst: str,
    metric: Metric,
    *,
    since_s: float = -inf,
    until_s: float = inf,
) -> LinkSeries:
    """Read one metric of a link.

    Parameters
    ----------
    since_s, until_s : float
        Both ends count; seconds since 1970 (UTC).
    """
    since_s, until_s = max(since_s, -1e300), min(until_s, 1e300)
    samples = StoredSamples(database)
    rows = samples.read(src=src, dst=dst, metric=metric, since_s=since_s, details=False).rows
    rows = rows[rows["measured_at_s"] <= until_s]
    found = database.rows(_SUMMARIES, (src, dst, metric, since_s, until_s))
    columns = np.array(found, float).reshape(-1, 6).T
    compacted = Points(
        columns[0], columns[1], columns[2].astype(np.int64), columns[3], columns[4], columns[5]
    )
    return LinkSeries(points(rows["measured_at_s"], rows["value"]), rows["connections"], compacted)
