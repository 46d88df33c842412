"""The service under load, compared with a bare aiohttp handler with a fixed body of that size.

``python -m benchmarks.service [SECONDS]``; needs wrk. Each server runs on one core and wrk on
another, one after the other and again, so that both see the same machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.grid import BESIDE_THE_REPOSITORY
from benchmarks.importing import write_file
from benchmarks.processes import memory_mb
from benchmarks.table import judge, show
from tests.http.running import eventually, imported, served

ROUNDS = 3
CONNECTIONS = 16
BATCH = 1000
SHARE_OF_CAPACITY = 0.7
PACED_CONNECTIONS = 64
PACED_WITHIN = 0.03
PACED_ATTEMPTS = 5
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
PACED = """
math.randomseed(1)
delay = function() return math.random(0, {most_ms}) end
"""


class Load(NamedTuple):
    """Results of wrk, and the processor time per request of the server."""

    per_s: float
    p50_ms: float
    p99_ms: float
    bad: str
    cpu_us: float


def main(seconds: int = 4) -> int:
    """Print the table."""
    if shutil.which("wrk") is None:
        print("This needs wrk (Debian: apt-get install wrk).")
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db, what = make_store(folder)
        with service(db) as (port, pid):
            body = ask(port, PATH)
            (folder / "body").write_bytes(body)
            with bare(folder / "body", port + 1) as bare_pid:
                measure(folder, port, pid, bare_pid, seconds, len(body), what)
    return 0


def measure(
    folder: Path, port: int, pid: int, bare_pid: int, seconds: int, size: int, what: str
) -> None:
    """Load both servers in turn, and print the results."""
    known, plain = [], []
    for _ in range(ROUNDS):
        plain.append(load(port + 1, PATH, [bare_pid], seconds))
        known.append(load(port, PATH, [pid], seconds))
    ratios = [ours.per_s / theirs.per_s for ours, theirs in zip(known, plain, strict=True)]
    by_cpu = [theirs.cpu_us / ours.cpu_us for ours, theirs in zip(known, plain, strict=True)]
    names = [r["id"] for r in json.loads(ask(port, "/v1/regions"))["regions"]]
    links = json.loads(ask(port, "/v1/matrix?metric=aggregate&measured_only=true"))
    distinct: list[Load] = []
    measured: list[Load] = []
    for seed in range(ROUNDS):
        for found, ends in ((distinct, names), (measured, links["regions"])):
            script = distinct_plans(folder, ends, seed)
            found.append(load(port, "/", [pid], seconds, "-s", str(script)))
    capacity = statistics.median(run.per_s for run in known)
    calm = paced_load(folder, port, [pid], seconds, SHARE_OF_CAPACITY * capacity)
    batch_s(port, names, ROUNDS)
    before_s, pids = cpu_s(everyone := list(memory_mb(pid))), len(everyone)
    batches = [batch_s(port, names, seed) for seed in range(ROUNDS)]
    batch_us = (cpu_s(everyone) - before_s) * 1e6 / BATCH / ROUNDS
    bare_us = statistics.median(run.cpu_us for run in plain)
    for what_of, runs, goal in (("measured regions", measured, 30), ("any two", distinct, 45)):
        used_us = statistics.median(run.cpu_us for run in runs)
        judge(f"GET /v1/plans, distinct, {what_of}, in bare answers", used_us / bare_us, goal)
    judge(f"plan of a batch, {pids} processes, in bare answers", batch_us / bare_us, 25)
    judge("GET /v1/plans, known: bare over it", statistics.median(by_cpu), 0.4, least=True)
    rows = [
        _row("bare handler", plain, ""),
        _row("GET /v1/plans, known", known, f"{statistics.median(ratios):.0%} of bare (60 %)"),
        _row("GET /v1/plans, distinct", distinct, "1,500/s a core"),
        _row("the same between measured regions", measured, "1,500/s a core"),
        _row(
            f"known, at {calm.per_s / capacity:.0%} of capacity",
            [calm],
            f"p99 {calm.p99_ms / calm.p50_ms:.1f} x p50 (4)",
        ),
        (
            f"batch of {BATCH:,} plans",
            f"{BATCH / statistics.median(batches):,.0f} plans/s",
            "",
            "",
            "",
            "3,000 plans/s",
        ),
    ]
    header = ("", "a second", "p50", "p99", "CPU", "target")
    show(f"The service, answers of {size:,} bytes; {what}", header, rows)
    print(f"  Processor time of bare over ours: {statistics.median(by_cpu):.0%}.")
    for run in (*plain, *known, *distinct, *measured, calm):
        assert not run.bad, run.bad


def distinct_plans(folder: Path, names: list[str], seed: int) -> Path:
    """Write a script with which wrk asks for a new plan each time; return its path."""
    script = folder / f"distinct{seed}.lua"
    quoted = ", ".join(f'"{name}"' for name in names)
    script.write_text(DISTINCT.format(names=quoted, seed=seed + int(time.time())))
    return script


def _row(what: str, runs: list[Load], target: str) -> tuple[str, ...]:
    middle = sorted(runs)[len(runs) // 2]
    return (
        what,
        f"{middle.per_s:,.0f}",
        f"{middle.p50_ms:.2f} ms",
        f"{middle.p99_ms:.2f} ms",
        f"{middle.cpu_us:.0f} us",
        target,
    )


def load(
    port: int,
    path: str,
    pids: Sequence[int],
    seconds: int,
    *more: str,
    connections: int = CONNECTIONS,
) -> Load:
    """Load one server from another core; processor time is that of a request.

    Parameters
    ----------
    pids : sequence of int
        The processes of the server.
    """
    before_s = cpu_s(pids)
    options = (f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "30s", *more)
    said = on_core(-1, ["wrk", "-t1", *options, f"http://127.0.0.1:{port}{path}"])
    used_s = cpu_s(pids) - before_s
    requests = int(_found(r"(\d+) requests in", said))
    bad = re.search(r"Non-2xx.*|Socket errors.*", said)
    return Load(
        float(_found(r"Requests/sec:\s+([\d.]+)", said)),
        _ms(_found(r"\n +50% +(\S+)", said)),
        _ms(_found(r"\n +99% +(\S+)", said)),
        bad[0] if bad else "",
        used_s / requests * 1e6,
    )


def paced_load(
    folder: Path, port: int, pids: Sequence[int], seconds: int, wanted_per_s: float
) -> Load:
    """Load a server with a given rate: connections pause at random between requests.

    wrk has no rate to be set, and what the pauses must be depends on how long answers take: they
    are corrected by what came of them.
    """
    script = folder / "paced.lua"
    most_ms = 2e3 * PACED_CONNECTIONS / wanted_per_s
    for _ in range(PACED_ATTEMPTS):
        script.write_text(PACED.format(most_ms=round(most_ms)))
        more = ("-s", str(script))
        found = load(port, PATH, pids, seconds, *more, connections=PACED_CONNECTIONS)
        if abs(found.per_s / wanted_per_s - 1) < PACED_WITHIN:
            break
        cycle_ms = 1e3 * PACED_CONNECTIONS / found.per_s
        most_ms = max(1.0, most_ms + 2 * (1e3 * PACED_CONNECTIONS / wanted_per_s - cycle_ms))
    return found


def batch_s(port: int, names: list[str], seed: int) -> float:
    """Return the time that one batch takes."""
    random = Random(seed)
    plans = []
    for _ in range(BATCH):
        src, dst = random.sample(names, 2)
        plans.append({"src": src, "dst": dst, "volume_gb": random.uniform(10, 5000)})
    content = json.dumps({"plans": plans}).encode()
    began_s = time.perf_counter()
    answer = ask(port, "/v1/plans/batch", content)
    took_s = time.perf_counter() - began_s
    assert answer.count(b'"problem":null') == BATCH
    return took_s


def make_store(folder: Path) -> tuple[Path, str]:
    """Return a store with the grid that was measured, else with a synthetic one."""
    db = folder / "grid.db"
    data = Path(os.environ.get("RELAYD_SHARED_DATA", BESIDE_THE_REPOSITORY)) / "skyplane"
    if (data / "throughput_2022-01.csv").exists():
        imported(data / "throughput_2022-01.csv", db, "skyplane-throughput")
        return imported(data / "latency_2022-04.csv", db, "skyplane-latency"), "63 measured regions"
    write_file(folder / "synthetic.csv", 63 * 62)
    return imported(folder / "synthetic.csv", db, "skyplane-throughput"), "63 synthetic regions"


@contextmanager
def service(db: Path) -> Iterator[tuple[int, int]]:
    """Run the service on one core, its workers on all; return its port and process."""
    with served(db, "--workers", "0") as running:  # as many as usual
        pin(running.process.pid, 0)
        yield running.port, running.process.pid


@contextmanager
def bare(body: Path, port: int) -> Iterator[int]:
    """Run the handler to compare with."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(body), str(port)])
    pin(process.pid, 0)
    try:
        eventually(lambda: answered(port, "/v1/plans"))
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def on_core(core: int, command: list[str]) -> str:
    """Run a command on one core; return its output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    pin(process.pid, core)
    said, _ = process.communicate()
    assert process.returncode == 0, said
    return said


def pin(pid: int, core: int) -> None:
    """Keep a process to one of the cores, where there is a choice."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(pid, {cores[core]})


def cpu_s(pids: Sequence[int]) -> float:
    """Return the processor time that processes have used (Linux)."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")


def ask(port: int, path: str, content: bytes | None = None) -> bytes:
    """Ask once."""
    headers = {"Content-Type": "application/json"} if content else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content, headers)
    with urllib.request.urlopen(request) as response:
        answer: bytes = response.read()
    return answer


def answered(port: int, path: str) -> bytes:
    """Ask a server that may not be ready; return nothing until it is."""
    with suppress(OSError):
        return ask(port, path)
    return b""


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, text
    return match[1]


def _ms(text: str) -> float:
    for unit, size in (("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    raise ValueError(text)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
