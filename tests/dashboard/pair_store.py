"""A store with weeks of measurements of one pair: noise, a change of level, and trouble."""

from __future__ import annotations

import csv
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

from probes.estimation.current_samples import LinkShift
from probes.liveness.link_health import LinkHealth
from relayd.store import open_store
from relayd.store.events import Events
from relayd.store.links import LevelShifts, LinkStates
from tests.http.running import imported

SRC, DST = "aws:us-east-1", "aws:eu-west-1"
OTHERS = ("azure:eastus", "gcp:europe-west4")
COLUMNS = (
    "src,dst,rtt_ms,per_flow_mbps,aggregate_mbps,loss_pct,jitter_ms,connections,duration_s,"
    "warmed_up,measured_at_s"
)
DAYS, EVERY_S = 28, 600.0
LEVELS_MS = (68.0, 76.0, 91.0)
ROUND_TRIPS = DAYS * 144


def make_pair_store(folder: Path) -> Path:
    """Import four weeks of measurements, and keep what a watcher would have kept."""
    end_s = float(round(time.time() / EVERY_S) * EVERY_S) - 3600.0
    table = folder / "weeks.csv"
    with table.open("w", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS.split(","))
        rows.writeheader()
        rows.writerows(_rows(end_s))
    db = imported(table, folder / "relayd.db")
    first_s = end_s - DAYS * 86400.0
    week_s = first_s + 14 * 86400.0
    with open_store(db, mode="write") as store, store.database.transaction():
        LevelShifts(store.database).add(
            LinkShift(SRC, DST, "rtt_ms", week_s, week_s + 6 * EVERY_S, *LEVELS_MS[:2])
        )
        at_s = first_s + 5 * 86400.0
        for before, after, hours, reason in (
            ("up", "degraded", 0.0, "3 of 60 packets lost"),
            ("degraded", "down", 0.5, "no reply to 12 packets"),
            ("down", "up", 3.0, ""),
        ):
            detail = json.dumps({"from": before, "to": after, "reason": reason})
            store.database.change(
                "INSERT INTO events (at_s, kind, subject, detail) VALUES (?, 'leg', ?, ?)",
                (at_s + hours * 3600.0, f"{SRC}>{DST}", detail),
            )
        down = LinkHealth("down", end_s, "no reply to 9 packets")
        Events(store.database).add(
            "leg", f"{DST}>{SRC}", {"from": "up", "to": "down", "reason": down.reason}
        )
        LinkStates(store.database).keep({(DST, SRC): down}, [], time.time() + 86400.0)
    return db


def _rows(end_s: float) -> Iterator[dict[str, object]]:
    draw = random.Random(7)
    for number in range(ROUND_TRIPS):
        at_s = end_s - (ROUND_TRIPS - 1 - number) * EVERY_S
        both = {"src": SRC, "dst": DST, "measured_at_s": at_s}
        # Two weeks, then slower, and slower still for the last 20 hours.
        level = LEVELS_MS[
            0 if number < ROUND_TRIPS // 2 else 1 if number < ROUND_TRIPS - 120 else 2
        ]
        slow = draw.expovariate(0.1) if draw.random() < 0.02 else 0.0
        row = {**both, "rtt_ms": round(level * draw.lognormvariate(0, 0.008) + slow, 3)}
        if number % 6 == 0:
            row["loss_pct"] = 0.0 if draw.random() < 0.9 else round(draw.uniform(0.2, 3), 2)
        yield row
        if number % 36 == 0:
            flow_mbps = round(24000 / level * draw.lognormvariate(0, 0.06), 1)
            yield {**both, "per_flow_mbps": flow_mbps, "duration_s": 15, "connections": 1}
        if number % 144 == 0:
            yield {
                **both,
                "aggregate_mbps": round(4780 * draw.lognormvariate(0, 0.02)),
                "connections": 64,
                "duration_s": 20,
                "warmed_up": 1,
            }
        if number % 1000 == 0:
            yield {**both, "jitter_ms": round(draw.uniform(0.1, 0.6), 3)}
    for src, dst in ((DST, SRC), (SRC, OTHERS[0]), (OTHERS[1], DST), (OTHERS[0], DST)):
        yield {
            "src": src,
            "dst": dst,
            "rtt_ms": 80 + len(src),
            "aggregate_mbps": 4000,
            "connections": 64,
            "duration_s": 60,
            "measured_at_s": end_s - 40 * 86400.0,
        }
