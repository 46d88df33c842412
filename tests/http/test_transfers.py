"""Transfers that programs report to a service, and what plans learn of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import InfeasibleError
from relayd.client.blocking import RemoteWan
from tests.http.running import Served, copied, served

SRC, DST = "azure:eastus", "aws:sa-east-1"
CANCELLED = {"state": "cancelled"}


def test_a_transfer_is_seen(changing: Served) -> None:
    with RemoteWan(changing.url) as wan:
        plan = wan.plan(SRC, DST, volume_gb=3)
        began = wan.begin_transfer(SRC, DST, volume_gb=3, label="nightly", plan=plan)
        wan.report_transfer(began.id, 2, limited_by="disk")
        wan.end_transfer(began.id)  # what limits it is as before
        (seen,) = (each for each in wan.transfers() if each.id == began.id)
        assert (seen.state, seen.label, seen.src, seen.dst) == ("finished", "nightly", SRC, DST)
        assert (seen.moved_gb, seen.limited_by) == (3, "disk")
        assert seen.expected is not None
        assert seen.expected.throughput_gbps == pytest.approx(plan.throughput_gbps)


def test_what_is_wrong_is_a_problem(changing: Served) -> None:
    said = {"id": "a/b", "src": DST, "dst": SRC, "volume_gb": 10}
    begun = changing.ask("POST", "/v1/transfers", said)
    again = changing.ask("POST", "/v1/transfers", said)
    assert (begun.status, again.status) == (201, 200)
    assert again.headers["Location"] == begun.headers["Location"]
    address = begun.headers["Location"]
    assert address == "/v1/transfers/a%2Fb"
    assert changing.get(address).json["details"]["transfer"]["state"] == "running"
    moved = changing.ask("POST", f"{address}/progress", {"moved_gb": 4}).json["transfer"]
    assert moved["share"] == 0.4
    back = changing.ask("POST", f"{address}/progress", {"moved_gb": 3})
    assert (back.status, back.json["field"]) == (422, "moved_gb")
    assert changing.ask("POST", "/v1/transfers/none/end", {}).status == 404
    assert changing.get("/v1/transfers/none").status == 404
    wrong = changing.ask("POST", "/v1/transfers", {"src": SRC, "dst": DST})
    assert (wrong.status, wrong.json["field"]) == (422, "volume_gb")

    def in_flight() -> set[str]:
        listed = changing.get("/v1/transfers?state=in-flight").json["transfers"]
        return {each["id"] for each in listed}

    assert "a/b" in in_flight()
    assert changing.ask("POST", f"{address}/end", CANCELLED).status == 200
    assert "a/b" not in in_flight()


def test_a_transfer_is_reported_by_its_owner_alone(guarded: Served) -> None:
    begun = {"id": "nightly", "src": SRC, "dst": DST, "volume_gb": 10}

    def post(path: str, body: dict[str, Any], who: str) -> tuple[int, Any]:
        answer = guarded.ask("POST", f"/v1/transfers{path}", body, guarded.by(who))
        assert answer.headers["Content-Type"].startswith("application/")
        return answer.status, answer.json

    assert post("", begun, "read")[0] == 403
    assert post("", begun, "robot")[0] == 201
    for path, body in (("progress", {"moved_gb": 9}), ("end", {}), ("end", CANCELLED)):
        status, problem = post(f"/nightly/{path}", body, "ingest")
        assert (status, problem["kind"], problem["field"]) == (403, "forbidden", "id")
        assert "of a transfer of robot" in problem["detail"]
        assert "Only the token that began a transfer reports on it" in problem["remedy"]
    # Nor may it be begun again: the answer would be the other's.
    assert post("", begun, "ingest")[0] == 422
    moved = post("/nightly/progress", {"moved_gb": 4}, "robot")[1]["transfer"]
    assert (moved["state"], moved["moved_gb"], moved["who"]) == ("running", 4, "robot")
    assert post("/nightly/end", CANCELLED, "admin")[0] == 200


def test_a_service_answers_on_what_others_leave(measured: Path, tmp_path: Path) -> None:
    file = tmp_path / "pools.toml"
    file.write_text(f'[[pool]]\nregion = "{DST}"\nvm_type = "aws:m5.8xlarge"\nvms = 2\n')
    with served(copied(measured, tmp_path), "--catalogue", str(file)) as service:
        asked: Any = {"src": DST, "dst": SRC, "volume_gb": 500}
        with RemoteWan(service.url) as wan:
            plan = wan.plan(**asked, vms=2)
            assert wan.plan(**asked, vms=2) == plan  # as it was kept
            whole = [
                {"regions": [DST, SRC], "throughput_gbps": 10.0, "share": 1.0}
            ]  # 5 Gbit/s a VM
            taken = {**plan.model_dump("json"), "paths": whole}
            begun = wan.begin_transfer(**asked, plan=taken, id="one")
            assert begun.hold == "held"
            with pytest.raises(InfeasibleError) as caught:
                wan.plan(**asked, vms=2)
            later = wan.plan(**asked, vms=2, queue=True)
            assert later.starts_at_s == caught.value.starts_at_s == begun.forecast_end_s
            refused = service.ask(
                "POST", "/v1/transfers", {**asked, "plan": plan.model_dump("json")}
            )
            assert (refused.status, refused.json["kind"]) == (409, "no-room")
            assert refused.json["starts_at_s"] == begun.forecast_end_s
            (batched,) = service.ask(
                "POST", "/v1/plans/batch", {"plans": [{**asked, "vms": 2}]}
            ).json["results"]
            assert batched["problem"]["kind"] == "infeasible"
            # Its own hold does not count against the rest of it.
            details = wan.transfer("one")
            assert details.rest is not None
            advice = service.ask("POST", "/v1/replans", details.rest.body).json
            assert advice["verdict"] == "keep"
            # In another worker, and in one that has the network already.
            shuffle = {"demands": [{"src": DST, "dst": SRC, "volume_gb": 9}], "vms": 2}
            assert service.ask("POST", "/v1/shuffles", shuffle).json["kind"] == "infeasible"
            pool = next(one for one in wan.pools() if one.held.kind == "pool")
            assert (pool.held.place, [one.transfer for one in pool.by]) == (DST, ["one"])
            wan.end_transfer("one", "cancelled")
            again = wan.plan(**asked, vms=2)
            assert (again.held, again.throughput_gbps) == ((), plan.throughput_gbps)
