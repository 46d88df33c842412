"""Two processes of the service beside one, loaded in turn in one run.

``python -m benchmarks.processes [SECONDS]``; needs wrk. It runs on the same cores, and takes a part
of what a second process adds on two of them. So the table has its processor time, and the ratio by
processor time alone, which is what a client on another machine would see.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.service import (
    PATH,
    SHARE_OF_CAPACITY,
    Load,
    ask,
    distinct_plans,
    load,
    make_store,
    paced_load,
    service,
)
from benchmarks.table import show

ROUNDS = 5
PROCESSES = 2
CONNECTIONS = 32
SETTLE_S = 1
"""Each service is loaded for so long before it counts."""


def main(seconds: int = 4) -> int:
    """Print the table."""
    if shutil.which("wrk") is None:
        print("This needs wrk (Debian: apt-get install wrk).")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db, what = make_store(folder)
        several_db = db.with_name("several.db")
        shutil.copy(db, several_db)
        with (
            service(db, core=None) as (one_port, one_pid),
            service(several_db, "--processes", str(PROCESSES), core=None) as (port, parent),
        ):
            measure(folder, one_port, [one_pid], port, serving(parent), seconds, what)
    return 0


def measure(
    folder: Path,
    one_port: int,
    one: list[int],
    port: int,
    several: list[int],
    seconds: int,
    what: str,
) -> None:
    """Load both in turn, and print what they did."""
    names = [r["id"] for r in json.loads(ask(port, "/v1/regions"))["regions"]]
    rows: list[tuple[str, ...]] = []
    bad = []
    capacity = 0.0
    for question in ("known", "distinct"):
        alone: list[Load] = []
        together: list[Load] = []
        for number in range(ROUNDS):
            words = (
                [] if question == "known" else ["-s", str(distinct_plans(folder, names, number))]
            )
            for found, where, pids in ((alone, one_port, one), (together, port, several)):
                load(where, PATH, pids, SETTLE_S, *words, connections=CONNECTIONS, core=None)
                found.append(
                    load(where, PATH, pids, seconds, *words, connections=CONNECTIONS, core=None)
                )
        ratios = [b.per_s / a.per_s for a, b in zip(alone, together, strict=True)]
        by_cpu = [PROCESSES * a.cpu_us / b.cpu_us for a, b in zip(alone, together, strict=True)]
        said = (
            f"{statistics.median(ratios):.2f} of one; {statistics.median(by_cpu):.2f} by CPU (1.7)"
        )
        rows += [_row(f"{question}, 1 process", alone, ""), _row(f"{question}, 2", together, said)]
        bad += [run.bad for run in (*alone, *together) if run.bad]
        capacity = capacity or statistics.median(run.per_s for run in together)
    calm = paced_load(folder, port, several, seconds, SHARE_OF_CAPACITY * capacity, core=None)
    tail = f"p99 {calm.p99_ms / calm.p50_ms:.1f} x p50 (4)"
    rows.append(_row(f"known, 2, at {calm.per_s / capacity:.0%} of capacity", [calm], tail))
    header = ("GET /v1/plans", "a second", "p50", "p99", "CPU", "wrk's CPU", "target")
    show(f"Two processes beside one; {what}", header, rows)
    for label, pids in (("1 process", one), ("2 processes", several)):
        print(f"  Memory of {label}: {', '.join(f'{pss_mb(pid):.0f} MB' for pid in pids)}.")
    assert not bad, bad


def _row(what: str, runs: list[Load], target: str) -> tuple[str, ...]:
    middle = sorted(runs)[len(runs) // 2]
    return (
        what,
        f"{middle.per_s:,.0f}",
        f"{middle.p50_ms:.2f} ms",
        f"{middle.p99_ms:.2f} ms",
        f"{middle.cpu_us:.0f} us",
        f"{middle.wrk_cpu_us:.0f} us",
        target,
    )


def serving(parent: int) -> list[int]:
    """Return the processes that serve: children of the parent, which answers nothing itself."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return [int(word) for word in children.split()]


def pss_mb(pid: int) -> float:
    """Return the memory of a process, with its share of what it has in common with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise ValueError(pid)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:])))
