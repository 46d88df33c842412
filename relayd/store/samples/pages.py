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
    "FROM samples JOIN metrics ON metrics.id = samples.metric_id "
    "JOIN setups ON setups.id = samples.setup_id "
    "WHERE samples.src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND samples.dst_id = (SELECT id FROM regions WHERE name = ?)"
)
_PAGE = _LINK + " AND samples.id > ?"
_OF_METRIC = " AND metrics.name = ?"
_IN_ORDER = " ORDER BY samples.id LIMIT ?"
# Backwards in the order of the table's key, in which estimates read: at equal times, the same
# samples are the newest ones.
_THROUGH = " AND samples.metric_id = (SELECT id FROM metrics WHERE name = ?) AND samples.id <= ? "
_BACKWARDS = (
    "ORDER BY measured_at_s DESC, value DESC, samples.connections DESC, samples.duration_s DESC, "
    "samples.warmed_up DESC, samples.setup_id DESC, samples.detail_digest DESC LIMIT ?"
)
_COUNT = (
    "SELECT count(*) FROM samples WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?) "
    "AND metric_id = (SELECT id FROM metrics WHERE name = ?) AND id <= ?"
)


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


def newest_samples(
    database: Database, src: str, dst: str, metric: Metric, *, through: int, limit: int
) -> tuple[list[StoredSample], int]:
    """Return the newest samples of a link and metric, oldest first, and how many it has.

    Parameters
    ----------
    through : int
        Only samples with this id or a lower one.
    """
    key = (src, dst, metric, through)
    rows = database.rows(_LINK + _THROUGH + _BACKWARDS, (*key, limit))
    count = len(rows)
    if count == limit:
        (count,) = database.row(_COUNT, key)
    return [_stored(src, dst, row) for row in reversed(rows)], count


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
