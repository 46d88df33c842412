"""Failures on a lab cost only their own probes; slow VMs are found."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from probes.metrics import Metric
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.lab.end_to_end.campaigns import in_site, kept, left_on, probe, relayd
from tests.probes.fleet.machines import make_key

_REGIONS = tuple(
    f"aws:{name}"
    for name in ("us-east-1", "us-west-2", "eu-west-1", "sa-east-1", "ap-south-1", "ap-northeast-1")
)
_OTHERS = tuple(
    f"aws:{name}"
    for name in ("us-east-2", "us-west-1", "eu-central-1", "eu-west-2", "ca-central-1")
)
_SIDES: tuple[Metric, ...] = ("egress_cap_mbps", "ingress_cap_mbps")
_CAP_MBPS, _SLOW_MBPS, _TYPE = 16.0, 7.0, "t3.small"


def _topology(count: int) -> Topology:
    sites = tuple(
        Site(name, _CAP_MBPS, _CAP_MBPS, 60_000, vm_type=_TYPE) for name in _REGIONS[:count]
    )
    rtts = tuple(tuple(0.0 if i == j else 20.0 for j in range(count)) for i in range(count))
    return Topology(sites, rtts)


@pytest.mark.thorough
def test_each_failure_costs_only_its_own_probes(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    lab = lab_of(_topology(6), "failures")
    full, lost, changed, busy, *good = _REGIONS
    db, fleet = tmp_path / "store.db", tmp_path / "fleet.toml"
    # A key that is not the one on record, and a host whose only probe port someone else has.
    make_key(tmp_path / "other")
    text = lab.fleet_file.read_text()
    known = Path(
        next(line.split('"')[1] for line in text.splitlines() if line.startswith("known_hosts"))
    )
    blocks = text.split("[[host]]")
    port = next(b for b in blocks if f'"{changed}"' in b).split("port = ")[1].split()[0]
    other = (tmp_path / "other.pub").read_text()
    lines = [
        f"[127.0.0.1]:{port} {other}" if f"]:{port}," in line else line
        for line in known.read_text().splitlines()
    ]
    (tmp_path / "known_hosts").write_text("\n".join(lines) + "\n")
    text = text.replace(str(known), str(tmp_path / "known_hosts"))
    text = text.replace(f'region = "{busy}"', f'region = "{busy}"\nprobe_ports = [5201, 5201]')
    fleet.write_text(text)
    lab.set_host(lost, {"state": "blackhole"})
    fill = "dd if=/dev/zero of=/tmp/full bs=1k count=64 2>/dev/null; [ -s /tmp/full ]"
    in_site(lab, full, "sh", "-c", f"mount -t tmpfs -o size=16k tmpfs /tmp; {fill}")
    in_site(lab, busy, "iperf3", "-s", "-D", "-p", "5201")
    end = "for p in /proc/[0-9]*; do grep -qx iperf3 $p/comm && kill ${p#/proc/}; done; true"
    try:
        bad = {(good[0], full), (good[1], lost), (good[0], changed), (busy, good[0])}
        # A server is needed where the data come from, so the busy one still receives.
        pairs = [*bad, (good[0], good[1]), (good[1], good[0]), (good[0], busy)]
        words = [word for a, b in pairs for word in ("--pairs", f"{a}>{b}")]
        code, report = probe(fleet, db, "--phases", "per-flow", "--flow-time", "4s", *words)
        assert code == 5
        causes = {probe["host"]: probe["cause"] for probe in report["failed"]}
        assert causes == {full: "no-space", lost: "unreachable", changed: "host-key", busy: "busy"}
        failed = {tuple(probe["pairs"][0]) for probe in report["failed"]}
        assert failed == bad
        assert {(src, dst) for src, dst, *_ in kept(db, "per_flow_mbps")} == set(pairs) - bad
        assert not [region for region in good if left_on(lab, region)]

        in_site(lab, busy, "sh", "-c", end)
        in_site(lab, full, "umount", "/tmp")
        lab.clear()
        fleet.write_text(lab.fleet_file.read_text())
        code, report = probe(fleet, db, "--resume")
        assert (code, report["failed"]) == (0, [])
        assert len(kept(db, "per_flow_mbps")) == len(pairs)
    finally:
        lab.down()


@pytest.mark.alone
def test_caps_are_true_and_an_unlucky_vm_is_found(
    lab_of: Callable[..., Lab], tmp_path: Path
) -> None:
    """Compare it with five others of its type, which were measured before."""
    lab = lab_of(_topology(3), "caps")
    db, unlucky = tmp_path / "store.db", _REGIONS[0]
    none = relayd("measure", "fleet", "caps", db=db)
    assert (none.returncode, none.stdout) == (4, "")
    with open_store(db, mode="create") as store:
        append(store, [_known_cap(region, side) for region in _OTHERS for side in _SIDES])
    lab.set_host(unlucky, {"egress_mbps": _SLOW_MBPS})
    # One VM of each type is measured.
    spec = ["--phases", "rtt,caps", "--connections", "4", "--budget", "5usd"]
    code, report = probe(lab, db, *spec)
    assert (code, report["failed"]) == (0, [])
    for side, truth_mbps in zip(_SIDES, (_SLOW_MBPS, _CAP_MBPS), strict=True):
        (mbps,) = (mbps for region, _, mbps, *_ in kept(db, side) if region == unlucky)
        assert mbps == pytest.approx(truth_mbps * GOODPUT_SHARE, rel=0.05), side
    found = {(cap["host"], cap["cap"]): cap for cap in report["recreate"]}
    assert set(found) == {(unlucky, "egress")}
    assert found[unlucky, "egress"]["odds"] > 0.99
    listed = json.loads(relayd("measure", "fleet", "caps", "--json", db=db).stdout)["caps"]
    assert len(listed) == 12
    assert [cap["host"] for cap in listed if cap["recreate"]] == [unlucky]
    text = relayd("measure", "fleet", "caps", db=db).stdout
    assert f"recreate {unlucky}" in text
    checked = relayd("measure", "fleet", "check", "--fleet", lab.fleet_file, db=db)
    assert checked.returncode == 0, checked.stdout
    assert f"{unlucky}: warning" in checked.stdout
    assert "egress cap" in checked.stdout


def _known_cap(region: str, metric: Metric) -> Sample:
    at_s, mbps = time.time() - 3600, _CAP_MBPS * GOODPUT_SHARE
    return Sample(
        region, region, metric, mbps, at_s, "iperf3", 8, 10.0, True, src_vm=_TYPE, dst_vm=_TYPE
    )
