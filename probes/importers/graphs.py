"""Networks as GraphML or GML, such as the files of the Internet Topology Zoo.

The Zoo's nodes (https://topology-zoo.org) have places as labels; ``LinkSpeedRaw`` of an edge is
its line's nominal rate in bit/s, ``LinkLabel`` or ``label`` the same in words. Each edge that
states a figure gives samples, as a row of a table does.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, BinaryIO

from planner.model.errors import FormatError, InputError
from planner.model.units import BITS_PER_MBIT, MBPS_PER_GBPS
from probes.importers.csv_samples import FIGURES, read_rows
from probes.importers.importer import importer_of
from probes.importers.options import ImportedRow, ImportOptions, split
from probes.importers.text import whole

if TYPE_CHECKING:
    import networkx as nx

_IN_WORDS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?) ?([kKMGT])b(?:ps|it/s)\b")
_GBPS = {"K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1e3}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of a GraphML or GML file.

    Raises a FormatError if the file is damaged or states no figure, and an InputError if its places
    need a provider and none was given.
    """
    graph = graph_of(whole(stream, options.name), options.name, options.provider)
    if bare := next((name for name in graph if split(name) is None), ""):
        problem = f"is needed, because {options.name} names places alone, such as {bare[:40]!r}"
        raise InputError("--provider", problem, remedy="For example: --provider zoo.")
    rows = [
        (number, {"tool": "graph", "src": u, "dst": v} | told)
        for number, (u, v, data) in enumerate(graph.edges(data=True), start=1)
        if (told := {key: str(value) for key, value in data.items() if key in FIGURES})
    ]
    if not rows:
        problem = f"has {len(graph.edges):,} edges, and none states a speed or another figure"
        remedy = "Add LinkSpeedRaw or rtt_ms to them; demands go to `relayd plan shuffle`."
        raise FormatError(options.name, problem, remedy=remedy)
    yield from read_rows(rows, options)


def graph_of(content: bytes, name: str, provider: str = "") -> nx.DiGraph:
    """Return the graph of a GraphML or GML file; see :func:`directed`.

    Raises a FormatError if the file is damaged.
    """
    import networkx as nx

    content = content.removeprefix(b"\xef\xbb\xbf")
    if not (is_xml := content.lstrip()[:1] == b"<"):
        # networkx wants ASCII, and the Zoo's files do not say that lines are parallel.
        content = content.decode(errors="replace").encode("ascii", "xmlcharrefreplace")
        if b"multigraph" not in content:
            content = content.replace(b"[", b"[ multigraph 1 ", 1)
    source = BytesIO(content)
    try:
        with warnings.catch_warnings(action="ignore"):  # of attributes without a type
            graph = nx.read_graphml(source) if is_xml else nx.read_gml(source, label="id")
    except Exception as error:  # networkx raises whatever a damaged file makes it run into
        problem = f"is no graph that networkx reads: {str(error)[:200] or type(error).__name__}"
        raise FormatError(name, problem, remedy="It may be damaged.") from error
    return directed(graph, provider)


def directed(graph: nx.Graph, provider: str = "") -> nx.DiGraph:
    """Return a graph of regions: edges both ways if they have no direction, with their speeds.

    Names are those of nodes, or what their labels make, behind ``provider`` where they have none.
    Speeds of parallel edges add.
    """
    import networkx as nx

    names = {}
    for node, data in graph.nodes(data=True):
        name = str(node)
        if ":" not in name and isinstance(label := data.get("label"), str):
            name = _NOT_IN_NAMES.sub("-", label).strip("-.") or name
        names[node] = f"{provider}:{name}" if provider and ":" not in name else name
    often, found = Counter(names.values()), nx.DiGraph()
    names = {node: name if often[name] == 1 else f"{name}-{node}" for node, name in names.items()}
    for node, data in graph.nodes(data=True):
        found.add_nodes_from([(names[node], data)])
    for u, v, data in graph.edges(data=True):
        speed, ends = _speed_gbps(data), (names[u], names[v])
        for pair in {ends} if graph.is_directed() else {ends, ends[::-1]}:
            earlier = found.get_edge_data(*pair, {}).get("aggregate_gbps", 0)
            told = {} if speed is None else {"aggregate_gbps": earlier + speed}
            found.add_edges_from([(*pair, {**data, **told})])
    return found


def _speed_gbps(data: Mapping[str, Any]) -> float | None:
    try:
        if "aggregate_gbps" in data:
            return float(data["aggregate_gbps"])
        if "LinkSpeedRaw" in data:
            return float(data["LinkSpeedRaw"]) / BITS_PER_MBIT / MBPS_PER_GBPS
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("the speed of an edge", f"is not a number: {error}") from None
    words = _IN_WORDS.match(str(data.get("LinkLabel") or data.get("label") or ""))
    return float(words[1]) * _GBPS[words[2].upper()] if words else None


IMPORTER = importer_of("graph", {"": read})
