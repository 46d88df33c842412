"""A cluster of Spark on loopback, with a worker in each region, and jobs sent to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

WAIT_S = 120.0


@contextmanager
def _started(home: Path, log: Path, *words: str, **environment: str) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(
            [home / "bin" / "spark-class", *words],
            stdout=file,
            stderr=file,
            cwd=log.parent,
            env={**os.environ, "SPARK_HOME": str(home), **environment},
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    """Return what a log says, once it does."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(log.read_text()[-3000:])


@contextmanager
def cluster(home: Path, folder: Path, cores: Mapping[str, int]) -> Iterator[str]:
    """Run a master, and a worker of so many cores for each region; yields the master's address."""
    local = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    deploy = "org.apache.spark.deploy"
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_started(home, log, f"{deploy}.master.Master", *local))
        address = _said(log, r"Starting Spark master at (spark://\S+)")
        for region, count in cores.items():
            name = region.replace(":", "-")
            worker_log = folder / f"{name}.log"
            words = [f"{deploy}.worker.Worker", *local, "--cores", str(count), "--memory", "1g"]
            words += ["--work-dir", str(folder / name), address]
            tag = {"SPARK_EXECUTOR_ATTRIBUTE_REGION": region}
            stack.enter_context(_started(home, worker_log, *words, **tag))
            _said(worker_log, r"(Successfully registered with master)")
        yield address


def submit(home: Path, master: str, job: Path, cores: int, *options: str) -> Path:
    """Run a job that knows nothing of regions once all cores are there; returns its event log."""
    logs = job.parent / f"{job.stem}-logs"
    logs.mkdir()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.cores.max": str(cores),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    }
    words = [word for item in settings.items() for word in ("--conf", "=".join(item))]
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [home / "bin" / "spark-submit", "--master", master, *words, *options, job],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "SPARK_HOME": str(home), **python},
    )
    assert done.returncode == 0, done.stderr
    (log,) = logs.iterdir()
    return log
