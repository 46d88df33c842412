"""Leases: one process holds one, writes under its number, and is followed when it hangs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from relayd.store import Store, leases, open_store
from relayd.store.events import Events
from tests.postgresql import running_server
from tests.relayd.store.engines import (
    ON_BOTH,
    QUICK_LEASES,
    PostgresqlSpot,
    Program,
    Spot,
    program,
    said,
)
from tests.stopping import everyone, stopped
from tests.waiting import eventually

pytestmark = [pytest.mark.service, pytest.mark.usefixtures("quick_leases")]

_HOLDER = f"""\
import sys, time
from planner.model.errors import StoreError
from relayd.store import leases, open_store
from relayd.store.events import Events

for name, value in {QUICK_LEASES}.items():
    setattr(leases, name, value)
with open_store(sys.argv[1], mode="write") as store, store.new_lease("prober") as lease:
    while True:
        if lease.acquire() and store.lease is None:
            store.lease = lease
            print("leading", flush=True)
        if sys.argv[2] == "writes" and store.lease:
            try:
                Events(store.database).add("leg", "by the holder", {{}})
            except StoreError as error:
                print("refused", error, flush=True)
                break
        time.sleep(0.3)
"""


@contextmanager
def holder_at(where: Path | str, does: str = "nothing") -> Iterator[Program]:
    """Run a program that holds the lease of the prober."""
    with program(_HOLDER, where, does) as process:
        said(process, "leading")
        yield process


@ON_BOTH
def test_one_of_several_holds_a_lease_and_another_acquires_it_when_released(store: Store) -> None:
    first, second = store.new_lease("prober"), store.new_lease("prober")
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    assert leases.is_held(store.database, "prober")
    assert not leases.is_held(store.database, "campaign")
    with store.new_lease("campaign") as other_role:
        assert other_role.acquire()
        assert leases.is_held(store.database, "campaign")
    assert not leases.is_held(store.database, "campaign")
    before = first.fence
    first.release()
    assert second.acquire()
    assert second.fence[1] > before[1]
    assert not first.acquire()
    with pytest.raises(StoreError, match="still the only prober"):
        first.check()
    # Longer than one lasts: it is renewed.
    time.sleep(leases.LEASE_S + 0.2)
    second.check()
    assert not first.acquire_unless_renewed()
    second.release()


@ON_BOTH
def test_a_killed_holder_is_followed(store: Store, spot: Spot) -> None:
    with holder_at(spot.where) as holder:
        lease = store.new_lease("prober")
        assert not lease.acquire()
        holder.kill()
        holder.wait()
        assert lease.acquire_unless_renewed()
        lease.release()


@ON_BOTH
def test_a_holder_that_hung_can_not_write_when_it_goes_on(store: Store, spot: Spot) -> None:
    with holder_at(spot.where, "writes") as holder, store.new_lease("prober") as lease:
        acquired = False
        while not acquired:
            # In a file, one that is stopped inside a transaction keeps everybody out until it ends:
            # this waits until it has just written, and sleeps.
            seen_id = Events(store.database).last_id()
            eventually(lambda seen_id=seen_id: Events(store.database).last_id() > seen_id)
            with stopped(holder.pid):
                until_s = time.monotonic() + 2 * leases.LEASE_S
                while not (acquired := _acquired(lease)) and time.monotonic() < until_s:
                    time.sleep(0.05)
                last_id = Events(store.database).last_id()
        assert "another process, which took over" in holder.stdout.readline()
        assert Events(store.database).last_id() == last_id
        store.lease = lease
        assert Events(store.database).add("leg", "by the next", {}) > last_id


def _acquired(lease: leases.Lease) -> bool:
    try:
        return lease.acquire()
    except StoreError:
        return False


def test_a_transaction_of_a_role_ends_before_the_next_holder_begins(
    postgresql_spot: PostgresqlSpot,
) -> None:
    """The process is stopped after the check of its number and before the commit."""
    with open_store(postgresql_spot.where, mode="create") as store, ExitStack() as stack:
        first = stack.enter_context(store.new_lease("prober"))
        assert first.acquire()
        store.lease = first
        transaction = store.database.transaction()
        transaction.__enter__()
        Events(store.database).add("leg", "too late", {})
        with open_store(postgresql_spot.where, mode="write") as other:
            second = stack.enter_context(other.new_lease("prober"))
            other.database.rows("UPDATE leases SET expires_at_s = 0")
            assert eventually(lambda: _acquired(second))
            with pytest.raises(StoreError, match="closed the connection"):
                transaction.__exit__(None, None, None)
            assert Events(other.database).after(0) == []
            eventually(lambda: not first.is_held)


@pytest.mark.thorough
def test_nobody_leads_without_the_server_and_one_does_when_it_is_back() -> None:
    with running_server() as server:
        spot = PostgresqlSpot(server)
        with open_store(spot.where, mode="create") as store, ExitStack() as stack:
            several = [stack.enter_context(store.new_lease("prober")) for _ in range(3)]
            assert [one.acquire() for one in several] == [True, False, False]
            # A server that hangs, and one that is gone.
            with stopped(*everyone(server)):
                eventually(lambda: not several[0].is_held)
                for one in several:
                    with pytest.raises(
                        StoreError, match=r"stopped answering|can't be connected to"
                    ):
                        one.acquire()
            eventually(lambda: sum(map(_acquired, several)) == 1)
            server.crash()
            eventually(lambda: not any(one.is_held for one in several))
            server.start()
            eventually(lambda: sum(map(_acquired, several)) == 1)
            assert sum(one.acquire() for one in reversed(several)) == 1


def test_a_session_that_hangs_costs_no_lease(postgresql_spot: PostgresqlSpot) -> None:
    with open_store(postgresql_spot.where, mode="create") as store, ExitStack() as stack:
        lease = stack.enter_context(store.new_lease("prober"))
        assert lease.acquire()
        leases.LEASE_S, leases.HELD_S = 10.0, 7.0
        time.sleep(2 * leases.RENEW_EVERY_S)
        ((backend,),) = postgresql_spot.outsider(
            "SELECT pid FROM pg_stat_activity WHERE query LIKE 'UPDATE leases%'"
        )
        os.kill(backend, signal.SIGSTOP)
        stack.callback(os.kill, backend, signal.SIGCONT)
        until_s = time.monotonic() + 8
        while time.monotonic() < until_s:
            lease.check()
            time.sleep(0.1)
