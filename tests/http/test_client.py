"""The client against a running service: a local store's answers, errors and manners."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

import relayd
import relayd.store
from planner.model.answer import Answer
from planner.model.link import Link
from probes.liveness.link_health import LinkHealth
from probes.samples import Sample
from relayd.__main__ import main
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import Loop, RemoteWan
from relayd.sources.mirror import MirroredWan
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.store.links import LinkStates
from relayd.tables.matrices import MATRIX_METRICS
from tests.http.running import REGIONS, ROOT, Served, eventually, make_store, served

GRID = """\
src,dst,rtt_ms,aggregate_gbps,per_flow_mbps,connections,measured_at
azure:eastus,aws:ap-northeast-1,163,2.0,250,64,2026-01-05T10:00:00Z
azure:eastus,azure:japaneast,156,15.6,300,64,2026-01-05T10:00:00Z
azure:japaneast,aws:ap-northeast-1,4,9.6,,64,2026-01-05T10:00:00Z
azure:japaneast,acme:tokyo-1,5,,,,2026-01-05T10:00:00Z
"""
"""With a place of which no VM type, and so no cap, is known."""


def filled(db: Path, grid: str = GRID) -> Path:
    table = db.with_suffix(".csv")
    table.write_text(grid)
    assert main(["import", "csv", str(table), "--db", str(db)]) == 0
    return db


def serving(db: Path, *options: str) -> AbstractContextManager[Served]:
    """Serve a store, looking often for what is new."""
    return served(db, *options, environment={"RELAYD_SERVE_REFRESH_S": "0.2"})


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("client") / "store.db")


@pytest.fixture(scope="module")
def url(db: Path) -> Iterator[str]:
    with serving(db) as service:
        yield service.url


@pytest.fixture
def remote(url: str) -> Iterator[RemoteWan]:
    with RemoteWan(url) as wan:
        yield wan


@pytest.fixture(scope="module")
def local(db: Path) -> Wan:
    return relayd.open(db)


Ask = Callable[[Any], Any]
QUESTIONS: dict[str, Ask] = {
    "infinity": lambda wan: wan.plan("us-east", "sa", time_value_usd_per_h=float("inf")),
    "mappings": lambda wan: wan.plan(
        "azure:eastus",
        "aws:ap-northeast-1",
        vms_in={"azure:japaneast": 3},
        vms=2,
        month_to_date_gb={"azure": 20_000},
        vm_types={"aws": "t2.micro"},
    ),
    "links": lambda wan: list(wan.links("azure:eastus")),
    "regions": lambda wan: wan.regions(),
    "sites": lambda wan: wan.sites(),
    "snapshot": lambda wan: wan.snapshot,
    "network": lambda wan: wan.network,
    "ambiguous": lambda wan: wan.plan("frankfurt", "london"),
}
"""Beyond those of tests/law, which asks every question through every client."""


def outcome(wan: Any, ask: Ask) -> Any:
    try:
        return ask(wan)
    except relayd.RelaydError as error:
        return type(error), str(error)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("kind", ["remote", "mirror"])
def test_answers_and_errors_are_those_of_a_local_store(
    local: Wan, url: str, question: Ask, kind: str
) -> None:
    wan = relayd.open(url, mirror=True) if kind == "mirror" else RemoteWan(url)
    there, here = outcome(wan, question), outcome(local, question)
    if isinstance(here, list) and here and isinstance(here[0], Link):
        # A service lists links in the order of their names, for its pages.
        by_name = attrgetter("src", "dst")
        assert sorted(there, key=by_name) == sorted(here, key=by_name)
    elif isinstance(here, Answer):
        assert there.model_dump("json") == here.model_dump("json")
    else:
        assert there == here
    wan.close()


@pytest.mark.parametrize("metric", MATRIX_METRICS)
def test_matrices_are_those_of_a_local_store(local: Wan, remote: RemoteWan, metric: Any) -> None:
    here, there = local.matrix(metric), remote.matrix(metric)
    assert (here.regions, here.unit, here.snapshot) == (there.regions, there.unit, there.snapshot)
    assert here.sources == there.sources
    # An age grows while this runs.
    np.testing.assert_allclose(here.values, there.values, rtol=0, atol=300 * (metric == "age"))
    few = remote.matrix("relay-gain", 8, measured_only=True)
    np.testing.assert_array_equal(
        few.values, local.matrix("relay-gain", 8, measured_only=True).values
    )


def test_many_questions_in_one_call(local: Wan, remote: RemoteWan) -> None:
    requests = [{"src": "us-east", "dst": "sa", "volume_gb": 10.0 * n} for n in range(1, 1200)]
    requests[7] = {"src": "nowhere", "dst": "sa"}
    found = remote.plans(requests)
    assert len(found) == len(requests)
    assert isinstance(found[7], relayd.UnknownRegionError)
    for number in (0, 500, 1198):
        plan = found[number]
        assert isinstance(plan, relayd.Plan)
        assert plan.model_dump("json") == local.plan(**requests[number]).model_dump("json")  # type: ignore[arg-type]
    assert remote.plans([]) == []


@pytest.mark.parametrize("name", ["plan", "place_tasks", "matrix", "ingest", "regions"])
def test_methods_that_wait_have_the_signatures_of_those_awaited(name: str) -> None:
    waiting, awaited = getattr(RemoteWan, name), getattr(AsyncWan, name)
    assert inspect.signature(waiting) == inspect.signature(awaited)
    assert waiting.__doc__ == awaited.__doc__
    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(waiting)


UNCLOSED = """
import gc, os, sys, relayd
url = sys.argv[1]
wan = relayd.open(url)
mirror = relayd.open(url, mirror=True)
other = relayd.open(url)
for one in (wan, mirror, other):
    assert one.plan("us-east", "sa").plan_id == wan.plan("us-east", "sa").plan_id
events = wan.events(after=0)
next(events)
other.close()
other.plan("us-east", "sa")
del other
gc.collect()
child = os.fork()
wan.plan("us-east", "sa"), mirror.refresh()
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_nothing_is_left_open_by_those_who_close_nothing(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", UNCLOSED, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_asyncio_asks_many_at_once(url: str) -> None:
    async def ask() -> list[str]:
        async with AsyncWan(url) as wan:
            plans = await asyncio.gather(
                *(wan.plan("us-east", "sa", volume_gb=n + 1.0) for n in range(100))
            )
            links = [link async for link in wan.links(dst="sa")]
            assert {link.dst for link in links} == {"aws:sa-east-1"}
            return [plan.plan_id for plan in plans]

    assert len(set(asyncio.run(ask()))) == 100


def test_threads_share_a_client(remote: RemoteWan) -> None:
    expected = remote.plan("us-east", "sa").plan_id
    with ThreadPoolExecutor(8) as pool:
        ids = pool.map(lambda _: remote.plan("us-east", "sa").plan_id, range(32))
        assert set(ids) == {expected}


@contextmanager
def front(
    url: str, answer: Callable[[int], web.Response | None]
) -> Iterator[tuple[str, list[int]]]:
    """A server before the service that answers some calls itself; gives its address and calls."""
    calls: list[int] = []
    loop = Loop()

    async def handle(request: web.Request) -> web.StreamResponse:
        calls.append(1)
        own = answer(len(calls))
        if own is not None:
            return own
        raise web.HTTPTemporaryRedirect(url + request.path_qs)

    async def start() -> tuple[web.AppRunner, str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"

    runner, address = loop.run(start())
    try:
        yield address, calls
    finally:
        loop.run(runner.cleanup())


def test_an_overloaded_service_is_asked_again_and_not_for_ever(url: str) -> None:
    busy = {"kind": "unavailable", "detail": "Busy.", "status": 503}
    with front(url, lambda _: web.json_response(busy, status=503)) as (address, calls):
        wan = RemoteWan(address, attempts=3)
        with pytest.raises(relayd.ServiceError, match="Busy") as caught:
            wan.plan("us-east", "sa")
        assert (caught.value.status, caught.value.kind, len(calls)) == (503, "unavailable", 3)
        wan.close()
    with front(
        url,
        lambda n: (
            web.Response(status=429)
            if n < 3
            else web.json_response({"kind": "data", "detail": "None."}, status=409)
        ),
    ) as (address, calls):
        with RemoteWan(address) as wan, pytest.raises(relayd.DataError, match="None"):
            wan.plan("us-east", "sa")
        assert len(calls) == 3


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(text="<html>a proxy</html>", status=500),
        web.json_response(["not", "an", "object"], status=400),
        web.Response(status=302, headers={"Location": "http://elsewhere"}),
    ],
    ids=["page", "list", "redirect"],
)
def test_what_is_not_a_relayd_service_is_told(answer: web.Response) -> None:
    def again(_: int) -> web.Response:
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)

    with (
        front("", again) as (address, _),
        RemoteWan(address, attempts=1) as wan,
        pytest.raises(relayd.ServiceError, match=f"status {answer.status}"),
    ):
        wan.plan("us-east", "sa")


def test_silence_and_absence_are_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        wan = RemoteWan(address, timeout_s=0.3, attempts=2)
        with wan, pytest.raises(relayd.ServiceError, match="does not answer within"):
            wan.plan("us-east", "sa")
        opened = relayd.open(address, timeout_s=0.2)
        with pytest.raises(relayd.ServiceError, match=r"within 0\.2 s"):
            opened.plan("us-east", "sa")
    with RemoteWan(address, attempts=1) as wan, pytest.raises(relayd.StoreError, match="reached"):
        wan.plan("us-east", "sa")
    for wrong in ("ftp://x", "http://", "http://user:pass@host"):
        with pytest.raises(relayd.InputError):
            RemoteWan(wrong)
    option: Any
    for option in ({"mirror": True}, {"timeout_s": 5.0}, {"token": "x"}):
        with pytest.raises(relayd.InputError, match="is for a service"):
            relayd.open("store.db", **option)
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(relayd.InputError, match="timeout_s"):
            relayd.open(address, timeout_s=seconds)


def test_a_mirror_follows_new_snapshots_and_outlives_its_service(tmp_path: Path) -> None:
    db = filled(tmp_path / "store.db")
    with serving(db) as service:
        wan = MirroredWan(RemoteWan(service.url, attempts=1), refresh_s=0.2)
        first = wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1)
        # One test counts for most of an estimate, and the law of its class for the rest.
        assert first.direct.throughput_gbps == pytest.approx(2.0, rel=0.2)
        filled(db, GRID.replace(",2.0,", ",8.0,").replace("2026-01-05", "2026-06-05"))

        def direct_gbps() -> float:
            found = wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1).direct.throughput_gbps
            assert found is not None
            return found

        eventually(lambda: direct_gbps() == pytest.approx(8.0, rel=0.3))
        latest = direct_gbps()
        service.kill()
        eventually(lambda: wan.plan("us-east", "sa") is not None and wan.problem is not None)
        assert isinstance(wan.problem, relayd.ServiceError)
        assert direct_gbps() == latest
        with pytest.raises(relayd.ServiceError):
            wan.refresh()
        wan.close()
        assert direct_gbps() == latest


def test_a_service_that_stops_and_comes_back_is_waited_for(tmp_path: Path) -> None:
    db = filled(tmp_path / "store.db")
    with serving(db) as service:
        wan = RemoteWan(service.url, attempts=60)  # a busy machine starts one in a minute
        before = wan.plan("us-east", "sa")
        service.kill()
        answers: list[Any] = []
        asking = threading.Thread(target=lambda: answers.append(wan.plan("us-east", "sa")))
        asking.start()
        with serving(db, "--port", str(service.port)):
            asking.join(timeout=180)
        assert [answer.plan_id for answer in answers] == [before.plan_id]
        wan.close()


def test_samples_are_sent_once_and_told_of(tmp_path: Path) -> None:
    db = filled(tmp_path / "store.db")
    now_s = time.time() - 60
    samples = [
        Sample("aws:us-east-1", "gcp:us-east1", "rtt_ms", 12.0 + n, now_s + n, "ping")
        for n in range(30)
    ]
    with serving(db) as service, RemoteWan(service.url) as wan:
        events = wan.events(after=0)
        first = wan.ingest(samples)
        assert (first.accepted, first.duplicates, first.rejected) == (30, 0, 0)
        wrong = samples[0]._replace(value=-1.0)
        again = wan.ingest([*samples, wrong])
        assert (again.accepted, again.duplicates, again.rejected) == (0, 30, 1)
        assert again.rejections[0].row == 31
        with relayd.store.open_store(db, mode="read") as store:
            sent = store.samples.read(src="aws:us-east-1", dst="gcp:us-east1", metric="rtt_ms")
            assert len(sent) == 30
        event = next(event for event in events if event.kind == "snapshot")
        eventually(lambda: wan.snapshot.id == event.subject)
        events.close()


def test_importing_the_library_does_not_import_the_client() -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, relayd, relayd.sources.wan\nprint('aiohttp' in sys.modules)",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert said.stdout.strip() == "False"


def test_what_never_ends_is_read_as_such(tmp_path: Path) -> None:
    db = make_store(tmp_path)
    src, dst = REGIONS[:2]
    with closing(relayd.open(db)) as wan:
        plan = wan.plan(src, dst, volume_gb=500, relays="none")
    with open_store(db, mode="write") as store, store.database.transaction():
        down = LinkHealth("down", since_s=time.time(), reason="no reply")
        LinkStates(store.database).keep({(src, dst): down}, (), time.time() + 86_400)
    asked: dict[str, Any] = {"plan": plan, "moved_gb": 100, "elapsed_s": 300}
    with closing(relayd.open(db)) as wan, served(db) as service, RemoteWan(service.url) as remote:
        local = wan.replan(**asked)
        assert local.keep.duration_s == inf
        assert remote.replan(**asked) == local
