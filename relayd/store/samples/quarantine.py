"""Samples in quarantine: kept with the reason, apart from what estimates rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from probes.importers.physics import FAULTS
from probes.samples import Quarantined, Sample
from relayd.store.database import Database

_SELECT = (
    "SELECT quarantined_samples.id, batch_id, reason, sample, batches.name, reporter, address, "
    "imported_at_s FROM quarantined_samples JOIN batches ON batches.id = batch_id "
)


class QuarantinedRow(NamedTuple):
    """A sample in quarantine.

    Attributes
    ----------
    batch_id : int
        The batch that brought it.
    batch : str
        That batch's name.
    reporter, address : str
        Name of the token that sent it, and from where; ``""`` for commands on the store itself.
    arrived_at_s : float
        Seconds since 1970 (UTC).
    """

    id: int
    batch_id: int
    reason: str
    sample: Sample
    batch: str
    reporter: str
    address: str
    arrived_at_s: float


class ReasonCount(NamedTuple):
    """How many samples are in quarantine for one kind of reason."""

    reason: str
    samples: int


def add_quarantined(database: Database, batch_id: int, rows: Iterable[Quarantined]) -> int:
    """Keep samples apart, each once; return how many were new. Within a transaction."""
    contents = []
    for sample, reason in rows:
        content = json.dumps(sample._asdict(), sort_keys=True)
        digest = blake2b(content.encode(), digest_size=16).hexdigest()
        contents.append((batch_id, digest, reason, *sample[:5], content))
    if not contents:
        return 0
    return database.change_many(
        "INSERT INTO quarantined_samples "
        "(batch_id, digest, reason, src, dst, metric, value, measured_at_s, sample) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
        contents,
    )


def quarantined(
    database: Database, *, limit: int, before_id: int | None = None, kind: str = ""
) -> list[QuarantinedRow]:
    """Return the samples that came into quarantine last, the newest first.

    Parameters
    ----------
    limit : int
        Of one page.
    before_id : int, optional
        The last ``id`` of the page before; without it, the first page.
    kind : str
        Only those for a kind of fault, of :data:`~probes.importers.physics.FAULTS`.
    """
    conditions: list[tuple[str, object]] = []
    if before_id:
        conditions.append(("quarantined_samples.id < ?", before_id))
    if kind:
        conditions.append(("reason LIKE ?", f"%{kind}%"))
    where = " AND ".join(condition for condition, _ in conditions)
    rows = database.rows(
        f"{_SELECT}{f'WHERE {where} ' if where else ''}"
        "ORDER BY quarantined_samples.id DESC LIMIT ?",
        [*(value for _, value in conditions), limit],
    )
    return [
        QuarantinedRow(number, batch_id, reason, Sample(**json.loads(content)), *sender)
        for number, batch_id, reason, content, *sender in rows
    ]


def quarantine_reasons(database: Database) -> list[ReasonCount]:
    """Return how many samples are in quarantine for each kind of fault; the kinds that occur."""
    of_kind = ", ".join(
        ["coalesce(sum(CASE WHEN reason LIKE ? THEN 1 ELSE 0 END), 0)"] * len(FAULTS)
    )
    counts = database.row(
        f"SELECT {of_kind} FROM quarantined_samples",  # noqa: S608
        [f"%{kind}%" for kind in FAULTS],
    )
    found = zip(FAULTS, map(int, counts), strict=True)
    return [ReasonCount(kind, count) for kind, count in found if count]
