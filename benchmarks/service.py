"""The service under load, compared with a bare aiohttp handler with a fixed body of that size.

``python -m benchmarks.service [SECONDS]``; needs wrk. Each server runs on one core, and wrk on
another, one after the other and again, so that both see the same machine. New plans are made by
the service's worker processes, on any core; their processor time counts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from statistics import median
from typing import NamedTuple
from urllib.request import urlopen

import pytest

from benchmarks.processes import cpu_s, memory_mb
from benchmarks.snapshots import write_samples
from benchmarks.table import judge, show
from tests.http.running import Served, imported, served
from tests.shared_data import shared
from tests.waiting import eventually

ROUNDS = 3
CONNECTIONS = 16
ASKING = 32
"""Clients that ask for new plans while another asks for a known one."""
BATCH = 1000
PATH = "/v1/plans?src=aws:us-east-1&dst=azure:westeurope&volume_gb=500"
BARE = """
import sys
from aiohttp import web
body = open(sys.argv[1], "rb").read()
async def handler(request):
    return web.Response(body=body, content_type="application/json")
app = web.Application()
app.router.add_get("/v1/plans", handler)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), access_log=None, print=None)
"""
DISTINCT = """
local names = {{ {names} }}
local asked = 0
math.randomseed({seed})
request = function()
  asked = asked + 1
  local a, b = math.random(#names), math.random(#names - 1)
  if b >= a then b = b + 1 end
  return wrk.format("GET", "/v1/plans?src=" .. names[a] .. "&dst=" .. names[b] ..
                    "&volume_gb=" .. (10 + asked / 64))
end
"""


class Load(NamedTuple):
    """Results of wrk, and the processor time per request of the server and its workers."""

    per_s: float
    p50: str
    p99: str
    cpu_us: float


def main(seconds: int = 4) -> int:
    """Load both servers in turn, and print the results."""
    if shutil.which("wrk") is None:
        print("This needs wrk (Debian: apt-get install wrk).")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db, what = make_store(folder)
        with served(db, "--workers", "0") as service:  # as many as usual
            pin(service.process.pid, 0)
            body = service.get(PATH).content
            (folder / "body").write_bytes(body)
            with bare(folder / "body", service.port + 1) as bare_pid:
                rows = measure(folder, service, bare_pid, seconds)
    header = ("", "a second", "p50", "p99", "CPU")
    show(f"The service, answers of {len(body):,} bytes; {what}", header, rows)
    return 0


def measure(folder: Path, service: Served, bare_pid: int, seconds: int) -> list[tuple[str, ...]]:
    """Return rows of the table, and judge processor time in that of bare answers."""
    port, pids = service.port, list(memory_mb(service.process.pid))
    regions = service.get("/v1/regions").json["regions"]
    # No model crosses the border of China, so some pairs would have no plan.
    names = [region["id"] for region in regions if region["country"] != "CN"]
    measured = service.get("/v1/matrix?metric=aggregate&measured_only=true").json["regions"]
    runs: dict[str, list[Load]] = {}
    for seed in range(ROUNDS):
        of_bare = load(port + 1, PATH, [bare_pid], seconds)
        runs.setdefault("bare handler", []).append(of_bare)
        runs.setdefault("known", []).append(load(port, PATH, pids, seconds))
        for kind, ends in (("distinct, any two", names), ("distinct, measured regions", measured)):
            script = distinct_plans(folder, ends, seed)
            found = load(port, "/", pids, seconds, "-s", str(script))
            runs.setdefault(kind, []).append(found)
        with ThreadPoolExecutor() as pool:
            asking = "-s", str(script), f"-c{ASKING}"
            new = pool.submit(load, port, "/", pids, seconds, *asking)
            known = load(port, PATH, pids, seconds, "-c1")
        runs.setdefault(f"distinct, {ASKING} clients", []).append(new.result())
        runs.setdefault("known, meanwhile", []).append(known)
    batch_s(service, names, ROUNDS)
    before_s = cpu_s(pids)
    batches = [batch_s(service, names, seed) for seed in range(ROUNDS)]
    batch_us = (cpu_s(pids) - before_s) * 1e6 / BATCH / ROUNDS
    used_us = {kind: median(run.cpu_us for run in of_kind) for kind, of_kind in runs.items()}
    bare_us = used_us["bare handler"]
    for kind, goal in (("distinct, measured regions", 30), ("distinct, any two", 45)):
        judge(f"GET /v1/plans, {kind}, in bare answers", used_us[kind] / bare_us, goal)
    judge(f"plan of a batch, {len(pids)} processes, in bare answers", batch_us / bare_us, 25)
    by_cpu = [
        theirs.cpu_us / ours.cpu_us
        for theirs, ours in zip(runs["bare handler"], runs["known"], strict=True)
    ]
    judge("GET /v1/plans, known: bare over it", median(by_cpu), 0.4, least=True)
    rows = []
    for kind, of_kind in runs.items():
        middle = sorted(of_kind)[ROUNDS // 2]
        figures = f"{middle.per_s:,.0f}", middle.p50, middle.p99, f"{middle.cpu_us:.0f} us"
        rows.append((kind, *figures))
    batch = f"{BATCH / median(batches):,.0f} plans", "", "", f"{batch_us:.0f} us"
    return [*rows, (f"batch of {BATCH:,} plans", *batch)]


def distinct_plans(folder: Path, names: list[str], seed: int) -> Path:
    """Write a script with which wrk asks for a new plan each time; return its path."""
    script = folder / f"distinct{seed}.lua"
    quoted = ", ".join(f'"{name}"' for name in names)
    script.write_text(DISTINCT.format(names=quoted, seed=seed + int(time.time())))
    return script


def load(port: int, path: str, pids: Sequence[int], seconds: int, *more: str) -> Load:
    """Load one server from another core; processor time is that of a request."""
    before_s = cpu_s(pids)
    options = (f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "--timeout", "30s", *more)
    command = ["wrk", "-t1", *options, f"http://127.0.0.1:{port}{path}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pin(process.pid, -1)
    said, _ = process.communicate()
    used_s = cpu_s(pids) - before_s
    assert process.returncode == 0, said
    assert not re.search(r"Non-2xx|Socket errors", said), said

    def found(pattern: str) -> str:
        match = re.search(pattern, said)
        assert match, said
        return match[1]

    per_s, requests = float(found(r"Requests/sec:\s+([\d.]+)")), int(found(r"(\d+) requests in"))
    assert requests, "none was answered in this time: ask for more seconds, or on a quiet machine"
    p50, p99 = (found(rf"\n +{share}% +(\S+)") for share in (50, 99))
    return Load(per_s, p50, p99, used_s / requests * 1e6)


def batch_s(service: Served, names: list[str], seed: int) -> float:
    """Return the time that one batch takes."""
    random = Random(seed)
    plans = []
    for _ in range(BATCH):
        src, dst = random.sample(names, 2)
        plans.append({"src": src, "dst": dst, "volume_gb": random.uniform(10, 5000)})
    began_s = time.perf_counter()
    answer = service.ask("POST", "/v1/plans/batch", json.dumps({"plans": plans}).encode())
    took_s = time.perf_counter() - began_s
    assert answer.content.count(b'"problem":null') == BATCH
    return took_s


def make_store(folder: Path) -> tuple[Path, str]:
    """Return a store with the grid that was measured, else with a synthetic one."""
    db = folder / "grid.db"
    try:
        throughput, latency = (
            shared(f"skyplane/{name}.csv") for name in ("throughput_2022-01", "latency_2022-04")
        )
    except pytest.skip.Exception:
        write_samples(folder / "synthetic.csv", 63, 63 * 62)
        return imported(folder / "synthetic.csv", db), "63 synthetic regions"
    imported(throughput, db, "skyplane-throughput")
    return imported(latency, db, "skyplane-latency"), "63 measured regions"


@contextmanager
def bare(body: Path, port: int) -> Iterator[int]:
    """Run the handler to compare with."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(body), str(port)])
    pin(process.pid, 0)

    def answered() -> bytes:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/v1/plans") as response:
            answer: bytes = response.read()
            return answer
        return b""

    try:
        eventually(answered)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def pin(pid: int, core: int) -> None:
    """Keep a process to one of the cores, where there is a choice."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, {sorted(os.sched_getaffinity(0))[core]})


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
