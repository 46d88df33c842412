"""What holds bring, and what they cost: ``python -m benchmarks.holds [--lab]``.

The time of a plan with a thousand holds on pools in forty regions, against one without; and how
many transfers can begin in a second, each with a hold on one pool, in a file and on PostgreSQL.
With ``--lab`` (root): 30 transfers of four programs, on pools of one VM in each of twelve emulated
datacenters, begun over five minutes and sent by iperf3; once each is planned as if nothing else
were under way and begins at once, once each holds what its plan takes and waits for when it ends
soonest. A transfer is as planned if it ends within a tenth of the planned time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from subprocess import TimeoutExpired
from typing import Any

import numpy as np

import relayd
from benchmarks.lab_measuring import running
from benchmarks.labs import lab_of, topology_like
from benchmarks.table import judge, show, times_s
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Topology, private_address
from relayd.catalogue.loading import load_catalogue
from relayd.questions.holds import holds_of
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.transfers.register import TransferRegister
from tests.http.running import Answer, served
from tests.postgresql import running_server

HOLDS, POOLS, PAIRS, REPEATS = 1000, 40, 30, 5
VM_TYPES = {"aws": "aws:m5.8xlarge", "azure": "azure:D32_v5", "gcp": "gcp:n2-standard-32"}
MOST_RATIO = 1.2
BEGIN_FOR_S, CLIENTS = 5.0, 8

TRANSFERS, BEGIN_WITHIN_S, SITES, SCALE = 30, 300.0, 12, 0.05
ALONE_S = 25.0, 75.0
LONGEST_S = 600.0
CONNECTIONS = 8
AS_PLANNED = 1.1
RETRY_S = 0.2


def speed() -> None:
    """Compare plans on free pools with plans among many holds."""
    random, folder = Random(1), Path(tempfile.mkdtemp())
    known = load_catalogue()
    public = [name for name in known.regions if name not in known.apart]
    pooled = random.sample([name for name in public if name.partition(":")[0] in VM_TYPES], POOLS)
    entry = '[[pool]]\nregion = "{}"\nvm_type = "{}"\nvms = 100\n'
    catalogue = folder / "pools.toml"
    catalogue.write_text("".join(entry.format(r, VM_TYPES[r.partition(":")[0]]) for r in pooled))
    open_store(folder / "s.db", mode="create").close()
    wan = relayd.open(str(folder / "s.db"), catalogues=[catalogue])
    pairs = [random.sample(pooled, 2) for _ in range(PAIRS)]

    def plan_ms() -> float:
        best = [
            min(times_s(lambda ends: wan.plan(*ends, volume_gb=500, vms=4), [pair] * REPEATS))
            for pair in pairs
        ]
        return 1e3 * median(best)

    without_ms = plan_ms()
    with open_store(folder / "s.db", mode="write") as store:
        register = TransferRegister(store.database, wan, "benchmark")
        for number in range(HOLDS):
            src, dst = random.sample(pooled, 2)
            plan = {"paths": [{"regions": [src, dst], "throughput_gbps": 0.5}], "duration_s": 9e3}
            register.begin_transfer(
                src, dst, volume_gb=500, id=str(number), plan=plan, silent_after_s=86_400
            )
    with_ms = plan_ms()
    rows = [("without holds", f"{without_ms:.2f}"), (f"{HOLDS:,} holds", f"{with_ms:.2f}")]
    show("Plans on pools, median of their best times", ("", "ms"), rows)
    judge("plan with 1,000 holds to one without", with_ms / without_ms, MOST_RATIO)


# ---- begins a second -----------------------------------------------------------------------------


def begins() -> None:
    """Count the transfers that begin with a hold in a second, on either engine."""
    folder = Path(tempfile.mkdtemp())
    ends, catalogue = ("aws:us-east-1", "aws:sa-east-1"), folder / "pools.toml"
    pool = f'[[pool]]\nregion = "{ends[0]}"\nvm_type = "{VM_TYPES["aws"]}"\nvms = 1000\n'
    catalogue.write_text(pool)
    known, rows = load_catalogue([catalogue]), []
    plan = {"paths": [{"regions": ends, "throughput_gbps": 0.001}], "duration_s": 9e3}
    said: dict[str, Any] = {"volume_gb": 500, "plan": plan, "silent_after_s": 86_400}
    with running_server() as server:
        for engine, where in (("SQLite", str(folder / "s.db")), ("PostgreSQL", server.new_store())):
            open_store(where, mode="create").close()
            wan = StoredWan(known, where)
            with open_store(where, mode="write") as store:
                begin = TransferRegister(store.database, wan, "benchmark").begin_transfer
                alone = begun_per_s(partial(begin, *ends, **said), 1)
            wan.close()
            by_http = []
            for clients in (1, CLIENTS):
                options = "--catalogue", str(catalogue)
                with served(where, *options, log=folder / "log") as service:

                    def post(ask: Callable[..., Answer] = service.ask) -> None:
                        body = {"src": ends[0], "dst": ends[1], **said}
                        if (answer := ask("POST", "/v1/transfers", body)).status != 201:
                            raise RuntimeError(answer)

                    by_http.append(begun_per_s(post, clients))
            rows.append((engine, *(f"{per_s:.0f}" for per_s in (alone, *by_http))))
    heads = ("", "register", "HTTP", f"HTTP, {CLIENTS} clients")
    show("Begins with a hold, a second", heads, rows)


def begun_per_s(begin: Callable[[], object], clients: int) -> float:
    """Return how many begin in a second while some clients do nothing else."""
    since_s = time.perf_counter()

    def keep_on(_: int) -> int:
        done = 0
        while time.perf_counter() < since_s + BEGIN_FOR_S:
            begin()
            done += 1
        return done

    if clients == 1:  # here, as a store is its thread's own
        return keep_on(0) / (time.perf_counter() - since_s)
    with ThreadPoolExecutor(clients) as threads:
        done = sum(threads.map(keep_on, range(clients)))
    return done / (time.perf_counter() - since_s)


# ---- real bytes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A transfer that a program wants."""

    program: str
    src: str
    dst: str
    volume_gb: float
    at_s: float


def jobs(topology: Topology) -> list[Job]:
    """Return the transfers, each of so much that it takes 25 to 75 s alone."""
    random, sites = Random(7), topology.sites
    found = []
    for number in range(TRANSFERS):
        src, dst = random.sample(sites, 2)
        gbps = GOODPUT_SHARE * min(src.egress_mbps, dst.ingress_mbps) / MBPS_PER_GBPS
        volume_gb = random.uniform(*ALONE_S) * gbps / BITS_PER_BYTE
        program, at_s = f"program {number % 4}", random.uniform(0, BEGIN_WITHIN_S)
        found.append(Job(program, src.region, dst.region, volume_gb, at_s))
    return sorted(found, key=lambda job: job.at_s)


def network_of(topology: Topology) -> Network:
    """Return the network that a lab emulates, with one VM in each region."""
    sites = topology.sites
    flow = np.array(
        [
            [0 if a == b else topology.expected_flow_mbps(a, b) for b in range(len(sites))]
            for a in range(len(sites))
        ]
    )
    out = GOODPUT_SHARE * np.array([site.egress_mbps for site in sites]) / MBPS_PER_GBPS
    into = GOODPUT_SHARE * np.array([site.ingress_mbps for site in sites]) / MBPS_PER_GBPS
    most = np.minimum(out[:, None], into)
    network = Network.from_matrices(
        [site.region for site in sites],
        np.where(flow > 0, np.minimum(most, 64 * flow / MBPS_PER_GBPS), 0),
        rtt_ms=np.array(topology.rtt_ms),
        per_flow_mbps=flow,
        egress_gbps=list(out),
        ingress_gbps=list(into),
    )
    return network.with_(sites={n: replace(one, vms=1) for n, one in network.sites.items()})


@contextmanager
def sent(lab: Lab, job: Job, port: int, gbps: float | None) -> Iterator[None]:
    """Send a volume by iperf3, at most at a rate; the block begins when it has arrived."""
    address = private_address(lab.topology().index(job.dst))
    server = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
    volume = f"{int(job.volume_gb * 1e9)}"  # of all streams
    ask = ["iperf3", "-c", address, "-p", str(port), "-P", str(CONNECTIONS), "-n", volume]
    if gbps is not None:
        ask += ["-b", f"{int(gbps * 1e9 / CONNECTIONS)}"]
    with running(lab, job.dst, server, until="listening"), running(lab, job.src, ask) as client:
        with suppress(TimeoutExpired):  # as long as that, it counts as late
            said, _ = client.communicate(timeout=LONGEST_S)
            if client.returncode:
                raise RuntimeError(said)
        yield


def carried_out(
    lab: Lab, wan: Wan, store: Path, *, holding: bool
) -> list[tuple[float, float, float]]:
    """Carry out all transfers; return the planned and the real time of each, in s, and dollars."""
    begun_s, ports = time.time(), count(5301)

    def run(job: Job) -> tuple[float, float, float]:
        time.sleep(max(0.0, begun_s + job.at_s - time.time()))
        asked: Any = {"volume_gb": job.volume_gb, "relays": "none", "connections": CONNECTIONS}
        while True:
            with open_store(store, mode="write") as opened:
                held = wan.holding(holds_of(opened.database, time.time())) if holding else wan
                register = TransferRegister(opened.database, wan, job.program)
                try:
                    plan = held.plan(job.src, job.dst, **asked, queue=holding)
                    if (plan.starts_at_s or 0.0) <= time.time():
                        begun = register.begin_transfer(
                            job.src,
                            job.dst,
                            volume_gb=job.volume_gb,
                            plan=plan,
                            no_hold=not holding,
                            silent_after_s=900,
                        )
                        break
                except InfeasibleError:
                    pass
            time.sleep(RETRY_S)
        since_s = time.time()
        with sent(lab, job, next(ports), plan.throughput_gbps if holding else None):
            took_s = time.time() - since_s
        with open_store(store, mode="write") as opened:
            TransferRegister(opened.database, wan, job.program).end_transfer(begun.id)
        cost = plan.cost_usd  # VMs run as long as the transfer does
        return plan.duration_s, took_s, cost.egress + cost.vm * took_s / plan.duration_s

    with ThreadPoolExecutor(TRANSFERS) as pool:
        return list(pool.map(run, jobs(lab.topology())))


def in_lab() -> None:
    """Compare transfers that hold with transfers that do not, with real bytes."""
    topology, rows = topology_like("paper", SITES, SCALE), []
    wan = Wan(load_catalogue(), network_of(topology))
    with lab_of(topology) as lab, tempfile.TemporaryDirectory() as folder:
        for name, holding in (("as if alone", False), ("with holds", True)):
            store, began_s = Path(folder) / f"{holding}.db", time.time()
            open_store(store, mode="create").close()
            found = carried_out(lab, wan, store, holding=holding)
            all_s = time.time() - began_s
            kept = sum(took <= AS_PLANNED * planned for planned, took, _ in found) / len(found)
            slower = median(took / planned for planned, took, _ in found)
            sending_s, usd = sum(took for _, took, _ in found), sum(cost for *_, cost in found)
            figures = f"{kept:.0%}", f"{slower:.2f}", f"{sending_s:.0f}", f"{all_s:.0f}"
            rows.append((name, *figures, f"{usd:.2f}"))
            if holding:
                judge("transfers that end as planned, with holds", kept, 0.95, least=True)
    heads = ("", "as planned", "real/planned time", "sending, s", "until the last ends, s", "USD")
    show(f"{TRANSFERS} transfers on {SITES} pools, real bytes", heads, rows)


if __name__ == "__main__":
    if "--lab" in sys.argv[1:]:
        in_lab()
    else:
        speed()
        begins()
