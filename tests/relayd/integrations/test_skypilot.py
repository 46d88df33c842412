"""SkyPilot applies the policy that its configuration names, to tasks as users write them."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from pathlib import Path

import pytest

import relayd
from tests.relayd.integrations.engines import ROOT, python_of, result_of

pytestmark = pytest.mark.integrations

PAGE = (ROOT / "docs" / "skypilot.md").read_text()
SCRIPT = """
import copy, json, sky, yaml
from sky import global_user_state
from sky.admin_policy import RequestOptions
from sky.server.requests.request_names import AdminPolicyRequestName
from sky.utils import admin_policy_utils
from relayd.integrations.skypilot import data_costs_usd, read_volumes_gb
import relayd

def applied(task, request=AdminPolicyRequestName.CLUSTER_LAUNCH, cluster=None):
    task = sky.Task.from_yaml_config(copy.deepcopy(task))  # which takes it apart
    options = RequestOptions(
        cluster_name=cluster, idle_minutes_to_autostop=None, down=False, dryrun=False
    )
    dag, _ = admin_policy_utils.apply(task, request, options)
    found = dag.tasks[0].to_yaml_config()["resources"]
    options = found.get("ordered") or found.get("any_of") or [found]
    return [one.get("infra") for one in options], options[0].get("accelerators")

def rejected(task):
    try:
        applied(task)
    except sky.exceptions.UserRequestRejectedByPolicy as error:
        return str(error)

READS = {"run": "true", "envs": {"RELAYD_READS": "aws:us-east-1=4TB, gcp:us-central1=20GB"}}
ORDERED = {"ordered": [{"infra": "gcp"}, {"infra": "aws"}]}
GOOGLE = {**READS, "resources": {"infra": "gcp"}}
global_user_state.add_or_update_cluster("mine", None, requested_resources=None, ready=True)
found = {
    "exec": applied(GOOGLE, AdminPolicyRequestName.CLUSTER_EXEC, "mine"),
    "again": applied(GOOGLE, cluster="mine"),
    "new": applied(GOOGLE, cluster="other"),
    "page": applied(TASK),
    "plain": applied({"run": "true", "resources": {"infra": "gcp"}}),
    "gcp": applied(GOOGLE),
    "fixed": applied({**READS, "resources": {"infra": "azure/westeurope"}}),
    "slack": applied({**READS, "resources": ORDERED,
                      "envs": {**READS["envs"], "RELAYD_SLACK_USD": "1e6"}}),
    "wrong": [
        rejected({"run": "true", "envs": {"RELAYD_READS": "us-east-1"}}),
        rejected({"run": "true", "envs": {"RELAYD_READS": "aws:us-east-9=1TB"}}),
        rejected({**READS, "resources": {"infra": "kubernetes"}}),
    ],
    "costs": data_costs_usd(relayd.open(), {"aws:us-east-1": 4000.0, "gcp:us-central1": 20.0}),
}
print("RESULT", json.dumps([found]))
"""


GOOGLE_ONLY_IN_IOWA = """
InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
n2-standard-8,8.0,32.0,,,,us-central1,us-central1-a,0.3885,0.0931
"""


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        "SKYPILOT_GLOBAL_CONFIG": str(home / "config.yaml"),
    }


def test_regions_that_skypilot_does_not_have_are_left_out(tmp_path: Path) -> None:
    python = python_of("skypilot")
    config, _ = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "config.yaml").write_text(config)
    catalogue = tmp_path / ".sky" / "catalogs" / "v8" / "gcp" / "vms.csv"
    catalogue.parent.mkdir(parents=True)
    catalogue.write_text(GOOGLE_ONLY_IN_IOWA.lstrip())
    head, _, _ = SCRIPT.partition("global_user_state.add")
    script = head + "print('RESULT', json.dumps(applied(GOOGLE)[:1]))"
    (infra,) = result_of(script, tmp_path, python, _environment(tmp_path))
    # Others cost less to read in, but a task that names one would be refused.
    assert infra == ["gcp/us-central1"]


def test_tasks_stay_near_their_data(tmp_path: Path, environment: MutableMapping[str, str]) -> None:
    python = python_of("skypilot")
    config, task = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "config.yaml").write_text(config)
    script = f"TASK = __import__('yaml').safe_load({task!r})\n{SCRIPT}"
    (found,) = result_of(script, tmp_path, python, _environment(tmp_path))

    # 4 TB weigh more than 20 GB, and SkyPilot keeps the rest of what was asked.
    infra, accelerators = found["page"]
    assert infra == ["aws/us-east-1"]
    assert accelerators in ({"A100": 8}, "A100:8")
    assert found["plain"][0] == ["gcp"]
    # A cluster that there is already stays where it is.
    assert found["exec"][0] == found["again"][0] == ["gcp"]
    assert set(found["new"][0]) == set(found["gcp"][0]) != {"gcp"}
    assert found["fixed"][0] == ["azure/westeurope"]
    # With all the slack there is, all regions of both clouds are left, in the order asked for.
    clouds = [infra.partition("/")[0] for infra in found["slack"][0]]
    assert clouds == sorted(clouds, reverse=True)
    assert set(clouds) == {"gcp", "aws"}

    # What is left elsewhere costs least there, by plans that are asked for one by one.
    environment["XDG_DATA_HOME"] = str(tmp_path)
    wan = relayd.open()
    google = {name: usd for name, usd in found["costs"].items() if name.startswith("gcp:")}
    best = min(google, key=google.__getitem__)
    assert f"gcp/{best.partition(':')[2]}" in found["gcp"][0]
    assert all(
        google["gcp:" + infra.partition("/")[2]] <= google[best] + 1 for infra in found["gcp"][0]
    )
    ours = [("aws:us-east-1", 4000.0), ("gcp:us-central1", 20.0)]
    plans = [
        wan.plan(src, best, volume_gb=gb, relays="none", vms=1) for src, gb in ours if src != best
    ]
    fees_usd = sum(plan.cost_usd.egress for plan in plans)
    assert google[best] == pytest.approx(
        fees_usd + max(plan.duration_s for plan in plans) / 3600 * 20
    )
    assert found["costs"]["aws:us-east-1"] < google[best]

    unit, region, nowhere = found["wrong"]
    assert "RELAYD_READS" in unit
    assert "aws:us-east-1=500GB" in unit
    assert "aws:us-east-9" in region
    assert "allow no region" in nowhere
