"""Who changed the catalogue, kept in the store that a command works on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from planner.model.errors import RelaydError
from relayd.cli.options import store_location
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.changes import record_change
from relayd.store.location import SERVICE_SCHEMES, Address


def record(options: argparse.Namespace, action: str, overlay: Path) -> None:
    """Record a change of an overlay, where there is a store; what fails is said, and no more."""
    where = store_location(options, load_settings())
    if isinstance(where, Path) and not where.exists():
        return
    if isinstance(where, Address) and where.scheme in SERVICE_SCHEMES:
        return
    try:
        with open_store(where, mode="write") as store:
            record_change(store.database, action, overlay.name)
    except RelaydError as error:
        print(f"relayd: who did this is not recorded: {error}", file=sys.stderr)
