"""Bursts of t2.micro, which the paper leaves open: a token bucket on a VM of the lab.

relayd measures it as it would a VM's in a cloud: tests of many flows by ``relayd probe``, to two
regions in turn, with pauses in between, and ``relayd study report``.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.labs import lab_of, run, topology_like
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE
from scripts.reproduce.laboratory import measured
from scripts.reproduce.point import Point

VM = "aws:us-east-1"
PEERS = ("aws:us-east-2", "aws:us-west-2")
CONNECTIONS = 8
TABLE_3_MBPS = 426.0
"""The mean of t2.micro's five figures."""
WITHIN = 0.1


class Bucket(NamedTuple):
    """A setting, in the lab's units: the length of tests, and the pauses between them."""

    lasting_mbps: float
    depth_mb: float
    test_s: int
    pauses_s: tuple[float, ...]


# Each fills in less than a minute, and is empty in the first half of a test. Between tests of one
# campaign and of the next, some ten seconds pass besides.
SETTINGS = (
    Bucket(1.28, 8.0, 20, (0, 12, 20, 6, 16, 10)),
    Bucket(3.2, 16.0, 36, (0, 6, 10, 2, 8, 4)),
)


def burst_points() -> list[Point]:
    """Measure two token buckets with relayd (needs root, takes ten minutes)."""
    with lab_of(topology_like("paper", (VM, *PEERS))) as lab:
        return measured(lab, _buckets)


def _buckets(lab: Lab) -> list[Point]:
    return [point for bucket in SETTINGS for point in _points(lab, bucket)]


def _points(lab: Lab, bucket: Bucket) -> list[Point]:
    """Return the points on the rates first and then, the depth, and the refill of a bucket."""
    found, scale = _found(lab, bucket), lab.topology().scale
    depth_mb = bucket.depth_mb * GOODPUT_SHARE / scale
    lasting_mbps = bucket.lasting_mbps * GOODPUT_SHARE / scale
    peak, sustained = (found[name] / scale for name in ("peak_mbps", "sustained_mbps"))
    volume_mb, found_mb = (found[name] * 1e3 / scale for name in ("volume_gb", "depth_gb"))
    refills = [mbps / scale for mbps in found["refills_mbps"]]
    refill = (found["refill_mbps"] or 0.0) / scale
    of_peak, of_rest, of_depth, of_refill = (
        peak / TABLE_3_MBPS - 1,
        sustained / lasting_mbps - 1,
        found_mb / depth_mb - 1,
        refill / lasting_mbps - 1,
    )
    basis = f"{found['tests']} tests of {bucket.test_s} s, {CONNECTIONS} connections"
    of_setting = f"within {WITHIN:.0%} of what is set"
    return [
        Point(
            f"{peak:.0f} Mbit/s for the first {volume_mb:.0f} MB, then {sustained:.0f}",
            max(abs(of_peak), abs(of_rest)) <= WITHIN,
            f"both within {WITHIN:.0%} of Table 3 and of what is set",
            basis,
        ),
        Point(f"{found_mb:.0f} MB ({of_depth:+.1%})", abs(of_depth) <= WITHIN, of_setting, basis),
        Point(
            f"{refill:.0f} Mbit/s ({of_refill:+.1%}); each "
            f"{', '.join(f'{mbps:.0f}' for mbps in refills)}",
            abs(of_refill) <= WITHIN,
            of_setting,
            f"{len(refills)} pauses",
        ),
    ]


def _found(lab: Lab, bucket: Bucket) -> dict[str, Any]:
    """Let relayd measure a bucket; returns its figures, in the lab's units."""
    lab.set_host(VM, {"egress_mbps": bucket.lasting_mbps, "burst_mb": bucket.depth_mb})
    time.sleep(bucket.depth_mb * 8 / bucket.lasting_mbps)
    with tempfile.TemporaryDirectory() as folder:
        store = ("--db", str(Path(folder) / "bursts.db"))
        for number, pause_s in enumerate(bucket.pauses_s):
            time.sleep(pause_s)
            of = ("--pairs", f"{VM}>{PEERS[number % 2]}", "--phases", "aggregate", "--full-time")
            like = ("-n", CONNECTIONS, "--aggregate-time", f"{bucket.test_s}s")
            run("probe", "--fleet", lab.fleet_file, "--yes", *store, *of, *like)
        (section,) = run("study", "report", *store, "--section", "buckets")["sections"]
    (figures,) = section["figures"]["buckets"]
    found: dict[str, Any] = figures
    return found
