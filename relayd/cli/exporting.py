"""``relayd export``: the graph in forms that other programs read."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from planner.errors import InputError
from relayd.cli.options import wan_of
from relayd.graph_document import document_of

if TYPE_CHECKING:
    from planner.network import Network

FIGURES = ("rtt_ms", "per_flow_mbps", "aggregate_gbps")


def run(options: argparse.Namespace) -> int:
    """Write the graph to a file or to standard output."""
    wan = wan_of(options)
    network = wan.network
    write = {"json": write_json, "csv": write_csv, "graphml": write_graphml}[options.format]
    if not options.output:
        write(network, sys.stdout)
        return 0
    try:
        target = Path(options.output).open("w", newline="", encoding="utf-8")  # noqa: SIM115
    except OSError as error:
        raise InputError(
            "--output", f"can't be written ({error.strerror})", value=options.output
        ) from None
    with target as stream:
        write(network, stream)
    return 0


def write_json(network: Network, stream: TextIO) -> None:
    """Write snapshot, sites and legs, each figure with bounds, source and time."""
    json.dump(document_of(network), stream, indent=1)
    stream.write("\n")


def write_csv(network: Network, stream: TextIO) -> None:
    """Write one row a leg; `relayd import csv` reads its figures back."""
    writer = csv.writer(stream, lineterminator="\n")
    bounds = [f"{name}_{part}" for name in FIGURES for part in ("low", "high", "source")]
    writer.writerow(
        ["src", "dst", "rtt_ms", "per_flow_mbps", "aggregate_gbps", "loss_pct", *bounds]
    )
    for leg in network:
        figures = [getattr(leg, name) for name in FIGURES]
        row: list[object] = [leg.src, leg.dst, *(figure.expected for figure in figures)]
        row.append("" if leg.loss_pct is None else leg.loss_pct)
        for figure in figures:
            row += [figure.low, figure.high, figure.source]
        writer.writerow(row)


def write_graphml(network: Network, stream: TextIO) -> None:
    """Write GraphML, for networkx, Gephi and others."""
    import networkx

    stream.writelines(line + "\n" for line in networkx.generate_graphml(network.to_networkx()))
