"""``relayd samples``: which batches were sent by whom, and what is in quarantine."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.cli.data.decisions import disputed
from relayd.cli.options import store_location
from relayd.cli.output import print_rows
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.samples.quarantine import Wanted, quarantined
from relayd.times import utc_text


def batches(options: argparse.Namespace) -> int:
    """List batches, the newest first, with the token, address or file that they are from."""
    if options.disputed:
        return disputed(options)
    with open_store(store_location(options, load_settings()), mode="read") as store:
        newest = store.samples.batches()[: -options.last - 1 : -1]
    rows: list[dict[str, Any]] = [
        {
            "batch": batch.id,
            "at": utc_text(batch.imported_at_s),
            "name": batch.name,
            "format": batch.format,
            "token": batch.reporter or None,
            "address": batch.address or None,
            "accepted": batch.accepted,
            "duplicates": batch.duplicates,
            "quarantined": batch.quarantined,
        }
        for batch in newest
    ]
    return print_rows(options, "batches", rows)


def apart(options: argparse.Namespace) -> int:
    """List samples in quarantine, the newest first, with the reasons."""
    with open_store(store_location(options, load_settings()), mode="read") as store:
        found = quarantined(store.database, Wanted(options.state), limit=options.last)
    rows = [
        {
            "number": row.id,
            "batch": row.batch_id,
            "from": row.reporter or row.batch,
            "link": f"{row.sample.src} > {row.sample.dst}",
            "metric": row.sample.metric,
            "value": row.sample.value,
            "measured at": utc_text(row.sample.measured_at_s),
            "reason": row.reason,
        }
        | (
            {
                "decided by": row.decided_by,
                "decided at": utc_text(row.decided_at_s),
                "because": row.decided_because,
            }
            if row.decided_at_s is not None
            else {}
        )
        for row in found
    ]
    return print_rows(options, "quarantine", rows)
