"""``relayd store compact``: summarise old samples, keeping all totals."""

from __future__ import annotations

import argparse
import json

from planner.model.units import parse_duration_s
from relayd.cli.options import store_location
from relayd.settings import load_settings
from relayd.store import open_store
from relayd.store.samples.retention import compact as make_small


def compact(options: argparse.Namespace) -> int:
    """Summarise samples older than a time span, and print how many."""
    older_than_s = parse_duration_s(options.older_than, "--older-than")
    path = store_location(options, load_settings())
    with open_store(path, mode="write") as store:
        done = make_small(store, older_than_s, period=options.period, files_too=options.files)
    if options.json:
        print(json.dumps({"samples": done.samples, "summaries": done.summaries, "kept": done.kept}))
        return 0
    print(
        f"Summarised {done.samples} samples: {done.summaries} summaries, one per {options.period}"
    )
    if done.kept:
        print(f"Kept {done.kept} as old: estimates use them, or they are from imported files")
    return 0
