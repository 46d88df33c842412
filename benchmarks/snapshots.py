"""Cost of many regions and many samples, before a question is asked.

``python -m benchmarks.snapshots [REGIONS...]`` (100 and 300 unless named; a million links, of
1,000 regions, take a minute and a gigabyte). Every step runs in an interpreter of its own, whose
processor time and peak memory are the figures. With ``--given N`` instead: a snapshot of N regions
whose figures are given, not estimated, to see what storing and reading it costs. Snapshots of many
samples of few regions are a matter of :mod:`benchmarks.history`.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle, islice, permutations
from pathlib import Path
from random import Random

from benchmarks.grid import synthetic
from benchmarks.importing import VMS
from benchmarks.processes import Cost, cost, memory_mb
from benchmarks.service import answered, cpu_s, service
from benchmarks.table import judge, show
from planner.model.estimate import Estimate, Figures, Origin, Prior
from planner.model.link import Link, Site
from planner.model.link_array import LinkArray
from planner.model.network import Network
from relayd.sources.stored import snapshot_of
from relayd.store import SnapshotRow, open_store
from tests.http.running import eventually

REGIONS = (100, 300)
NEW_SAMPLES = 100
FIRST_S = 1_790_000_000
EVERY_S = 1800
USUAL_GBPS = {"aws": 4.9, "azure": 9.0, "gcp": 6.8}
# The last of its columns is what `numpy.loadtxt` reads.
HEADER = "src,dst,connections,duration_s,src_vm,dst_vm,measured_at_s,aggregate_gbps\n"
NUMPY = """
import numpy, sys
print(numpy.loadtxt(sys.argv[1], delimiter=",", skiprows=1, usecols=7).mean())
"""
AGAIN = """
import sys
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
with open_store(sys.argv[1], mode="write") as store:
    make_snapshot(store, load_catalogue(), always=True)
"""
MATRIX = """
import sys, relayd
relayd.open(sys.argv[1]).matrix("aggregate")
"""
SAVE = """
import sys
from pathlib import Path
from benchmarks.snapshots import save_given
save_given(Path(sys.argv[1]), int(sys.argv[2]))
"""
WHOLE = """
import sys, relayd
assert relayd.open(sys.argv[1]).network.usual
"""
FIRST_PLAN = """
import sys, relayd
wan = relayd.open(sys.argv[1])
src, dst, *_ = wan.network.sites
wan.network_of((src, dst))  # all are read, as in a service
print(wan.plan(src, dst, volume_gb=300.0))
"""


def write_links(path: Path, regions: int, later: int = 0) -> int:
    """Write one test of every link, or later ones of a few; return the number of links."""
    random, names, links = Random(1 + later), _names(regions), regions * (regions - 1)
    with path.open("w") as file:
        file.write(HEADER)
        for src, dst in islice(permutations(names, 2), 0, None, links // (later or links) or 1):
            gbps = USUAL_GBPS[src.partition(":")[0]] * random.lognormvariate(0.0, 0.15)
            file.write(_row(src, dst, FIRST_S + (EVERY_S if later else 0), gbps))
    return links


def _names(regions: int) -> list[str]:
    providers = list(VMS)
    return [f"{providers[i % 3]}:region-{i:04d}" for i in range(regions)]


def save_given(path: Path, regions: int) -> None:
    """Save a snapshot, all of whose throughput differs, in a new store."""
    random, names, at_s = Random(1), _names(regions), float(FIRST_S)
    tested = Figures(connections=64)
    of_tests = Origin("measured", "median-of-samples", 1, 1, at_s, at_s, figures=tested)
    of_share = Origin("inferred", "share-of-aggregate", 1, 1, at_s, at_s, figures=tested)
    rtt_ms = Estimate(5.0, 80.0, 300.0, Origin("baseline", "location-unknown"))
    cap = Estimate(4.9, 5.0, 5.1, Origin("baseline", "vm-type"))
    links = []
    for src, dst in permutations(names, 2):
        gbps = USUAL_GBPS[src.partition(":")[0]] * random.lognormvariate(0.0, 0.15)
        prior = Prior(gbps / 2, gbps * 1.2, gbps * 2, 1.5)
        flow = Estimate(gbps * 10, gbps * 15, gbps * 20, of_share)
        rate = Estimate(gbps * 0.9, gbps, gbps * 1.1, of_tests, prior)
        links.append(Link(src, dst, rtt_ms, flow, rate))
    sites = {name: Site(name, VMS[name.partition(":")[0]], cap, cap, cap) for name in names}
    with open_store(path, mode="create") as store:
        row = SnapshotRow("given", at_s, at_s, "mixed", "", 0)
        store.snapshots.save(row, Network(sites, LinkArray.of(links), snapshot_of(row)))


def write_samples(path: Path, samples: int, begin: int = 0) -> None:
    """Write tests of the links of 63 regions, over and over, from the given one on."""
    random, grid = Random(begin), synthetic()
    pairs = list(permutations(grid.regions, 2))
    with path.open("w") as file:
        file.write(HEADER)
        for number, (src, dst) in enumerate(islice(cycle(pairs), begin, begin + samples), begin):
            gbps = grid.pair_gbps[src, dst] * random.uniform(0.9, 1.0)
            file.write(_row(src, dst, FIRST_S + number // len(pairs) * EVERY_S, gbps))


def _row(src: str, dst: str, at_s: int, gbps: float) -> str:
    vms = (VMS[end.partition(":")[0]] for end in (src, dst))
    return f"{src},{dst},64,5,{','.join(vms)},{at_s},{gbps:.5f}\n"


def imported(path: Path, db: Path) -> Cost:
    """Import a file, which makes a snapshot as well."""
    return cost("-m", "relayd", "import", "csv", path, "--db", db)


def ready(db: Path) -> Cost:
    """Return the cost of the service until its first answer, and its memory then."""
    with service(db) as (port, pid):
        eventually(lambda: answered(port, "/readyz"), 600)
        return Cost(cpu_s([pid]), memory_mb(pid)[pid])


def of_regions(folder: Path, regions: int) -> tuple[str, ...]:
    """Return a row of the table for so many regions."""
    path, db = folder / f"{regions}.csv", folder / f"{regions}.db"
    links = write_links(path, regions)
    alone = cost("-c", NUMPY, path)
    whole = imported(path, db)
    db_mb = db.stat().st_size / 1e6
    more, tenth = folder / "more.csv", folder / "tenth.csv"
    write_links(more, regions, NEW_SAMPLES)
    write_links(tenth, regions, links // 10)
    again = imported(more, db)
    goal = f"snapshot of {regions} regions after {NEW_SAMPLES} samples, of the first"
    judge(goal, again.cpu_s / whole.cpu_s, 0.34)
    row = (
        f"{regions:,}",
        f"{links:,}",
        str(alone),
        str(whole),
        f"{whole.cpu_s / alone.cpu_s:.1f}",
        str(again),
        str(imported(tenth, db)),
        str(cost("-c", AGAIN, db)),
        str(cost("-c", MATRIX, db)),
        str(ready(db)),
        f"{db_mb:.0f} MB",
    )
    path.unlink()
    return row


def of_given(folder: Path, regions: int) -> tuple[tuple[str, str], ...]:
    """Return the costs of storing and reading a snapshot of so many regions."""
    db = folder / "given.db"
    saved = cost("-c", SAVE, db, regions)
    return (
        ("figures made, and saved", str(saved)),
        ("store", f"{db.stat().st_size / 1e6:.0f} MB"),
        ("network read", str(cost("-c", WHOLE, db))),
        ("network read, and a plan on it", str(cost("-c", FIRST_PLAN, db))),
        ('matrix("aggregate")', str(cost("-c", MATRIX, db))),
        ("service ready", str(ready(db))),
    )


def main() -> None:
    """Print a table."""
    words = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        if words[:1] == ["--given"]:
            regions = int(words[1])
            rows = of_given(Path(name), regions)
            show(f"A given snapshot of {regions:,} regions", ("", "CPU, peak memory"), rows)
            return
        sizes = [int(word) for word in words] or REGIONS
        show(
            "Import and snapshot of one test a link: CPU time, peak memory",
            (
                *("regions", "links", "numpy.loadtxt", "import and snapshot", "ratio"),
                f"{NEW_SAMPLES} more and a snapshot",
                "a tenth more and a snapshot",
                "snapshot again, of all",
                *('matrix("aggregate")', "service ready", "store"),
            ),
            [of_regions(Path(name), regions) for regions in sizes],
        )


if __name__ == "__main__":
    main()
