"""Transfers within a region: from zone to zone, and between VMs of one zone."""

from __future__ import annotations

from pathlib import Path

import pytest

import relayd
from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.estimate import WantedAddresses
from relayd.emitting.lanes import emission

GIB_PER_GB = 1e9 / 2**30


@pytest.fixture(scope="module")
def wan() -> relayd.Wan:
    return relayd.open()


@pytest.mark.parametrize(
    ("src", "dst", "addresses", "usd_per_gb", "says"),
    [
        ("us-east-1a", "us-east-1b", "auto", 0.02, "two zones"),
        ("us-east-1a", "use1-az4", "auto", 0.02, "two zones"),
        ("aws:us-east-1", "us-east-1", "auto", 0.02, "dearer"),
        ("us-east-1a", "us-east-1", "auto", 0.02, "dearer"),
        ("us-east-1a", "aws:us-east-1a", "auto", 0.0, "one zone"),
        ("us-east-1a", "us-east-1a", "public", 0.02, "one zone"),
        ("us-central1-a", "us-central1-b", "auto", 0.01 * GIB_PER_GB, "two zones"),
        ("us-central1-b", "us-central1-b", "auto", 0.0, "one zone"),
        ("eastus-1", "eastus-3", "auto", 0.0, "two zones"),
    ],
)
def test_what_crosses_zones_is_charged(
    wan: relayd.Wan, src: str, dst: str, addresses: WantedAddresses, usd_per_gb: float, says: str
) -> None:
    plan = wan.plan(src, dst, volume_gb=1000, addresses=addresses, vms=1)
    assert plan.verdict == "direct"
    assert not plan.best_relay
    assert plan.cost_usd.egress == pytest.approx(1000 * usd_per_gb)
    assert [lane.regions for lane in emission(plan).lanes] == [" -> ".join(plan.vms)]
    (one,) = {wan.resolve(region).region_id for region in plan.vms if "other" not in region}
    usd_per_h = wan.catalogue.vm_usd_per_h(one, next(iter(plan.vm_types.values())))
    assert plan.cost_usd.vm == pytest.approx(2 * usd_per_h * plan.duration_s / 3600, rel=1e-4)
    assert plan.paths[0].rtt_ms == 1.0
    assert plan.paths[0].addresses == ("public" if addresses == "public" else "private",)
    assert any(f"Both ends are in {one}" in said and says in said for said in plan.warnings)


def test_vms_reach_their_own_caps_within_a_region(wan: relayd.Wan) -> None:
    within, across = (
        wan.plan("us-east-1a", dst, volume_gb=100, vms=1, vm_types={"aws": "m5.8xlarge"})
        for dst in ("us-east-1b", "us-west-2")
    )
    vm = wan.catalogue.vm_types["aws:m5.8xlarge"]
    assert across.throughput_gbps <= vm.egress_gbps < within.throughput_gbps <= vm.ingress_gbps
    assert wan.plan("us-east-1a", "us-east-1b", vms_in={"us-east-1": 3}).vms == {
        "aws:us-east-1a": 3,
        "aws:us-east-1b": 3,
    }


def test_both_zones_share_the_quota_of_their_region(tmp_path: Path) -> None:
    quota = '[[vcpu_quota]]\nregion = "aws:us-east-1"\nfamily = "L-1216C47A"\nvcpus = 16\n'
    (tmp_path / "quota.toml").write_text(quota)
    wan = relayd.open(catalogues=[tmp_path / "quota.toml"])
    plan = wan.plan("us-east-1a", "us-east-1b", volume_gb=5000, vm_types={"aws": "c6in.xlarge"})
    assert plan.vms == {"aws:us-east-1a": 2, "aws:us-east-1b": 2}  # of 4 vCPUs each
    with pytest.raises(InfeasibleError, match="vCPUs"):
        wan.plan("us-east-1a", "us-east-1b", vm_types={"aws": "c6in.4xlarge"})


def test_a_fee_between_zones_that_is_not_known_is_not_made_up(tmp_path: Path) -> None:
    site = (
        '[[region]]\nid = "own:lab"\ncity = "Berlin"\ncountry = "DE"\n'
        'continent = "EU"\narea = "EU"\n'
        "latitude_deg = 52.52\nlongitude_deg = 13.4\n[[vm_type]]\n"
        'id = "own:host"\nvcpus = 8\negress_gbps = 2\ningress_gbps = 2\nflow_gbps = 2\n'
        'price_usd_per_h = 0\n[default_vm_types]\nown = "own:host"\n'
        '[[egress]]\nname = "out"\nfrom = ["own:*"]\nto = ["*"]\nusd_per_gb = 0.5\n'
    )
    stated = '[[egress]]\nname = "in"\nfrom = ["own:*"]\nto = ["same-region"]\nusd_per_gb = 0.25\n'
    for name, text in (("unknown", site), ("stated", site + stated)):
        (tmp_path / name).with_suffix(".toml").write_text(text)
    unknown, known = (
        relayd.open(catalogues=[tmp_path / f"{name}.toml"]) for name in ("unknown", "stated")
    )
    with pytest.raises(DataError, match="No egress price is known from own:lab"):
        unknown.plan("own:lab", "own:lab", volume_gb=10)
    assert known.plan("own:lab", "own:lab", volume_gb=10).cost_usd.egress == pytest.approx(2.5)


def test_rules_bind_the_region_of_zones(wan: relayd.Wan) -> None:
    for rule in ("us-east-1", "provider:aws", "country:US"):
        with pytest.raises(InputError, match="in a place to avoid"):
            wan.plan("us-east-1a", "us-east-1b", avoid=[rule])
