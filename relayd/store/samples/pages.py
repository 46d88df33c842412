"""The samples of one link: a page at a time in the order of arrival, or the newest."""

from __future__ import annotations

from typing import Any

from probes.samples import Metric, Sample
from relayd.store.database import Database
from relayd.store.samples.reading import StoredSample

_LINK = (
    "SELECT samples.id, samples.batch_id, metrics.name, samples.value, samples.measured_at_s, "
    "setups.tool, samples.connections, samples.duration_s, samples.warmed_up, setups.src_zone, "
    "setups.dst_zone, setups.src_vm, setups.dst_vm, samples.detail, samples.address, "
    "samples.new_level, samples.intervals "
    "FROM used_samples AS samples JOIN metrics ON metrics.id = samples.metric_id "
    "JOIN setups ON setups.id = samples.setup_id "
    "WHERE samples.src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND samples.dst_id = (SELECT id FROM regions WHERE name = ?)"
)
_PAGE = _LINK + " AND samples.id > ?"
_OF_METRIC = " AND metrics.name = ?"
_IN_ORDER = " ORDER BY samples.id LIMIT ?"


def sample_page(
    database: Database, src: str, dst: str, metric: Metric | None, *, after_id: int, limit: int
) -> list[StoredSample]:
    """Return the samples of a link that arrived after one of them, in order of arrival.

    Parameters
    ----------
    src, dst : str
        Region ids; regions without samples have an empty page.
    metric : Metric, optional
        Only this metric.
    after_id : int
        0 for the first page.
    """
    values: list[object] = [src, dst, after_id]
    if metric is not None:
        values.append(metric)
    query = _PAGE + (_OF_METRIC if metric is not None else "") + _IN_ORDER
    return [_stored(src, dst, row) for row in database.rows(query, [*values, limit])]


def _stored(src: str, dst: str, row: Any) -> StoredSample:
    return StoredSample(
        row[0],
        row[1],
        Sample(
            src,
            dst,
            row[2],
            row[3],
            row[4],
            row[5],
            row[6] or None,
            row[7] or None,
            bool(row[8]),
            row[9],
            row[10],
            row[11],
            row[12],
            row[13],
            row[14],
            bool(row[15]),
            row[16],
        ),
    )
