"""Samples in quarantine: kept with the reason, apart from what estimates rest on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from probes.samples import Quarantined, Sample
from relayd.store.database import Database


class QuarantinedRow(NamedTuple):
    """A sample in quarantine.

    Attributes
    ----------
    batch_id : int
        The batch that brought it.
    """

    id: int
    batch_id: int
    reason: str
    sample: Sample


def add_quarantined(database: Database, batch_id: int, rows: Iterable[Quarantined]) -> int:
    """Keep samples apart, each once; return how many were new. Within a transaction."""
    added = 0
    for sample, reason in rows:
        content = json.dumps(sample._asdict(), sort_keys=True)
        added += len(
            database.rows(
                "INSERT INTO quarantined_samples "
                "(batch_id, digest, reason, src, dst, metric, value, measured_at_s, sample) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING RETURNING id",
                (
                    batch_id,
                    blake2b(content.encode(), digest_size=16).hexdigest(),
                    reason,
                    *sample[:5],
                    content,
                ),
            )
        )
    return added


def quarantined(database: Database, *, limit: int) -> list[QuarantinedRow]:
    """Return the samples that came into quarantine last, the newest first."""
    return [
        QuarantinedRow(number, batch_id, reason, Sample(**json.loads(content)))
        for number, batch_id, reason, content in database.rows(
            "SELECT id, batch_id, reason, sample FROM quarantined_samples ORDER BY id DESC LIMIT ?",
            (limit,),
        )
    ]
