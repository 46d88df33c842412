"""Runs that verify a plan: within limits, evenly, through relays that serve one peer alone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InputError
from planner.model.estimate import Estimate
from planner.model.link import Link
from probes.fleet.hosts import Fleet, Host
from probes.samples import Sample
from probes.verification.outcomes import in_doubt, samples_of
from probes.verification.predictions import PlanPath, PlanPrediction, RateRange
from probes.verification.relays import RelayTask, relay_commands
from probes.verification.runs import (
    MOST_PAIRINGS,
    Run,
    VerificationLimits,
    cost_usd,
    links_of,
    runs_of,
    streams_of,
    volume_gb,
)
from tests.ports import free_port
from tests.waiting import eventually

REGIONS = ("aws:a", "aws:b", "aws:c")


def _fleet(*counts: int) -> Fleet:
    hosts = [
        Host(f"{region}{i}", region, "h", 22, "u", None, Path("k"))
        for region, count in zip(REGIONS, counts, strict=True)
        for i in range(count)
    ]
    return Fleet({host.name: host for host in hosts})


def _prediction(gbps: float, *ways: tuple[str, ...]) -> PlanPrediction:
    rate = RateRange(gbps / 1.1, gbps, gbps * 1.1)
    paths = tuple(PlanPath(way, 64, 80.0, rate.scaled(1 / len(ways))) for way in ways)
    vms = dict.fromkeys((name for way in ways for name in way), 1)
    return PlanPrediction("p", "x", REGIONS[0], REGIONS[2], "relay", paths, vms, rate)


def _price(src: str, dst: str, gb: float, ahead_gb: float) -> float:
    """Dear from the direct path's destination, and elsewhere dearer after an allowance of 5 GB."""
    if src == REGIONS[2]:
        return 0.5 * gb
    return 0.02 * max(0.0, gb - max(0.0, 5.0 - ahead_gb))


@given(
    st.floats(0.01, 50), st.integers(3, 600), st.floats(0.01, 1e4), st.floats(0, 1e3), st.booleans()
)
def test_runs_hold_to_their_limits_or_are_refused(
    gbps: float, seconds: int, most_gb: float, budget_usd: float, split: bool
) -> None:
    ways = (REGIONS, (REGIONS[0], REGIONS[2]))[: 1 + split]
    predictions = {"plan": _prediction(gbps, *ways), "direct": _prediction(gbps / 3, ways[-1])}
    limits = VerificationLimits(seconds, most_gb, budget_usd)
    try:
        runs = runs_of(predictions, _fleet(1, 1, 1), limits, _price)
    except InputError:
        generous = VerificationLimits(3, 2e5, 2e5)  # only what 3 s take is compared
        least = runs_of(predictions, _fleet(1, 1, 1), generous, _price)
        # A quarter more than predicted, and up to a second late.
        sent = [(src, dst, 1.25 * 6 / 5 * gb) for run in least for src, dst, gb in run.sent()]
        assert sum(gb for _, _, gb in sent) > most_gb or cost_usd(sent, _price) > budget_usd
        return
    assert [run.kind for run in runs] == ["plan", "direct"]
    assert all(3 <= run.measured_s <= seconds for run in runs)
    worst = links_of(runs, at_most=True)
    assert volume_gb(worst) <= most_gb * 1.0001
    for order in (worst, worst[::-1]):
        ahead_gb = usd = 0.0
        for link in order:
            usd += _price(*link, ahead_gb)
            ahead_gb += link[2]
        assert usd <= budget_usd * 1.0001
    for run in runs:
        for path in run.paths:  # a prediction that is a little too low can be noticed
            assert path.most_gbps > 1.05 * path.rate.expected_gbps


def test_what_is_free_is_held_to_its_volume_without_a_budget() -> None:
    predictions = {"plan": _prediction(5.0, REGIONS)}
    for most_gb, finite in ((1000.0, True), (inf, False)):
        (run,) = runs_of(
            predictions, _fleet(1, 1, 1), VerificationLimits(10, most_gb, 0.0), lambda *_: 0.0
        )
        assert isfinite(run.paths[0].most_gbps) == finite


@given(st.integers(1, 700), st.lists(st.integers(1, 6), min_size=2, max_size=3))
def test_connections_are_divided_over_all_vms(connections: int, counts: list[int]) -> None:
    hosts = [[f"{place}-{i}" for i in range(count)] for place, count in enumerate(counts)]
    path = PlanPath(REGIONS[: len(counts)], connections, 80.0, RateRange(1, 1, 1))
    try:
        streams = streams_of(path, hosts)
    except InputError:
        assert connections > 128 or len(set(counts)) > 1
        return
    assert sum(stream.connections for stream in streams) == connections
    shares = [stream.connections for stream in streams]
    assert max(shares) - min(shares) <= 1
    assert 1 <= min(shares) <= max(shares) <= 128
    for place, names in enumerate(hosts):
        used = Counter(stream.hosts[place] for stream in streams)
        assert max(used.values()) <= MOST_PAIRINGS * len(names)
        if connections >= len(streams) and len(streams) % len(names) == 0:
            assert len(set(used.values())) == 1


# ---- what follows ------------------------------------------------------------------------------


def _outcome(kind: str, way: tuple[str, ...], predicted: float, achieved: float) -> Run:
    rate = RateRange(predicted / 1.05, predicted, predicted * 1.05)
    hosts = _fleet(1, 1, 1)
    names = [[next(h.name for h in hosts if h.region == region)] for region in way]
    path = PlanPath(way, 64, 80.0, rate)
    sample = Sample(way[0], way[-1], "aggregate_mbps", achieved * 1000, 1e9, "iperf3", 64, 5.0)
    path = replace(path, streams=streams_of(path, names), samples=(sample,), sent_gb=1.0)
    plan = PlanPrediction("p", "x", way[0], way[-1], "relay", (path,), {}, rate)
    return Run(kind, plan, (path,), 2, 5, True, 1e9)


def _links(first: float, second: float) -> Callable[[str, str], Link]:
    def link_of(src: str, dst: str) -> Link:
        gbps = first if src == REGIONS[0] else second
        around = Estimate(gbps / 1.05, gbps, gbps * 1.05)
        return Link(src, dst, Estimate(40, 40, 40), Estimate(900, 1000, 1100), around)

    return link_of


def test_a_relayed_path_that_falls_short_tells_which_link_has_changed() -> None:
    link_of = _links(5.0, 6.0)
    plan = _outcome("plan", REGIONS, 5.0, 3.0)
    assert [path.regions for path in in_doubt([plan])] == [REGIONS]
    looks = [_outcome("apart", REGIONS[:2], 5.0, 4.9), _outcome("apart", REGIONS[1:], 5.0, 3.1)]
    found = samples_of([plan], looks, link_of, "p")
    by_link = {(s.src, s.dst): s for s in found}
    assert set(by_link) == {REGIONS[:2], REGIONS[1:]}
    assert not by_link[REGIONS[:2]].new_level
    assert by_link[REGIONS[1:]].new_level
    assert by_link[REGIONS[1:]].value == 3100


def test_a_path_as_predicted_tells_of_the_link_that_bound_it() -> None:
    plan = _outcome("plan", REGIONS, 5.0, 4.95)
    assert not in_doubt([plan])
    (sample,) = samples_of([plan], [], _links(6.0, 5.0), "p")
    assert (sample.src, sample.dst, sample.metric) == (*REGIONS[1:], "aggregate_mbps")


def test_one_odd_look_is_no_new_level() -> None:
    direct = _outcome("direct", REGIONS[:2], 5.0, 2.0)
    again = _outcome("apart", REGIONS[:2], 5.0, 4.9)
    found = samples_of([direct], [again], _links(5.0, 5.0), "p")
    assert len(found) == 2
    assert not any(sample.new_level for sample in found)
    twice = samples_of([direct], [direct], _links(5.0, 5.0), "p")
    assert all(sample.new_level for sample in twice)


def test_connections_that_could_carry_no_more_tell_of_one_flow() -> None:
    # 64 flows of 1 Gbit/s could carry 64: what carried 70 was not held by the link.
    plan = _outcome("direct", REGIONS[:2], 70.0, 70.0)
    (sample,) = samples_of([plan], [], _links(90.0, 90.0), "p")
    assert (sample.metric, sample.value) == ("per_flow_mbps", 70_000 / 64)


def test_judgement() -> None:
    rate = RateRange(4.5, 5.0, 5.5)
    verdicts = ["below", "within", "within", "above"]
    assert [rate.judged(gbps) for gbps in (4.47, 4.53, 5.47, 5.53)] == verdicts
    # However sure the plan was, one run errs by 5 %.
    sure = RateRange(4.95, 5.0, 5.05)
    assert [sure.judged(gbps) for gbps in (4.75, 4.77, 5.24, 5.26)] == verdicts


# ---- relays, for real --------------------------------------------------------------------------


@contextmanager
def _relaying(program: str, target_port: int) -> Iterator[int]:
    if not shutil.which(program, path="/usr/sbin:/usr/bin:/bin"):
        pytest.skip(f"needs {program}")
    port = free_port()
    what = RelayTask("127.0.0.1", port, ("127.0.0.2", "127.0.0.4"), "127.0.0.1", target_port, 4)
    (script,) = relay_commands(program, [what], 30)
    with subprocess.Popen(
        ["env", "PATH=/usr/sbin:/usr/bin:/bin", "timeout", "30", *script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"relaying\n"
        try:
            yield port
        finally:
            process.terminate()
    eventually(lambda: not _listens(port))


def _listens(port: int) -> bool:
    with socket.socket() as again:
        return again.connect_ex(("127.0.0.1", port)) == 0


def _answer(port: int, from_address: str) -> bytes:
    try:
        with socket.create_connection(
            ("127.0.0.1", port), timeout=60, source_address=(from_address, 0)
        ) as connection:
            return connection.recv(10)
    except ConnectionResetError:
        return b""


@pytest.mark.service
@pytest.mark.parametrize("program", ["haproxy", "socat"])
def test_a_relay_serves_its_peer_and_nobody_else(program: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with _relaying(program, server.getsockname()[1]) as port:

            def greet() -> None:
                while True:
                    try:
                        connection, _ = server.accept()
                    except OSError:
                        return
                    with connection:
                        connection.sendall(b"hello")

            thread = threading.Thread(target=greet, daemon=True)
            thread.start()
            assert _answer(port, "127.0.0.2") == b"hello"
            assert _answer(port, "127.0.0.3") == b""
            assert _answer(port, "127.0.0.2") == b"hello"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(60)
