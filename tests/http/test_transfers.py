"""Transfers that programs report to a service, and what plans learn of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from relayd.client.blocking import RemoteWan
from relayd.store import open_store
from relayd.store.tokens import Tokens
from tests.http.running import served
from tests.http.test_tokens import bearer, make

SRC, DST = "aws:us-east-1", "gcp:us-east1"
CANCELLED = {"state": "cancelled"}


def test_a_transfer_is_seen_and_then_learnt_from(store: Path) -> None:
    with served(store) as service, RemoteWan(service.url) as wan:
        plan = wan.plan(SRC, DST, volume_gb=3)
        began = wan.begin_transfer(SRC, DST, volume_gb=3, label="nightly", plan=plan)
        wan.report_transfer(began.id, 2)
        wan.end_transfer(began.id)
        (seen,) = wan.transfers()
        assert (seen.state, seen.label, seen.src, seen.dst) == ("finished", "nightly", SRC, DST)
        assert seen.moved_gb == 3
        assert seen.expected is not None
        assert seen.expected.throughput_gbps == pytest.approx(plan.throughput_gbps)
        (outcome,) = wan.outcomes(SRC, DST)
        assert (outcome.id, outcome.rate_gbps) == (seen.id, seen.mean_gbps)
        answer = wan.plan(SRC, DST, volume_gb=100, explore="1%", outcomes=[outcome])
        assert answer.exploration is not None


def test_what_is_wrong_is_a_problem(store: Path) -> None:
    said = {"id": "a/b", "src": SRC, "dst": DST, "volume_gb": 10}
    with served(store) as service:
        begun = service.ask("POST", "/v1/transfers", said)
        again = service.ask("POST", "/v1/transfers", said)
        assert (begun.status, again.status) == (201, 200)
        assert again.headers["Location"] == begun.headers["Location"]
        address = begun.headers["Location"]
        assert address == "/v1/transfers/a%2Fb"
        assert service.ask("GET", address).json["details"]["transfer"]["state"] == "running"
        moved = service.ask("POST", f"{address}/progress", {"moved_gb": 4}).json["transfer"]
        assert moved["share"] == 0.4
        back = service.ask("POST", f"{address}/progress", {"moved_gb": 3})
        assert (back.status, back.json["field"]) == (422, "moved_gb")
        assert service.ask("POST", "/v1/transfers/none/end", {}).status == 404
        assert service.ask("GET", "/v1/transfers/none").status == 404
        wrong = service.ask("POST", "/v1/transfers", {"src": SRC, "dst": DST})
        assert (wrong.status, wrong.json["field"]) == (422, "volume_gb")
        assert service.ask("POST", f"{address}/end", {"state": "cancelled"}).status == 200
        listed = service.ask("GET", "/v1/transfers?state=in-flight").json["transfers"]
        assert listed == []


def test_reporting_needs_the_scope_of_measurements(store: Path) -> None:
    begun = {"src": SRC, "dst": DST, "volume_gb": 1}
    tokens = {make(store, scope): status for scope, status in (("read", 403), ("ingest", 201))}
    with served(store, auth=True) as service:
        for token, status in tokens.items():
            bearer = {"Authorization": f"Bearer {token}"}
            assert service.ask("POST", "/v1/transfers", begun, bearer).status == status


def test_a_transfer_is_reported_by_its_owner_alone(store: Path) -> None:
    begun = {"id": "nightly", "src": SRC, "dst": DST, "volume_gb": 10}
    names = {"owner": "ingest", "other": "ingest", "operator": "admin"}
    with open_store(store, mode="write") as opened:
        tokens = {
            name: bearer(Tokens(opened.database).create(name, [scope]))
            for name, scope in names.items()
        }
    with served(store, auth=True) as service:

        def post(path: str, body: dict[str, Any], who: str) -> tuple[int, Any]:
            answer = service.ask("POST", f"/v1/transfers{path}", body, tokens[who])
            assert answer.headers["Content-Type"].startswith("application/")
            return answer.status, answer.json

        assert post("", begun, "owner")[0] == 201
        for path, body in (("progress", {"moved_gb": 9}), ("end", {}), ("end", CANCELLED)):
            status, problem = post(f"/nightly/{path}", body, "other")
            assert (status, problem["kind"], problem["field"]) == (403, "forbidden", "id")
            assert "of a transfer of owner" in problem["detail"]
            assert "Only the token that began a transfer reports on it" in problem["remedy"]
        # Nor may it be begun again: the answer would be the other's.
        assert post("", begun, "other")[0] == 422
        moved = post("/nightly/progress", {"moved_gb": 4}, "owner")[1]["transfer"]
        assert (moved["state"], moved["moved_gb"], moved["who"]) == ("running", 4, "owner")
        assert post("/nightly/end", CANCELLED, "operator")[0] == 200
