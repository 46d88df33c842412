"""``relayd store changes``: who changed what."""

from __future__ import annotations

import argparse

from relayd.cli.options import store_location
from relayd.cli.output import NOTHING, print_rows
from relayd.cli.text import left_table
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.changes import changes
from relayd.times import utc_text


def run(options: argparse.Namespace) -> int:
    """List what was changed last, the newest first."""
    with open_store(store_location(options, load_settings()), mode="read") as store:
        found = changes(store.database, limit=options.last)
    rows = [
        (utc_text(one.at_s), one.who, one.address or "-", one.action, one.subject) for one in found
    ]
    return print_rows(
        options,
        "changes",
        [change._asdict() for change in found],
        shown=lambda: left_table(("at", "who", "from", "what", "of"), rows) if rows else NOTHING,
    )
