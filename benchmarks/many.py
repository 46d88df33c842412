"""Many decisions at once, by the library and over HTTP, against plans one by one."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import relayd
from benchmarks.service import make_store
from benchmarks.table import judge, reference_ms, show, timed, times_s, written
from relayd.client.blocking import RemoteWan
from relayd.sources.wan import Wan
from relayd.tables.figures import measured_regions
from tests.http.running import served

MANY, PLANS = 50_000, 40
CASES: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("cost plus time", {}, 15),
    ("cost", {"objective": "cost"}, 12),
    ("time", {"objective": "time"}, 35),
    ("cost plus time, one VM a region", {"vms": 1}, 8),
)
"""With the most that one may take, in us where goals were set."""


def drawn(wan: Wan, count: int) -> dict[str, Any]:
    """Return transfers between random measured regions, of 1 GB to 10 TB."""
    random, regions = Random(1), sorted(measured_regions(wan.network))
    pairs = [random.sample(regions, 2) for _ in range(count)]
    volumes = [10 ** random.uniform(0, 4) for _ in range(count)]
    return {"src": [a for a, _ in pairs], "dst": [b for _, b in pairs], "volume_gb": volumes}


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        db, regions = make_store(Path(name))
        wan = relayd.open(db)
        assert isinstance(wan, Wan)
        asked = drawn(wan, MANY)
        few = [dict(zip(asked, row, strict=True)) for row in zip(*asked.values(), strict=True)]
        wan.decide(**{name: values[:10] for name, values in asked.items()})
        rows = []

        def plan(keywords: dict[str, Any]) -> object:
            return wan.plan(**keywords)

        for what, settings, most_us in CASES:
            seconds: list[float] = []
            timed(seconds, partial(wan.decide, **asked, **settings))
            each_s = seconds[0] / MANY
            whole_s, alone_s = (
                mean(times_s(plan, [{**row, **settings, **more} for row in few[:PLANS]]))
                for more in ({}, {"details": "decision"})
            )
            times = f"{whole_s / each_s:,.0f}x"
            rows.append((what, f"{each_s * 1e6:.1f} us", times, written(whole_s), written(alone_s)))
            judge(f"decisions by {what}, us", each_s * 1e6 / reference_ms(), most_us)
        header = ("", "each", "plans take", "a plan", "the decision alone")
        show(f"{MANY:,} decisions at once, {regions}", header, rows)
        with served(db) as service, RemoteWan(service.url) as remote:
            remote.decide(**{name: values[:10] for name, values in asked.items()})
            began_s = time.perf_counter()
            remote.decide(**asked)
            took_s = time.perf_counter() - began_s
        show("Over HTTP", ("", "a second"), [("decisions", f"{MANY / took_s:,.0f}")])


if __name__ == "__main__":
    main()
