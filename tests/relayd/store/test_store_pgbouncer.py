"""A store behind pgbouncer, whose sessions are shared by clients or by transactions."""

from __future__ import annotations

from contextlib import ExitStack
from typing import get_args

import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.opening import Mode
from relayd.store.samples.ingest import append
from tests.pgbouncer import PoolMode, pgbouncer
from tests.relayd.store.engines import PostgresqlSpot


def _rows(count: int, at_s: float) -> list[Sample]:
    return [Sample("aws:a", f"gcp:{n % 9}", "rtt_ms", float(n), at_s, "ping") for n in range(count)]


@pytest.mark.parametrize("mode", get_args(PoolMode))
def test_writers_and_readers_take_turns_and_stream(
    postgresql_spot: PostgresqlSpot, mode: PoolMode
) -> None:
    with ExitStack() as stack:
        port = stack.enter_context(pgbouncer(postgresql_spot.server, mode))
        where = postgresql_spot.behind(port)
        modes: tuple[Mode, ...] = ("create", "write", "read", "read")
        first, second, one, other = [
            stack.enter_context(open_store(where, mode=mode)) for mode in modes
        ]
        for turn in range(8):  # the driver would prepare what it has run five times
            append(first, _rows(900, 1.6e9 + turn))
            append(second, _rows(900, 1.7e9 + turn))
            assert one.samples.counts().samples == other.samples.counts().samples
        seen = 0
        for seen, _ in enumerate(one.samples.read(), 1):
            if seen % 5000 == 0:
                append(second, _rows(3, 1.8e9 + seen))
                assert one.samples.counts().samples > 14_400
        assert seen == 14_400
        # A reader's session must not make a writer's read-only, nor the reverse.
        with pytest.raises(StoreError, match="read-only"):
            append(one, _rows(1, 1.9e9))
        append(first, _rows(1, 1.9e9))
