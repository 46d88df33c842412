"""Import of a large file into a fresh store, against a bare loop of ``csv.reader`` over it.

``python -m benchmarks.importing [ROWS]``; each side runs in an interpreter of its own, so that
its peak of memory is its own. A PostgreSQL server is started where one can be had, with
``fsync`` and ``synchronous_commit`` on, on the same machine; so it has a core less to itself
than a server elsewhere, and no network in between.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import cycle, islice, permutations
from pathlib import Path
from random import Random

from benchmarks.processes import apart
from benchmarks.table import peak_mb, show

ROWS = 1_000_000
HEADER = (
    "src_region,src_tier,src_instance_class,dst_region,dst_tier,dst_instance_class,"
    "iperf3_connections,iperf3_runtime,tag,stdout_path,stderr_path,throughput_sent,"
    "throughput_received,cpu_utilization,success"
)
VMS = {"aws": "m5.8xlarge", "azure": "Standard_D32_v5", "gcp": "n2-standard-32"}


def write_file(path: Path, rows: int) -> None:
    """Write a file as that profiler writes it, pairs of 63 regions over and over."""
    from benchmarks.grid import synthetic  # not in the processes whose memory is measured

    random = Random(1)
    grid = synthetic()
    pairs = list(permutations(grid.regions, 2))
    with path.open("w", newline="") as file:
        file.write(HEADER + "\n")
        for src, dst in islice(cycle(pairs), rows):
            tag = f"{src}:PREMIUM_{dst}:PREMIUM"
            log = f"raw_iperf3_logs/{tag}"
            received = grid.pair_gbps[src, dst] * random.uniform(0.9e9, 1.0e9)
            file.write(
                f"{src},PREMIUM,{VMS[src.partition(':')[0]]},"
                f"{dst},PREMIUM,{VMS[dst.partition(':')[0]]},64,5,{tag},{log}.stdout,{log}.stderr,"
                f"{received * 1.03},{received},{random.uniform(1, 20)},True\n"
            )


def import_file(path: Path, where: str) -> int:
    """Import into a fresh store; return the number of samples."""
    from probes.importers import ImportOptions, read
    from relayd.store import open_store
    from relayd.store.samples.ingest import Batch, content_digest, ingest

    options = ImportOptions(name=path.name, measured_at_s=1.64e9)
    with open_store(where, mode="create") as store, path.open("rb") as stream:
        batch = Batch(path.name, "skyplane-throughput", content_digest(path), {})
        return ingest(store, batch, read("skyplane-throughput", stream, options)).accepted


def run_one(path: Path, where: str) -> None:
    """Import, or only split the rows into fields, and print the cost as JSON."""
    start = time.perf_counter()
    if where:
        count = import_file(path, where)
    else:
        with path.open(newline="") as file:
            count = sum(1 for _ in csv.reader(file)) - 1
    print(json.dumps({"rows": count, "s": time.perf_counter() - start, "mb": peak_mb()}))


def main(rows: int = ROWS) -> None:
    """Print the table."""
    # Not in the processes whose memory is measured.
    import pytest

    from tests.postgresql import running_server

    lines = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            postgresql = stack.enter_context(running_server())
        except pytest.skip.Exception as reason:
            print(f"PostgreSQL is left out: {reason}", file=sys.stderr)
            postgresql = None
        for count in (rows // 10, rows):
            path = folder / f"{count}.csv"
            write_file(path, count)
            sides = [("import into SQLite", str(path.with_suffix(".db")), "100,000 rows/s")]
            if postgresql:
                address = postgresql.url(postgresql.new_database())
                sides.append(("import into PostgreSQL", address, "50,000 rows/s"))
            for name, where, target in (*sides, ("csv.reader alone", "", "")):
                found = apart("benchmarks.importing", path, where)
                assert found["rows"] == count, found
                took = f"{found['s']:.2f} s", f"{count / found['s']:,.0f}", f"{found['mb']:.0f} MB"
                lines.append((name, f"{count:,}", *took, target))
    header = ("", "rows", "time", "rows/s", "peak memory", "target")
    show("Import of a skyplane-throughput file (synthetic)", header, lines)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run_one(Path(sys.argv[1]), sys.argv[2])
    else:
        main(*(int(rows) for rows in sys.argv[1:]))
