"""``relayd import`` without a format: each file tells what it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx
import pytest

import relayd as library
from planner.model.errors import InputError
from relayd.store import open_store
from tests.probes.importers.reading import FIXTURES
from tests.relayd.conftest import Relayd

ENDS = ("--src", "aws:us-east-1", "--dst", "gcp:us-east4")


def test_files_of_several_tools_are_imported_in_one_command(relayd: Relayd, db: Path) -> None:
    files = [FIXTURES / name for name in ("iperf3/one_stream.json", "pings/win.txt")]
    outcome = relayd("import", *files, *ENDS, "--db", db)
    assert outcome.code == 0
    assert "one_stream.json, iperf3's JSON, version 3." in outcome.out
    assert "win.txt, output of ping of Windows: 2 samples added" in outcome.out
    told = json.loads(relayd("import", *files, *ENDS, "--db", db, "--json").out)
    assert told["files"][1]["what"] == "output of ping of Windows"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("iperf3",), "is a format, and no file follows it"),
        (("nuttcp", "x.txt"), "nuttcp can't be read"),
        (("csv", FIXTURES / "pings/win.txt"), "is output of ping of Windows"),
        (("iperf3", FIXTURES / "pings/win.txt"), "is output of ping of Windows"),
        ((FIXTURES / "pings/win.txt", "--labels", "src"), "--labels has no `=`"),
        (("nowhere.json",), "can't be read"),
    ],
)
def test_what_can_not_be_imported_says_why_and_changes_nothing(
    relayd: Relayd, db: Path, words: tuple[str | Path, ...], said: str
) -> None:
    before = db.read_bytes()
    outcome = relayd("import", *words, *ENDS, "--db", db)
    assert outcome.code == 2
    assert db.read_bytes() == before
    assert said in " ".join(outcome.err.split())


@pytest.mark.slow
def test_series_of_prometheus_take_regions_from_the_labels_that_are_named(
    relayd: Relayd, db: Path, tmp_path: Path
) -> None:
    metric = {"__name__": "rtt", "source": "us-east-1", "target": "eu-west-1", "job": "mesh"}
    values = [[1_700_000_000, "0.0681"], [1_700_000_060, "NaN"]]
    content = {"status": "success", "data": {"result": [{"metric": metric, "values": values}]}}
    file = tmp_path / "rtt.json"
    file.write_text(json.dumps(content))
    labels = ("--labels", "src=source,dst=target", "--provider", "aws")
    outcome = relayd("import", file, *labels, "--metric", "rtt_s", "--db", db)
    assert "1 samples added" in outcome.out
    assert "rtt_s is NaN" in outcome.out
    link = library.open(db).network.links["aws:us-east-1"]["aws:eu-west-1"]
    assert link.rtt_ms.expected == pytest.approx(68.1, rel=0.01)
    assert "--metric is needed" in relayd("import", file, *labels, "--db", db).err
    wrong = ("--labels", "src=source,dst=to", "--metric", "rtt_s", "--db", db)
    assert "Its series have __name__, source, target, job" in " ".join(
        relayd("import", file, *wrong).err.split()
    )


def test_a_graph_is_opened_without_a_store_and_says_what_it_lacks() -> None:
    graph = networkx.read_graphml(FIXTURES / "graph/triangle.graphml")
    with pytest.raises(InputError) as caught:
        library.open(graph)
    assert "edge New-York -> Chicago" in str(caught.value)
    assert "(2 of 6 edges lack it)" in str(caught.value)
    graph.remove_edge("0", "2")
    wan = library.open(
        networkx.relabel_nodes(graph, {"0": "aws:us-east-1", "1": "gcp:us-east4", "2": "zoo:chi"})
    )
    assert wan.network.links["zoo:chi"]["gcp:us-east4"].aggregate_gbps.expected == 2.5
    plan = wan.plan("aws:us-east-1", "gcp:us-east4", volume_gb=100)
    assert plan.verdict == "direct"
    again = library.open(wan.network).plan("aws:us-east-1", "gcp:us-east4", volume_gb=100)
    assert again.duration_s == plan.duration_s


def test_own_sites_without_a_provider_are_told_how_they_are_named(
    relayd: Relayd, tmp_path: Path
) -> None:
    own = tmp_path / "own.csv"
    own.write_text("src,dst,aggregate_mbps\nparis,tokyo,500\n")
    refused = relayd("import", "csv", own, "--db", tmp_path / "own.db")
    assert refused.code == 5
    assert "own:paris" in refused.out
    assert "--provider" in refused.out
    named = relayd("import", "csv", own, "--provider", "own", "--db", tmp_path / "own.db")
    assert (named.code, "1 samples added" in named.out) == (0, True)


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_does_not_prevent_the_snapshot(tmp_path: Path) -> None:
    file, db = tmp_path / "own.csv", tmp_path / "own.db"
    file.write_text("src,dst,aggregate_mbps\nown:paris,own:tokyo,500\n")
    reader, writer = os.pipe()
    os.close(reader)
    subprocess.run(
        [sys.executable, "-m", "relayd", "import", "csv", str(file), "--db", str(db)],
        stdout=writer,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=True,
    )
    os.close(writer)
    with open_store(str(db), mode="read") as store:
        assert store.snapshots.latest()
