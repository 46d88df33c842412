"""Pages of other origins, in a browser that reaches the service: they read and change nothing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from relayd.http.access import BrowserChecks
from relayd.http.problems import ProblemError
from relayd.store import open_store
from tests.http.running import Served

PLAN = "/v1/plans?src=us-east&dst=sa"
EVIL = "http://evil.example:8080"
SAMPLE = {
    "src": "aws:us-east-1",
    "dst": "aws:sa-east-1",
    "metric": "rtt_ms",
    "value": 1.25,
    "measured_at_s": 1.7e9,
}
WRITES: list[tuple[str, Any, str]] = [
    ("/v1/samples", json.dumps(SAMPLE).encode(), "application/x-ndjson"),
    ("/v1/campaigns", b'{"budget_usd": 1}', "application/json"),
    ("/v1/plans", b'{"src": "us-east", "dst": "sa"}', "application/json"),
]


def test_a_page_whose_name_was_rebound_reads_and_changes_nothing(
    service: Served, measured: Path
) -> None:
    # To the browser all of this is of one origin, so it says so, and lets the page read answers.
    rebound = {"Host": "evil.example:8080", "Origin": EVIL, "Sec-Fetch-Site": "same-origin"}
    for path in (PLAN, "/", "/healthz", "/v1/events", "/nowhere"):
        answer = service.get(path, **rebound)
        assert (answer.status, answer.json["kind"]) == (421, "misdirected"), path
        assert (answer.json["field"], answer.json["value"]) == ("Host", "evil.example:8080")
        assert "--allowed-host" in answer.json["remedy"]
    for path, body, kind in WRITES:
        assert service.ask("POST", path, body, {"Content-Type": kind, **rebound}).status == 421
    with open_store(measured, mode="read") as store:
        found = store.samples.read(src="aws:us-east-1", dst="aws:sa-east-1", metric="rtt_ms")
        assert SAMPLE["value"] not in found.column("value")


@pytest.mark.parametrize(
    "sent",
    [
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_page_of_another_origin_changes_nothing(service: Served, sent: dict[str, str]) -> None:
    for path, body, kind in WRITES:
        answer = service.ask("POST", path, body, {"Content-Type": kind, **sent})
        assert (answer.status, answer.json["kind"]) == (403, "cross-origin"), path
        assert answer.json["value"] == sent.get("Origin", "cross-site")
        assert "cors_origins" in answer.json["remedy"]
    assert service.get("/v1/events", **sent).status == 403
    # What only reads is answered; without CORS headers the browser keeps it from the page.
    assert "Access-Control-Allow-Origin" not in service.get(PLAN, **sent).headers


@pytest.mark.parametrize(
    ("host", "origin", "site", "status"),
    [
        ("LOCALHOST:8080", None, None, None),
        ("relayd.localhost:8080", None, None, None),
        ("[::1]:8080", None, None, None),
        ("127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", None),
        ("127.0.0.1:8080", "http://127.0.0.1:8080", None, None),
        ("127.0.0.1:8080", None, "none", None),
        ("127.0.0.1:8080", "http://localhost:3000", "same-site", 403),
        # A proxy that passes the name on, and one that does not.
        ("relayd.example", "https://relayd.example", "same-origin", None),
        ("relayd.example", "https://relayd.example", None, None),
        ("127.0.0.1:8080", "https://relayd.example", None, None),
        ("127.0.0.1:8080", "https://relayd.example", "same-origin", None),
        ("relayd.example.:443", "https://relayd.example", None, None),
        ("relayd.example", "https://dashboard.example", "cross-site", None),
        ("relayd.example", "https://relayd.example:3000", "same-site", 403),
        ("relayd.example", "https://relayd.example:3000", None, 403),
        ("relayd.example", "https://evil.example", None, 403),
        ("relayd.example.evil.example", None, None, 421),
        ("localhost.evil.example", None, None, 421),
        ("evil.example@127.0.0.1", None, None, 421),
        ("127.0.0.1.evil.example:80", None, None, 421),
        ("", None, None, 421),
    ],
)
def test_names_and_proxies(
    host: str, origin: str | None, site: str | None, status: int | None
) -> None:
    checks = BrowserChecks(("127.0.0.1", "Relayd.Example"), ("https://dashboard.example",))
    sent = {"Host": host, "Origin": origin, "Sec-Fetch-Site": site}
    request = make_mocked_request(
        "POST",
        "/v1/samples",
        headers={name: value for name, value in sent.items() if value is not None},
    )
    with pytest.raises(ProblemError) if status else nullcontext() as refused:
        checks.check_host(request)
        checks.check_origin(request)
    assert (refused.value.status if refused else None) == status
