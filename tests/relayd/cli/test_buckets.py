"""Buckets as ends: which region they stand for, and the scripts that copy between them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from planner.model.errors import InputError
from relayd.emitting.formats import emit
from relayd.emitting.lanes import emission
from relayd.sources.wan import Wan
from tests.relayd.building import modelled
from tests.relayd.cli.test_emit import run
from tests.relayd.conftest import Relayd

S3 = "s3://data?region=us-east-1"
S3_EU = "s3://back-up/x?region=eu-west-1"
GS = "gs://back-up/x?region=europe-west1"
AZ = "https://acct1.blob.core.windows.net/box?region=eastus"
FITTING = {
    (S3, S3_EU): {"rclone", "aws-cli", "datasync", "skyplane"},
    (S3, GS): {"rclone", "storage-transfer", "skyplane"},
    (AZ, GS): {"rclone", "storage-transfer", "skyplane"},
    (GS, "gs://b12?region=us-east1"): {"rclone", "gcloud", "storage-transfer", "skyplane"},
    (S3, AZ): {"rclone", "azcopy", "skyplane"},
    (AZ, "az://acct1/b12?region=westeurope"): {"rclone", "azcopy", "skyplane"},
}


@pytest.fixture(scope="module")
def wan() -> Wan:
    return modelled()


def test_a_bucket_stands_for_the_region_of_its_url(wan: Wan, relayd: Relayd) -> None:
    for src, dst in FITTING:
        plan = wan.plan(src, dst, volume_gb=100)
        ends = [one.region_id for one in plan.resolutions]
        assert [plan.request["src"], plan.request["dst"]] == ends
        assert [one.name for one in plan.resolutions] == [src, dst]
        plain = wan.plan(*ends, volume_gb=100)
        assert (plan.duration_s, plan.cost_usd) == (plain.duration_s, plain.cost_usd)
    assert [one.bucket for one in wan.plan(AZ, GS).resolutions] == [
        "az://acct1/box",
        GS[:12] + "/x",
    ]
    # An alias of the provider says what it was taken for.
    (alias, _) = wan.plan("gs://b12?region=eu", S3).resolutions
    assert alias.region_id.startswith("gcp:europe")
    assert "taken for" in alias.note
    asked = relayd("plan", "--src", "s3://data", "--dst", GS)
    assert asked.code == 2
    assert "Which region? Write s3://data?region=us-east-1." in asked.err
    for wrong in (
        "ftp://x?region=eu",
        "s3://a`id`?region=us-east-1",
        "s3://data?region=gcp:us-east1",
        "s3://data?region=nowhere",
        "az://acct1?region=eastus",
    ):
        with pytest.raises(InputError, match="src"):
            wan.plan(wrong, GS)
    shuffle = wan.shuffle({(S3, GS): 5})
    assert {one.bucket for one in shuffle.resolutions} == {"s3://data", "gs://back-up/x"}


def test_shells_read_each_script_and_unfit_tools_are_refused(wan: Wan, tmp_path: Path) -> None:
    tools = set.union(*FITTING.values())
    for ends, fitting in FITTING.items():
        plan = wan.plan(*ends, volume_gb=500, relays="none")
        for tool in tools:
            if tool not in fitting:
                with pytest.raises(InputError, match=tool):
                    emit(plan, tool)
                continue
            text = emit(plan, tool)
            assert "the plan expects" in text.splitlines()[-1]
            for check in (["dash", "-n"], ["bash", "-n"], ["shellcheck", "-s", "sh"]):
                if shutil.which(check[0]):
                    (tmp_path / "x").write_text(text)
                    done = subprocess.run(
                        [*check, str(tmp_path / "x")], capture_output=True, text=True
                    )
                    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.raises(InputError, match="storage-transfer"):
        emit(wan.plan("aws:us-east-1", "gcp:us-east1"), "storage-transfer")


def test_names_are_what_each_tool_calls_a_bucket(wan: Wan) -> None:
    def text(src: str, dst: str, tool: str) -> str:
        return emit(wan.plan(src, dst, volume_gb=500, relays="none"), tool)

    assert 'create "s3://data/" "gs://back-up/x/" --name=' in text(S3, GS, "storage-transfer")
    assert '"https://acct1.blob.core.windows.net/box/" "gs' in text(AZ, GS, "storage-transfer")
    assert '"https://s3.us-east-1.amazonaws.com/data${SOURCE_SAS:-}"' in text(S3, AZ, "azcopy")
    assert '"s3://data" "azure://acct1/box"' in text(S3, AZ, "skyplane")
    assert "--source-region us-east-1 --region eu-west-1" in text(S3, S3_EU, "aws-cli")
    assert "--server-side-across-configs" in text(S3, S3_EU, "rclone")
    assert "LANE" not in text(S3, S3_EU, "rclone")
    assert "--server-side-across-configs" not in text(S3, AZ, "rclone")


def test_a_relay_carries_what_is_written_alone(wan: Wan) -> None:
    asked = {"objective": "time", "margin": 0, "relays": "azure:centralindia", "vms": 1}
    src = "az://acct1/box?region=westeurope"
    plan = wan.plan(src, "s3://b12?region=ap-south-1", volume_gb=2000, **asked)  # type: ignore[arg-type]
    assert plan.verdict != "direct"
    assert 'NO_PROXY="acct1.blob.core.windows.net${NO_PROXY' in emit(plan, "rclone")


def test_rclone_copies_resumes_checks_and_sums_up(wan: Wan, tmp_path: Path) -> None:
    if shutil.which("rclone") is None:
        pytest.skip("needs rclone")
    (tmp_path / "source" / "in").mkdir(parents=True)
    for i in range(30):
        (tmp_path / "source" / "in" / f"{i} ü'$x").write_bytes(b"x" * 1000 * i)
    plan = wan.plan(S3, GS, volume_gb=500, relays="none", vms=3)
    text = emit(plan, "rclone")
    assert text.count("files=${FILES_AT_ONCE") == 1  # of three lanes that are alike
    lanes = [str(lane.number) for lane in emission(plan, to_vms=False).lanes]
    assert lanes == ["1", "2", "3"]
    known = {"SOURCE": "source", "DESTINATION": "copy"}
    for lane in lanes:
        done = run(text, tmp_path, **known, LANE=lane)
        assert done.code == 0, done.err
        assert done.out.startswith(f"lane {lane} of 3 is copied and checked in ")
    files = {p.relative_to(tmp_path / "source") for p in (tmp_path / "source").rglob("*")}
    assert files == {p.relative_to(tmp_path / "copy") for p in (tmp_path / "copy").rglob("*")}
    again = run(text, tmp_path, "-v", **known, LANE="1")
    assert again.code == 0
    assert "Copied (new)" not in again.err
    # What does not arrive ends in an error.
    assert run(text, tmp_path, "--max-size=1", **known | {"DESTINATION": "b"}, LANE="1").code != 0


def test_a_url_in_a_plan_of_others_can_not_leave_its_quotes(wan: Wan) -> None:
    text = wan.plan(S3, GS, volume_gb=500, relays="none").model_dump_json()
    evil = json.loads(text)
    evil["resolutions"][0]["bucket"] = 's3://data"; touch evil; "'
    with pytest.raises(InputError, match="plan"):
        emit(evil, "skyplane")
