"""Campaigns on a lab: true figures, and nothing lost or left whatever is killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from planner.model.units import BITS_PER_BYTE
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology
from tests.lab.end_to_end.campaigns import RELAYD, ROOT, in_site, kept, left_on, probe
from tests.waiting import eventually

_PROVIDERS = (
    "aws:us-east-1",
    "aws:sa-east-1",
    "azure:eastus",
    "azure:westeurope",
    "gcp:us-east1",
    "gcp:asia-east1",
    "aws:eu-west-1",
    "azure:japaneast",
    "gcp:europe-west1",
    "aws:ap-south-1",
    "azure:brazilsouth",
    "gcp:us-west1",
)


def _topology(count: int) -> Topology:
    """Sites with different caps and windows, 8 to 180 ms apart."""
    sites = tuple(
        Site(name, 12.0 + 2 * number, 30.0 - number, 40_000 + 4_000 * number)
        for number, name in enumerate(_PROVIDERS[:count])
    )
    rtts = tuple(
        tuple(
            0.0 if i == j else 8.0 + 37.0 * (abs(i - j) % 5) + 2.0 * (i + j) for j in range(count)
        )
        for i in range(count)
    )
    return Topology(sites, rtts)


def _samples(db: Path, metric: str) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for src, dst, value, *_ in kept(db, metric):
        found.setdefault((src, dst), []).append(value)
    return found


def _errors(found: dict[tuple[str, str], list[float]], truth: Any) -> list[float]:
    return sorted(abs(median(values) / truth(src, dst) - 1) for (src, dst), values in found.items())


@pytest.mark.alone
def test_figures_are_true(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    topology = _topology(12)
    lab = lab_of(topology, "figures")
    db = tmp_path / "store.db"
    index = {site.region: number for number, site in enumerate(topology.sites)}
    # Near and far ones, all at once: no host is in two of them.
    indices = ((0, 1), (2, 4), (3, 6), (5, 9), (7, 8), (10, 11))
    pairs = [(_PROVIDERS[i], _PROVIDERS[j]) for i, j in indices]
    words = [word for src, dst in pairs for word in ("--pairs", f"{src}>{dst}")]
    words += ["--connections", "16", "--flow-time", "8s", "--aggregate-time", "6s"]
    code, report = probe(lab, db, *words)
    assert (code, report["failed"]) == (0, [])

    def true_rtt_ms(src: str, dst: str) -> float:
        return topology.rtt_ms[index[src]][index[dst]]

    def cap_mbps(src: str, dst: str) -> float:
        source, destination = topology.sites[index[src]], topology.sites[index[dst]]
        return min(source.egress_mbps, destination.ingress_mbps) * GOODPUT_SHARE

    def flow_mbps(src: str, dst: str) -> float:
        window_bits = topology.sites[index[dst]].window_bytes * BITS_PER_BYTE
        return min(window_bits / true_rtt_ms(src, dst) / 1e3, cap_mbps(src, dst))

    pings = _samples(db, "rtt_ms")
    assert len(pings) == len(pairs)
    for (src, dst), values in pings.items():
        assert abs(median(values) - true_rtt_ms(src, dst)) < 0.5 + 0.01 * true_rtt_ms(src, dst)
    for metric, truth in (("per_flow_mbps", flow_mbps), ("aggregate_mbps", cap_mbps)):
        errors = _errors(_samples(db, metric), truth)
        assert len(errors) == len(pairs)
        assert median(errors) < 0.03, metric
        assert errors[-2] < 0.08, metric
    assert not any(left_on(lab, site.region) for site in topology.sites)


@pytest.mark.alone
def test_filtered_pings_are_replaced_by_handshakes(
    lab_of: Callable[..., Lab], tmp_path: Path
) -> None:
    topology = _topology(4)
    lab = lab_of(topology, "small")
    lab.set_host(_PROVIDERS[1], {"icmp": "filtered"})
    try:
        db = tmp_path / "store.db"
        pair = f"{_PROVIDERS[0]}>{_PROVIDERS[1]}"
        code, _ = probe(lab, db, "--phases", "rtt", "--pairs", pair, "--yes")
        assert code == 0
        ((value,),) = _samples(db, "rtt_ms").values()
        assert abs(value - topology.rtt_ms[0][1]) < 1.0
    finally:
        lab.clear()


def _done(db: Path) -> int:
    try:
        with closing(sqlite3.connect(db)) as connection:
            query = "SELECT count(*) FROM probes WHERE status = 'done'"
            return int(connection.execute(query).fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def _wait_until(reached: Callable[[], bool], running: subprocess.Popen[bytes]) -> None:
    def reached_while_running() -> bool:
        if reached():
            return True
        assert running.poll() is None
        return False

    eventually(reached_while_running, 300)  # a busy machine is slow


def _kill_when(done: int, db: Path, command: list[str]) -> set[tuple[int, str]]:
    """Run a campaign, kill it once so many probes are done; returns those acknowledged then."""
    controller = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    _wait_until(lambda: _done(db) >= done, controller)
    os.kill(controller.pid, signal.SIGKILL)
    controller.wait()
    return _acknowledged(db)


def _acknowledged(db: Path) -> set[tuple[int, str]]:
    query = (
        "SELECT samples.id, probes.id || ' ' || metrics.name || ' ' || samples.value "
        "FROM probes JOIN samples USING (batch_id) JOIN metrics ON metrics.id = metric_id "
        "WHERE probes.status = 'done'"
    )
    with closing(sqlite3.connect(db)) as connection:
        return set(connection.execute(query))


@pytest.mark.thorough
def test_a_campaign_survives_everything(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    """Two kills of the controller, two hosts that die and one that hangs, within a budget.

    What is lost is listed, the rest is measured once, all that was sent is paid for, and nothing is
    left on hosts.
    """
    topology = _topology(12)
    lab = lab_of(topology, "chaos")
    db, fleet = tmp_path / "store.db", tmp_path / "fleet.toml"
    usd_per_gb = 10.0
    stated = f"[[host]]\negress_usd_per_gb = {usd_per_gb}"
    fleet.write_text(lab.fleet_file.read_text().replace("[[host]]", stated))
    names = [site.region for site in topology.sites]
    dead, hanging = set(names[3:5]), names[7]
    pairs = [(names[i], names[(i + step) % 12]) for i in range(12) for step in (1, 5)][:20]
    words = ["probe", "--fleet", str(fleet), "--db", str(db), "--json", "--yes"]
    spec = ["--phases", "per-flow", "--flow-time", "4s", "--budget", "15usd"]
    spec += [word for src, dst in pairs for word in ("--pairs", f"{src}>{dst}")]
    before = _sent_bytes(lab)
    first = _kill_when(4, db, [*RELAYD, *words, *spec])
    for region in dead:
        in_site(lab, region, "sh", "-c", "kill -9 -1; true")
        lab.set_host(region, {"state": "reset"})
    lab.set_host(hanging, {"ssh": "hang"})
    second = _kill_when(8, db, [*RELAYD, *words, "--resume"])
    assert first <= second

    with subprocess.Popen([*RELAYD, *words, "--resume"], cwd=ROOT, stdout=subprocess.PIPE) as last:
        good = [pair for pair in pairs if not {hanging, *dead} & set(pair)]
        _wait_until(lambda: _done(db) >= len(good), last)
        lab.set_host(hanging, {"ssh": "ok"})
        report = json.loads(last.communicate()[0])
    assert last.returncode == 5
    failed = {tuple(one["pairs"][0]) for one in report["failed"]}
    assert failed == set(pairs) - set(_samples(db, "per_flow_mbps"))
    assert failed
    assert all(dead & set(pair) for pair in failed)
    third = _acknowledged(db)
    assert second <= third
    assert not {r: left for r in names if r not in dead and (left := left_on(lab, r))}

    lab.clear()
    code, report = probe(fleet, db, "--resume")
    assert (code, report["failed"]) == (0, [])
    assert third <= _acknowledged(db)
    assert not {region: left for region in names if (left := left_on(lab, region))}
    found = _samples(db, "per_flow_mbps")
    assert set(found) == set(pairs)
    assert all(len(values) == 1 for values in found.values())
    on_wire_usd = (_sent_bytes(lab) - before) / 1e9 * usd_per_gb
    assert on_wire_usd <= report["egress_usd"] <= 15.0


def _sent_bytes(lab: Lab) -> int:
    return sum(site["sent_bytes"] for site in lab.status()["sites"])


def test_limits_hold_and_what_is_left_out_can_follow(
    lab_of: Callable[..., Lab], tmp_path: Path
) -> None:
    lab = lab_of(_topology(4), "small")
    db = tmp_path / "store.db"
    pair = f"{_PROVIDERS[0]}>{_PROVIDERS[2]}"
    asked = f"--phases per-flow --flow-time 4s --pairs {pair}"
    for words in (f"{asked} --budget 0usd", "--resume --budget 9usd --max-minutes 0.01"):
        code, report = probe(lab, db, words)
        assert (code, report["left_out"], report["samples"]) == (5, 1, 0)
    code, report = probe(lab, db, "--resume --budget 9usd")
    assert (code, report["left_out"], report["samples"]) == (0, 0, 1)
