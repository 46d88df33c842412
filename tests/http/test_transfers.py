"""Transfers that programs report to a service, and what plans learn of them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from planner.model.errors import InfeasibleError
from planner.model.link_states import Condition
from probes.liveness.link_health import LinkHealth
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import RemoteWan
from relayd.sources.mirror import MirroredWan
from relayd.store import open_store
from relayd.store.events import Event, Events
from relayd.store.links import LinkStates
from relayd.transfers.tracked import TrackedTransfer
from tests.http.running import REGIONS, Served, copied, read_events, served
from tests.waiting import TIMEOUT_S, eventually, soon

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


def test_what_ended_is_listed_by_its_end(changing: Served) -> None:
    for name, end_s in (("b", 1.62e9), ("c", 1.61e9), ("a", 1.63e9)):  # begun in this order
        began = {"id": f"end-{name}", "src": SRC, "dst": DST, "volume_gb": 1, "at_s": 1.6e9}
        assert changing.ask("POST", "/v1/transfers", began).status == 201
        ended = CANCELLED | {"at_s": end_s}
        assert changing.ask("POST", f"/v1/transfers/end-{name}/end", ended).status == 200

    def listed(query: str) -> tuple[list[str], str]:
        answer = changing.get(f"/v1/transfers?state=cancelled&{query}").json
        return [each["id"] for each in answer["transfers"]], answer["next_cursor"]

    names, cursor = listed("until_s=1650000000&limit=2")
    assert names == ["end-a", "end-b"]
    assert listed(f"until_s=1650000000&limit=2&cursor={cursor}")[0] == ["end-c"]
    assert listed("since_s=1610000000&until_s=1630000000")[0] == ["end-b", "end-c"]
    for path in ("transfers", "incidents"):
        wrong = changing.get(f"/v1/{path}?since_s=2&until_s=1")
        assert (wrong.status, wrong.json["field"]) == (422, "until_s")


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
            details = wan.transfer_details("one")
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


def test_a_program_carries_a_plan_out(changing: Served) -> None:
    """The pool of a fleet has room for one; reports go out by themselves, with `async` or not."""
    ends = REGIONS[0], REGIONS[1]

    def found(name: str) -> TrackedTransfer:
        return wan.transfer_details(name).transfer

    async def failing(own: AsyncWan) -> None:
        async with own.transfer(plan, label="failing", silent_after_s="1s") as transfer:
            transfer.moved("20GB")
            await soon(lambda: found(transfer.id).moved_gb == 20)
            raise ValueError("disk full")

    async def waiting(own: AsyncWan, begun: asyncio.Event) -> None:
        async with own.transfer(plan, label="waiting"):
            begun.set()
            await asyncio.Event().wait()

    async def with_asyncio() -> None:
        async with AsyncWan(changing.url) as own, asyncio.timeout(TIMEOUT_S):
            with pytest.raises(ValueError, match="disk full"):
                await failing(own)
            begun = asyncio.Event()
            task = asyncio.create_task(waiting(own, begun))
            await begun.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()

    with RemoteWan(changing.url) as wan:
        plan = wan.plan(*ends, volume_gb=500)
        with wan.transfer(plan, silent_after_s=1) as transfer:
            assert transfer.rate_gbps == plan.throughput_gbps
            eventually(lambda: (time.time() - found(transfer.id).began_s) > 2.5)
            assert (found(transfer.id).state, found(transfer.id).hold) == ("running", "held")
            with pytest.raises(InfeasibleError) as full, wan.transfer(plan.model_dump("json")):
                pytest.fail("the pool is full")
            assert full.value.starts_at_s is not None
            transfer.moved(500)
        assert (found(transfer.id).state, found(transfer.id).problem) == ("finished", "")
        asyncio.run(with_asyncio())
        ended = {one.label: (one.state, one.problem) for one in wan.transfers(src=ends[0])}
        assert ended["failing"] == ("failed", "ValueError: disk full")
        assert ended["waiting"] == ("cancelled", "CancelledError")
        with MirroredWan(wan).transfer(plan) as transfer:
            pass
        assert found(transfer.id).state == "finished"


def test_a_better_way_is_an_event_with_its_plan(store: Path) -> None:
    """The link of one of two running transfers goes down: once that is known, it is said once."""
    pair = REGIONS[0], REGIONS[1]

    def down(since_s: float, conditions: dict[tuple[str, str], Condition]) -> None:
        found = {
            each: LinkHealth(condition, since_s=since_s, reason="no reply")
            for each, condition in conditions.items()
        }
        with open_store(store, mode="write") as opened, opened.database.transaction():
            LinkStates(opened.database).keep(found, (), time.time() + 3600)

    def advice() -> list[Event]:
        with open_store(store, mode="read") as opened:
            return [one for one in Events(opened.database).after(0) if one.kind == "replan"]

    quiet = {"RELAYD_SERVE_SNAPSHOT_EVERY_S": "0"}
    with served(store, environment=quiet) as service, RemoteWan(service.url) as wan:
        for ends in (pair, pair[::-1]):
            plan = wan.plan(*ends, volume_gb=5000, vms=1, objective="time")
            wan.begin_transfer(*ends, id=ends[0], volume_gb=5000, plan=plan)
        plan = wan.plan(*pair, volume_gb=10, vms=1)
        figures = {"throughput_gbps": plan.throughput_gbps}
        wan.begin_transfer(*pair, id="of figures", volume_gb=10, plan=figures)
        seen_s = time.time()
        down(seen_s, {pair: "down"})
        (event,) = eventually(advice)
        assert event.at_s - seen_s < 10
        assert (event.subject, event.detail["verdict"]) == (pair[0], "relay")
        assert "is down since" in event.detail["cause"]
        asked = wan.transfer_details(pair[0]).rest
        assert asked is not None
        better = wan.replan(**asked.body)
        assert better.verdict == "change"
        assert better.plan is not None
        assert event.detail["plan_id"] == better.plan["plan_id"]
        # Other knowledge of other links: nothing new of this one. Then of the other's link.
        down(seen_s, {(REGIONS[2], REGIONS[3]): "down"})
        down(seen_s + 1, {pair[::-1]: "down"})
        eventually(lambda: len(advice()) > 1)
        assert [one.subject for one in advice()] == [*pair]
        streamed = read_events(service, "/v1/events?after=0", 2, {"kind": "replan"})
        assert [one["subject"] for one in streamed] == [*pair]
