"""States of knowledge that every surface must answer alike on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from probes.liveness.link_health import LinkHealth
from relayd.__main__ import main
from relayd.store import open_store
from relayd.store.links import LinkStates
from relayd.store.verifications import VerificationRow, Verifications

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
SRC, DST, RELAY = "aws:us-east-1", "aws:sa-east-1", "azure:eastus"
REGIONS = (SRC, DST, RELAY, "gcp:us-east1")
OWN_FLEET = f"""\
user = "probe"
[[host]]
name = "first"
region = "{SRC}"
host = "198.51.100.1"
vm_type = "m4.16xlarge"
[[host]]
name = "second"
region = "{SRC}"
host = "198.51.100.2"
vm_type = "m4.16xlarge"
[[host]]
region = "{RELAY}"
host = "198.51.100.3"
egress_mbps = 1500
"""
OWN_CATALOGUE = """\
[[region]]
id = "gcp:us-east1"
private_network = "vpc"

[[region]]
id = "gcp:europe-west1"
private_network = "vpc"

[[region]]
id = "lab:home"
city = "Bern"
country = "CH"
continent = "EU"
latitude_deg = 46.9
longitude_deg = 7.4
baseline = true

[[vm_type]]
id = "lab:box"
vcpus = 8
egress_gbps = 5.0
ingress_gbps = 5.0
flow_gbps = 5.0
window_mb = 6.0
price_usd_per_h = 0.5

[default_vm_types]
lab = "lab:box"

[[egress]]
name = "own lines"
from = ["lab:*"]
to = ["*"]
usd_per_gb = 0.001

[[vcpu_quota]]
region = "aws:*"
family = "L-1216C47A"
vcpus = 80
used_vcpus = 10
"""


class State(NamedTuple):
    """A store, with the user's own catalogue files and fleet."""

    db: Path
    catalogues: tuple[Path, ...] = ()
    fleet: Path | None = None


def _store(folder: Path, measured_days_ago: float, sa_mbps: float = 2000.0) -> Path:
    """Return a store of a few links; the direct link to South America is slow."""
    at_s = time.time() - measured_days_ago * DAY_S
    table, db = folder / "measured.csv", folder / "relayd.db"
    rows = ["src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"]
    for src, dst in permutations(REGIONS, 2):
        mbps = sa_mbps if (src, dst) == (SRC, DST) else 12_000.0 if src == RELAY else 9600.0
        rows.append(f"{src},{dst},120,{mbps:g},64,60,{at_s:.0f}")
    table.write_text("\n".join(rows) + "\n")
    assert main(["import", "csv", str(table), "--db", str(db)]) == 0
    return db


def baseline(folder: Path) -> State:
    """Nothing measured: a store without a snapshot."""
    db = folder / "relayd.db"
    open_store(db, mode="create").close()
    return State(db)


def fresh(folder: Path) -> State:
    """Measured half a day ago: no bound changes while a test runs."""
    return State(_store(folder, 0.5))


def aged(folder: Path) -> State:
    """Measured long ago, at another time of the day."""
    return State(_store(folder, 400.5))


def verified(folder: Path) -> State:
    """A plan through a relay was run, and carried half of what was predicted."""
    db = _store(folder, 0.5)
    path = f"{SRC}>{RELAY}>{DST}"
    at_s = time.time() - 5 * HOUR_S
    with open_store(db, mode="write") as store:
        Verifications(store.database).record(
            [
                VerificationRow(
                    "p", "x", SRC, DST, "plan", "relay", way, 64, 1, True, 4.3, 4.8, 5.3, 2.4, at_s
                )
                for way in ("", path)
            ],
            [],
        )
    return State(db)


def link_down(folder: Path) -> State:
    """One link is down and another one degraded."""
    db = _store(folder, 0.5, sa_mbps=4000.0)
    since_s = time.time() - HOUR_S
    health = {
        (SRC, DST): LinkHealth("down", since_s, "no reply to 3 probes"),
        (SRC, RELAY): LinkHealth("degraded", since_s, "throughput fell", rate_share=0.5),
    }
    with open_store(db, mode="write") as store, store.database.transaction():
        LinkStates(store.database).keep(health, (), time.time() + DAY_S)
    return State(db)


def own_catalogue(folder: Path) -> State:
    """A catalogue file came after the snapshot, with a region, a VM type, a price and a quota."""
    file = folder / "own.toml"
    file.write_text(OWN_CATALOGUE)
    return State(_store(folder, 0.5), (file,))


def own_fleet(folder: Path) -> State:
    """The user has VMs of a type that was not measured, and one with a cap of its own."""
    file = folder / "fleet.toml"
    file.write_text(OWN_FLEET)
    return State(_store(folder, 0.5), fleet=file)


STATES: Sequence[Callable[[Path], State]] = (
    baseline,
    fresh,
    aged,
    verified,
    link_down,
    own_catalogue,
    own_fleet,
)
