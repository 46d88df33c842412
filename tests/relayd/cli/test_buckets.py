"""Buckets as ends: which region they stand for, and the scripts that copy between them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from planner.model.errors import InputError
from planner.transfer.plan import Plan
from relayd.emitting.formats import emit
from relayd.emitting.lanes import emission
from relayd.sources.wan import Wan
from tests.relayd.cli.test_emit import check_by_shells, run
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
def plans(wan: Wan) -> dict[tuple[str, str], Plan]:
    """Direct plans by their ends."""
    return {ends: wan.plan(*ends, volume_gb=500, relays="none") for ends in FITTING}


def test_a_bucket_stands_for_the_region_of_its_url(wan: Wan, relayd: Relayd) -> None:
    for src, dst in FITTING:
        plan = wan.plan(src, dst, volume_gb=100)
        ends = [one.region_id for one in plan.resolutions]
        assert [plan.request["src"], plan.request["dst"]] == ends
        assert [one.name for one in plan.resolutions] == [src, dst]
        plain = wan.plan(*ends, volume_gb=100)
        assert plan.cost_usd.egress == pytest.approx(plain.cost_usd.egress)
    assert [one.bucket for one in wan.plan(AZ, GS).resolutions] == [
        "az://acct1/box",
        GS[:12] + "/x",
    ]
    # An alias of the provider says what it was taken for.
    (alias, _) = wan.plan("gs://b12?region=us-east", S3).resolutions
    assert alias.region_id.startswith("gcp:us-east")
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


@pytest.mark.parametrize(
    ("src", "dst", "nearest"),
    [
        ("gs://b12?region=nam4", "aws:us-east-1", "gcp:us-east1"),
        ("gs://b12?region=US", "aws:us-west-1", "gcp:us-west"),
        ("aws:us-west-2", "gs://b12/x?region=gcp:nam4", "gcp:us-central1"),
        ("gs://b12?region=eu", "aws:eu-west-2", "gcp:europe-west"),
        ("gs://b12?region=asia", "aws:ap-southeast-2", "gcp:asia-southeast"),
    ],
)
def test_the_nearest_of_several_regions_serves_a_bucket(
    src: str, dst: str, nearest: str, wan: Wan
) -> None:
    (bucket,) = (end for end in wan.resolve_pair(src, dst)[2] if end.bucket)
    assert bucket.region_id.startswith(nearest)
    assert bucket.region_id not in {"gcp:europe-west2", "gcp:europe-west6", *bucket.others}
    plan = wan.plan(src, dst, volume_gb=100)
    assert plan.resolutions == (bucket,)
    assert f" is in several regions ({bucket.name.partition('=')[2]}); " in bucket.note
    assert f"; {bucket.region_id}, the nearest to the other end, serves it." in bucket.note
    # No other of its regions is nearer.
    regions, other = [bucket.region_id, *bucket.others], dst if bucket.name == src else src
    links = wan.network_of([*regions, other]).usual
    ends = [(one, other) if bucket.name == src else (other, one) for one in regions]
    apart_ms = [links[first][last].rtt_ms.expected for first, last in ends]
    assert apart_ms[0] == min(apart_ms)


def test_two_buckets_in_several_regions_meet_at_their_nearest_pair(wan: Wan) -> None:
    src, dst, (first, second) = wan.resolve_pair("gs://a12?region=eur4", "gs://b12?region=eur8")
    assert (src, dst) == ("gcp:europe-west4", "gcp:europe-west3")
    assert (first.others, second.others) == (("gcp:europe-north1",), ("gcp:europe-west6",))
    with pytest.raises(InputError, match="copies by itself"):
        wan.plan("gs://a12?region=us", "gs://b12?region=nam4")  # both are in Iowa
    (note,) = (one.note for one in wan.shuffle({("gs://a12?region=nam4", S3): 5}).resolutions[:1])
    assert "gcp:us-central1, the first of them, serves it" in note
    with pytest.raises(InputError, match="Cloudflare R2, whose region auto does not say"):
        wan.plan("s3://data?region=auto", GS)


def test_shells_read_each_script_and_unfit_tools_are_refused(
    wan: Wan, plans: dict[tuple[str, str], Plan], tmp_path: Path
) -> None:
    scripts: list[Path] = []
    for ends, plan in plans.items():
        for tool in set.union(*FITTING.values()):
            if tool not in FITTING[ends]:
                with pytest.raises(InputError, match=tool):
                    emit(plan, tool)
                continue
            text = emit(plan, tool)
            assert "the plan expects" in text.splitlines()[-1]
            scripts.append(tmp_path / f"{len(scripts)} {tool}")
            scripts[-1].write_text(text)
    check_by_shells(scripts)
    with pytest.raises(InputError, match="storage-transfer"):
        emit(wan.plan("aws:us-east-1", "gcp:us-east1"), "storage-transfer")


def test_names_are_what_each_tool_calls_a_bucket(plans: dict[tuple[str, str], Plan]) -> None:
    def text(src: str, dst: str, tool: str) -> str:
        return emit(plans[src, dst], tool)

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


@pytest.mark.slow
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


def test_a_plan_of_others_can_not_leave_its_quotes(plans: dict[tuple[str, str], Plan]) -> None:
    text = plans[S3, S3_EU].model_dump_json()
    evil = json.loads(text)
    evil["resolutions"][0]["bucket"] = 's3://data"; touch evil; "'
    region = json.loads(text.replace("aws:eu-west-1", "aws:$(touch evil)"))
    for wrong in (evil, region, json.loads(text) | {"plan_id": "$(touch evil)"}):
        for tool in FITTING[S3, S3_EU]:
            with pytest.raises(InputError, match="plan"):
                emit(wrong, tool)


def test_a_bucket_receives_without_vms_that_are_paid_for(wan: Wan) -> None:
    src, dst = "aws:us-east-1", "gcp:us-east1"
    plain = wan.plan(src, dst, volume_gb=5000, vms=2)
    stored = wan.plan("s3://data?region=us-east-1", dst, volume_gb=5000, vms=2)
    assert stored.cost_usd == plain.cost_usd
    free = wan.plan(src, "gs://b12?region=us-east1", volume_gb=5000, vms=2)
    hours = free.duration_s / 3600
    assert free.cost_usd.egress == plain.cost_usd.egress
    vm = wan.catalogue.vm_usd_per_h(src, wan.catalogue.default_vm_types["aws"])
    assert free.cost_usd.vm == pytest.approx(free.vms[src] * vm * hours, rel=1e-3)
    assert free.cost_usd.vm < plain.cost_usd.vm
    assert any("not charged" in warning for warning in free.warnings)


def test_requests_are_charged_by_the_object(wan: Wan, relayd: Relayd) -> None:
    """A million objects from S3 to Azure: reads at $0.0004, writes at $0.0065 a thousand."""
    asked: dict[str, object] = {"volume_gb": 5000, "relays": "none", "vms": 2}
    plan = wan.plan(S3, AZ, objects=1_000_000, **asked)  # type: ignore[arg-type]
    lines = {fee.name: (fee.quantity, fee.usd) for fee in plan.fees}
    assert lines["Requests to read objects in aws:us-east-1"] == pytest.approx((1000, 0.4))
    assert lines["Requests to write objects in azure:eastus"] == pytest.approx((1000, 6.5))
    without = wan.plan(S3, AZ, **asked)  # type: ignore[arg-type]
    assert plan.cost_usd.total - without.cost_usd.total == pytest.approx(6.9)
    assert not any("of your catalogue" in warning for warning in plan.warnings)
    ask = ("plan", "--src", S3, "--dst", GS, "--objects")
    assert "Requests to write objects in gcp:europe-west1: 2 thousand" in relayd(*ask, "2000").out
    assert relayd(*ask, "0").code == 2


def test_managed_services_are_named_with_what_they_cost(wan: Wan, relayd: Relayd) -> None:
    for (src, dst), fitting in FITTING.items():
        plan = wan.plan(src, dst, volume_gb=1000)
        named = {one.emit for one in plan.services}
        assert named == fitting & {"storage-transfer", "datasync", "azcopy"}
        assert plan.direct.cost_usd is not None
        for one in plan.services:
            assert one.cost_usd == plan.direct.cost_usd.egress + 1000 * one.usd_per_gb
            assert (one.source[:8], one.as_of[:2]) == ("https://", "20")
    (datasync,) = wan.plan(S3, S3_EU, volume_gb=1000).services
    assert (datasync.usd_per_gb, datasync.unconfirmed) == (0.0125, True)
    assert not wan.plan("aws:us-east-1", "gcp:us-east1").services
    shown = relayd("plan", "--src", S3, "--dst", GS).out
    assert "Without VMs, in a time not known: Google's Storage Transfer Service for $" in shown
