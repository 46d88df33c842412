"""``relayd series``: memory, periods, forecast, levels and losses of one link."""

from __future__ import annotations

import argparse
import json
import time

from planner.model.units import parse_duration_s
from probes.samples import Metric
from relayd.cli.options import catalogue_of, region_id, store_location
from relayd.report.link_series import report_series
from relayd.report.rendering import markdown
from relayd.settings import load_settings
from relayd.store import open_store

_METRICS: dict[str, Metric] = {
    "per-flow": "per_flow_mbps",
    "aggregate": "aggregate_mbps",
    "udp": "udp_mbps",
    "rtt": "rtt_ms",
    "loss": "loss_pct",
    "jitter": "jitter_ms",
}


def run(options: argparse.Namespace) -> int:
    """Analyse the series of a link and print what was found."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    src, dst = (
        region_id(name, field, catalogue)
        for name, field in ((options.src, "--src"), (options.dst, "--dst"))
    )
    since_s = time.time() - parse_duration_s(options.since, "--since") if options.since else None
    with open_store(store_location(options, settings), mode="read") as store:
        report = report_series(
            store,
            src,
            dst,
            _METRICS[options.metric],
            horizon_s=parse_duration_s(options.horizon or "1h", "--horizon"),
            since_s=since_s,
        )
    if options.json:
        print(json.dumps(report.model_dump(), indent=1, allow_nan=False))
    else:
        print(markdown(report))
    return 0
