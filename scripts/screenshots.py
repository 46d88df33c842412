"""Pictures of the dashboard for the docs: ``python -m scripts.screenshots [PAGE...]``.

Starts a service on the grid of 63 measured regions, or on a synthetic one where there is none, and
writes ``docs/images/dashboard-PAGE-{light,dark}.png`` of every page, or of those named. Needs
chromium and Pillow.
"""

from __future__ import annotations

import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page

from benchmarks.service import make_store
from probes.importers.limits import PhysicalGate
from probes.samples import QuarantinedSample, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.dashboard.pages import PAGES
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.tokens import Tokens
from tests.dashboard.browser import chromium, settle, watched
from tests.dashboard.transfers import report_transfers
from tests.http.running import ROOT, served

IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1440, 900
# What Azure sends to AWS varies with the way, so that a relay may help.
PAIR = "src=azure:eastus&dst=aws:ap-northeast-1"
DEMANDS = """GB,azure:eastus,aws:us-east-1,aws:ap-northeast-1,gcp:europe-west4
azure:eastus,,100,200,50
aws:us-east-1,100,,200,50
aws:ap-northeast-1,10,20,,30
gcp:europe-west4,100,20,30,
"""
TRANSFERS = """id,src,dst,volume_gb,deadline_s,priority
backup,aws:us-east-1,aws:sa-east-1,2000,2h,1
logs,aws:us-east-1,aws:eu-west-1,1500,1h,0
film,azure:eastus,aws:ap-northeast-1,3000,2h,0
copy,azure:eastus,gcp:europe-west4,800,30min,2
mirror,aws:us-east-1,aws:ap-southeast-2,9000,20min,0
rest,gcp:us-east1,aws:us-west-2,400,,0
"""
# What each page is asked to show; a page may have several pictures, by other names.
SHOTS = {page.name: page.path for page in PAGES} | {
    "ask": "/",
    "matrix": "/matrix?measured=1",
    "matrix-per-flow": "/matrix?metric=per-flow&measured=1",
    "pair": f"/?{PAIR}#open=pair",
    "plan": f"/?{PAIR}&volume_gb=1000&objective=time",
    "shuffle": f"/?question=shuffle&vms=2#demands={quote(DEMANDS)}",
    "schedule": f"/?question=schedule#transfers={quote(TRANSFERS)}",
    "map": f"/?{PAIR}&volume_gb=1000&objective=time#open=world-map",
}
# Samples that a token sent of this link, for the pages of what is in doubt.
DOUBTED = ("azure:westeurope", "aws:eu-west-1")
SETTLED_MS = 700  # charts are drawn after their figures have come


def main(names: list[str]) -> int:
    """Write pictures, all or those named."""
    unknown = set(names) - set(SHOTS)
    if unknown:
        print(f"There is no picture {', '.join(unknown)}: choose from {', '.join(SHOTS)}.")
        return 2
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        db, what = make_store(folder)
        add_doubts(db)
        print(f"A store with {what}")
        own = {"XDG_CONFIG_HOME": name, "XDG_DATA_HOME": name}
        with served(db, environment=own) as service, chromium() as browser:
            report_transfers(service.url, "weekly archive")
            for dark in (False, True):
                with watched(browser, width=WIDTH, height=HEIGHT, dark=dark) as seen:
                    for shot in names or SHOTS:
                        page = seen.open(f"{service.url}{SHOTS[shot]}")
                        _settle(page)
                        path = IMAGES / f"dashboard-{shot}-{'dark' if dark else 'light'}.png"
                        # A palette takes a third of the space of full colour.
                        picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
                        picture.quantize(dither=Image.Dither.NONE).save(path, optimize=True)
                        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB")
    return 0


def add_doubts(db: Path) -> None:
    """Add tokens, samples in quarantine, and samples that contradict the own prober's."""
    now_s = time.time() - 3600
    usual = Sample(*DOUBTED, "rtt_ms", 19.0, now_s, "ping")
    false = [usual._replace(value=80.0 + n, measured_at_s=now_s - n) for n in range(6)]
    own = [usual._replace(value=19.0 + n / 10, measured_at_s=now_s - 60 * n) for n in range(1, 9)]
    apart = [
        QuarantinedSample(sample, str(PhysicalGate(load_catalogue()).fault(sample)))
        for sample in (
            usual._replace(value=0.4),
            usual._replace(metric="aggregate_mbps", value=9e6, connections=64, tool="iperf3 3.16"),
        )
    ]
    with open_store(db, mode="write") as store:
        append(store, own)
        ingest(store, Batch("service", "live", reporter="ci"), [*false, *apart])
        make_snapshot(store, load_catalogue())
        tokens = Tokens(store.database)
        tokens.create("ana", ["admin"])
        tokens.create("dashboards", ["read", "plan"], expires_at_s=time.time() + 7 * 86400)
        tokens.create("ci", ["ingest"], requests_per_s=20, max_series=5000)
        tokens.note_used({1: time.time() - 40, 2: time.time() - 7200, 3: time.time() - 3600})


def _settle(page: Page) -> None:
    page.wait_for_timeout(SETTLED_MS)
    opened = "section:has(> details[open] #pair)"
    if "open=world-map" in page.url:
        page.locator(".offers").evaluate("it => it.closest('section').scrollIntoView()")
    for below in ("section:has(.gantt)", "body:has(.rates) .verdict", opened):  # a long form
        if page.locator(below).count():
            page.locator(below).evaluate("it => it.scrollIntoView()")
    cell = page.locator("td.cell")
    if cell.count():  # a matrix shows what it knows of a pair
        cell.nth(500).hover()
        settle(page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
