"""A cluster of Spark with a worker in each region, and jobs sent to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import eventually

WAIT_S = 120.0
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where processes run: an address, and the words before a command that bring it there."""

    region: str
    address: str = LOOPBACK
    within: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        # Where a host's name leads nowhere, Spark would not start.
        names = {"SPARK_LOCAL_IP": self.address, "SPARK_LOCAL_HOSTNAME": self.address}
        return {**os.environ, **names, "SPARK_EXECUTOR_ATTRIBUTE_REGION": self.region}


@contextmanager
def _started(home: Path, place: Place, log: Path, *words: str) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*place.within, home / "bin" / "spark-class", *words],
            stdout=file,
            stderr=file,
            cwd=log.parent,
            env={**place.environment(), "SPARK_HOME": str(home)},
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    """Return what a log says, once it does."""
    found: re.Match[str] = eventually(
        lambda: re.search(pattern, log.read_text()),
        WAIT_S,
        otherwise=lambda: log.read_text()[-3000:],
    )
    return found[1]


@contextmanager
def cluster(home: Path, folder: Path, workers: Sequence[tuple[Place, int]]) -> Iterator[str]:
    """Run a master at the first place, and workers of so many cores; yields its address."""
    deploy, free = "org.apache.spark.deploy", ["--port", "0", "--webui-port", "0"]
    with ExitStack() as stack:
        log, (first, _) = folder / "master.log", workers[0]
        words = [f"{deploy}.master.Master", "--host", first.address, *free]
        stack.enter_context(_started(home, first, log, *words))
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        for place, cores in workers:
            name = place.region.replace(":", "-")
            worker_log = folder / f"{name}.log"
            words = [f"{deploy}.worker.Worker", "--host", place.address, *free]
            words += ["--cores", str(cores), "--memory", "1g"]
            words += ["--work-dir", str(folder / name), master]
            stack.enter_context(_started(home, place, worker_log, *words))
            _said(worker_log, r"(Successfully registered with master)")
        yield master


def submit(
    home: Path, master: str, driver: Place, cores: int, logs: Path, *words: str | Path
) -> Path:
    """Run a job that knows nothing of regions once all cores are there; returns its event log.

    ``words`` are further options, the job and its arguments.
    """
    logs.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": driver.address,
        "spark.driver.host": driver.address,
        "spark.executor.memory": "512m",
        "spark.cores.max": str(cores),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    options = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    submission = [home / "bin" / "spark-submit", "--master", master, *options, *words]
    done = subprocess.run(
        [*driver.within, *submission],
        capture_output=True,
        text=True,
        timeout=300,
        env={**driver.environment(), "SPARK_HOME": str(home), **python},
    )
    assert done.returncode == 0, done.stderr
    (log,) = logs.iterdir()
    return log
