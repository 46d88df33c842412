"""Several replicas on one PostgreSQL store: the database is restarted, a replica is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from relayd.store import open_store
from tests.http.running import Answer, Served, served
from tests.http.test_samples import LINES, SAMPLE, lines
from tests.http.test_watch import DOWN, planned, planned_after
from tests.postgresql import PostgresqlServer, running_server
from tests.relayd.store.engines import PostgresqlSpot
from tests.relayd.store.proxy import Proxy
from tests.stopping import everyone, stopped
from tests.waiting import eventually

REFRESHED = {"RELAYD_SERVE_REFRESH_S": "0.2"}
FROM_MEMORY = "from memory"
FROM_STORE = "from the store"
TAKEN = "taken in"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresqlServer]:
    """Return a server of the module's own, which tests crash and start again."""
    with running_server() as found:
        yield found


@pytest.fixture(scope="module")
def spot(server: PostgresqlServer) -> PostgresqlSpot:
    """Return the place of a store."""
    found = PostgresqlSpot(server)
    open_store(found.where, mode="create").close()
    return found


@pytest.fixture(scope="module")
def alone(spot: PostgresqlSpot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return the only service on a store."""
    log = tmp_path_factory.mktemp("alone") / "log"
    with served(spot.where, environment=REFRESHED, log=log) as service:
        yield service


PAUSE_S = 0.1
"""Between questions: what is waited for takes time, and what is asked meanwhile a processor."""


class Load:
    """Asks one replica all the time, keeps what it answered, and what it acknowledged."""

    def __init__(self, replica: Served, number: int) -> None:
        self.replica = replica
        self.answers: dict[str, list[int]] = {FROM_MEMORY: [], FROM_STORE: [], TAKEN: []}
        self.acknowledged: set[float] = set()
        self.wrong: list[object] = []
        self.may_break_off = False
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask_plans),
            threading.Thread(target=self._ask_store),
            *(
                threading.Thread(target=self._send, args=(1000 * (3 * number + k + 1),))
                for k in range(1, 3)
            ),
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def seen(self, kind: str, status: int, after: int = 0) -> bool:
        """Whether an answer of this status has come after the first so many."""
        return status in self.answers[kind][after:]

    def _ask_plans(self) -> None:
        volume_gb = 0
        batch = {"plans": [{"src": "us-east", "dst": "sa", "volume_gb": 3}]}
        while not self._stop.is_set():
            volume_gb += 1
            self._note(FROM_MEMORY, "GET", f"/v1/plans?src=us-east&dst=sa&volume_gb={volume_gb}")
            self._note(FROM_MEMORY, "POST", "/v1/plans/batch", batch)
            self._stop.wait(PAUSE_S)

    def _ask_store(self) -> None:
        while not self._stop.is_set():
            self._note(FROM_STORE, "GET", "/v1/links/us-east/sa/history?limit=5")
            self._note(FROM_STORE, "GET", "/v1/snapshots?limit=5")
            self._stop.wait(PAUSE_S)

    def _send(self, first: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            some = [
                {**SAMPLE, "value": first + number + k / 16, "measured_at_s": time.time()}
                for k in range(1, 9)
            ]
            answer = self._note(TAKEN, "POST", "/v1/samples", lines(*some), LINES)
            if answer is not None and answer.status == 200:
                self.acknowledged |= {sample["value"] for sample in some}
            self._stop.wait(PAUSE_S)

    def _note(self, kind: str, *question: Any) -> Answer | None:
        try:
            answer = self.replica.ask(*question)
        except Exception as error:  # noqa: BLE001 - unless it is killed, this fails the test
            if not self.may_break_off:
                self.wrong.append(repr(error))
            self._stop.set()
            return None
        if answer.status != 200 and not _is_clear(answer):
            self.wrong.append(answer)
        self.answers[kind].append(answer.status)
        return answer


def _is_clear(answer: Answer) -> bool:
    """Whether an answer says that the store is away, and when to ask again."""
    return (
        answer.status == 503
        and answer.headers["Content-Type"] == "application/problem+json"
        and int(answer.headers["Retry-After"]) > 0
        and answer.json["kind"] in ("store", "unavailable")
        and len(answer.json["detail"]) > 20
    )


def test_replicas_outlive_a_database_that_restarts_and_one_of_them_that_is_killed(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    where = server.new_store()
    environment = {**REFRESHED, "RELAYD_SERVE_SNAPSHOT_EVERY_S": "5"}
    with ExitStack() as stack:
        logs = [tmp_path / f"{number}.log" for number in range(2)]
        replicas = [
            stack.enter_context(served(where, environment=environment, log=log)) for log in logs
        ]
        loads = [Load(replica, number) for number, replica in enumerate(replicas)]
        for load in loads:
            stack.callback(load.stop)

        def goes_on(load: Load) -> bool:
            """Whether it is as before: everything is answered, and it is known to be ready."""
            before = {kind: len(statuses) for kind, statuses in load.answers.items()}
            for kind, count in before.items():
                eventually(lambda kind=kind, count=count: load.seen(kind, 200, count))
            return bool(eventually(lambda: load.replica.get("/readyz").status == 200))

        assert all(map(goes_on, loads))
        # The server is away until everybody has met that, then it is back.
        server.stop("immediate")
        for load in loads:
            eventually(lambda load=load: load.seen(TAKEN, 503) and load.seen(FROM_STORE, 503))
            assert load.replica.get("/readyz").status == 503
            assert load.replica.get("/healthz").status == 200
        server.start()
        assert all(map(goes_on, loads))
        # As an administrator does it, in the middle of whatever is being written.
        server.restart("immediate")
        assert all(map(goes_on, loads))
        # One dies; the other does not stumble.
        dying, staying = loads
        before = {kind: len(statuses) for kind, statuses in staying.answers.items()}
        dying.may_break_off = True
        dying.replica.kill()
        assert goes_on(staying)
        for kind, count in before.items():
            assert set(staying.answers[kind][count:]) == {200}
        for load in loads:
            load.stop()
            # What needs no store was answered all the time.
            assert set(load.answers[FROM_MEMORY]) == {200}
    _is_kept(where, loads)


def _is_kept(where: str, loads: list[Load]) -> None:
    """Check that what was acknowledged is in the store."""
    with open_store(where, mode="read") as store:
        kept = {value for (value,) in store.database.rows("SELECT value FROM samples")}
    for load in loads:
        assert not load.wrong
        assert load.acknowledged
        assert load.acknowledged <= kept


def test_a_link_is_not_down_for_ever_while_the_database_is_away(
    server: PostgresqlServer, alone: Served
) -> None:
    before = planned(alone)
    eventually(lambda: planned_after(alone.db, DOWN, 5, alone) != before)
    server.stop("immediate")
    eventually(lambda: planned(alone) == before)
    assert alone.get("/readyz").status == 503
    server.start()
    eventually(lambda: alone.get("/readyz").status == 200)
    # One that hangs is told from one that answers, and nobody waits for it for ever.
    with stopped(*everyone(server)):
        assert alone.get("/readyz").status == 503
        assert planned(alone) == before
        assert float(alone.metric("relayd_store_silent_seconds")) > 3
    eventually(lambda: alone.get("/readyz").status == 200)


_TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_FULL_DISK = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE 'no space left' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON samples EXECUTE FUNCTION refuse();
CREATE TRIGGER full_disk BEFORE INSERT ON metadata EXECUTE FUNCTION refuse();
"""


@pytest.mark.thorough
def test_writers_heal_behind_a_proxy_while_sessions_are_ended(
    server: PostgresqlServer, tmp_path: Path
) -> None:
    spot = PostgresqlSpot(server)
    open_store(spot.where, mode="create").close()
    with (
        Proxy(server.port) as proxy,
        served(spot.through(proxy), environment=REFRESHED, log=tmp_path / "log") as service,
    ):
        loads = [Load(service, number) for number in range(2)]
        for turn in range(4):
            proxy.keeps_open = turn % 2 == 1
            time.sleep(0.3)  # what heals may be in the middle of it
            if turn == 3:
                server.restart("fast")
            else:
                spot.outsider(_TERMINATE)
        proxy.keeps_open = False
        for load in loads:
            since = len(load.answers[TAKEN])
            eventually(lambda load=load, since=since: load.seen(TAKEN, 200, since))
            load.stop()
        assert service.get("/readyz").status == 200
    _is_kept(spot.where, loads)


def test_a_service_is_not_ready_while_its_store_takes_no_changes(
    spot: PostgresqlSpot, alone: Served
) -> None:
    assert alone.get("/readyz").status == 200
    spot.outsider(_FULL_DISK)
    try:
        assert alone.ask("POST", "/v1/samples", lines(SAMPLE), LINES).status == 503
        for _ in range(2):
            answer = alone.get("/readyz")
            assert answer.status == 503
            assert answer.json["reasons"] == ["The store can't be written within 5 s."]
    finally:
        for table in ("samples", "metadata"):
            spot.outsider(f"DROP TRIGGER full_disk ON {table}")
    assert alone.get("/readyz").status == 200  # without waiting for the next sample
    assert alone.ask("POST", "/v1/samples", lines(SAMPLE), LINES).status == 200
