"""Networks of a caller's own answer every question, and go out and back unchanged."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import planner
import relayd
from planner.model.answer import Answer
from planner.model.errors import InputError
from relayd.__main__ import main
from relayd.catalogue.loading import catalogue_of, content_of
from relayd.questions.registry import QUESTIONS
from relayd.sources.wan import Wan

REGIONS = ["paris", "tokyo", "dallas"]
GBPS = [[0, 1.0, 5.0], [1.0, 0, 5.0], [5.0, 5.0, 0]]
MATRICES: dict[str, Any] = {"regions": REGIONS, "aggregate_gbps": GBPS, "rtt_ms": 120.0}
USES: dict[str, dict[str, Any]] = {
    "plan": {"src": "paris", "dst": "tokyo", "volume_gb": 500},
    "shuffle": {"demands": [{"src": "paris", "dst": "tokyo", "volume_gb": 5}]},
    "broadcast": {"src": "paris", "destinations": ["tokyo", "dallas"], "volume_gb": 5},
    "schedule": {
        "transfers": [
            {"id": "a", "src": "paris", "dst": "tokyo", "volume_gb": 5, "deadline_s": 7200}
        ]
    },
    "place_reduce": {"input_gb": {"paris": 5, "tokyo": 3}},
    "place_tasks": {
        "tasks": [{"id": "map", "cpus": 2}, {"id": "sum", "cpus": 2}],
        "traffic": [{"src": "map", "dst": "sum", "volume_gb": 10}],
        "vms": [
            {"id": "a", "region": "paris", "cpus": 2},
            {"id": "b", "region": "tokyo", "cpus": 2},
        ],
    },
    "compare_candidates": {"regions": ["paris"], "volume_gb": 5},
}


def asked(wan: Wan) -> dict[str, Answer]:
    found: dict[str, Answer] = {name: getattr(wan, name)(**use) for name, use in USES.items()}
    plan = found["plan"].model_dump("json")
    return found | {"replan": wan.replan(plan, moved_gb=100, elapsed_s=60)}


def frame(rows: bool) -> Any:
    if not rows:
        return pd.DataFrame(GBPS, REGIONS, REGIONS)
    ends = [(a, b) for a in range(3) for b in range(3) if a != b]
    return pd.DataFrame(
        [
            {"src": REGIONS[a], "dst": REGIONS[b], "aggregate_gbps": GBPS[a][b], "rtt_ms": 120.0}
            for a, b in ends
        ]
    )


def graph() -> nx.Graph:
    found = nx.Graph()
    for a, b, gbps in (("paris", "tokyo", 1.0), ("paris", "dallas", 5.0), ("tokyo", "dallas", 5.0)):
        found.add_edge(a, b, aggregate_gbps=gbps, rtt_ms=120.0)
    return found


def test_every_form_answers_every_question_alike() -> None:
    network = planner.Network.from_matrices(REGIONS, np.array(GBPS), rtt_ms=120.0)
    answers = asked(relayd.open(network))
    assert len(answers) == len(QUESTIONS)
    assert all(len(str(answer).splitlines()) > 3 for answer in answers.values())
    plan = answers["plan"]
    assert isinstance(plan, relayd.Plan)
    for given in (MATRICES, graph(), frame(rows=True)):
        wan = relayd.open(given)
        assert wan.network == network
        assert wan.plan(**USES["plan"]).model_dump("json") == plan.model_dump("json")
    assert plan.verdict == "relay"  # five times as fast, and nothing costs anything
    assert plan.cost_usd.total == 0
    assert any("0 USD/GB" in note for note in plan.warnings)
    square = relayd.open({"aggregate_gbps": frame(rows=False)})
    assert relayd.open(frame(rows=False)).network == square.network
    assert square.network.link("paris", "dallas").aggregate_gbps.expected == 5.0


def test_stated_prices_decide() -> None:
    """At 0.1 USD/GB a link, a relay adds 50 USD; an hour of time is worth 20."""
    wan = relayd.open({**MATRICES, "usd_per_gb": 0.1, "vm_usd_per_h": [1.5, 0, 0]})
    plan = wan.plan("paris", "tokyo", volume_gb=500, vms=1)
    assert plan.verdict == "direct"
    hours = (60 + 8 * 500 / 1.0 + 8.5 * 0.12) / 3600  # starting, sending, and slow start
    assert plan.cost_usd.total == pytest.approx(0.1 * 500 + 1.5 * hours)
    assert not any("0 USD/GB" in note for note in plan.warnings)
    graphed = graph()
    nx.set_edge_attributes(graphed, 0.1, "usd_per_gb")
    nx.set_node_attributes(graphed, {"paris": 1.5}, "vm_usd_per_h")
    again = relayd.open(graphed).plan("paris", "tokyo", volume_gb=500, vms=1)
    assert again.model_dump("json") == plan.model_dump("json")
    assert catalogue_of(content_of(wan.catalogue), wan.catalogue.digest) == wan.catalogue


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usd_per_gb", [[0.1, 0.2], [0.1, 0.2]]),
        ("usd_per_gb", [[0.1], [0.1, 0.2]]),
        ("vm_usd_per_h", [1.5, 0]),
        ("vm_usd_per_h", "free"),
    ],
)
def test_prices_of_another_shape_are_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"{name} is no array of prices.*of shape \\(3,"):
        relayd.open({**MATRICES, name: value})


def test_a_graph_goes_out_and_back_unchanged() -> None:
    wan = relayd.open()
    out = wan.graph()
    edge, node = out.edges["aws:us-east-1", "aws:sa-east-1"], out.nodes["aws:us-east-1"]
    link = wan.network.link("aws:us-east-1", "aws:sa-east-1")
    assert edge["aggregate_gbps_low"] == link.aggregate_gbps.low
    assert edge["usd_per_gb"] == 0.02
    assert node["egress_gbps"] == wan.sites()["aws:us-east-1"].egress_gbps.expected
    back = relayd.open(out)
    again = back.graph()
    assert dict(again.nodes(data=True)) == dict(out.nodes(data=True))
    assert list(again.edges(data=True)) == list(out.edges(data=True))
    asked = [one.plan("us-east", "sa", volume_gb=500, objective="time") for one in (wan, back)]
    assert asked[0].cost_usd == asked[1].cost_usd
    assert asked[0].throughput_gbps_low == pytest.approx(asked[1].throughput_gbps_low)
    out.edges["aws:us-east-1", "aws:sa-east-1"]["usd_per_gb"] = 0.5
    dear = relayd.open(out).plan("us-east", "sa", volume_gb=500, relays="none")
    assert dear.cost_usd.egress == pytest.approx(250.0)


def test_matrices_are_arrays_with_names() -> None:
    wan = relayd.open()
    rates = wan.matrix("aggregate")
    assert np.asarray(rates).shape == rates.values.shape == (len(rates.regions),) * 2
    assert np.nanmax(np.asarray(rates, dtype=np.float32)) == pytest.approx(np.nanmax(rates.values))
    assert rates["us-east", "sa"] == rates["aws:us-east-1", "aws:sa-east-1"]
    few = wan.matrix("aggregate", regions=["sa", "azure:Singapore", "us-east"])
    assert few.regions == ("aws:sa-east-1", "azure:southeastasia", "aws:us-east-1")
    assert few.values[2, 0] == rates["us-east", "sa"]
    assert few["us-east", "sa"] == rates["us-east", "sa"]
    with pytest.raises(relayd.InputError, match="Did you mean sa-east-1"):
        rates["us-east", "sa-eest-1"]
    with pytest.raises(relayd.InputError, match="aws:eu-west-1"):
        few["aws:eu-west-1", "sa"]


def test_an_answer_prints_as_its_command_does(capsys: pytest.CaptureFixture[str]) -> None:
    plan = relayd.open().plan("us-east", "sa", volume_gb=500)
    assert main(["plan", "us-east", "sa", "--volume", "500GB"]) == 0
    assert capsys.readouterr().out == f"{plan}\n"
