"""``relayd store compact``: make old samples small, with all totals kept."""

from __future__ import annotations

import argparse
import json

from planner.model.units import parse_duration_s
from relayd.cli.options import store_place
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.samples.retention import compact as make_small


def compact(options: argparse.Namespace) -> int:
    """Make samples older than a time span small, and say what became of them."""
    older_than_s = parse_duration_s(options.older_than, "--older-than")
    path = store_place(options, load_settings())
    with open_store(path, mode="write") as store:
        done = make_small(store, older_than_s, period=options.period, files_too=options.files)
    if options.json:
        print(json.dumps({"samples": done.samples, "summaries": done.summaries, "kept": done.kept}))
        return 0
    print(
        f"Made {done.samples} samples small: {done.summaries} summaries, one "
        f"{'an hour' if options.period == 'hour' else 'a day'}"
    )
    if done.kept:
        print(f"{done.kept} as old stay: estimates rest on them, or they are of imported files")
    return 0
