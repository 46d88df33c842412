"""Stores and fleets with something to show: made by what makes them in earnest."""

from __future__ import annotations

import json
import time
from pathlib import Path

from probes.campaign.tasks import ProbeOutcome, ProbeTask
from probes.estimation.current_samples import LinkShift
from probes.fleet.hosts import Fleet
from probes.liveness.link_health import LinkHealth
from probes.metrics import Metric
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.campaigns import Campaigns
from relayd.store.links import LevelShifts, LinkStates
from relayd.store.samples.ingest import append
from tests.http.test_fleet import DAY_S, rates, snapshot_then

US, SA, EU, GCP = "aws:us-east-1", "aws:sa-east-1", "azure:eastus", "gcp:us-east1"
HUNG = "iperf3 had not ended after 20 s."
REFUSED = (
    "no SSH connection to login.example port 22 (Connection refused. Really). "
    "Check that it runs, and the address and port in the fleet file."
)


def store_with_history(folder: Path) -> Path:
    """Return a store with campaigns, failures, two snapshots a day apart and links in trouble."""
    db = folder / "relayd.db"
    with open_store(db, mode="create") as store:
        for src in (US, SA, EU, GCP):
            for dst in {US, SA, EU, GCP} - {src}:
                append(store, rates(src, dst, 4000.0, 2 * DAY_S))
    snapshot_then(db, 1.5 * DAY_S)
    with open_store(db, mode="write") as store:
        for hours in range(12):
            append(store, rates(US, SA, 1000.0, 3600.0 * hours))
        append(store, [Sample("acme:new-1", SA, "rtt_ms", 20.0, time.time() - 50, "ping")])
        append(store, [_cap("egress_cap_mbps", 4200.0), _cap("ingress_cap_mbps", 9500.0)])
        _campaigns(Campaigns(store))
        make_snapshot(store, load_catalogue())
        now_s = time.time()
        with store.database.transaction():
            LevelShifts(store.database).add(
                LinkShift(US, SA, "aggregate_mbps", now_s - 3600, now_s, 4e3, 1e3)
            )
            LinkStates(store.database).keep(
                {
                    (EU, SA): LinkHealth("down", since_s=now_s - 900, reason="no reply to 3 looks"),
                    (GCP, SA): LinkHealth(
                        "degraded",
                        since_s=now_s - 90,
                        reason="about 20% of packets are lost",
                        loss_score=9.0,
                        loss_sent=50,
                        loss_lost=10,
                    ),
                },
                (),
                now_s + DAY_S,
            )
    return db


def _cap(metric: Metric, mbps: float) -> Sample:
    """Return a cap of one VM, named as fleet files of these tests name it."""
    taken = ("iperf3", 64, 9.0, True)
    vm = "m5.8xlarge"
    detail = json.dumps({"host": "aws-us-east-1"})
    return Sample(
        US, US, metric, mbps, time.time() - 7200, *taken, src_vm=vm, dst_vm=vm, detail=detail
    )


def _campaigns(campaigns: Campaigns) -> None:
    """Keep one that is done and one that partly failed."""
    spec = {"phases": ["rtt", "per-flow", "aggregate", "caps"]}
    first = campaigns.begin({"wish": spec, "budget_usd": 2.0, "started_by": "watch"})
    pings = first.plan("rtt", [ProbeTask("rtt", ((US, SA),), 0, 2.0)] * 3)
    first.record([ProbeOutcome(probe, sent_gb=0.001, usd=0.0001) for probe in pings])
    first.finish()
    second = campaigns.begin({"wish": spec, "budget_usd": 5.0, "method": {"tool": "iperf3"}})
    pings = second.plan("rtt", [ProbeTask("rtt", ((src, GCP),), 0, 2.0) for src in (US, SA, EU)])
    second.record([ProbeOutcome(probe, sent_gb=0.001, usd=0.0001) for probe in pings[:2]])
    second.record([ProbeOutcome(pings[2], problem=REFUSED, host=EU, attempts=3)])
    flows = second.plan(
        "per-flow", [ProbeTask("per-flow", ((EU, dst),), 1, 10.0, 1.0) for dst in (US, SA, GCP)]
    )
    second.record([ProbeOutcome(flows[0], sent_gb=9.5, usd=0.81)])
    second.record([ProbeOutcome(flows[1], (), 4.0, 3.4, 3, HUNG, None, EU)])
    second.record([ProbeOutcome(flows[2], problem=REFUSED, host=EU, attempts=2)])
    second.plan("aggregate 1", [ProbeTask("aggregate", ((US, EU),), 64, 5.0, 5.0)])


def fleet_file(folder: Path, fleet: Fleet, *, vm_type: str = "m5.8xlarge") -> Path:
    """Return a fleet file of some hosts."""
    path = folder / "fleet.toml"
    path.write_text(
        "".join(
            f"[[host]]\nname = {json.dumps(host.name.replace(':', '-'))}\n"
            f"region = {json.dumps(host.region)}\nhost = {json.dumps(host.host)}\n"
            f"port = {host.port}\n"
            f"user = {json.dumps(host.user)}\nkey = {json.dumps(str(host.key))}\n"
            f"known_hosts = {json.dumps(str(host.known_hosts))}\n"
            f"public_address = {json.dumps(host.public_address)}\n"
            + (f"vm_type = {json.dumps(vm_type)}\n\n" if host.provider == "aws" else "\n")
            for host in fleet
        )
    )
    return path
