"""Cost of many regions and many samples, before a question is asked.

``python -m benchmarks.snapshots [REGIONS...]`` (100 and 300 unless named; a million links, of
1,000 regions, take a minute and a gigabyte). Every step runs in an interpreter of its own, whose
processor time and peak memory are the figures. Snapshots of many samples of few regions are a
matter of :mod:`benchmarks.history`.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle, islice, permutations
from pathlib import Path
from random import Random

from benchmarks.processes import Cost, cost, cpu_s, memory_mb
from benchmarks.table import judge, show
from tests.http.running import served
from tests.waiting import eventually

REGIONS = (100, 300)
NEW_SAMPLES = 100
FIRST_S = 1_790_000_000
EVERY_S = 1800
VMS = {"aws": "m5.8xlarge", "azure": "Standard_D32_v5", "gcp": "n2-standard-32"}
USUAL_GBPS = {"aws": 4.9, "azure": 9.0, "gcp": 6.8}
# The last of its columns is what `numpy.loadtxt` reads.
HEADER = "src,dst,connections,duration_s,src_vm,dst_vm,measured_at_s,aggregate_gbps\n"
NUMPY = """
import numpy, sys
print(numpy.loadtxt(sys.argv[1], delimiter=",", skiprows=1, usecols=7).mean())
"""
MAKE_SNAPSHOT = """
import sys
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
with open_store(sys.argv[1], mode="write") as store:
    make_snapshot(store, load_catalogue(), always="always" in sys.argv)
"""
MATRIX = """
import sys, relayd
relayd.open(sys.argv[1]).matrix("aggregate")
"""


def write_samples(
    path: Path, regions: int, samples: int, begin: int = 0, *, every: int = 1
) -> None:
    """Write tests of the links of some regions, over and over, from the given one on.

    Parameters
    ----------
    every : int
        One link in so many is tested.
    """
    names = [f"{[*VMS][i % 3]}:region-{i:04d}" for i in range(regions)]
    random, pairs = Random(begin), islice(permutations(names, 2), 0, None, every)
    links = regions * (regions - 1) // every
    with path.open("w") as file:
        file.write(HEADER)
        for number, (src, dst) in enumerate(islice(cycle(pairs), begin, begin + samples), begin):
            providers = [end.partition(":")[0] for end in (src, dst)]
            gbps = USUAL_GBPS[providers[0]] * random.lognormvariate(0.0, 0.15)
            vms, at_s = ",".join(VMS[of] for of in providers), FIRST_S + number // links * EVERY_S
            file.write(f"{src},{dst},64,5,{vms},{at_s},{gbps:.5f}\n")


def imported(path: Path, db: Path) -> Cost:
    """Import a file, which makes a snapshot as well."""
    return cost("-m", "relayd", "import", "csv", path, "--db", db)


def ready(db: Path) -> Cost:
    """Return the cost of the service until it is ready, and its memory then."""
    with served(db) as service:
        eventually(lambda: service.get("/readyz").status == 200, 600)
        pid = service.process.pid
        return Cost(cpu_s([pid]), memory_mb(pid)[pid])


def of_regions(folder: Path, regions: int) -> tuple[str, ...]:
    """Return a row of the table for so many regions."""
    first, more, tenth, db = (folder / f"{regions}-{name}" for name in ("a", "b", "c", "db"))
    links = regions * (regions - 1)
    write_samples(first, regions, links)
    write_samples(more, regions, NEW_SAMPLES, NEW_SAMPLES, every=links // NEW_SAMPLES)
    write_samples(tenth, regions, links // 10, links // 10, every=10)
    alone, whole = cost("-c", NUMPY, first), imported(first, db)
    db_mb = db.stat().st_size / 1e6
    again = imported(more, db)
    goal = f"snapshot of {regions} regions after {NEW_SAMPLES} samples, of the first"
    judge(goal, again.cpu_s / whole.cpu_s, 0.34)
    ratio = f"{whole.cpu_s / alone.cpu_s:.1f}"
    steps = [imported(tenth, db), cost("-c", MAKE_SNAPSHOT, db, "always"), cost("-c", MATRIX, db)]
    counts = f"{regions:,}", f"{links:,}", str(alone), str(whole), ratio, str(again)
    return (*counts, *map(str, steps), str(ready(db)), f"{db_mb:.0f} MB")


def main() -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as name:
        rows = [of_regions(Path(name), int(word)) for word in sys.argv[1:] or REGIONS]
    header = (
        *("regions", "links", "numpy.loadtxt", "import and snapshot", "ratio"),
        *(f"{NEW_SAMPLES} more and a snapshot", "a tenth more and a snapshot"),
        *("snapshot again, of all", 'matrix("aggregate")', "service ready", "store"),
    )
    show("Import and snapshot of one test a link: CPU time, peak memory", header, rows)


if __name__ == "__main__":
    main()
