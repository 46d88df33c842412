"""Fuzzing of event streams and of what pages take: addresses, fields, ids to go on from.

Readers of events come and go while samples are sent; a browser opens pages with hostile addresses
and types hostile texts.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, Page

from benchmarks.fuzz.findings import Findings
from benchmarks.fuzz.mutations import HOSTILE, NUMBERS, in_header
from planner.fields.specified import description_of
from relayd.questions.transfer import TRANSFER
from tests.dashboard.browser import chromium
from tests.http.running import REGIONS, Served, make_store

ENVIRONMENT = {"RELAYD_SERVE_REFRESH_S": "0.2", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "1"}
READERS = 6
PAGES = ("/", "/matrix", "/now", "/campaigns", "/fleet", "/quarantine")
_NAMES = (
    *(field["name"] for field in description_of(TRANSFER.request)),
    *("metric", "from", "to", "measured", "id", "order", "src", "dst", "days", "hash", "provider"),
)
_GOOD = (*REGIONS, "us-east", "sa", "100GB", "rtt", "true", "1")
_CONTEXT_PAGES = 40
_SETTLE_MS = 120
_TIMEOUT_S = 120.0
"""Far more than anything takes, because the machine may be busy."""
_LONGEST_READ_S = 3.0


def fuzz_pages(seconds: float, number: int) -> Findings:
    """Open pages and streams until time is up; see :func:`.over_http.fuzz_http`."""
    findings = Findings("pages and event streams")
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        service = Served(make_store(Path(folder)), environment=ENVIRONMENT)
        until_s = time.monotonic() + seconds
        threads = [
            threading.Thread(target=work, args=(service, until_s, findings, Random(number + at)))
            for at, work in enumerate([_send, *[_listen] * READERS])
        ]
        with findings.of_service(service):
            for thread in threads:
                thread.start()
            _browse(browser, service, until_s, findings, Random(number))
            for thread in threads:
                thread.join()
    return findings


def _send(service: Served, until_s: float, findings: Findings, chance: Random) -> None:
    """Send samples, so that there are snapshots and events of them."""
    while time.monotonic() < until_s:
        src, dst = chance.sample(REGIONS, 2)
        sample = {"src": src, "dst": dst, "metric": "rtt_ms", "measured_at_s": time.time() - 1}
        answer = service.ask(
            "POST", "/v1/samples", {"samples": [{**sample, "value": chance.uniform(60, 150)}]}
        )
        findings.answered(answer.status, "POST /v1/samples")
        time.sleep(0.5)


def _listen(service: Served, until_s: float, findings: Findings, chance: Random) -> None:
    """Read events from odd ids on, for a moment, and leave without a word."""
    while time.monotonic() < until_s:
        said = chance.choice([*HOSTILE, *NUMBERS, "0", "1", str(chance.randrange(100)), ""])
        path, last = f"/v1/events?after={quote(said, errors='ignore')}", ""
        if chance.random() < 0.5:
            path, last = "/v1/events", in_header(said)
        try:
            _read(service, path, last, findings, chance)
        except (ConnectionError, http.client.HTTPException):
            findings.count("closed")
        except TimeoutError:
            findings.problem(f"no answer within {_TIMEOUT_S:g} s: GET {path}")


def _read(service: Served, path: str, last: str, findings: Findings, chance: Random) -> None:
    connection = http.client.HTTPConnection(service.host, service.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Last-Event-ID": last} if last else {})
        response = connection.getresponse()
        findings.answered(response.status, f"GET {path} from {last!r}")
        if response.status != 200:
            response.read()
            return
        assert connection.sock
        connection.sock.settimeout(1.0)
        until_s = time.monotonic() + chance.uniform(0.0, _LONGEST_READ_S)
        before = -1
        with suppress(TimeoutError):
            while time.monotonic() < until_s and (line := response.readline()):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    if int(value) <= before:
                        findings.problem(f"event {value} came after {before}")
                    before = int(value)
                elif name == "data":
                    json.loads(value)
                    findings.count("event")
    finally:
        connection.close()


def _browse(
    browser: Browser, service: Served, until_s: float, findings: Findings, chance: Random
) -> None:
    while time.monotonic() < until_s:
        context = browser.new_context(reduced_motion="reduce")
        page = context.new_page()
        page.set_default_timeout(_TIMEOUT_S * 1e3)
        page.on("pageerror", lambda error: findings.problem(f"error on a page: {error}"))
        page.on("console", lambda said: _judge(said, findings))
        for _ in range(_CONTEXT_PAGES):
            if time.monotonic() > until_s:
                break
            path = chance.choice(PAGES)
            query = "&".join(
                f"{quote(chance.choice([*_NAMES, *HOSTILE]), errors='ignore')[:2000]}="
                f"{quote(_text(chance), errors='ignore')[:2000]}"
                for _ in range(chance.randint(0, 5))
            )
            response = page.goto(f"{service.url}{path}?{query}"[:8000])
            findings.answered(response.status if response else 0, f"{path}?{query}")
            if chance.random() < 0.3:
                _type(page, chance)
            page.wait_for_timeout(_SETTLE_MS)
            if page.evaluate("window.ran") is not None:
                findings.problem(f"a script of a stranger ran: {path}?{query}")
        context.close()


def _text(chance: Random) -> str:
    return chance.choice([*HOSTILE, *NUMBERS, *_GOOD, *_GOOD])


def _type(page: Page, chance: Random) -> None:
    fields = page.locator("main input:visible, main textarea:visible")
    if count := fields.count():
        field = fields.nth(chance.randrange(count))
        if (field.get_attribute("type") or "text") in ("text", "search", "number"):
            with suppress(Exception):  # a page that renews itself may take the field away
                field.fill(_text(chance)[:500], timeout=500)
                field.press("Enter", timeout=500)


def _judge(said: Any, findings: Findings) -> None:
    """Note what scripts say; that the service refused something is no problem."""
    if said.type == "error" and "the server responded with a status of 4" not in said.text:
        findings.problem(f"in the console: {said.text}")
