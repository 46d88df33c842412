"""``relayd data matrix``: one figure for all pairs, as text or for programs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from math import isnan
from typing import Any

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from relayd.cli import text
from relayd.cli.options import wan_of, whole_number
from relayd.cli.output import print_rows
from relayd.tables.matrices import Matrix


def run(options: argparse.Namespace) -> int:
    """Print one figure for all pairs, tab-separated unless another format is asked for."""
    count = whole_number(options.connections or str(DEFAULT_CONNECTIONS), "--connections")
    found = wan_of(options).matrix(options.metric, count, measured_only=options.measured)
    described = {"snapshot": asdict(found.snapshot), "metric": found.metric, "unit": found.unit}
    if options.summary:
        return _summary(found, described, options)
    values = [[None if isnan(v) else v for v in row] for row in found.values.tolist()]
    regions = list(found.regions)
    known = np.argwhere(~np.isnan(found.values)).tolist()
    pairs = [{"src": regions[i], "dst": regions[j], found.metric: values[i][j]} for i, j in known]
    lines = [[f"{found.metric} ({found.unit})", *regions]]
    lines += [
        [region, *("" if v is None else f"{v:.4g}" for v in row)]
        for region, row in zip(regions, values, strict=True)
    ]
    return print_rows(
        options,
        "pairs",
        pairs,
        shown=lambda: "\n".join(map("\t".join, lines)),
        document=lambda: {
            **described,
            "regions": regions,
            "values": values,
            "sources": found.sources,
        },
    )


def _summary(found: Matrix, described: dict[str, Any], options: argparse.Namespace) -> int:
    """Sum a matrix up by pair of providers."""
    groups: dict[str, list[float]] = {}
    providers = [region.partition(":")[0] for region in found.regions]
    for i, j in np.argwhere(~np.isnan(found.values)).tolist():
        groups.setdefault(f"{providers[i]} -> {providers[j]}", []).append(float(found.values[i, j]))
    shares = found.metric == "relay-gain"
    summed: list[dict[str, Any]] = []
    for pair, values in sorted(groups.items()):
        values.sort()
        count = len(values)
        at = {"p10": count // 10, "median": count // 2, "p90": count * 9 // 10}
        row = {"providers": pair, "pairs": count, **{name: values[k] for name, k in at.items()}}
        if shares:
            row["share_at_least_1.2"] = sum(value >= 1.2 for value in values) / count
        summed.append(row)
    return print_rows(
        options,
        "summary",
        summed,
        shown=lambda: text.page().table_of(
            summed,
            f"{found.metric} ({found.unit})=providers | pairs | p10=p10:.3g | median=median:.3g | "
            "p90=p90:.3g" + " | 1.2x or more=share" * shares,
            share=lambda row: f"{row['share_at_least_1.2']:.0%}",
        ),
        document=lambda: {**described, "summary": summed},
    )
