"""Airflow runs the page's DAG, and others that wait and fail, against a running service."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from probes.samples import Sample
from relayd.client.blocking import RemoteWan
from relayd.times import seconds_of
from tests.http.running import Served, eventually, make_store, served
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
        environment = {
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW_CONN_RELAYD_DEFAULT": service.url,
        }
        prepare = "from airflow.utils.db import initdb; initdb(); print('RESULT []')"
        result_of(prepare, tmp_path, python, environment)
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
