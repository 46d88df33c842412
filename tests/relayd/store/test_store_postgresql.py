"""PostgreSQL: opening only what is ours, secrets, and what happens when the connection breaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relayd as library
from planner.model.errors import StoreError
from relayd.store import Address, Store, open_store, parse_location
from relayd.store.database import SCHEMA_VERSION
from relayd.store.events import Events
from relayd.store.failures import ConnectionLostError
from relayd.store.opening import Mode
from relayd.store.postgresql.connecting import SINCE_CRASH
from relayd.store.postgresql.database import PostgresqlDatabase
from relayd.store.samples.ingest import append
from tests.pgbouncer import PoolMode, pgbouncer
from tests.ports import free_port
from tests.postgresql import PostgresqlServer, running_server
from tests.relayd.building import complete, pings, table
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import PostgresqlSpot, program
from tests.relayd.store.proxy import Proxy


def _refusal(where: str, mode: str = "read", secret: str = "correct") -> str:
    """Open a store that must be refused; return the error's text."""
    with pytest.raises(StoreError) as caught:
        open_store(where, mode=mode).close()  # type: ignore[arg-type]
    error: BaseException | None = caught.value
    assert isinstance(error, StoreError)
    assert error.remedy
    assert "\n" not in str(error)
    text = str(error)
    while error is not None:  # and nothing that a traceback would show
        assert secret not in repr(error)
        error = error.__cause__
    return text


@pytest.fixture
def spot(postgresql_spot: PostgresqlSpot) -> PostgresqlSpot:
    """Return an empty database on a server, also for the fixture ``store``."""
    return postgresql_spot


# ---- secrets -----------------------------------------------------------------------------------


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6))
def test_a_password_is_never_shown(noise: str) -> None:
    secret = f"SECRET{noise}TERCES"
    for form in (
        "postgresql://relayd:{}@host:5432/db?sslmode=require",
        "postgresql://relayd:{}@a:1,b:2/db",
        "postgresql://:{}@/db?host=/tmp",
    ):
        shown = parse_location(form.format(secret))
        assert isinstance(shown, Address)
        for text in (str(shown), repr(shown), f"{shown}", f"{shown!r}"):
            assert "SECRET" not in text
            assert "TERCES" not in text
            assert "***" in text
        assert shown.reveal() == form.format(secret)


@pytest.mark.parametrize(
    "where",
    [
        "postgresql://u:correct",
        "postgresql://u:a@b@correct@h/d",
        "postgresql://h/d?nonsense=1&password=correct",
        "postgresql://u:%zzcorrect@h/d",
        "postgresql://u:5/correct@h/d",
        "postgresql://u:5?correct@h/d",
        "postgresql://u:5#correct@h/d",
        "mysql://u:correct@h/d",
        "http://u:correct@h/d",
    ],
)
def test_an_address_that_can_not_be_read_keeps_its_password(where: str) -> None:
    assert "address of" in _refusal(where) or where.startswith("postgresql:")


# ---- opening -----------------------------------------------------------------------------------


def test_a_server_that_does_not_let_us_in(postgresql_server: PostgresqlServer) -> None:
    refused = _refusal(f"postgresql://u:correct@127.0.0.1:{free_port()}/d")
    assert "can't be connected to" in refused
    right = postgresql_server.url("postgres", over="tcp")
    wrong = right.replace("horse", "horses")
    assert "password authentication failed" in _refusal(wrong)
    assert "does not exist" in _refusal(postgresql_server.url("nowhere", over="tcp"))
    required = postgresql_server.url("postgres", over="tcp", sslmode="require")
    assert "SSL" in _refusal(required)


def test_a_missing_driver_is_named() -> None:
    code = (
        "import sys\n"
        "sys.modules['psycopg'] = None\n"
        "sys.stderr = sys.stdout\n"
        "from relayd.__main__ import main\n"
        "sys.exit(main(['data', 'links', '--db', 'postgresql://u:correct@h/d']))\n"
    )
    with program(code) as command:
        told = command.stdout.read()
        assert command.wait() == 2
    assert "pip install 'relayd[postgresql]'" in told
    assert "correct" not in told


def test_two_stores_in_one_database_in_schemas_of_their_own(spot: PostgresqlSpot) -> None:
    name = spot.database
    url = spot.server.url
    spot.outsider('CREATE SCHEMA one; CREATE SCHEMA "Two"')
    one = open_store(url(name, options="-c search_path=one"), mode="create")
    two = open_store(url(name, options='-c search_path="Two"'), mode="create", busy_timeout_s=0.1)
    with one, two:
        with one.database.transaction():
            append(two, pings(3))  # is not kept waiting
        assert (one.samples.counts().samples, two.samples.counts().samples) == (0, 3)
    nowhere = url(name, options="-c search_path=nowhere")
    assert "search_path" in _refusal(nowhere, "create")


def test_a_store_laid_out_meanwhile_is_not_taken_for_anothers(
    spot: PostgresqlSpot, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = parse_location(spot.where)
    assert isinstance(address, Address)
    database = PostgresqlDatabase(
        address, busy_timeout_s=5.0, read_only=True, statement_timeout_s=60
    )
    read = database.rows

    def and_then_another_is_first(sql: str, values: Sequence[object] = ()) -> list[Any]:
        found = read(sql, values)
        monkeypatch.setattr(database, "rows", read)
        open_store(spot.where, mode="create").close()
        return found

    monkeypatch.setattr(database, "rows", and_then_another_is_first)
    assert database.schema_version() == 0
    assert database.schema_version() == SCHEMA_VERSION
    database.close()


# ---- reading and writing side by side ----------------------------------------------------------


def test_writers_take_turns_so_that_ids_come_up_in_order(
    store: Store, spot: PostgresqlSpot
) -> None:
    events = Events(store.database)
    with open_store(spot.where, mode="write", busy_timeout_s=0.1) as second:
        with store.database.transaction():
            first_id = events.add("leg", "first", {})
            # Were this let through, a reader would see its id first, and go on after it.
            with pytest.raises(StoreError, match="written by another process"):
                Events(second.database).add("leg", "second", {})
            with pytest.raises(StoreError, match="written by another process"):
                append(second, pings(3))
            assert Events(second.database).after(0) == []
        assert Events(second.database).add("leg", "second", {}) > first_id
        assert [event.subject for event in events.after(0)] == ["first", "second"]


_ALL = "SELECT id FROM samples"


@pytest.mark.parametrize("mode", get_args(PoolMode))
def test_behind_pgbouncer_writers_and_readers_take_turns_and_stream(
    spot: PostgresqlSpot, mode: PoolMode
) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(pgbouncer(spot.server, mode))
        where = spot.behind(port)
        modes: tuple[Mode, ...] = ("create", "write", "read", "read")
        first, second, one, other = [
            stack.enter_context(open_store(where, mode=mode)) for mode in modes
        ]
        for turn in range(8):  # the driver would prepare what it has run five times
            append(first, pings(900, 1.6e9 + turn))
            append(second, pings(900, 1.7e9 + turn))
            assert one.samples.counts().samples == other.samples.counts().samples
        seen = 0
        for seen, _ in enumerate(one.samples.read(), 1):
            if seen % 5000 == 0:
                append(second, pings(3, 1.8e9 + seen))
                assert one.samples.counts().samples > 14_400
        assert seen == 14_400
        # A reader's session must not make a writer's read-only, nor the reverse.
        with pytest.raises(StoreError, match="read-only"):
            append(one, pings(1, 1.9e9))
        append(first, pings(1, 1.9e9))


def test_rows_stream_while_other_statements_run(store: Store) -> None:
    append(store, pings(12_000))
    streaming = store.database.stream(_ALL)
    next(streaming)
    append(store, [pings(1)[0]._replace(value=0.5)])
    another = store.database.stream(_ALL)
    next(another)
    assert sum(1 for _ in streaming) == 11_999
    with store.database.transaction():
        assert sum(1 for _ in store.samples.read()) == 12_001
    assert sum(1 for _ in another) == 12_000
    left = store.database.stream(_ALL)
    next(left)
    left.close()  # type: ignore[attr-defined]


def test_values_come_back_with_the_types_of_sqlite(store: Store) -> None:
    append(store, [pings(1)[0]._replace(warmed_up=True)])
    row = store.database.row(
        "SELECT sum(id), coalesce(sum(value), 0), avg(connections), :truth || '', "
        "CAST(:nothing AS double precision), '50% :x ?' FROM samples GROUP BY src_id",
        {"truth": "100% ?", "nothing": float("nan")},
    )
    assert row == (1, 0.0, 0.0, "100% ?", None, "50% :x ?")
    assert [type(value) for value in row[:2]] == [int, float]


# ---- when the connection breaks ----------------------------------------------------------------


def _end_sessions(spot: PostgresqlSpot) -> None:
    spot.outsider(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_broken_connection_is_an_error_once(store: Store, spot: PostgresqlSpot) -> None:
    calls: list[Callable[[], object]] = [
        store.samples.counts,
        lambda: append(store, pings(9)),
        lambda: list(store.samples.read()),
        lambda: Events(store.database).add("leg", "s", {}),
    ]
    for call in calls:
        _end_sessions(spot)
        with pytest.raises(StoreError, match="the next attempt makes a new connection"):
            call()
        call()
    assert store.samples.counts().samples == 9


def test_a_stream_that_breaks_is_an_error_and_not_an_end(
    store: Store, spot: PostgresqlSpot
) -> None:
    append(store, pings(12_000))
    streaming = store.database.stream(_ALL)
    next(streaming)
    _end_sessions(spot)
    with pytest.raises(StoreError, match="the next attempt makes a new connection"):
        list(streaming)
    with pytest.raises(StoreError, match="the next attempt makes a new connection"):
        store.samples.counts()  # on the other session
    assert len(list(store.samples.read())) == 12_000
    left = store.database.stream(_ALL)
    next(left)
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.samples.counts()
    left.close()  # type: ignore[attr-defined]


def test_nothing_of_a_broken_transaction_is_stored_also_by_who_goes_on(
    store: Store, spot: PostgresqlSpot
) -> None:
    events = Events(store.database)

    def change() -> None:
        with store.database.transaction():
            events.add("leg", "before", {})
            _end_sessions(spot)
            for _ in range(2):  # a new connection would make half a change of the rest
                with pytest.raises(StoreError, match="Nothing was stored in part"):
                    events.add("leg", "after", {})

    with pytest.raises(StoreError, match="Nothing was stored in part"):
        change()
    assert events.after(0) == []


def test_a_connection_whose_driver_lost_track_is_replaced(store: Store) -> None:
    database = store.database
    assert isinstance(database, PostgresqlDatabase)
    for _ in range(2):
        database.rows("SELECT 1")
        # What a broken executemany leaves: no statement is possible on it any more.
        connection = database._live()
        connection.pgconn.enter_pipeline_mode()
        with pytest.raises(StoreError, match="the next attempt makes a new connection"):
            database.change("DELETE FROM metadata")
        assert connection.closed
        assert database.rows("SELECT 1") == [(1,)]


def test_a_commit_after_a_failure_does_not_pass_for_one(store: Store) -> None:
    events = Events(store.database)

    def change() -> None:
        with store.database.transaction():
            events.add("leg", "fine", {})
            with pytest.raises(store.database.refusals):
                events.add("", "refused", {})

    with pytest.raises(StoreError, match="none of it was stored"):
        change()
    assert events.after(0) == []


@pytest.mark.parametrize("arrives", [True, False], ids=["arrived", "lost on the way"])
def test_a_commit_whose_answer_is_lost_is_asked_after(spot: PostgresqlSpot, arrives: bool) -> None:
    open_store(spot.where, mode="create").close()
    with Proxy(spot.server.port) as proxy, open_store(spot.through(proxy), mode="write") as store:
        proxy.cut_at(b"COMMIT\0", forward=arrives)
        if arrives:
            assert append(store, pings(5)).accepted == 5
        else:
            with pytest.raises(StoreError, match="Nothing was stored in part"):
                append(store, pings(5))
        assert proxy.cuts == 1
        assert store.samples.counts().samples == (5 if arrives else 0)


def test_an_answer_that_the_driver_does_not_understand_costs_the_connection_alone(
    spot: PostgresqlSpot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pgbouncer gives where a session ends in the middle of COPY: two results for one."""

    def two_results(*_: object) -> Iterator[int]:
        yield psycopg.waiting.Wait.W
        raise ValueError("too many values to unpack (expected 1)")

    with open_store(spot.where, mode="create") as store:
        with monkeypatch.context() as patched:
            patched.setattr("psycopg._copy.copy_end", two_results)
            with pytest.raises(ConnectionLostError, match="Nothing was stored in part"):
                append(store, pings(5))
        assert append(store, pings(5)).accepted == 5


@pytest.mark.postgresql
def test_a_commit_of_somebody_else_does_not_pass_for_one_that_a_crash_has_undone() -> None:
    with running_server() as server:
        spot = PostgresqlSpot(server)
        with open_store(spot.where, mode="create") as store:
            database = store.database

            def change() -> None:
                with database.transaction():
                    database.set_metadata("ours", 1.0)
                    (ours,) = database.row("SELECT pg_current_xact_id()::text::bigint")
                    server.crash()
                    server.start()
                    # What was not on disk never was: the number goes to somebody else.
                    newest = -1
                    while newest < ours:
                        ((newest,),) = spot.outsider("SELECT pg_current_xact_id()::text::bigint")
                    ((outcome,),) = spot.outsider(f"SELECT pg_xact_status('{ours}'::xid8)")
                    assert outcome == "committed"

            with pytest.raises(StoreError, match="Run this again"):
                change()
            assert database.metadata("ours") is None
            database.set_metadata("ours", 2.0)
            assert database.metadata("ours") == 2.0
            # Only a crash does that: one that was shut down in order is believed.
            database.rows("SELECT 1")
            (before,) = database.row(SINCE_CRASH)
            server.restart("fast")
            with pytest.raises(StoreError):
                database.rows("SELECT 1")
            assert database.row(SINCE_CRASH) == (before,)


# ---- as a user -----------------------------------------------------------------------------------


def test_commands_settings_and_library_take_an_address(
    spot: PostgresqlSpot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relayd: Relayd
) -> None:
    url = spot.server.url(spot.database, over="tcp")
    head = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
    names = ["aws:us-east-1", "aws:sa-east-1", "azure:eastus"]
    rows = complete(names, "100,4000,64,60,2024-05-01T00:00Z")
    done = relayd("import", "csv", table(tmp_path / "measured.csv", head, *rows), "--db", url)
    assert done.code == 0, done.err
    assert "correct" not in done.out + done.err
    assert "relayd:***@127.0.0.1" in done.out
    question = ("plan", "--src", "us-east", "--dst", "aws:sa-east-1", "--json")
    snapshots = [json.loads(relayd(*question, "--db", url).out)["snapshot"]["id"]]
    monkeypatch.setenv("RELAYD_DB", url)
    snapshots.append(json.loads(relayd(*question).out)["snapshot"]["id"])
    monkeypatch.delenv("RELAYD_DB")
    settings = tmp_path / "config.toml"
    settings.write_text(f"db = {json.dumps(url)}\n")
    monkeypatch.setenv("RELAYD_CONFIG", str(settings))
    snapshots.append(json.loads(relayd(*question).out)["snapshot"]["id"])
    snapshots.append(library.open(url).snapshot.id)
    assert set(snapshots) == {snapshots[0]}
    assert snapshots[0] in done.out
