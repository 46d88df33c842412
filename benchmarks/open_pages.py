"""Pages that stay open: ``python -m benchmarks.open_pages [--minutes 60]``; needs chromium.

Opens all pages of the dashboard at once, while a transfer's progress comes in as events, one a
second. Timers of the pages run faster, so that what they do in so many minutes takes two. The table
has the script heap in use after collecting garbage, when pages have settled and at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.service import make_store
from benchmarks.table import show
from relayd.client.blocking import RemoteWan
from relayd.dashboard.pages import PAGES
from tests.dashboard.browser import chromium
from tests.http.running import served

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

PAIR = "src=azure:eastus&dst=aws:ap-northeast-1"
ADDRESSES = {"pair": f"/pair?{PAIR}", "plan": f"/plan?{PAIR}&volume_gb=1000", "map": f"/map?{PAIR}"}
OPEN_S = 120.0
SETTLED_S = 20.0
FASTER = """const wait = setInterval;
let renewals = 0;
window.renewals = () => renewals;
window.setInterval = (renew, ms) => wait(() => { renewals += 1; renew(); }, ms / %g);"""


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        db, _ = make_store(Path(name))
        environment = {"XDG_CONFIG_HOME": name, "XDG_DATA_HOME": name}
        with served(db, environment=environment) as service, RemoteWan(service.url) as wan:
            context = browser.new_context()
            context.add_init_script(FASTER % (60 * minutes / OPEN_S))
            pages = {page.name: context.new_page() for page in PAGES}
            for page in PAGES:
                pages[page.name].goto(service.url + ADDRESSES.get(page.name, page.path))
            sessions = {name: context.new_cdp_session(page) for name, page in pages.items()}
            wan.begin_transfer("azure:eastus", "aws:sa-east-1", id="open", volume_gb=1e6)
            moved_gb = _report(wan, 0.0, SETTLED_S)
            before = _heaps(sessions)
            _report(wan, moved_gb, OPEN_S)
            after = _heaps(sessions)
            rows = [_row(page, pages[page], before[page], after[page]) for page in pages]
            context.close()
    show(f"Pages open for {minutes:g} minutes", ("", "renewals", "settled", "end", "more"), rows)
    return 0


def _report(wan: RemoteWan, moved_gb: float, seconds: float) -> float:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        moved_gb += 1
        wan.report_transfer("open", moved_gb)
        time.sleep(1)
    return moved_gb


def _heaps(sessions: dict[str, CDPSession]) -> dict[str, float]:
    found = {}
    for name, session in sessions.items():
        session.send("HeapProfiler.enable")
        session.send("HeapProfiler.collectGarbage")
        found[name] = session.send("Runtime.getHeapUsage")["usedSize"]
    return found


def _row(name: str, page: Page, before: float, after: float) -> tuple[str, ...]:
    renewals = page.evaluate("renewals()")
    more = f"{100 * (after / before - 1):+.1f} %"
    return name, f"{renewals}", f"{before / 1e6:.2f} MB", f"{after / 1e6:.2f} MB", more


if __name__ == "__main__":
    sys.exit(main())
