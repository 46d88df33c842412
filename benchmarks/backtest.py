"""Replay a month of half-hourly samples of 40 regions, against a bare loop over the same rows.

``python -m benchmarks.backtest [DAYS]``. Levels are those of the January 2022 grid; how they vary
is drawn, from what measurement papers saw: tests of one pair vary by 5 % and round trips by 1 %, a
link changes its level for good about once in two months, by a factor of 1.5 either way in the
median, and some collapse for a few hours (Computer Networks 2016). The figures on a month of 40
regions in docs/model.md are from here.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.processes import cost
from benchmarks.table import show
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.cli.data.backtest import NAMES
from relayd.cli.text import percent
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.planner.grid import january_grid

DAYS = 30.0
STEP_S = 1800.0
BEGIN_S = 1_788_220_800.0
REGIONS = 40
TEST_SPREAD = 0.05
RTT_SPREAD = 0.01
CHANGES_A_DAY = 1 / 60
CHANGE_SPREAD = 0.6
COLLAPSES_A_DAY = 1 / 120
COLLAPSE_H = 4.0
COLLAPSED_MBPS = 8.0
VOLUME_GB = 500.0
BARE = """
import sqlite3, sys
with sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True) as connection:
    rows = connection.execute("SELECT src_id, dst_id, measured_at_s, value FROM samples")
    print(sum(1 for _ in rows))
"""


def samples_of(src: str, dst: str, gbps: float, rtt_ms: float, days: float) -> Iterator[Sample]:
    """Yield a link's samples: its rate and its round-trip time every half hour."""
    random = np.random.default_rng(list(f"{src}>{dst}".encode()))
    count = int(days * 86400 / STEP_S)
    level = np.full(count, gbps * 1000.0)
    for _ in range(random.poisson(CHANGES_A_DAY * days)):
        level[random.integers(count) :] *= random.lognormal(0.0, CHANGE_SPREAD)
    for _ in range(random.poisson(COLLAPSES_A_DAY * days)):
        begin = random.integers(count)
        level[begin : begin + int(COLLAPSE_H * 3600 / STEP_S)] = COLLAPSED_MBPS
    mbps = level * random.lognormal(0.0, TEST_SPREAD, count)
    rtts_ms = rtt_ms * random.lognormal(0.0, RTT_SPREAD, count)
    offsets_s = random.uniform(0, STEP_S, count)  # probes avoid fixed minutes
    for step in range(count):
        at_s = BEGIN_S + step * STEP_S + float(offsets_s[step])
        rate, rtt = float(mbps[step]), float(rtts_ms[step])
        yield Sample(src, dst, "aggregate_mbps", rate, at_s, "iperf3", 64, 10.0, True)
        yield Sample(src, dst, "rtt_ms", rtt, at_s, "ping")


def write_store(db: Path, days: float) -> None:
    """Write the history."""
    grid = january_grid()
    regions = sorted(set(load_catalogue().regions) & set(grid.regions))[:REGIONS]
    with open_store(db, mode="create") as store:
        for src in regions:
            found: list[Sample] = []
            for dst in regions:
                gbps = grid.pair_gbps.get((src, dst), 0.0)
                if src != dst and gbps > 0:
                    rtt_ms = grid.rtt_ms.get((src, dst), 100.0)
                    found += samples_of(src, dst, gbps, rtt_ms, days)
            append(store, found, "benchmark")


def main(days: float = DAYS) -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "history.db"
        write_store(db, days)
        bare = cost("-c", BARE, db)
        lines, table = [("bare loop over the rows", str(bare))], []
        for objective in ("value", "time"):
            words = ("--volume", f"{VOLUME_GB:g}GB", "--objective", objective, "--db", db)
            found = cost("-m", "relayd", "study", "backtest", "--json", *words)
            lines.append((f"backtest, objective {objective}", str(found)))
            total = json.loads(found.said)["total"]
            table += [
                (
                    *(objective, NAMES[one["strategy"]], percent(one["achieved"])),
                    *(percent(one["achieved_p10"]), f"{one['throughput_gbps']:.2f}"),
                    *(f"{one['time_s']:.0f}", f"{one['cost_usd']:.2f}"),
                    *(f"{one['switches_a_day']:.3f}", f"{one['stalled']:,}"),
                )
                for one in total["strategies"]
            ]
            print(
                f"{objective}: {total['judged']:,} decisions on {total['pairs']:,} pairs; right to "
                f"relay or not in {percent(total['right'])}, 99 % or more of hindsight in "
                f"{percent(total['near'])}, right about the relay that looked best in "
                f"{percent(total['verdict_right'])}"
            )
    show(f"{days:g} days, {int(bare.said):,} samples", ("", "CPU, peak memory"), lines)
    header = (
        *("objective", "strategy", "achieved", "p10", "Gbit/s", "time s", "$"),
        *("switches a day", "stalled"),
    )
    show(f"{VOLUME_GB:g} GB a transfer", header, table)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
