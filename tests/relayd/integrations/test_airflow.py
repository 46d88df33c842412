"""Airflow runs the page's DAG, and others that wait and fail, against a running service."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from planner.fields.kinds import MOST_NAME
from probes.samples import Sample
from relayd.client.blocking import RemoteWan
from relayd.times import seconds_of
from tests.http.running import Served, eventually, make_store, run, served
from tests.relayd.integrations.engines import ROOT, python_of, result_of

pytestmark = pytest.mark.integrations

PAGE = (ROOT / "docs" / "airflow.md").read_text()
# The page's DAG; then one in which a copy waits for its time and another finds no room.
DAGS = """
import json
HERE = {"src": "aws:us-east-1", "dst": "azure:eastus"}

def told(context):
    with open("FOLDER/reasons", "a") as file:
        print(context["ti"].task_id, context["exception"], file=file)

@dag(default_args={"on_failure_callback": told})
def waiting():
    plan = RelaydPlanOperator(
        task_id="plan", request={**HERE, "volume_gb": 10, "relays": "none", "vms": 1,
        "min_throughput_gbps": 6}, deferrable=True, ask_again_s=1,
    )
    first = RelaydReserveOperator(
        task_id="first", transfer={**HERE, "volume_gb": 100, "start": "20s", "deadline": "1h"}
    )
    copy = RelaydCopyOperator(
        task_id="copy", source="FOLDER/ours", target="FOLDER/later", **HERE,
        reservation=first.output,
    )
    greedy = RelaydReserveOperator(
        task_id="greedy", transfer={**HERE, "volume_gb": 9e5, "deadline": "1h"}
    )
    slow = RelaydPlanOperator(
        task_id="slow", request={**HERE, "volume_gb": 10, "min_throughput_gbps": 6000}, retries=2
    )
    wrong = RelaydPlanOperator(task_id="wrong", request={**HERE, "volumes": 1}, deferrable=True)
    plan >> first
    copy >> [greedy, slow, wrong]

waiting = waiting()
"""
SCRIPT = """
import json, sys
sys.path.insert(0, "dags")
import both

def outcome(dag):
    run = dag.test()
    found = {}
    for one in run.get_task_instances():
        found[one.task_id] = [one.state, one.try_number, one.xcom_pull(one.task_id)]
    return found

found = [outcome(both.nightly), outcome(both.waiting)]
from airflow.models import Variable
print("RESULT", json.dumps([*found, json.loads(Variable.get("relayd_schedule"))]))
"""


def prepared(folder: Path, python: Path, **connections: str) -> dict[str, str]:
    """Make Airflow's database in a folder; returns the environment to use it with."""
    environment = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        **{f"AIRFLOW_CONN_{name}": url for name, url in connections.items()},
    }
    prepare = "from airflow.utils.db import initdb; initdb(); print('RESULT []')"
    result_of(prepare, folder, python, environment)
    return environment


def improve(service: Served) -> None:
    """Measure a faster link once the first task has asked in vain and the trigger again."""

    def refusals() -> int:
        return sum(
            line.get("route") == "/v1/plans" and line["status"] == 422 for line in service.lines()
        )

    eventually(lambda: refusals() > 2, 300)
    now_s = time.time()
    faster = [
        Sample(
            "aws:us-east-1", "azure:eastus", "aggregate_mbps", 9000.0, now_s - n, "iperf3", 64, 60.0
        )
        for n in range(20)
    ]
    with RemoteWan(service.url) as wan:
        assert wan.ingest(faster).accepted == len(faster)


def test_tasks_plan_reserve_wait_and_copy(tmp_path: Path) -> None:
    python = python_of("airflow")
    (example,) = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for theirs, ours in (
        ('"s3://ours/{{ ds }}"', f'"{tmp_path}/ours"'),
        ('"gs://theirs/{{ ds }}"', f'"{tmp_path}/theirs"'),
        ("\nnightly()", "\nnightly = nightly()"),
    ):
        assert example.count(theirs) == 1
        example = example.replace(theirs, ours)
    (tmp_path / "dags").mkdir()
    dags = example + DAGS.replace("FOLDER", str(tmp_path))
    (tmp_path / "dags" / "both.py").write_text(dags)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "part").write_bytes(bytes(1000))
    (tmp_path / "store").mkdir()
    with served(make_store(tmp_path / "store")) as service:
        environment = prepared(tmp_path, python, RELAYD_DEFAULT=service.url)
        with ThreadPoolExecutor(1) as threads:
            improving = threads.submit(improve, service)
            found = result_of(SCRIPT, tmp_path, python, environment)
            improving.result()
    nightly, waiting, kept = found
    assert {state for state, _, _ in nightly.values()} == {"success"}
    assert nightly["plan"][2]["cost_usd"]["total"] <= 40
    assert nightly["copy"][2]["files"] == 1
    assert (tmp_path / "theirs" / "part").read_bytes() == bytes(1000)

    done = {task for task, (state, _, _) in waiting.items() if state == "success"}
    assert done == {"plan", "first", "copy"}
    assert waiting["plan"][2]["throughput_gbps"] >= 6
    promised = waiting["first"][2]
    assert (tmp_path / "later" / "part").stat().st_mtime >= seconds_of(promised["start_at"])
    assert {one["id"] for one in kept["schedule"]["transfers"]} == {
        nightly["reserve"][2]["id"],
        promised["id"],
    }
    # What can't succeed is not tried again, and says what would do.
    assert {tries for _, tries, _ in waiting.values()} == {1}
    reasons = dict(
        line.split(" ", 1) for line in (tmp_path / "reasons").read_text().splitlines() if line
    )
    assert reasons.keys() == waiting.keys() - done
    assert "would do" in reasons["greedy"]
    assert "Gbit/s" in reasons["slow"]
    assert "volumes" in reasons["wrong"]


RESERVING = """
from airflow.sdk import dag
from relayd.integrations.airflow import RelaydPlanOperator, RelaydReserveOperator

HERE = {"src": "aws:us-east-1", "dst": "azure:eastus"}
SMALL = {**HERE, "volume_gb": 1}

@dag
def reserving():
    parts = RelaydReserveOperator.partial(task_id="load").expand(transfer=[SMALL, SMALL])
    last = parts
    for task, transfer in (
        ("load1", SMALL),
        ("long-" * 45 + "a", SMALL),
        ("long-" * 45 + "b", SMALL),
        ("named", {**SMALL, "name": "backup"}),
    ):
        task = RelaydReserveOperator(task_id=task, transfer=transfer)
        last >> task
        last = task

@dag
def refused():
    RelaydPlanOperator(
        task_id="plan", request=SMALL, deferrable=True, relayd_conn_id="stranger", retries=2
    )

reserving, refused = reserving(), refused()
"""
RESERVATIONS = """
import asyncio, contextlib, json, sys
sys.path.insert(0, "dags")
import those
from airflow.models import Variable
from relayd.integrations.airflow import WhenAnswered

async def event():
    trigger = WhenAnswered("plan", those.SMALL, relayd_conn_id="stranger", ask_again_s=1)
    async with contextlib.aclosing(trigger.run()) as events:
        return (await asyncio.wait_for(anext(events), 30)).payload

those.reserving.test()
(refusal,) = those.refused.test().get_task_instances()
schedule = json.loads(Variable.get("relayd_schedule"))["schedule"]
found = [sorted(one["id"] for one in schedule["transfers"])]
found += [[refusal.state, refusal.try_number], asyncio.run(event())]
print("RESULT", json.dumps(found))
"""


def test_each_task_has_a_reservation_and_a_wrong_token_is_not_waited_for(tmp_path: Path) -> None:
    python = python_of("airflow")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "those.py").write_text(RESERVING)
    (tmp_path / "store").mkdir()
    db = make_store(tmp_path / "store")
    scopes = ("--scope", "read", "--scope", "plan")
    token = run("token", "create", "airflow", *scopes, db=db).stdout.strip()
    with served(db, auth=True) as service:
        address = urlsplit(service.url)
        environment = prepared(
            tmp_path,
            python,
            RELAYD_DEFAULT=f"http://:{token}@{address.netloc}",
            STRANGER=f"http://:{token}-not@{address.netloc}",
        )
        ids, refused, event = result_of(RESERVATIONS, tmp_path, python, environment)
    assert "backup" in ids
    tasks = [name.split("/")[1] for name in ids if name != "backup"]
    assert {"load[0]", "load[1]", "load1"} <= set(tasks)
    # Two that differ only beyond what an id may have differ all the same.
    assert len(ids) == len(set(ids)) == 6
    assert max(map(len, ids)) == MOST_NAME
    assert refused == ["failed", 1]
    assert "oken" in event["error"]
