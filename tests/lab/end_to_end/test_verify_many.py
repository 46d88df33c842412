"""Shuffles and broadcasts run by `relayd measure verify`: all paths at once, as planned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import relayd
from benchmarks.lab_measuring import lateness_of
from planner.broadcast.plan import BroadcastPlan
from planner.shuffle.plan import ShufflePlan
from probes.lab.behaviours import LinkBehaviour
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from probes.verification.runs import LEAST_GBPS
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.store.verifications import Verifications
from tests.lab.end_to_end.campaigns import left_on
from tests.lab.end_to_end.campaigns import relayd as command
from tests.lab.end_to_end.true_store import true_store

pytestmark = pytest.mark.alone

CAP_MBPS, WINDOW_BYTES, CONNECTIONS = 20, 30_408, 10
# Two continents of two sites each, far apart; two lie between them and have time. All paths of the
# last, which sends to the first three, carry a fifth of its cap.
REGIONS = (
    "aws:us-east-1",
    "azure:eastus",
    "aws:ap-southeast-1",
    "gcp:asia-southeast1",
    "aws:eu-west-1",
    "gcp:europe-west1",
    "azure:japaneast",
)
RTT_MS = np.array(
    [
        [0, 30, 240, 260, 110, 120, 110],
        [30, 0, 250, 240, 120, 115, 120],
        [240, 250, 0, 40, 115, 125, 115],
        [260, 240, 40, 0, 130, 120, 125],
        [110, 120, 115, 130, 0, 60, 130],
        [120, 115, 125, 120, 60, 0, 125],
        [110, 120, 115, 125, 130, 125, 0],
    ]
)
VOLUME_MB = np.array(
    [
        [0, 4, 24, 14, 2, 2],
        [4, 0, 10, 24, 2, 2],
        [10, 4, 0, 2, 2, 2],
        [4, 10, 4, 0, 2, 2],
        [2, 2, 2, 2, 0, 2],
        [2, 2, 2, 2, 2, 0],
    ]
)
LIMITED, LIMITED_MBPS = 6, 4.0
MEASURED_WITH = 64
# 3 % of the least distance over which much goes.
LATE_MS = 3.0
# Acknowledgements of what a site receives share its egress cap: 52 bytes for two segments.
FOR_DATA = 0.97


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    sites = tuple(Site(name, CAP_MBPS, CAP_MBPS, WINDOW_BYTES) for name in REGIONS)
    rtts = tuple(tuple(row) for row in RTT_MS.astype(float).tolist())
    links = {(LIMITED, j): LinkBehaviour(rate_mbps=LIMITED_MBPS) for j in range(LIMITED)}
    return lab_of(Topology(sites, rtts, links, profile="verify-many"), "verify-many")


@pytest.fixture(scope="module")
def db(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("many") / "store.db"
    return true_store(file, lab.topology(), len(REGIONS), MEASURED_WITH, FOR_DATA)


def verified(lab: Lab, db: Path, plan: ShufflePlan | BroadcastPlan | Mapping[str, Any]) -> Any:
    """Verify one plan; not judged where the machine is too busy for the lab to keep time."""
    content = plan if isinstance(plan, Mapping) else plan.model_dump("json")
    file = db.with_name("plan.json")
    file.write_text(json.dumps(content))
    words = ("measure", "verify", file, "--fleet", lab.fleet_file, "--yes", "--json")
    with lateness_of(lab) as lateness:
        done = command(*words, "--seconds", "6", db=db)
    assert done.returncode in (0, 1), done.stderr
    if (lateness.p95_ms or 0.0) > LATE_MS:
        pytest.skip(f"the machine is too busy: packets were {lateness.p95_ms:.1f} ms late")
    (answer,) = json.loads(done.stdout)["plans"]
    assert answer["held"] == (done.returncode == 0)
    assert not any(left_on(lab, region) for region in REGIONS)
    return answer


def errors(carried: list[dict[str, Any]]) -> list[float]:
    return sorted(abs(one["achieved_gbps"] / one["expected_gbps"] - 1) for one in carried)


def asked(wan: Wan) -> dict[str, Any]:
    """Request of all plans: no VM outside of the lab."""
    return {"avoid": [name for name in wan.known_regions() if name not in REGIONS[:LIMITED]]}


def test_a_planned_shuffle_has_all_of_its_rates_at_once(lab: Lab, db: Path) -> None:
    wan = relayd.open(db)
    demands = {
        (REGIONS[i], REGIONS[j]): float(VOLUME_MB[i, j])
        for i, j in zip(*np.nonzero(VOLUME_MB), strict=True)
    }
    plan = wan.shuffle(demands, connections=CONNECTIONS, margin=0.0, **asked(wan))
    paths = [
        path for pair in plan.pairs for path in pair.paths if path.throughput_gbps > LEAST_GBPS
    ]
    answer = verified(lab, db, plan)
    as_planned = answer["runs"][0]
    assert (answer["question"], as_planned["run"]) == ("shuffle", "plan")
    assert len(as_planned["paths"]) == len(paths)
    relays = {path.regions[1] for path in paths if len(path.regions) == 3}
    assert set(as_planned["relays"]) == relays != set()
    of_paths = errors(as_planned["paths"])
    assert median(of_paths) <= 0.05, of_paths
    assert of_paths[int(0.9 * len(of_paths))] <= 0.15, of_paths
    assert max(errors(as_planned["vms"])) <= 0.10, as_planned["vms"]
    assert answer["full"], "nothing is full"
    assert all(one["judgement"] != "above" for one in answer["full"]), answer["full"]
    with open_store(db, mode="read") as store:
        rows = [row for row in Verifications(store.database).list() if row.plan_id == plan.plan_id]
    assert len(rows) == len(as_planned["paths"])
    assert not any(row.alone for row in rows)


def test_slow_paths_of_one_site_do_not_take_from_each_other(lab: Lab, db: Path) -> None:
    wan = relayd.open(db)
    demands = {(REGIONS[LIMITED], region): 10.0 for region in REGIONS[:3]}
    plan = wan.shuffle(demands, relays="none", connections=64).model_dump("json")
    for pair, connections in zip(plan["pairs"], (22, 21, 21), strict=True):
        (path,) = pair["paths"]
        assert path["throughput_gbps"] == pytest.approx(
            LIMITED_MBPS * GOODPUT_SHARE / 1e3, rel=0.02
        )
        path["connections"] = connections
    answer = verified(lab, db, plan)
    assert max(errors(answer["runs"][0]["paths"])) <= 0.05, answer
    assert {tuple(one["regions"]) for one in answer["full"]} == set(demands)
    assert max(errors(answer["full"])) <= 0.15, answer["full"]


def test_a_planned_broadcast_has_all_of_its_links_at_once(lab: Lab, db: Path) -> None:
    wan = relayd.open(db)
    plan = wan.broadcast(
        REGIONS[0],
        [REGIONS[2], REGIONS[3], REGIONS[4]],
        volume_gb=1.0,
        connections=CONNECTIONS,
        objective="time",
        margin=0.0,
        **asked(wan),
    )
    answer = verified(lab, db, plan)
    links = answer["runs"][0]["paths"]
    assert {tuple(link["regions"]) for link in links} == {
        (link.src, link.dst) for tree in plan.trees for link in tree.legs
    }
    assert median(errors(links)) <= 0.05, links
    assert max(errors(links)) <= 0.15, links
