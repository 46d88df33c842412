"""Each token may bring so many series; samples of known ones, and commands, it does not concern."""

from __future__ import annotations

from itertools import permutations

import pytest

from planner.model.errors import InputError
from probes.samples import Sample
from relayd.store import Store, open_store
from relayd.store.samples.ingest import Batch, Limits, append, ingest
from tests.relayd.store.engines import Spot

_REGIONS = ("x:a", "x:b", "x:c")
_LIMITS = Limits(series=6)


def _samples(at_s: float) -> list[Sample]:
    return [Sample(*pair, "rtt_ms", 20.0, at_s, "ping") for pair in permutations(_REGIONS, 2)]


def _send(store: Store, token: str, samples: list[Sample], limits: Limits = _LIMITS) -> int:
    return ingest(store, Batch("service", "live", reporter=token), samples, limits=limits).accepted


def test_a_token_may_bring_so_many_series(spot: Spot) -> None:
    other = Sample("x:a", "x:b", "loss_pct", 0.1, 3.0, "ping")
    private = _samples(3.0)[0]._replace(address="private")
    with open_store(spot.where, mode="create") as store:
        assert _send(store, "one", _samples(1.0)) == 6
        assert _send(store, "one", _samples(2.0)) == 6
        for beyond in (other, private):
            with pytest.raises(
                InputError, match=r"series would be 7, more than the 6 .*'token one'"
            ):
                _send(store, "one", [*_samples(3.0), beyond])
        assert store.samples.counts().samples == 12  # nothing of the refused ones
        assert _send(store, "two", _samples(3.0)) == 6
        assert _send(store, "two", [other], Limits(series=0)) == 1
        assert append(store, [private]).accepted == 1
        assert store.samples.series_by_source() == {"token one": 6, "token two": 7}
