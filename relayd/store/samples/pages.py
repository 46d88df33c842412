"""The samples of one link: a page at a time in the order of arrival, or the newest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from probes.samples import OWN, Metric, Reported, Sample
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
# In the order of the table's key, in which estimates read: at equal times, the same samples are the
# newest ones. A sample that an operator confirmed is the own prober's.
_KEY = (
    "measured_at_s, value, samples.connections, samples.duration_s, samples.warmed_up, "
    "samples.setup_id, samples.detail_digest"
)
_SOURCE = "CASE WHEN confirmed_samples.sample_id IS NULL THEN batches.source ELSE ? END"
_PART = f"{_SOURCE}, CASE WHEN samples.address = 'private' THEN 1 ELSE 0 END"
_NEWEST = (
    "SELECT id, source, first_id, measured_at_s FROM ("  # noqa: S608
    f"SELECT samples.id AS id, {_SOURCE} AS source, measured_at_s, "
    f"min(samples.id) OVER (PARTITION BY {_PART}) AS first_id, "
    f"row_number() OVER (PARTITION BY {_PART} ORDER BY "
    + ", ".join(f"{column} DESC" for column in _KEY.split(", "))
    + ") AS place FROM used_samples AS samples "
    "JOIN batches ON batches.id = samples.batch_id "
    "LEFT JOIN confirmed_samples ON confirmed_samples.sample_id = samples.id "
    "WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?) "
    "AND metric_id = (SELECT id FROM metrics WHERE name = ?) AND samples.id <= ?) AS placed "
    "WHERE place <= ?"
)
_COUNT = (
    "SELECT count(*) FROM used_samples WHERE src_id = (SELECT id FROM regions WHERE name = ?) "
    "AND dst_id = (SELECT id FROM regions WHERE name = ?) "
    "AND metric_id = (SELECT id FROM metrics WHERE name = ?) AND id <= ?"
)
_SINCE = (
    " AND samples.metric_id = (SELECT id FROM metrics WHERE name = ?) "  # noqa: S608
    f"AND samples.id <= ? AND measured_at_s >= ? ORDER BY {_KEY}"
)


class NewestSample(NamedTuple):
    """A sample that may count, and who reported it.

    Attributes
    ----------
    first_id : int
        The lowest id of all that its source reported of its link and metric.
    """

    stored: StoredSample
    source: str
    first_id: int


def as_reported(newest: Iterable[NewestSample]) -> list[Reported]:
    """Return the newest samples as estimates read them, of each source from its first on."""
    found, begun = [], set()
    for stored, source, first_id in newest:
        part = (source, stored.sample.address == "private")
        number = stored.id if part in begun else first_id
        begun.add(part)
        found.append(Reported(stored.sample, source, number))
    return found


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
) -> tuple[list[NewestSample], int]:
    """Return the newest samples of a link and metric, oldest first, and how many it has.

    Parameters
    ----------
    through : int
        Only samples with this id or a lower one.
    limit : int
        Of each source and kind of address.
    """
    key = (src, dst, metric, through)
    chosen = {
        number: (source, first_id, at_s)
        for number, source, first_id, at_s in database.rows(_NEWEST, (OWN, OWN, OWN, *key, limit))
    }
    if not chosen:
        return [], 0
    since_s = min(at_s for _, _, at_s in chosen.values())
    rows = database.rows(_LINK + _SINCE, (*key, since_s))
    found = [
        NewestSample(_stored(src, dst, row), *chosen[row[0]][:2])
        for row in rows
        if row[0] in chosen
    ]
    (count,) = database.row(_COUNT, key)
    return found, int(count)


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
