"""A replay decides as relayd itself would have, step by step, and counts what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import relayd
from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InputError
from planner.model.estimate import Bound
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.transfer.decision import Decision, decide
from planner.transfer.options import Option
from planner.transfer.request import TransferRequest
from probes.analysis.evidence import Coverage
from probes.estimation import Estimator
from probes.samples import Sample, Samples
from relayd.__main__ import main
from relayd.backtesting import replay
from relayd.backtesting.request import BacktestObjective
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.store.samples.data_set import write_data_set
from relayd.store.samples.ingest import append
from tests.relayd.building import ping, rate, stored
from tests.relayd.store.engines import PostgresqlSpot
from tests.slow_start import bundle_share_of_steady

REGIONS = ("aws:us-east-1", "aws:sa-east-1", "azure:westeurope", "gcp:us-east1", "gcp:asia-east1")
START_S = 1_788_220_800.0  # midnight UTC
HOUR_S = 3600.0
HALF_HOUR_S = 1800.0
HOURS = 80
REPLAYED = 8
# Fewer than a VM needs to divide them over paths: plans then have one path, as replays do.
CONNECTIONS = 4
VOLUME_GB = 200.0


def regular(
    regions: tuple[str, ...], steps: int, step_s: float, mbps: Callable[[str, str, int], float]
) -> list[Sample]:
    """Return a test of each pair in every step, at the rate of a pair and the step's number."""
    return [
        rate(src, dst, mbps(src, dst, step), START_S + step * step_s)
        for src, dst in permutations(regions, 2)
        for step in range(steps)
    ]


def history(seed: int) -> list[Sample]:
    """Return hourly samples with everything that estimates know how to treat."""
    random = np.random.default_rng(seed)
    samples = []
    for src, dst in permutations(REGIONS, 2):
        level = random.lognormal(7.0, 0.7)
        rtt_ms = random.uniform(10, 250)
        with_rtt = random.random() < 0.6  # else the opposite direction's, or the model's
        warmed_up = random.random() < 0.5
        shift_h = int(random.integers(20, HOURS)) if random.random() < 0.5 else HOURS
        few_until_h = int(random.integers(0, HOURS)) if random.random() < 0.3 else 0
        # Some were not measured lately: their bounds widen with age.
        last_h = HOURS - int(random.integers(30, 60)) if random.random() < 0.08 else HOURS
        for hour in range(last_h):
            at_s = START_S + hour * HOUR_S + random.uniform(0, HOUR_S)
            now = level * (0.3 if hour >= shift_h else 1.0) * random.lognormal(0.0, 0.05)
            connections = 2 if hour < few_until_h else CONNECTIONS
            mbps = now * connections / CONNECTIONS
            test = rate(src, dst, mbps, at_s, connections, duration_s=5.0, warmed_up=warmed_up)
            samples.append(test)
            if with_rtt:
                samples.append(ping(src, dst, rtt_ms * random.lognormal(0.0, 0.03), at_s))
    return samples


@cache
def catalogue() -> Catalogue:
    """Return the catalogue with no other regions: what was not measured does not relay."""
    whole = load_catalogue()
    return replace(whole, regions={region: whole.region(region) for region in REGIONS})


def in_order(samples: list[Sample]) -> list[Sample]:
    return sorted(samples, key=lambda s: (s.src, s.dst, s.metric, s.measured_at_s))


class Step(NamedTuple):
    """The samples known at a step, and those measured in it."""

    believed: Network
    truth: dict[tuple[str, str], float]
    rtt_ms: dict[tuple[str, str], float]


def steps(samples: list[Sample]) -> Iterator[Step]:
    """Yield the replayed steps, estimated by relayd's own estimator from scratch."""
    ordered = in_order(samples)
    for hour in range(HOURS - REPLAYED, HOURS):
        begin_s = START_S + hour * HOUR_S
        known = Samples.of(s for s in ordered if s.measured_at_s < begin_s)
        estimator = Estimator(known, catalogue())
        believed = estimator.network(Snapshot("", "", "")).with_(aged_to_s=begin_s)
        now = [s for s in ordered if begin_s <= s.measured_at_s < begin_s + HOUR_S]
        rtt_ms = {(link.src, link.dst): link.rtt_ms.expected for link in believed}
        seen = {(s.src, s.dst): s.value for s in now if s.metric == "rtt_ms"}
        rtt_ms |= {pair[::-1]: value for pair, value in seen.items()} | seen
        truth = {}
        for s in now:
            if s.metric == "aggregate_mbps":
                share = 1.0
                if not s.warmed_up:
                    share = bundle_share_of_steady(rtt_ms[s.src, s.dst], 5.0)
                truth[s.src, s.dst] = s.value / 1000 / share
        yield Step(believed, truth, rtt_ms)


def really(step: Step, decision: Decision, path: tuple[str, ...]) -> tuple[float, float]:
    """Return the rate and the value that a path then has."""
    links = list(pairwise(path))
    rate = min(step.truth[link] for link in links)
    prices = decision.search.prices
    vm_usd = sum(prices.vm_usd_per_h(region) for region in path)
    hours = 8 * VOLUME_GB / rate / 3600
    ramp_s = 8.5 * sum(step.rtt_ms[link] for link in links) / 1000
    fees = sum(prices.egress_usd_per_gb(a, b, VOLUME_GB) for a, b in links) * VOLUME_GB
    time_s = 60 + hours * 3600 + ramp_s
    cost = fees + vm_usd * time_s / 3600
    hour_usd = decision.request.hour_usd
    return rate, time_s if hour_usd == float("inf") else cost + hour_usd * time_s / 3600


def in_bounds(step: Step, src: str, dst: str) -> bool:
    """Tell whether a link's later rate is within the bounds of before."""
    link, sites = step.believed.link(src, dst), step.believed.sites
    bounds: tuple[Bound, Bound] = ("low", "high")
    low, high = (
        min(
            link.rate_gbps(CONNECTIONS, bound),
            getattr(sites[src].egress_gbps, bound),
            getattr(sites[dst].ingress_gbps, bound),
        )
        for bound in bounds
    )
    return bool(low <= step.truth[src, dst] <= high)


def path_of(option: Option, decision: Decision) -> tuple[str, ...]:
    request, regions = decision.request, decision.figures.regions
    return (request.src, *(regions[k] for k in option.relays), request.dst)


@pytest.mark.parametrize(
    ("objective", "seed"),
    [("value", 1), ("time", 2), pytest.param("time", 3, marks=pytest.mark.thorough), ("cost", 4)],
)
def test_a_replay_is_what_relayd_would_have_said(
    objective: BacktestObjective, seed: int, tmp_path: Path
) -> None:
    samples = history(seed)
    scores: list[tuple[float, float, bool, bool]] = []
    decisions = 0
    held: list[bool] = []
    for step in steps(samples):
        prices = CataloguePrices(catalogue(), step.believed)
        for src, dst in permutations(REGIONS, 2):
            request = TransferRequest(
                src, dst, volume_gb=VOLUME_GB, objective=objective, connections=CONNECTIONS, vms=1
            )
            if (src, dst) not in step.truth:
                continue
            decisions += 1
            if step.believed.link(src, dst).aggregate_gbps.source == "measured":
                held.append(in_bounds(step, src, dst))
            decision = decide(request, step.believed, prices)
            chosen = path_of(decision.chosen, decision)
            relayed = min(
                (option.value_usd, path_of(option, decision))
                for via in REGIONS
                if via not in {src, dst}
                and (
                    option := decide(replace(request, relays=via), step.believed, prices).best_relay
                )
            )[1]
            paths = [(src, dst), *((src, via, dst) for via in REGIONS if via not in {src, dst})]
            measured = [
                path for path in paths if all(link in step.truth for link in pairwise(path))
            ]
            if chosen not in measured or relayed not in measured:
                continue
            best = min(really(step, decision, path)[1] for path in measured)
            rate, value = really(step, decision, chosen)
            scores.append((rate, best / value, len(chosen) > 2, value == best))
    rates, shares, through_relays, _ = zip(*scores, strict=True)

    found = relayd.backtest(
        stored(tmp_path / "history.db", samples),
        step_s=HOUR_S,
        volume_gb=VOLUME_GB,
        since_s=START_S + (HOURS - REPLAYED) * HOUR_S,
        connections=CONNECTIONS,
        objective=objective,
        catalogues=[],
    )
    followed = found.total.of("relayd")
    assert found.steps == REPLAYED
    assert found.total.decisions == decisions
    assert found.total.coverage == Coverage.of(sum(held), len(held))
    by_providers = [group.found.coverage for group in found.by_providers]
    assert sum(group.predictions for group in by_providers if group) == len(held)
    assert found.total.judged == len(scores) > 50
    assert found.total.relayed == pytest.approx(np.mean(through_relays))
    assert followed.throughput_gbps == pytest.approx(np.mean(rates), rel=1e-9)
    assert followed.achieved == pytest.approx(np.mean(shares), rel=1e-9)
    assert followed.achieved_p10 <= np.quantile(shares, 0.1, method="higher") + 1e-9
    if objective == "time":
        assert 0.05 < np.mean(through_relays) < 0.95


# ---- what following comes to ------------------------------------------------------------------


THREE = ("aws:us-east-1", "azure:eastus", "gcp:us-east1")
SLOW = ("azure:eastus", "aws:us-east-1")


def planted(db: Path, **rates: float) -> Path:
    """Store two days of half hours: a slow direct link that a relay goes around, without noise."""
    direct, link = rates["direct"], rates["link"]
    samples = regular(
        THREE, 96, HALF_HOUR_S, lambda src, dst, _: direct if (src, dst) == SLOW else link
    )
    return stored(db, samples + [ping(*one[:2], 20.0, one.measured_at_s) for one in samples])


@pytest.mark.thorough
def test_what_never_changes_is_followed_without_regret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    db = planted(tmp_path / "steady.db", direct=500.0, link=4000.0)
    found = relayd.backtest(db, step_s=HALF_HOUR_S, objective="time", pairs=["azure>aws"])
    total = found.total
    assert total.pairs == 1
    assert total.judged == 95  # before the first step nothing was known
    assert total.relayed == total.right == total.near == total.verdict_right == 1.0
    followed = total.of("relayd")
    assert (followed.achieved, followed.regret, followed.switches) == (1.0, 0.0, 0)
    # A minute until VMs have started, and 8.5 round trips of getting up to speed: 0.17 s a link.
    assert total.of("direct").time_s == pytest.approx(60 + 8 * 100 / 0.5 + 0.17)
    assert total.of("relay").time_s == pytest.approx(60 + 8 * 100 / 4.0 + 0.34)
    assert total.of("direct").achieved == pytest.approx(260.34 / 1660.17)
    # On cost, two egress fees never pay.
    by_cost = relayd.backtest(db, step_s=HALF_HOUR_S, objective="cost", pairs=["azure>aws"]).total
    assert by_cost.relayed == by_cost.hindsight_relayed == 0.0
    assert by_cost.of("relay").cost_usd > by_cost.of("direct").cost_usd
    # Printed, it says what it rests on.
    asked = ["study", "backtest", "--db", str(db), "--step", "30min", "--objective", "time"]
    assert main(asked) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "570 decisions on 6 pairs of 3 regions, from 576 samples" in shown
    assert main([*asked, "--json"]) == 0
    strategies = json.loads(capsys.readouterr().out)["total"]["strategies"]
    assert [one["strategy"] for one in strategies] == ["relayd", "direct", "relay", "hindsight"]


def test_a_relay_of_unknown_price_is_none(tmp_path: Path) -> None:
    regions = (*THREE[:2], "site:own")
    samples = regular(
        regions, 48, HALF_HOUR_S, lambda src, dst, _: 4000.0 if "site" in src + dst else 500.0
    )
    db = stored(tmp_path / "own.db", samples)
    found = relayd.backtest(db, step_s=HALF_HOUR_S, objective="time", pairs=["azure>aws"])
    assert found.total.relayed == found.total.hindsight_relayed == 0.0


@pytest.mark.thorough
def test_switches_across_parts_are_counted(tmp_path: Path) -> None:
    """The link that is fast alternates by the week, for three weeks."""
    week = 7 * 24
    samples = regular(
        THREE,
        3 * week,
        HOUR_S,
        lambda src, dst, hour: 400.0 if (src, dst) == SLOW and hour // week == 1 else 4000.0,
    )
    db = stored(tmp_path / "weeks.db", samples)
    total = relayd.backtest(db, step_s=3 * HOUR_S, objective="time", pairs=["azure>aws"]).total
    assert total.of("hindsight").switches == 2
    assert total.of("relayd").switches == 2
    assert 0.3 < (total.relayed or 0) < 0.36


def test_a_path_that_fails_counts_as_nothing_got(tmp_path: Path) -> None:
    samples = regular(
        THREE,
        60,
        HALF_HOUR_S,
        lambda src, dst, step: 0.0 if step >= 50 and (src, dst) == SLOW else 3000.0,
    )
    db = stored(tmp_path / "down.db", samples)
    total = relayd.backtest(db, step_s=HALF_HOUR_S, objective="time", pairs=["azure>aws"]).total
    direct = total.of("direct")
    assert direct.stalled == 10
    assert direct.achieved == pytest.approx(49 / 59)
    assert total.of("hindsight").stalled == 0
    # A change of level is noticed after some samples: from then on, relayd goes around.
    assert 0 < total.of("relayd").stalled < 10
    assert total.of("relayd").switches == 1


def test_too_little_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = stored(tmp_path / "empty.db", [])
    db = planted(tmp_path / "steady.db", direct=500.0, link=4000.0)
    own = [s._replace(src=f"site:{s.src[4:]}", dst=f"site:{s.dst[4:]}") for s in history(7)]
    unpriced = stored(tmp_path / "own.db", own)
    late: dict[str, Any] = {"step_s": HALF_HOUR_S, "pairs": ["azure>aws"]}
    late["since_s"] = START_S + 80 * 1800
    for store, asked, said in (
        (empty, {}, "3 regions with aggregate_mbps samples are needed"),
        (db, late, "30 decisions"),
        (db, {"connections": 1}, "per_flow_mbps"),
        (db, {"connections": 16}, "fewer than the 64"),
        (db, {"pairs": ["azure to aws"]}, "pairs"),
        (db, {"since_s": START_S, "until_s": START_S}, "until"),
        (unpriced, {}, "no egress price"),
    ):
        with pytest.raises((DataError, InputError), match=said):
            relayd.backtest(store, **asked)
    for words in (["--step", "0.001s"], ["--pairs", "nowhere>aws"]):
        assert main(["study", "backtest", "--db", str(db), *words]) == 2
        assert words[0] in capsys.readouterr().err


def test_single_flows_are_replayed_from_single_flows(tmp_path: Path) -> None:
    rtts_ms = dict.fromkeys(permutations(THREE, 2), 50.0)
    rtts_ms[SLOW] = rtts_ms[SLOW[::-1]] = 200.0
    flows = regular(THREE, 48, HALF_HOUR_S, lambda *link: 24_000.0 / rtts_ms[link[:2]])  # 3 MB
    samples = [one._replace(metric="per_flow_mbps", connections=1) for one in flows]
    samples += [ping(*one[:2], rtts_ms[one[:2]], one.measured_at_s) for one in flows]
    db = stored(tmp_path / "flows.db", samples)
    found = relayd.backtest(
        db, step_s=HALF_HOUR_S, connections=1, objective="time", pairs=["aws>azure"]
    )
    assert found.metric == "per_flow_mbps"
    assert found.total.relayed == 1.0
    assert found.total.of("direct").throughput_gbps == pytest.approx(0.12)
    assert found.total.of("relayd").throughput_gbps == pytest.approx(0.48)


def replayed(where: str | Path, **more: Any) -> str:
    asked: dict[str, Any] = {"step_s": HOUR_S, "since_s": START_S + 65 * HOUR_S, **more}
    return relayd.backtest(
        where, connections=CONNECTIONS, objective="time", **asked
    ).model_dump_json()


def test_both_engines_of_the_store_and_parquet_give_the_same_digits(
    tmp_path: Path, postgresql_spot: PostgresqlSpot
) -> None:
    db, samples = stored(tmp_path / "history.db", history(6)), history(6)
    with open_store(postgresql_spot.where, mode="create") as store:
        append(store, samples, "test")
    with open_store(db, mode="read") as store:
        write_data_set(store.samples, tmp_path / "history")
    places = (db, postgresql_spot.where, tmp_path / "history")
    assert len({replayed(where) for where in places}) == 1


@pytest.mark.engines
def test_a_cluster_gives_the_same_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip(
        "distributed", reason="needs distributed (the examples group)"
    )
    db = stored(tmp_path / "history.db", history(5))
    here = replayed(db)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster:
        assert replayed(db, dask=cluster.scheduler_address) == here
        with open_store(db, mode="read") as store:
            write_data_set(store.samples, tmp_path / "history")
        assert replayed(tmp_path / "history", dask=cluster.scheduler_address) == here
    monkeypatch.setattr(replay, "CONNECT_S", 0.5)
    with pytest.raises(InputError, match="--dask"):
        replayed(db, dask="tcp://127.0.0.1:9")
