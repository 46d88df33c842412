"""A question as of an earlier snapshot: wherever it is asked, the answer of that time."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import relayd
from planner.model.errors import InputError
from relayd.client.blocking import RemoteWan
from relayd.store import open_store
from relayd.times import utc_text
from tests.dashboard.fleets import SA, US, store_with_history
from tests.http.running import run, served

DAY_S = 86400.0
THEN = f"then-{1.5 * DAY_S:.0f}"
ASKED: dict[str, Any] = {"src": US, "dst": SA, "volume_gb": 1000, "vms": 1, "relays": "none"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 Gbit/s were measured the day before yesterday, 1 Gbit/s today."""
    return store_with_history(tmp_path_factory.mktemp("history"))


def test_an_earlier_snapshot_is_meant_by_its_name_a_time_or_an_age(store: Path) -> None:
    with closing(relayd.open(store)) as wan:
        now = wan.plan(**ASKED)
        assert now.snapshot.id != THEN
        assert now.throughput_gbps == pytest.approx(1.0, rel=0.1)
        for name in (THEN, "1d", utc_text(time.time() - DAY_S), "129600s"):
            then = wan.plan(**ASKED, snapshot=name)
            assert then.snapshot.id == THEN
            assert then.throughput_gbps == pytest.approx(4.0, rel=0.1)
            assert then.request["snapshot"] == name
        # Bounds are those of that time: no wider for what has passed since.
        with open_store(store, mode="read") as opened:
            believed = next(link for link in opened.snapshots.network(THEN).usual[US].values())
        assert wan.at("1d").network.link(US, believed.dst).rtt_ms == believed.rtt_ms


def test_all_ways_to_ask_answer_as_of_then(store: Path) -> None:
    asked = {**ASKED, "snapshot": "1d"}
    many: dict[str, Any] = {"demands": [{"src": US, "dst": SA, "volume_gb": 100}], "snapshot": "1d"}
    words = ("--volume", "1TB", "--vms", "1", "--relays", "none", "--snapshot", "1d", "--json")
    with closing(relayd.open(store)) as wan:
        answer, shuffled = wan.plan(**asked).model_dump("json"), wan.shuffle(**many)
    assert json.loads(run("plan", US, SA, *words, db=store).stdout) == answer
    assert shuffled.snapshot.id == THEN
    with served(store) as service:
        with RemoteWan(service.url) as remote:
            assert remote.plan(**asked).model_dump("json") == answer
        assert service.ask("POST", "/v1/plans", asked).json == answer
        assert service.ask("POST", "/v1/shuffles", many).json == shuffled.model_dump("json")
        got = service.get(f"/v1/plans?src={US}&dst={SA}&snapshot=1d")
        assert got.headers["Relayd-Snapshot"] == THEN
        gone = service.ask("POST", "/v1/plans", {**ASKED, "snapshot": "20 years"})
        assert (gone.status, gone.json["field"]) == (422, "snapshot")
        with (
            closing(relayd.open(service.url, mirror=True)) as mirror,
            pytest.raises(InputError, match="only the newest"),
        ):
            mirror.plan(**asked)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("2020-01-01", "older than all"),
        ("20 years", "not in this store"),
        ("../x\u202e", "not in this store"),
    ],
)
def test_a_snapshot_that_is_not_there_is_an_error(store: Path, name: str, text: str) -> None:
    with closing(relayd.open(store)) as wan, pytest.raises(InputError, match=text) as caught:
        wan.plan(**ASKED, snapshot=name)
    assert caught.value.field == "snapshot"


def test_without_a_store_there_is_no_earlier_snapshot(tmp_path: Path) -> None:
    said = run("plan", US, SA, "--snapshot", "1d", db=tmp_path / "none.db")
    assert said.returncode == 2
    assert "Traceback" not in said.stderr
