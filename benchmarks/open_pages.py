"""Pages that stay open: ``python -m benchmarks.open_pages [--minutes 60] [--real]``.

Needs chromium. Opens all pages of the dashboard at once, while a transfer's progress comes in as
events, one a second, and samples of all links, of which the service makes a snapshot a minute.
Timers of the pages run faster, and snapshots come faster, so that what happens in so many minutes
takes two; with ``--real`` they take the time they take. The table has the script heap in use
after collecting garbage when pages have settled, half-way and at the end, and what the second half
added to it, to the page's own objects in it, to nodes and to listeners. What is no object of the
page is compiled code and the browser's records: of requests, their timings and layout shifts, the
newest few hundred of each, and those that the program which drives it keeps of every request.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

from playwright.sync_api import CDPSession, Page

from benchmarks.service import make_store
from benchmarks.table import show
from probes.samples import Sample
from relayd.client.blocking import RemoteWan
from relayd.dashboard.pages import PAGES
from tests.dashboard.browser import chromium
from tests.http.running import served

PAIR = "src=azure:eastus&dst=aws:ap-northeast-1"
ADDRESSES = {"plan": f"/?{PAIR}&volume_gb=1000#open=pair+world-map"}
OPEN_S = 120.0
SETTLED_S = 20.0
SAMPLES_PER_S = 20
MADE_BY_SCRIPTS = {"object", "closure", "array", "string", "concatenated string", "sliced string"}
FASTER = """const wait = setInterval;
let renewals = 0;
window.renewals = () => renewals;
window.setInterval = (renew, ms) => wait(() => { renewals += 1; renew(); }, ms / %g);"""


class Held(NamedTuple):
    """Memory and objects of a page after garbage collection."""

    heap_mb: float
    objects_mb: float
    nodes: int
    listeners: int


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    open_s = 60 * options.minutes if options.real else OPEN_S
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        db, _ = make_store(Path(name))
        faster = 60 * options.minutes / open_s
        environment = {
            "XDG_CONFIG_HOME": name,
            "XDG_DATA_HOME": name,
            "RELAYD_SERVE_SNAPSHOT_EVERY_S": f"{60 / faster}",
            "RELAYD_SERVE_REFRESH_S": f"{max(1.0, 2 / faster)}",
        }
        with served(db, environment=environment) as service, RemoteWan(service.url) as wan:
            context = browser.new_context()
            context.add_init_script(FASTER % faster)
            pages = {page.name: context.new_page() for page in PAGES}
            for page in PAGES:
                pages[page.name].goto(service.url + ADDRESSES.get(page.name, page.path))
            sessions = {name: context.new_cdp_session(page) for name, page in pages.items()}
            wan.begin_transfer("azure:eastus", "aws:sa-east-1", id="open", volume_gb=1e6)
            held, seconds = [], (SETTLED_S, open_s / 2, open_s / 2)
            for part_s in seconds:
                _happen(wan, part_s)
                held.append({name: _held(session) for name, session in sessions.items()})
            rows = [_row(page, pages[page], *(each[page] for each in held)) for page in pages]
            context.close()
    times = ("settled", "half-way", "end", "since half-way")
    header = ("", "renewals", *times, "objects", "nodes", "listeners")
    show(f"Pages open for {options.minutes:g} minutes", header, rows)
    return 0


def _happen(wan: RemoteWan, seconds: float) -> None:
    """Report the transfer's progress and samples, once a second."""
    moved_gb, chance = wan.transfer("open").transfer.moved_gb, Random(1)
    ends = sorted({(link.src, link.dst) for link in wan.links()})
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        moved_gb += 1
        wan.report_transfer("open", moved_gb)
        now_s = time.time()
        wan.ingest(
            Sample(src, dst, "aggregate_mbps", chance.uniform(900, 9000), now_s, "iperf3", 64)
            for src, dst in chance.sample(ends, SAMPLES_PER_S)
        )
        time.sleep(1)


def _held(session: CDPSession) -> Held:
    session.send("HeapProfiler.enable")
    session.send("HeapProfiler.collectGarbage")
    heap_mb = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
    counters = session.send("Memory.getDOMCounters")
    return Held(heap_mb, _objects_mb(session), counters["nodes"], counters["jsEventListeners"])


def _objects_mb(session: CDPSession) -> float:
    """Return the size of what scripts made: objects, arrays, functions and strings."""
    parts: list[str] = []

    def keep(event: dict[str, str]) -> None:
        parts.append(event["chunk"])

    session.on("HeapProfiler.addHeapSnapshotChunk", keep)
    session.send("HeapProfiler.takeHeapSnapshot", {"reportProgress": False})
    session.remove_listener("HeapProfiler.addHeapSnapshotChunk", keep)
    heap = json.loads("".join(parts))
    meta = heap["snapshot"]["meta"]
    fields, kinds = meta["node_fields"], meta["node_types"][0]
    kind_at, size_at, nodes = fields.index("type"), fields.index("self_size"), heap["nodes"]
    kind_of, size_of = nodes[kind_at :: len(fields)], nodes[size_at :: len(fields)]
    made = {kinds.index(kind) for kind in MADE_BY_SCRIPTS}
    sizes = (size for kind, size in zip(kind_of, size_of, strict=True) if kind in made)
    return float(sum(sizes)) / 1e6


def _row(name: str, page: Page, settled: Held, half: Held, end: Held) -> tuple[str, ...]:
    return (
        name,
        f"{page.evaluate('renewals()')}",
        *(f"{each.heap_mb:.2f} MB" for each in (settled, half, end)),
        f"{100 * (end.heap_mb / half.heap_mb - 1):+.1f} %",
        f"{100 * (end.objects_mb / half.objects_mb - 1):+.1f} %",
        f"{end.nodes - half.nodes:+d}",
        f"{end.listeners - half.listeners:+d}",
    )


if __name__ == "__main__":
    sys.exit(main())
