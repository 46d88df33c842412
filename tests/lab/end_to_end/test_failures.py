"""Failures on a lab cost only their own probes; slow VMs are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from tests.lab.end_to_end.campaigns import in_site, kept, left_on, probe, relayd
from tests.probes.fleet.machines import make_key

_REGIONS = tuple(
    f"aws:{name}"
    for name in ("us-east-1", "us-west-2", "eu-west-1", "sa-east-1", "ap-south-1", "ap-northeast-1")
)
_CAP_MBPS, _SLOW_MBPS = 16.0, 7.0


def _topology() -> Topology:
    sites = tuple(Site(name, _CAP_MBPS, _CAP_MBPS, 60_000, vm_type="t3.small") for name in _REGIONS)
    rtts = tuple(tuple(0.0 if i == j else 20.0 for j in range(6)) for i in range(6))
    return Topology(sites, rtts)


def test_each_failure_costs_only_its_own_probes(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    lab = lab_of(_topology(), "failures")
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
    lab = lab_of(_topology(), "failures")
    spec = ["--phases", "rtt,caps", "--thorough", "--connections", "4", "--aggregate-time", "4s"]
    uneven = tmp_path / "uneven.db"
    none = relayd("fleet", "caps", "--db", uneven)
    assert (none.returncode, none.stdout) == (4, "")
    lab.set_host(_REGIONS[3], {"egress_mbps": _SLOW_MBPS})
    try:
        code, report = probe(lab, uneven, *spec)
        assert (code, report["failed"]) == (0, [])
        for side in ("egress", "ingress"):
            off = {}
            for region, _, mbps, *_ in kept(uneven, f"{side}_cap_mbps"):
                slow = (region, side) == (_REGIONS[3], "egress")
                truth_mbps = (_SLOW_MBPS if slow else _CAP_MBPS) * GOODPUT_SHARE
                off[region] = abs(mbps / truth_mbps - 1)
            # A busy machine disturbs one of the measurements of four seconds, not half of them.
            assert max(off.values()) < 0.08, (side, off)
            assert median(off.values()) < 0.03, (side, off)
        found = {(cap["host"], cap["cap"]): cap for cap in report["recreate"]}
        assert set(found) == {(_REGIONS[3], "egress")}
        assert found[_REGIONS[3], "egress"]["odds"] > 0.99
        listed = json.loads(relayd("fleet", "caps", "--db", uneven, "--json").stdout)["caps"]
        assert len(listed) == 12
        assert [cap["host"] for cap in listed if cap["recreate"]] == [_REGIONS[3]]
        text = relayd("fleet", "caps", "--db", uneven).stdout
        assert f"recreate {_REGIONS[3]}" in text
        checked = relayd("fleet", "check", "--fleet", lab.fleet_file, "--db", uneven)
        assert checked.returncode == 0, checked.stdout
        assert f"{_REGIONS[3]}: warning" in checked.stdout
        assert "egress cap" in checked.stdout
    finally:
        lab.clear()
