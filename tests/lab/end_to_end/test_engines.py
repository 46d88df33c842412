"""Engines that work between the sites of a lab, with and without what relayd says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import relayd
from planner.model.units import BYTES_PER_GB
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology, private_address
from relayd.integrations.spark import SparkShuffle, cores_by_region, read_shuffles, shuffle_plan
from tests.lab.end_to_end.campaigns import ROOT
from tests.lab.end_to_end.true_store import true_store
from tests.relayd.integrations.engines import python_of
from tests.relayd.integrations.spark_cluster import Place, cluster, submit

pytestmark = [pytest.mark.integrations, pytest.mark.alone]

REGIONS = ("azure:eastus", "aws:us-east-1", "aws:ap-northeast-1")
CAP_MBPS, RTT_MS, WINDOW_BYTES = 20.0, 20.0, 1_000_000
TOPOLOGY = Topology(
    tuple(Site(region, CAP_MBPS, CAP_MBPS, WINDOW_BYTES) for region in REGIONS),
    tuple(tuple(0.0 if a == b else RTT_MS for b in REGIONS) for a in REGIONS),
    profile="engines",
)
JOB = Path(__file__).with_name("spark_job.py")
WITHIN = 1.15
"""As slow as this at most, times what relayd predicted."""


def within(lab: Lab, region: str) -> tuple[str, ...]:
    """Return the words before a command that run it on the network of a site."""
    site = lab.status()["sites"][REGIONS.index(region)]
    return "nsenter", "--target", str(site["pid"]), "--net"


def on_network(
    lab: Lab, region: str, words: Sequence[str], python: str | Path = sys.executable
) -> list[str]:
    """Return the command that runs a module on a site's network."""
    return [*within(lab, region), str(python), "-m", *words]


@contextmanager
def started(
    lab: Lab, region: str, *words: str, python: str | Path = sys.executable
) -> Iterator[None]:
    """Run a program in a site for as long as the block lasts, with all that it starts."""
    process = subprocess.Popen(
        on_network(lab, region, words, python),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def sent_gb(lab: Lab) -> float:
    return float(sum(site["sent_bytes"] for site in lab.status()["sites"])) / BYTES_PER_GB


def run_job(lab: Lab, job: str, *words: str, python: str | Path = sys.executable) -> dict[str, Any]:
    """Run a job in the first site; returns what it says, and what was sent between sites."""
    before_gb = sent_gb(lab)
    done = subprocess.run(
        on_network(lab, REGIONS[0], [f"tests.lab.end_to_end.{job}", *words], python),
        cwd=ROOT,
        input=TOPOLOGY.to_json(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"sent_gb": sent_gb(lab) - before_gb, **found}


def dask_job(lab: Lab, how: str) -> dict[str, Any]:
    """Run the job on a new cluster."""
    scheduler = f"tcp://{private_address(0)}:8786"
    plain = ["--no-dashboard"]
    serve = ["distributed.cli.dask_scheduler", "--port", "8786", *plain]
    with started(lab, REGIONS[0], *serve), started_workers(lab, scheduler, plain):
        return run_job(lab, "dask_job", scheduler, how)


@contextmanager
def started_workers(lab: Lab, scheduler: str, options: list[str]) -> Iterator[None]:
    with ExitStack() as stack:
        for region in REGIONS:
            words = ["--resources", f"{region}=1", "--nthreads", "1", *options]
            stack.enter_context(
                started(lab, region, "distributed.cli.dask_worker", scheduler, *words)
            )
        yield


def test_dask_reduces_as_soon_as_predicted(lab_of: Callable[..., Lab]) -> None:
    pytest.importorskip("distributed")
    lab = lab_of(TOPOLOGY, "dask")
    placed, even = dask_job(lab, "placed"), dask_job(lab, "even")
    print(placed, even)
    assert placed["rows"] == even["rows"]
    assert placed["where"] == placed["planned"]
    assert placed["took_s"] <= WITHIN * placed["predicted_s"]
    assert placed["sent_gb"] <= WITHIN * placed["predicted_gb"]
    assert placed["sent_gb"] < 0.85 * even["sent_gb"]
    assert placed["took_s"] < 0.8 * even["took_s"]


def ray_job(lab: Lab, how: str) -> dict[str, Any]:
    """Run the job on a new cluster, with a node in each site."""
    python = python_of("ray")
    head = f"{private_address(0)}:6379"
    plain = ("--block", "--disable-usage-stats", "--object-store-memory", "200000000")
    # In a folder of a short name: Ray's sockets are in it, whose paths may be 107 bytes long.
    with TemporaryDirectory(dir="/tmp", prefix="ray") as folder, ExitStack() as stack:
        for number, region in enumerate(REGIONS):
            joins = ("--head", "--port", "6379", "--include-dashboard", "false")
            words = (*joins, "--temp-dir", folder) if number == 0 else ("--address", head)
            node = started(
                lab,
                region,
                *("ray.scripts.scripts", "start", *words, *plain, "--num-cpus", "1"),
                *("--node-ip-address", private_address(number)),
                *("--resources", json.dumps({region: 1000})),
                python=python,
            )
            stack.enter_context(node)
            # A node finds those that have begun, not those that begin at the same time.
            ready = ["tests.lab.end_to_end.ray_nodes", head, str(number + 1)]
            waiting = on_network(lab, REGIONS[0], ready, python)
            subprocess.run(waiting, cwd=ROOT, check=True, timeout=150, capture_output=True)
        return run_job(lab, "ray_job", head, how, python=python)


def test_ray_sends_weights_as_soon_as_predicted(lab_of: Callable[..., Lab]) -> None:
    python_of("ray")
    lab = lab_of(TOPOLOGY, "ray")
    trees, plain = ray_job(lab, "trees"), ray_job(lab, "plain")
    print(trees, plain)
    assert trees["copies"] == plain["copies"] == 24
    assert trees["took_s"] <= WITHIN * trees["predicted_s"]
    assert trees["took_s"] < 0.8 * plain["took_s"]


CORES = 12
PARTS = dict(zip(REGIONS, (20, 6, 4), strict=True))
"""Of the input of Spark's job, 4.8 MB each."""


def spark_job(
    lab: Lab, folder: Path, cores: Mapping[str, int], *options: str
) -> tuple[SparkShuffle, float]:
    """Run the job on a new cluster; returns its shuffle, and what all sites sent."""
    home = Path(pytest.importorskip("pyspark").__file__).parent
    folder.mkdir()
    places = [
        Place(region, private_address(number), within(lab, region))
        for number, region in enumerate(REGIONS)
    ]
    # Input is read where it lies, however long no core is free there.
    words = ["--conf", "spark.locality.wait.node=600s", *options, str(JOB), str(CORES)]
    words += [f"{place.address}:{PARTS[place.region]}" for place in places]
    with cluster(home, folder, [(place, cores[place.region]) for place in places]) as master:
        before_gb = sent_gb(lab)
        log = submit(home, master, places[0], CORES, folder / "logs", *words)
        used_gb = sent_gb(lab) - before_gb
    (shuffle,) = read_shuffles(log)
    return shuffle, used_gb


def test_spark_reduces_as_soon_as_predicted(lab_of: Callable[..., Lab], tmp_path: Path) -> None:
    lab = lab_of(TOPOLOGY, "spark")
    even, even_gb = spark_job(lab, tmp_path / "even", dict.fromkeys(REGIONS, CORES // 3))
    store = true_store(tmp_path / "store.db", TOPOLOGY, len(REGIONS), connections=1)
    plan = shuffle_plan(even, partitions=CORES, connections=1, wan=relayd.open(store))
    cores = cores_by_region(plan, CORES)
    anywhere = ("--conf", "spark.shuffle.reduceLocality.enabled=false")
    placed, placed_gb = spark_job(lab, tmp_path / "placed", cores, *anywhere)
    print(even, even_gb, placed, placed_gb, plan, sep="\n")
    assert placed.read_in == plan.partitions_in
    assert placed.read_s <= WITHIN * plan.duration_s
    assert placed_gb <= WITHIN * plan.moved_gb
    assert placed.read_s < even.read_s
