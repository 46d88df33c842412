"""Graphs that leave relayd are what other programs read, and come back as they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest

from planner.model.network import Network
from planner.model.notebook import html_table
from relayd.sources.wan import Wan
from tests.relayd.conftest import Relayd


@pytest.fixture
def exported(relayd: Relayd, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that exports the graph of the baseline in a format."""

    def export(kind: str) -> Path:
        file = tmp_path / kind
        written = relayd("data", "export", "graph", "--format", kind, "--output", file)
        assert written.code == 0, written.err
        return file

    return export


@pytest.mark.slow
def test_a_table_of_links_is_imported_again(
    exported: Callable[[str], Path], relayd: Relayd, tmp_path: Path
) -> None:
    table = exported("csv")
    header, *rows = table.read_text().splitlines(keepends=True)
    rows = [row for row in rows if row.startswith("gcp:")]
    table.write_text("".join([header, *rows]))
    again = relayd("import", "csv", table, "--db", tmp_path / "again.db", "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["files"][0]["accepted"] == 3 * len(rows) > 100


@pytest.mark.slow
def test_graphml_is_read_by_networkx(exported: Callable[[str], Path], wan: Wan) -> None:
    read = networkx.read_graphml(exported("graphml"))
    for link in wan.network:
        found = read.edges[link.src, link.dst]["aggregate_gbps"]
        assert found == pytest.approx(link.aggregate_gbps.expected, rel=0.01)


def test_an_adjacency_matrix_is_read_by_pandas_and_makes_the_same_network(
    exported: Callable[[str], Path], wan: Wan
) -> None:
    frame = pd.read_csv(exported("adjacency"), index_col=0)
    assert list(frame.index) == list(frame.columns)
    again = Network.from_matrices(list(frame.index), frame.to_numpy())
    for link in wan.network:
        found = again.links[link.src][link.dst].aggregate_gbps.expected
        assert found == pytest.approx(link.aggregate_gbps.expected)
    assert len(list(again)) == len(list(wan.network))


def test_a_node_link_topology_is_read_by_networkx_and_a_flow_keeps_to_its_capacities(
    exported: Callable[[str], Path], wan: Wan
) -> None:
    content = json.loads(exported("node-link").read_text())
    graph = networkx.node_link_graph(content, edges="links")
    assert graph.is_directed()
    assert sorted(graph) == list(range(40))
    network = wan.network
    labels = dict(graph.nodes(data="label"))
    for u, v, capacity in graph.edges(data="capacity"):
        link = network.links[labels[u]][labels[v]]
        assert 0 < capacity <= link.aggregate_gbps.expected * (1 + 1e-9)
        assert capacity <= network.sites[labels[u]].egress_gbps.expected
    flow = networkx.maximum_flow_value(graph, 0, 1)
    out = sum(capacity for _, _, capacity in graph.out_edges(0, data="capacity"))
    assert graph.edges[0, 1]["capacity"] <= flow <= out * (1 + 1e-9)
    again = Network.from_networkx(networkx.relabel_nodes(graph, labels))
    assert list(again.sites) == list(network.sites)


def test_links_are_a_list_and_a_tidy_data_frame(wan: Wan) -> None:
    links = wan.links("aws:us-east-1")
    assert [links[0], *links[1:]] == list(wan.network.links["aws:us-east-1"].values())
    frame = links.to_frame()
    assert len(frame) == len(links)
    assert frame.columns.is_unique
    row = frame[frame.dst == "azure:westeurope"].iloc[0]
    link = wan.network.links["aws:us-east-1"]["azure:westeurope"]
    assert row.aggregate_gbps == link.aggregate_gbps.expected
    assert row.aggregate_gbps_low == link.aggregate_gbps.low
    assert row.rtt_ms_source == link.rtt_ms.source == "baseline"
    assert str(frame.rtt_ms_measured_at.dtype).endswith("UTC]")
    assert list(links[:0].to_frame().columns) == list(frame.columns)


def test_a_matrix_is_a_data_frame_tidy_or_wide_and_goes_into_a_shuffle(wan: Wan) -> None:
    rates = wan.matrix("aggregate")
    frame, wide = rates.to_frame(), rates.to_frame(wide=True)
    assert len(frame) == np.isfinite(rates.values).sum()
    assert all(rates[row.src, row.dst] == row.value for row in frame.itertuples())
    assert set(frame.source) == {"baseline"}
    assert "source" not in wan.matrix("fee").to_frame()
    src, dst = "aws:us-east-1", "azure:westeurope"
    assert wide.loc[src, dst] == rates[src, dst]
    assert wide.shape == rates.values.shape
    some = list(rates.regions[:4])
    demands = pd.DataFrame(np.full((4, 4), 10.0), some, some)
    plan = wan.shuffle(demands)
    assert len(plan.pairs) == 12
    assert wan.shuffle(demands.to_numpy(), regions=some).plan_id == plan.plan_id


def test_links_and_matrices_describe_themselves_in_notebooks(wan: Wan) -> None:
    links, rates = wan.links(), wan.matrix("aggregate")
    assert repr(links) == f"<{len(links):,} links, throughput measured on 0>"
    assert repr(rates).startswith(f"<Matrix aggregate of {len(rates.regions)} regions: ")
    assert "Gbit/s" in repr(rates)
    for shown in (links._repr_html_(), rates._repr_html_()):
        assert shown.count("<tr>") == 1 + 10 + 1  # a header, ten rows, and one for the rest
        assert "…" in shown
    assert html_table("a<b", ["&"], []) == (
        "<table><caption>a&lt;b</caption><thead><tr><th>&amp;</th></tr></thead>"
        "<tbody></tbody></table>"
    )
