"""Replay a month of half-hourly samples of 40 regions, against a bare loop over the same rows.

``python -m benchmarks.backtest [DAYS]``. Levels are those of the January 2022 grid; how they vary
is drawn, from what measurement papers saw: tests of one pair vary by 5 % and round trips by 1 %, a
link changes its level for good about once in two months, by a factor of 1.5 either way in the
median, and some collapse for a few hours (Computer Networks 2016). The tables of docs/backtest.md
and of the README are from here.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.grid import grid
from benchmarks.processes import apart
from benchmarks.table import peak_mb, show
from planner.transfer.all_pairs import Floats
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.planner.grid import Grid

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


class LinkHistory(NamedTuple):
    """A link's level every half hour, test results, and the generator that drew them."""

    level_mbps: Floats
    mbps: Floats
    random: np.random.Generator


def history_of(src: str, dst: str, gbps: float, days: float) -> LinkHistory:
    """Return a link's rates over time."""
    random = np.random.default_rng(list(f"{src}>{dst}".encode()))
    count = int(days * 86400 / STEP_S)
    level = np.full(count, gbps * 1000.0)
    for _ in range(random.poisson(CHANGES_A_DAY * days)):
        level[random.integers(count) :] *= random.lognormal(0.0, CHANGE_SPREAD)
    for _ in range(random.poisson(COLLAPSES_A_DAY * days)):
        begin = random.integers(count)
        level[begin : begin + int(COLLAPSE_H * 3600 / STEP_S)] = COLLAPSED_MBPS
    return LinkHistory(level, level * random.lognormal(0.0, TEST_SPREAD, count), random)


def samples_of(src: str, dst: str, gbps: float, rtt_ms: float, days: float) -> Iterator[Sample]:
    """Yield a link's samples: its rate and its round-trip time every half hour."""
    _, mbps, random = history_of(src, dst, gbps, days)
    count = len(mbps)
    rtts_ms = rtt_ms * random.lognormal(0.0, RTT_SPREAD, count)
    offsets_s = random.uniform(0, STEP_S, count)  # probes avoid fixed minutes
    for step in range(count):
        at_s = BEGIN_S + step * STEP_S + float(offsets_s[step])
        rate, rtt = float(mbps[step]), float(rtts_ms[step])
        yield Sample(src, dst, "aggregate_mbps", rate, at_s, "iperf3", 64, 10.0, True)
        yield Sample(src, dst, "rtt_ms", rtt, at_s, "ping")


def regions_of() -> tuple[list[str], Grid, str]:
    """Return the regions of the history, the grid that they are of, and its name."""
    measured, name = grid()
    known = set(load_catalogue().regions) & set(measured.regions)
    return sorted(known or measured.regions)[:REGIONS], measured, name


def write_store(db: Path, days: float) -> str:
    """Write the history; return its regions and grid in words."""
    regions, measured, name = regions_of()
    with open_store(db, mode="create") as store:
        for src in regions:
            found: list[Sample] = []
            for dst in regions:
                gbps = measured.pair_gbps.get((src, dst), 0.0)
                if src != dst and gbps > 0:
                    rtt_ms = measured.rtt_ms.get((src, dst), 100.0)
                    found += samples_of(src, dst, gbps, rtt_ms, days)
            append(store, found, "benchmark")
    return f"{len(regions)} regions of the {name}"


def replay_one(what: str, db: str) -> None:
    """Run one side and print its cost as JSON."""
    start = time.perf_counter()
    found: dict[str, object] = {}
    if what == "rows":
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT src_id, dst_id, measured_at_s, value FROM samples")
            found["rows"] = sum(1 for _ in rows)
    else:
        import relayd

        replayed = relayd.backtest(db, volume_gb=VOLUME_GB, objective=what)  # type: ignore[arg-type]
        found = replayed.model_dump("json")
    print(json.dumps({**found, "s": time.perf_counter() - start, "mb": peak_mb()}))


def main(days: float = DAYS) -> None:
    """Print both tables."""
    from relayd.cli.data.backtest import NAMES
    from relayd.cli.text import percent

    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "history.db"
        what = write_store(db, days)
        bare = apart("benchmarks.backtest", "rows", db)
        lines = [["bare loop over the rows", f"{bare['s']:.1f} s", f"{bare['mb']:.0f} MB"]]
        table = []
        for objective in ("value", "time"):
            found = apart("benchmarks.backtest", objective, db)
            lines.append(
                [f"backtest, objective {objective}", f"{found['s']:.1f} s", f"{found['mb']:.0f} MB"]
            )
            total = found["total"]
            table += [
                [
                    objective,
                    NAMES[one["strategy"]],
                    percent(one["achieved"]),
                    percent(one["achieved_p10"]),
                    f"{one['throughput_gbps']:.2f}",
                    f"{one['time_s']:.0f}",
                    f"{one['cost_usd']:.2f}",
                    f"{one['switches_a_day']:.3f}",
                    f"{one['stalled']:,}",
                ]
                for one in total["strategies"]
            ]
            print(
                f"{objective}: {total['judged']:,} decisions on {total['pairs']:,} pairs; right to "
                f"relay or not in {percent(total['right'])}, 99 % or more of hindsight in "
                f"{percent(total['near'])}, right about the relay that looked best in "
                f"{percent(total['verdict_right'])}"
            )
        show(f"{what}, {days:g} days, {bare['rows']:,} samples", ("", "time", "memory"), lines)
        header = (
            "objective",
            "strategy",
            "achieved",
            "p10",
            "Gbit/s",
            "time s",
            "$",
            "switches a day",
            "stalled",
        )
        show(f"{VOLUME_GB:g} GB a transfer", header, table)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        replay_one(*sys.argv[1:])
    else:
        main(*map(float, sys.argv[1:]))
