"""Fuzzing over HTTP: a service with tokens, asked by its description, and by bytes nearly HTTP."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from benchmarks.fuzz.findings import Findings
from benchmarks.fuzz.mutations import HOSTILE, in_header, mutated
from relayd.http.description import document
from tests.http.running import Served, make_store, run

ENVIRONMENT = {
    "RELAYD_SERVE_CACHE_MB": "4",  # full within the warm-up
    "RELAYD_SERVE_SNAPSHOT_EVERY_S": "5",
    "RELAYD_SERVE_READ_TIMEOUT_S": "5",
    "RELAYD_SERVE_REFRESH_S": "0.5",
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
LEFT_OUT = r"^/(v1/events|docs)$"
"""Streams without an end have a part of their own; pages are for people."""
_EXAMPLES = 5
_TIMEOUT_S = 60.0
_SECRETS = ("/v1/plans?src=us-east&dst=sa", "/v1/links", "/v1/campaigns", "/metrics", "/v1/watch")


def fuzz_http(seconds: float, number: int) -> Findings:
    """Send until time is up, to each operation at least once.

    Parameters
    ----------
    number : int
        Where randomness begins.
    """
    findings, chance = Findings("HTTP"), Random(number)
    with tempfile.TemporaryDirectory() as folder:
        db = make_store(Path(folder))
        tokens = {scope: _token(db, scope) for scope in ("admin", "read", "ingest")}
        service = Served(db, auth=True, environment={**ENVIRONMENT, "XDG_DATA_HOME": folder})
        schema = schemathesis.openapi.from_dict(json.loads(document()))
        operations = [
            found.ok()  # type: ignore[union-attr]  # Ok or Err; Err raises
            for found in schema.exclude(path_regex=LEFT_OUT).get_all_operations()
        ]
        until_s = time.monotonic() + seconds
        with requests.Session() as session, findings.of_service(service):
            for number, operation in enumerate(cycle(operations)):
                if number >= len(operations) and time.monotonic() > until_s:
                    break
                _described(operation, service, session, tokens, findings, chance)
                _credentials(service, findings, chance)
                for _ in range(3):
                    _nearly_http(service, tokens["admin"], findings, chance)
                if service.process.poll() is not None:
                    findings.problem(f"the service ended: {service.process.returncode}")
                    break
    return findings


def _token(db: Path, scope: str) -> str:
    return run("serve", "token", "create", scope, "--scope", scope, db=db).stdout.strip()


def _described(
    operation: Any,
    service: Served,
    session: requests.Session,
    tokens: dict[str, str],
    findings: Findings,
    chance: Random,
) -> None:
    """Send requests that the description of the API allows, and others."""

    @seed(chance.getrandbits(64))
    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy())
    def send(case: Any) -> None:
        token = chance.choice([tokens["admin"]] * 8 + [tokens["read"], tokens["ingest"]])
        headers = {"Authorization": f"Bearer {token}"}
        response = case.call(
            base_url=service.url, session=session, headers=headers, timeout=_TIMEOUT_S
        )
        findings.count(str(response.status_code))
        case.validate_response(response, checks=CHECKS)

    try:
        send()
    except Exception as error:  # noqa: BLE001 - anything that a check raises is a finding
        findings.problem(f"{operation.label}: {type(error).__name__}: {_told(error)}")


def _told(error: BaseException) -> str:
    parts = getattr(error, "exceptions", (error,))
    return "; ".join(str(part) for part in parts)[:1200]


def _credentials(service: Served, findings: Findings, chance: Random) -> None:
    """Ask with invalid tokens, for other hosts, and from pages of other origins."""
    odd = in_header(chance.choice(HOSTILE))
    headers = {
        chance.choice(["Authorization", "Host", "Origin", "Sec-Fetch-Site", "X-Request-ID"]): odd,
        "Authorization": chance.choice(["", "Bearer", "Basic eDp5", f"Bearer {odd}", odd]),
    }
    path = chance.choice(_SECRETS)
    answer = service.ask(chance.choice(["GET", "HEAD", "OPTIONS", "PUT"]), path, None, headers)
    findings.answered(answer.status, f"{path} with {headers}"[:500])
    if answer.status < 400:
        findings.problem(f"answered without a token: {path} with {headers}"[:500])


def _nearly_http(service: Served, token: str, findings: Findings, chance: Random) -> None:
    """Send bytes that were a request before some of them were changed: the body alone, or any."""
    body, is_whole = chance.choice(_BODIES), chance.random() < 0.7
    if is_whole:
        body = mutated(body, _BODIES, chance)
    path = chance.choice(["/v1/plans", "/v1/shuffles", "/v1/samples", "/v1/broadcasts", "/nowhere"])
    sent = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body
    if not is_whole:
        sent = mutated(sent, [sent, *_BODIES], chance)
    got = b""
    try:
        with socket.create_connection((service.host, service.port), _TIMEOUT_S) as connection:
            connection.sendall(sent)
            if not is_whole:  # or the service would wait for what never comes
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                got += part
    except TimeoutError:
        findings.problem(f"no answer and no end within {_TIMEOUT_S:g} s: {sent[:300]!r}")
        return
    except ConnectionError:
        pass  # it was still being sent
    status = got[9:12].decode("latin-1")
    if not status.isdigit():
        findings.count("closed")
        return
    findings.answered(int(status), f"{sent[:1000]!r} -> {got[-600:]!r}")
    if b"Traceback" in got:
        findings.problem(f"a traceback was sent: {got[:500]!r}")


_SAMPLE = {"src": "aws:us-east-1", "dst": "aws:sa-east-1", "metric": "rtt_ms", "value": 114.2}
_BODIES = tuple(
    json.dumps(body).encode()
    for body in (
        {"src": "us-east", "dst": "sa", "volume_gb": 500, "vms": 4, "budget_usd": 100},
        {"src": "aws:us-east-1", "dst": "gcp:us-east1", "deadline_s": "2h", "avoid": ["azure"]},
        {"src": "us-east", "dst": "sa", "vms_in": {"us-east": 2}, "frontier": True},
        {"demands": [["us-east", "sa", 100], ["eu", "us-east", "1TB"]], "vms": 2},
        {"src": "us-east", "destinations": ["eu", "sa"], "volume_gb": 100},
        {"plans": [{"src": "us-east", "dst": "sa"}, {"src": "eu", "dst": "nowhere"}]},
        {"samples": [{**_SAMPLE, "measured_at_s": 1700000000}]},
    )
)
