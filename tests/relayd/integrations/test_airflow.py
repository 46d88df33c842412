"""Airflow runs the page's DAG, and others that wait and fail, against a running service."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from probes.samples import Sample
from relayd.client.blocking import RemoteWan
from tests.http.running import Served, make_store, run, served
from tests.relayd.integrations.engines import example_of, python_of, result_of
from tests.waiting import eventually

pytestmark = pytest.mark.integrations

# The page's DAG; then one that waits for a faster link, and others that can't succeed.
DAGS = """
HERE = {"src": "aws:us-east-1", "dst": "azure:eastus", "volume_gb": 10}

def told(context):
    with open("FOLDER/reasons", "a") as file:
        print(context["ti"].task_id, context["exception"], file=file)

@dag(default_args={"on_failure_callback": told})
def waiting():
    plan = RelaydPlanOperator(
        task_id="plan", request={**HERE, "relays": "none", "vms": 1, "min_throughput_gbps": 6},
        deferrable=True, ask_again_s=1,
    )
    slow = RelaydPlanOperator(
        task_id="slow", request={**HERE, "min_throughput_gbps": 6000}, retries=2
    )
    wrong = RelaydPlanOperator(task_id="wrong", request={**HERE, "volumes": 1}, deferrable=True)
    stranger = RelaydPlanOperator(
        task_id="stranger", request=HERE, deferrable=True, relayd_conn_id="stranger", retries=2
    )
    plan >> [slow, wrong, stranger]

waiting = waiting()
"""
SCRIPT = """
import asyncio, contextlib, json, sys
sys.path.insert(0, "dags")
import both
from relayd.integrations.airflow import WhenAnswered

def outcome(dag):
    run = dag.test()
    found = {}
    for one in run.get_task_instances():
        found[one.task_id] = [one.state, one.try_number, one.xcom_pull(one.task_id)]
    return found

async def event():
    trigger = WhenAnswered("plan", both.HERE, relayd_conn_id="stranger", ask_again_s=1)
    async with contextlib.aclosing(trigger.run()) as events:
        return (await asyncio.wait_for(anext(events), 30)).payload

found = [outcome(both.nightly), outcome(both.waiting), asyncio.run(event())]
print("RESULT", json.dumps(found))
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


def improve(service: Served, token: str) -> None:
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
    with RemoteWan(service.url, token=token) as wan:
        assert wan.ingest(faster).accepted == len(faster)


def test_tasks_plan_wait_and_run_what_is_emitted_and_a_wrong_token_is_not_waited_for(
    tmp_path: Path,
) -> None:
    python = python_of("airflow")
    # What a plan says as variables, in place of a copy to a store.
    said = f'"env") + "\\necho $RELAYD_VOLUME_GB $SOURCE > {tmp_path}/ran"'
    replaced = {'"rclone")': said, "\nnightly()": "\nnightly = nightly()"}
    example = example_of("airflow.md", replaced)
    (tmp_path / "dags").mkdir()
    dags = example + DAGS.replace("FOLDER", str(tmp_path))
    (tmp_path / "dags" / "both.py").write_text(dags)
    (tmp_path / "store").mkdir()
    db = make_store(tmp_path / "store")
    scopes = [word for scope in ("read", "plan", "ingest") for word in ("--scope", scope)]
    token = run("serve", "token", "create", "airflow", *scopes, db=db).stdout.strip()
    with served(db, auth=True) as service:
        address = urlsplit(service.url)
        environment = prepared(
            tmp_path,
            python,
            RELAYD_DEFAULT=f"http://:{token}@{address.netloc}",
            STRANGER=f"http://:{token}-not@{address.netloc}",
        )
        with ThreadPoolExecutor(1) as threads:
            improving = threads.submit(improve, service, token)
            nightly, waiting, event = result_of(SCRIPT, tmp_path, python, environment)
            improving.result()
    assert {state for state, _, _ in nightly.values()} == {"success"}
    assert nightly["plan"][2]["cost_usd"]["total"] <= 40
    assert re.fullmatch(r"340 /data/[\d-]+\n", (tmp_path / "ran").read_text())

    assert waiting["plan"][0] == "success"
    assert waiting["plan"][2]["throughput_gbps"] >= 6
    # What can't succeed is not tried again, and says what would do.
    assert {tries for _, tries, _ in waiting.values()} == {1}
    reasons = dict(
        line.split(" ", 1) for line in (tmp_path / "reasons").read_text().splitlines() if line
    )
    assert reasons.keys() == waiting.keys() - {"plan"}
    assert "Gbit/s" in reasons["slow"]
    assert "volumes" in reasons["wrong"]
    assert "oken" in reasons["stranger"]
    assert "oken" in event["error"]
