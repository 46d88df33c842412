"""``relayd data export``: the graph, or all samples, in formats that other programs read."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from pathlib import Path
from typing import TextIO

from planner.model.document import document_of
from planner.model.errors import InputError
from planner.model.link import LINK_FIGURES
from planner.model.network import Network
from relayd.cli.options import store_of, time_s, wan_of
from relayd.cli.output import respond, write_text
from relayd.cli.text import formula_safe
from relayd.store.samples.data_set import write_data_set
from relayd.tables.link_table import link_row


def run(options: argparse.Namespace) -> int:
    """Write the graph to a file or to standard output, or samples into a folder.

    Raises an InputError if an option does not go with what is written.
    """
    if options.what == "samples":
        return _write_samples(options)
    if options.format == "parquet" or options.since:
        field = "--since" if options.since else "--format parquet"
        remedy = "Write `relayd data export samples -o FOLDER`, or `relayd data links` for a table."
        raise InputError(field, "is of samples", remedy=remedy)
    made = io.StringIO(newline="")
    WRITERS[options.format or "json"](wan_of(options).network, made)
    if options.output:
        write_text(options.output, made.getvalue())
    else:
        sys.stdout.write(made.getvalue())
    return 0


def _write_samples(options: argparse.Namespace) -> int:
    if options.format not in (None, "parquet"):
        problem, remedy = "is none that samples are exported in", "Write --format parquet."
        raise InputError("--format", problem, value=options.format, remedy=remedy)
    if not options.output:
        raise InputError("--output", "is missing", remedy="Name a new folder: -o FOLDER.")
    since_s = time_s(options.since, "--since") if options.since else None
    folder = Path(options.output)
    with store_of(options, "read") as store:
        written = write_data_set(store.samples, folder, since_s=since_s)
    reads = f" `relayd import parquet {folder}` reads them." if written else ""
    said = f"{written:,} samples in {folder}.{reads}"
    return respond(options, {"folder": str(folder), "samples": written}, said)


def write_json(network: Network, stream: TextIO) -> None:
    """Write snapshot, sites and links, each figure with bounds, source and time."""
    json.dump(document_of(network), stream, indent=1)
    stream.write("\n")


def write_csv(network: Network, stream: TextIO) -> None:
    """Write one row a link; `relayd import csv` reads its figures back."""
    bounds = [f"{name}_{part}" for name in LINK_FIGURES for part in ("low", "high", "source")]
    columns = ["src", "dst", *LINK_FIGURES, "loss_pct", *bounds]
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for link in network:
        ends = {"src": formula_safe(link.src), "dst": formula_safe(link.dst)}
        writer.writerow(link_row(link) | ends)


def write_graphml(network: Network, stream: TextIO) -> None:
    """Write GraphML, for networkx, Gephi and others."""
    import networkx

    stream.writelines(line + "\n" for line in networkx.generate_graphml(network.to_networkx()))


def write_adjacency(network: Network, stream: TextIO) -> None:
    """Write what one VM pair reaches, Gbit/s, as a matrix with names above and to the left.

    0 where there is no link. ``pandas.read_csv(file, index_col=0)`` reads it.
    """
    writer = csv.writer(stream, lineterminator="\n")
    names = {site: formula_safe(site) for site in network.sites}
    writer.writerow(["", *names.values()])
    for src in network.sites:
        links = network.links.get(src, {})
        rates = [links[dst].aggregate_gbps.expected if dst in links else 0 for dst in network.sites]
        writer.writerow([names[src], *rates])


def write_node_link(network: Network, stream: TextIO) -> None:
    """Write a topology as programs for WAN traffic engineering read it.

    Node-link JSON of a directed graph with whole numbers as nodes, the name as ``label``, and a
    ``capacity`` on every link (Gbit/s): the form of the topologies of NCFlow (Abuzaid et al.,
    *Contracting Wide-area Network Topologies to Solve Flow Problems Quickly*, NSDI 2021,
    github.com/netcontract/ncflow) and of ``networkx.node_link_graph(content, edges="links")``.
    Such programs know no caps of nodes: a link's capacity is what it has alone.
    """
    import networkx

    graph = network.to_networkx()
    for src, dst, link in graph.edges(data=True):
        caps = (graph.nodes[src]["egress_gbps"], graph.nodes[dst]["ingress_gbps"])
        link["capacity"] = min(link["aggregate_gbps"], *caps)
    numbered = networkx.convert_node_labels_to_integers(graph, label_attribute="label")
    json.dump(networkx.node_link_data(numbered, edges="links"), stream, indent=1)
    stream.write("\n")


WRITERS = {
    "json": write_json,
    "csv": write_csv,
    "graphml": write_graphml,
    "adjacency": write_adjacency,
    "node-link": write_node_link,
}
