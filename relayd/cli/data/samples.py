"""``relayd samples``: which batches were sent by whom, and what is in quarantine."""

from __future__ import annotations

import argparse
import json
from typing import Any

from relayd.cli import text
from relayd.cli.options import store_location
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.samples.quarantine import quarantined
from relayd.times import utc_text


def batches(options: argparse.Namespace) -> int:
    """List batches, the newest first, with the token, address or file that they are from."""
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
    return _print("batches", rows, as_json=options.json)


def apart(options: argparse.Namespace) -> int:
    """List samples in quarantine, the newest first, with the reasons."""
    with open_store(store_location(options, load_settings()), mode="read") as store:
        found = quarantined(store.database, limit=options.last)
        senders = {batch.id: batch.reporter or batch.name for batch in store.samples.batches()}
    rows = [
        {
            "batch": row.batch_id,
            "from": senders[row.batch_id],
            "link": f"{row.sample.src} > {row.sample.dst}",
            "metric": row.sample.metric,
            "value": row.sample.value,
            "measured at": utc_text(row.sample.measured_at_s),
            "reason": row.reason,
        }
        for row in found
    ]
    return _print("quarantine", rows, as_json=options.json)


def _print(name: str, rows: list[dict[str, Any]], *, as_json: bool) -> int:
    if as_json:
        print(json.dumps({name: rows}, indent=2))
    elif rows:
        cells = [tuple("-" if v is None else str(v) for v in row.values()) for row in rows]
        print(text.left_table(tuple(rows[0]), cells))
    else:
        print("None.")
    return 0
