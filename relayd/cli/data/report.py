"""``relayd report``: analyses of all samples, as Markdown, HTML or JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from planner.model.units import parse_duration_s
from probes.samples import Metric
from relayd.cli.options import catalogue_of, region_id, store_location
from relayd.cli.output import unwritable
from relayd.history.opening import open_history
from relayd.report import make_report
from relayd.report.link_series import report_series
from relayd.report.rendering import html, markdown
from relayd.settings import load_settings
from relayd.store import open_store


def run(options: argparse.Namespace) -> int:
    """Analyse the store's samples and write the report."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    since_s = time.time() - parse_duration_s(options.since, "--since") if options.since else None
    path = store_location(options, settings)
    kind = "json" if options.json else options.format or _kind_of(options.output)
    with open_history(path) as samples:
        report = make_report(samples, catalogue, since_s=since_s, only=options.section)
    if kind == "json":
        text = json.dumps(report.model_dump(), indent=1, allow_nan=False) + "\n"
    else:
        text = html(report) if kind == "html" else markdown(report)
    if not options.output:
        sys.stdout.write(text)
        return 0
    try:
        Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(Path(options.output), error) from None
    print(f"Report: {options.output}", file=sys.stderr)
    return 0


def _kind_of(output: str | None) -> str:
    by_suffix = {".html": "html", ".htm": "html", ".json": "json"}
    return by_suffix.get(Path(output or "").suffix.lower(), "md")


_METRICS: dict[str, Metric] = {
    "per-flow": "per_flow_mbps",
    "aggregate": "aggregate_mbps",
    "udp": "udp_mbps",
    "rtt": "rtt_ms",
    "loss": "loss_pct",
    "jitter": "jitter_ms",
}


def series(options: argparse.Namespace) -> int:
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
