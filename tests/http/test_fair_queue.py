"""Who asks much does not keep those waiting who ask little."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from relayd.http.fair_queue import CALLER, FairQueue
from relayd.http.problems import ProblemError
from tests.http.running import Served, run
from tests.properties import examples
from tests.waiting import eventually

SHUFFLE = {
    "demands": [
        {"src": src, "dst": dst, "volume_gb": 100}
        for src in ("us-east", "eu", "sa")
        for dst in ("us-west", "asia", "africa")
    ],
    "vms": 4,
}
FLOOD = 16


async def _served(callers: list[str], at_once: int, queue: FairQueue) -> list[str]:
    """Return in which order callers are served that all ask before anybody is done."""
    order: list[str] = []
    everybody_asked = asyncio.Event()

    async def ask(caller: str) -> None:
        CALLER.set(caller)
        async with queue.turn():
            await everybody_asked.wait()
            order.append(caller)

    tasks = [asyncio.create_task(ask(caller)) for caller in callers]
    await asyncio.sleep(0)
    everybody_asked.set()
    await asyncio.gather(*tasks)
    assert queue.waiting == 0
    return order


@settings(max_examples=examples(20))
@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=60), st.integers(1, 4))
def test_callers_take_turns(callers: list[str], at_once: int) -> None:
    order = asyncio.run(_served(callers, at_once, FairQueue(at_once, 1000, 1000, "a test")))
    assert Counter(order) == Counter(callers)
    # After those who found a free place, nobody is served twice while another waits.
    turns = order[at_once:]
    for at, caller in enumerate(turns):
        if caller in turns[:at]:
            last = at - 1 - turns[:at][::-1].index(caller)
            between = set(turns[last + 1 : at])
            assert set(turns[at + 1 :]) - {caller} <= between


def test_too_many_of_one_are_refused_and_others_get_their_place() -> None:
    async def scenario() -> None:
        queue = FairQueue(1, most_waiting=10, most_of_one=8, what="a test")
        done = asyncio.Event()

        async def ask(caller: str) -> str:
            CALLER.set(caller)
            async with queue.turn():
                await done.wait()
                return caller

        flood = [asyncio.create_task(ask("a")) for _ in range(20)]
        await asyncio.sleep(0)
        refused = [task for task in flood if task.done()]
        assert len(refused) == 20 - 1 - 8
        for task in refused:
            problem = task.exception()
            assert isinstance(problem, ProblemError)
            assert (problem.status, problem.content["kind"]) == (429, "rate-limited")
            assert problem.headers["Retry-After"] == "1"
        others = [asyncio.create_task(ask(name)) for name in "bcdef"]
        await asyncio.sleep(0)
        # All are taken in, in place of the last of the one who asks most.
        assert not any(task.done() for task in others)
        assert queue.waiting == 10
        gone = others.pop()
        gone.cancel()
        done.set()
        served = await asyncio.gather(*flood, *others, return_exceptions=True)
        assert [one for one in served if isinstance(one, str)].count("a") == 6
        assert queue.waiting == 0
        assert await asyncio.wait_for(ask("z"), 60) == "z"  # no place was lost

    asyncio.run(scenario())


def test_a_token_that_floods_does_not_starve_another(guarded: Served) -> None:
    flooding, other = guarded.by("plan"), guarded.by("admin")
    finished: list[int] = []

    def flood() -> None:
        finished.append(guarded.ask("POST", "/v1/shuffles", SHUFFLE, flooding).status)

    threads = [threading.Thread(target=flood) for _ in range(FLOOD)]
    for thread in threads:
        thread.start()

    def waiting() -> float:
        metrics = guarded.get("/metrics", **other).content.decode()
        return float(metrics.split("\nrelayd_worker_queue ")[1].split("\n")[0])

    eventually(lambda: waiting() > FLOOD / 2)
    before = len(finished)
    assert guarded.ask("POST", "/v1/shuffles", SHUFFLE, other).status == 200
    # With one worker: what it is at, what is handed to it, and one turn of the other's.
    assert len(finished) - before <= 6
    for thread in threads:
        thread.join()
    assert finished == [200] * FLOOD


def test_a_token_has_a_rate_of_its_own(guarded: Served, tmp_path: Path) -> None:
    path = "/v1/plans?src=us-east&dst=sa"
    for name, statuses in (("slow", [200, 429, 429]), ("plan", [200] * 3)):
        assert [guarded.get(path, **guarded.by(name)).status for _ in range(3)] == statuses
    db = tmp_path / "new.db"
    make = ("serve", "token", "create", "x")
    assert run(*make, "--requests-per-s", "0.001", db=db).returncode == 0
    assert "0.001" in run("serve", "token", "list", db=db).stdout
    for wrong in ("-1", "many", "inf", "nan"):
        refused = run(*make, f"--requests-per-s={wrong}", db=db)
        assert (refused.returncode, "requests" in refused.stderr) == (2, True)
