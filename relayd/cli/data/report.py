"""``relayd study report`` and ``series``: analyses of samples, as Markdown, HTML or JSON."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from planner.model.units import parse_duration_s
from probes.metrics import METRICS, Metric
from relayd.cli.options import catalogue_of, region_id, store_location, store_of
from relayd.cli.output import write_text
from relayd.history import open_history
from relayd.report import make_report
from relayd.report.link_series import report_series
from relayd.report.rendering import html, markdown, svg_drawer

SERIES: dict[str, Metric] = {
    facts.base.replace("_", "-"): facts.name for facts in METRICS.values() if facts.has_series
}
_KINDS = {".html": "html", ".htm": "html", ".json": "json"}


def run(options: argparse.Namespace) -> int:
    """Analyse the store's samples and write the report."""
    catalogue, since_s = catalogue_of(options), _since_s(options)
    by_name = _KINDS.get(Path(options.output or "").suffix.lower(), "md")
    kind = "json" if options.json else options.format or by_name
    # What draws charts is looked for before the analysis, which may take long.
    drawn_for = "report", "draw charts (reports as md or json need none)"
    draw = svg_drawer(*drawn_for) if kind == "html" else None
    with open_history(store_location(options)) as samples:
        report = make_report(samples, catalogue, since_s=since_s, only=options.section)
    if kind == "json":
        text = json.dumps(report.model_dump(), indent=1, allow_nan=False) + "\n"
    else:
        text = html(report, draw) if draw else markdown(report)
    if not options.output:
        sys.stdout.write(text)
        return 0
    write_text(options.output, text)
    print(f"Report: {options.output}", file=sys.stderr)
    return 0


def series(options: argparse.Namespace) -> int:
    """Analyse the series of a link and print what was found."""
    catalogue, since_s = catalogue_of(options), _since_s(options)
    src = region_id(options.src, "--src", catalogue)
    dst = region_id(options.dst, "--dst", catalogue)
    horizon_s = parse_duration_s(options.horizon or "1h", "--horizon")
    metric = SERIES[options.metric]
    with store_of(options, "read") as store:
        report = report_series(store, src, dst, metric, horizon_s=horizon_s, since_s=since_s)
    as_json = options.json and json.dumps(report.model_dump(), indent=1, allow_nan=False)
    print(as_json or markdown(report))
    return 0


def _since_s(options: argparse.Namespace) -> float | None:
    return time.time() - parse_duration_s(options.since, "--since") if options.since else None
