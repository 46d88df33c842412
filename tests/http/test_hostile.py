"""What should not be sent gets a clear refusal, and the service goes on."""

from __future__ import annotations

import json
import socket

import pytest

from tests.http.running import Served

GOOD = b'{"src":"us-east","dst":"sa"}'
DEEP = b'{"src":' + b"[" * 5000 + b"]" * 5000 + b',"dst":"sa"}'


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (GOOD + b"x", 400, "Extra data"),
        (b'{"src":"us-east","src":"sa","dst":"sa"}', 400, "twice"),
        (b'{"src":"us-east","dst":"sa","volume_gb":NaN}', 400, "NaN"),
        (b'{"src":"us-east","dst":"sa","volume_gb":1e999}', 422, "volume_gb"),
        (b'{"src":"us-east","dst":"sa","vms":' + b"9" * 5000 + b"}", 400, "digits"),
        (b'{"src":"us-east","dst":"sa","vms":' + b"9" * 400 + b"}", 422, "vms"),
        (DEEP, 400, "deeper"),
        (b"[" * 100_000, 400, "deeper"),
        (b'{"src":"\xff","dst":"sa"}', 400, "UTF-8"),
        (b'{"src":"\\ud800","dst":"sa"}', 422, "src"),
        (b'{"\\ud800":1,"src":"us-east","dst":"sa"}', 422, "unknown field"),
        ('{"src":"\u202eus-east\u0000","dst":"sa"}'.encode(), 400, "control character"),
        (b'{"src":["us-east"],"dst":"sa"}', 422, "src"),
        (b'{"src":"us-east","dst":"sa","frontier":1}', 422, "frontier"),
        (b'{"src":"' + b"a" * 500 + b'","dst":"sa"}', 422, "200 characters"),
        (
            b'{"src":"us-east","dst":"sa","avoid":' + json.dumps(["x"] * 60).encode() + b"}",
            422,
            "avoid",
        ),
        (b"[]", 422, "body"),
        (b"null", 422, "body"),
    ],
)
def test_bodies(service: Served, body: bytes, status: int, words: str) -> None:
    answer = service.ask("POST", "/v1/plans", body)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert words in answer.json["detail"]
    assert "Traceback" not in answer.content.decode()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "src"),
        ("src=us-east", "dst"),
        ("src=us-east&dst=sa&src=eu", "src"),
        ("src=us-east&dst=sa&volume_gb=nan", "volume_gb"),
        ("src=us-east&dst=sa&volume=5", "volume"),
        ("src=us-east&dst=sa&vms=1.5", "vms"),
        ("src=us-east&dst=sa&frontier=maybe", "frontier"),
        ("src=%ff&dst=sa", "query"),
        ("src=us-east&dst=sa&nonsense", "query"),
        ("&".join(["avoid=provider:aws"] * 300), "query"),
        ("src=us-east&dst=%00", "dst"),
        ("src=us-east&dst=sa'%20OR%201=1--", "dst"),
    ],
)
def test_queries(service: Served, query: str, field: str) -> None:
    answer = service.get(f"/v1/plans?{query}")
    assert (answer.status, answer.json["field"]) == (422, field)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/docs/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/docs/..",
        "//v1/plans",
        "/v1/plans/",
        "/v1//plans",
        "/V1/PLANS",
        "/%00",
        "/v1/links/%2f/%2f",
        "/v1/links/a%0d%0aX-Injected:1/b",
        "/v1/campaigns/-1",
        "/v1/campaigns/1e9",
        "/" + "a" * 4000,
        "/v1/campaigns/99999999999999999999999",
        "/v1/regions?x=1",
        "/.git/config",
    ],
)
def test_paths_lead_nowhere_else(service: Served, path: str) -> None:
    answer = service.get(path)
    assert answer.status in (404, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "X-Injected" not in answer.headers
    assert b"root:" not in answer.content


def test_methods_and_media_types(service: Served) -> None:
    wrong = service.ask("DELETE", "/v1/plans")
    assert (wrong.status, wrong.headers["Allow"]) == (405, "GET, HEAD, POST")
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
    ):
        answer = service.ask("POST", "/v1/plans", GOOD, {"Content-Type": kind})
        assert (answer.status, answer.json["kind"]) == (415, "media-type")
    packed = service.ask("POST", "/v1/plans", GOOD, {"Content-Encoding": "gzip"})
    assert packed.status in (400, 415)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(service: Served) -> None:
    answer = service.ask("POST", "/v1/plans", GOOD + b" " * 2_000_000)
    assert (answer.status, answer.json["kind"]) == (413, "too-large")
    many = {"plans": [{"src": "us-east", "dst": "sa"}] * 1001}
    answer = service.ask("POST", "/v1/plans/batch", many)
    assert (answer.status, answer.json["field"]) == (422, "plans")


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"GET /v1/plans HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n"
        + b"".join(b"H%d: 1\r\n" % n for n in range(200))
        + b"\r\n",
        b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_what_is_not_http_gets_a_problem_and_the_end(service: Served, sent: bytes) -> None:
    with socket.create_connection((service.host, service.port), 60) as connection:
        connection.sendall(sent)
        got = b""
        try:
            while part := connection.recv(65536):
                got += part
        except ConnectionResetError:
            pass  # it was still being sent
    assert got.split()[1] == b"400"
    assert b"application/problem+json" in got
    assert b"Traceback" not in got


def test_a_slow_sender_is_let_go(hurried: Served) -> None:
    where, of_another = (hurried.host, hurried.port), ("127.0.0.2", 0)
    head = (
        b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 28\r\n\r\n"
    )
    with socket.create_connection(where, 30, of_another) as connection:
        connection.sendall(head + GOOD[:10])
        assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
    with socket.create_connection(where, 30) as connection:
        connection.sendall(b"GET /healthz HT")  # and nothing more
        assert connection.recv(65536) == b""
    assert hurried.get("/healthz").status == 200


def test_headers_for_browsers_and_sane_request_ids(service: Served) -> None:
    for path in ("/v1/plans?src=us-east&dst=sa", "/nowhere", "/docs", "/healthz"):
        headers = service.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Server"] == "relayd"
        assert "Access-Control-Allow-Origin" not in headers
    assert (
        service.get("/healthz", **{"X-Request-ID": "job-7.a"}).headers["X-Request-ID"] == "job-7.a"
    )
    for bad in ("a b", 'x"y', "a" * 65, "{}"):
        assert service.get("/healthz", **{"X-Request-ID": bad}).headers["X-Request-ID"] != bad
