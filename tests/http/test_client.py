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
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web

import relayd
from planner.model.answer import Answer
from planner.model.link import Link
from probes.liveness.link_health import LinkHealth
from probes.samples import Sample
from relayd.client.asynchronous import AsyncWan
from relayd.client.blocking import Loop, RemoteWan
from relayd.sources.mirror import MirroredWan
from relayd.sources.wan import Wan
from relayd.store import open_store
from relayd.tables.matrices import MATRIX_METRICS
from tests.http.running import REGIONS, ROOT, Served, copied, served, settled
from tests.http.test_watch import keep
from tests.relayd.building import imported
from tests.waiting import eventually

GRID = """\
src,dst,rtt_ms,aggregate_gbps,per_flow_mbps,connections,measured_at
azure:eastus,aws:ap-northeast-1,163,2.0,250,64,2026-01-05T10:00:00Z
azure:eastus,azure:japaneast,156,15.6,300,64,2026-01-05T10:00:00Z
azure:japaneast,aws:ap-northeast-1,4,9.6,,64,2026-01-05T10:00:00Z
azure:japaneast,acme:tokyo-1,5,,,,2026-01-05T10:00:00Z
"""
"""With a place of which no VM type, and so no cap, is known."""
LINK = ("aws:us-east-1", "aws:sa-east-1")


def serving(db: Path, *options: str) -> AbstractContextManager[Served]:
    """Serve a store, looking often for what is new."""
    return served(db, *options, environment={"RELAYD_SERVE_REFRESH_S": "0.2"})


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("client") / "store.db", *GRID.splitlines())


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
    "links": lambda wan: list(wan.links("azure:eastus")),
    "regions": lambda wan: wan.regions(),
    "sites": lambda wan: wan.sites(),
    "snapshot": lambda wan: wan.snapshot,
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
    refused = {"src": "sa", "dst": "sa", "relays": "sa"}  # in no time
    requests: list[dict[str, Any]] = [refused] * 1200
    good, unknown = (0, 500, 1199), range(7, 1200, 100)
    for number in good:
        requests[number] = {"src": "us-east", "dst": "sa", "volume_gb": 10.0 + number}
    for number in unknown:
        requests[number] = {"src": f"nowhere-{number}", "dst": "sa"}
    found = remote.plans(requests)
    for number, answer in enumerate(found):
        if number in good:
            assert isinstance(answer, relayd.Plan)
            here = local.plan(**requests[number])
            assert answer.model_dump("json") == here.model_dump("json")
        else:
            assert isinstance(answer, relayd.InputError)
            assert (f"nowhere-{number}" in str(answer)) == (number in unknown)
            assert isinstance(answer, relayd.UnknownRegionError) == (number in unknown)
    assert len(found) == len(requests)
    assert remote.plans([]) == []


@pytest.mark.parametrize("name", ["plan", "place_tasks", "matrix", "ingest", "regions"])
def test_methods_that_wait_have_the_signatures_of_those_awaited(name: str) -> None:
    waiting, awaited = getattr(RemoteWan, name), getattr(AsyncWan, name)
    assert inspect.signature(waiting) == inspect.signature(awaited)
    assert waiting.__doc__ == awaited.__doc__
    assert inspect.iscoroutinefunction(awaited)
    assert not inspect.iscoroutinefunction(waiting)


UNCLOSED = """
import gc, os, sys, relayd, relayd.sources.wan
assert "aiohttp" not in sys.modules  # only who asks a service waits for it to load
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


def test_nothing_is_loaded_early_or_left_open_by_those_who_close_nothing(url: str) -> None:
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


def test_a_mirror_follows_new_snapshots_and_outlives_its_service(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = copied(db, tmp_path)
    down = {LINK: LinkHealth("down", since_s=time.time(), reason="no reply to 5 looks")}
    with serving(db) as service:
        wan = MirroredWan(RemoteWan(service.url, attempts=1), refresh_s=0.2)

        def direct_gbps() -> float:
            found = wan.plan("azure:eastus", "aws:ap-northeast-1", vms=1).direct.throughput_gbps
            assert found is not None
            return found

        # One test counts for most of an estimate, and the law of its class for the rest.
        assert direct_gbps() == pytest.approx(2.0, rel=0.2)
        later = GRID.replace(",2.0,", ",8.0,").replace("2026-01-05", "2026-06-05")
        imported(db, *later.splitlines())
        eventually(lambda: direct_gbps() == pytest.approx(8.0, rel=0.3))
        latest = direct_gbps()
        assert wan.plan(*LINK).verdict == "direct"
        keep(db, down, (), 900)
        eventually(lambda: wan.plan(*LINK).verdict != "direct")
        (state,) = service.get("/v1/snapshots/current").json["leg_states"]
        assert 800 < state["valid_until_s"] - time.time() <= 900
        service.kill()
    eventually(lambda: wan.plan(*LINK).verdict != "direct" and wan.problem is not None)
    assert isinstance(wan.problem, relayd.ServiceError)
    assert direct_gbps() == latest
    with pytest.raises(relayd.ServiceError):
        wan.refresh()
    wan.close()
    assert (direct_gbps(), wan.plan(*LINK).verdict == "direct") == (latest, False)
    # Nor does it believe for ever that a link is down.
    later_s = time.time() + 901
    monkeypatch.setattr("relayd.sources.wan.clock", lambda: later_s)
    assert wan.plan(*LINK).verdict == "direct"


def test_a_service_that_stops_and_comes_back_is_waited_for(db: Path, tmp_path: Path) -> None:
    db = copied(db, tmp_path)
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


def test_samples_are_sent_once_and_told_of(changing: Served) -> None:
    src, dst = REGIONS[2], REGIONS[0]
    now_s = time.time() - 60
    samples = [Sample(src, dst, "rtt_ms", 12.0 + n, now_s + n, "ping") for n in range(30)]
    settled(changing)
    with RemoteWan(changing.url) as wan:
        events = wan.events(after=0)
        before = wan.snapshot.id
        first = wan.ingest(samples)
        assert (first.accepted, first.duplicates, first.rejected) == (30, 0, 0)
        wrong = samples[0]._replace(value=-1.0)
        again = wan.ingest([*samples, wrong])
        assert (again.accepted, again.duplicates, again.rejected) == (0, 30, 1)
        assert again.rejections[0].row == 31
        with open_store(changing.db, mode="read") as store:
            kept = store.samples.read(src=src, dst=dst, metric="rtt_ms").column("value")
            assert sorted(kept) == [*(sample.value for sample in samples), 100.0]
        new = eventually(lambda: wan.snapshot.id != before and wan.snapshot.id)
        assert next(event for event in events if event.subject == new).kind == "snapshot"
        events.close()
