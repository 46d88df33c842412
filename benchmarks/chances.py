"""Stated chances of relays against what came true: ``python -m benchmarks.chances [EVERY]``.

A chance is that of a gain of at least the margin, of 10 %. Single flows are of the survey of
February 2022: every so many triples (3 unless told), whose relay, or all receivers of whose
relay's provider, no test touched. With 64 connections, January 2022 is known and November judges,
under both readings of slow links; then a third of the regions are not known, either, whose links
are not in the spreads of laws. Needs the shared measurements.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from random import Random
from statistics import fmean
from typing import NamedTuple

from benchmarks.readings import VOLUME_GB, Truth, believed_in_november, truth_of_november
from benchmarks.table import show
from planner.fields.shared import DEFAULT_MARGIN
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from probes.estimation import Estimator
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from tests.probes.estimation import survey
from tests.probes.estimation.cross_validation import (
    CATALOGUE,
    JANUARY,
    JANUARY_S,
    NOVEMBER,
    NOVEMBER_S,
    TEST_S,
    grid,
    laws_without,
    providers,
    round_trips,
    same_addresses,
    sample_of,
)
from tests.slow_start import bundle_share_of_steady

EVERY = 3
STEPS = 10
LEAST_CASES = 15
NEAR = 0.1
PAYS = 1 + DEFAULT_MARGIN
SEEDS = (1, 2, 3)


class Case(NamedTuple):
    """A relay with its stated chance, and the gains that came true under each reading."""

    name: str
    probability: float
    gains: tuple[float, ...]
    relayed: bool
    achieved: float = 1.0
    """What the plan carried of the best path, if paths end."""

    @property
    def pays(self) -> bool:
        """Whether it brought the margin, if paths end."""
        return self.gains[0] >= PAYS


def show_steps(title: str, cases: Collection[Case]) -> None:
    """Print stated chances against those that came true, in ten steps."""
    rows = []
    for step in range(STEPS):
        of = [one for one in cases if min(STEPS - 1, int(one.probability * STEPS)) == step]
        if of:
            stated, true = fmean(one.probability for one in of), fmean(one.pays for one in of)
            verdict = "yes" if abs(stated - true) <= NEAR else "no"
            near = verdict if len(of) >= LEAST_CASES else "few"
            name = f"{step / STEPS:.1f} to {(step + 1) / STEPS:.1f}"
            rows.append((name, f"{len(of):,}", f"{stated:.2f}", f"{true:.2f}", near))
    show(title, ("chance", "cases", "stated", "came true", f"within {NEAR:g}"), rows)


def plan_of(src: str, dst: str, network: Network, prices: CataloguePrices, **more: object) -> Plan:
    """Return the plan for time with one VM a region, at the margin and risk of plans."""
    request = TransferRequest(src, dst, volume_gb=VOLUME_GB, objective="time", vms=1)
    return recommend(request.with_(**more), network, prices)


# ---- single flows --------------------------------------------------------------------------------


def of_single_flows(every: int, *, provider: bool) -> Iterator[Case]:
    """Yield relays of which no test, or of whose provider's receivers none, is known."""
    chosen = survey.triples()
    Random(1).shuffle(chosen)
    catalogue, found_mbps = load_catalogue(), survey.steady_rates_mbps()
    by_relay = sorted(chosen[::every], key=lambda triple: triple[1])
    for relay, triples in groupby(by_relay, key=lambda triple: triple[1]):
        cloud = relay.partition(":")[0]
        known = [
            test
            for test in survey.tests().values()
            if relay not in (test.src, test.dst)
            and not (provider and test.dst.partition(":")[0] == cloud)
        ]
        network = survey.network_of(known, typed=not provider)
        prices = CataloguePrices(catalogue, network)
        for src, _, dst in triples:
            plan = plan_of(src, dst, network, prices, connections=1, relays=relay)
            best = plan.best_relay
            assert best
            through = min(found_mbps[src, relay], found_mbps[relay, dst])
            gain = through / found_mbps[src, dst]
            relayed = plan.verdict != "direct"
            achieved = (gain if relayed else 1.0) / max(gain, 1.0)
            yield Case(cloud, best.probability or 0.0, (gain,), relayed, achieved)


# ---- 64 connections ------------------------------------------------------------------------------


def of_many_connections(truth: Truth, left_out: Collection[str] = ()) -> Iterator[Case]:
    """Yield the best relay of each pair, or of each that touches a region that is left out."""
    with laws_without(left_out):
        believed = believed_in_november(truth, left_out)
    prices = CataloguePrices(CATALOGUE, believed)
    for src, dst in sorted(truth.gbps):
        if (src, dst) not in grid(JANUARY) or (left_out and not {src, dst} & {*left_out}):
            continue
        plan = plan_of(src, dst, believed, prices)
        best = plan.best_relay
        if best is None or not {(src, best.relay), (best.relay, dst)} <= truth.gbps.keys():
            continue
        caps = truth.caps(src, dst)
        direct = min(truth.gbps[src, dst], *caps)
        through = min(truth.gbps[src, best.relay], truth.gbps[best.relay, dst], *caps)
        ends, slow, _ = truth.carried(plan)
        relayed = plan.verdict != "direct"
        gains = (ends / direct, slow / direct) if relayed else (through / direct,) * 2
        achieved = min(1.0, ends / truth.best_single(src, dst))
        yield Case(providers((src, dst)), best.probability or 0.0, gains, relayed, achieved)


def show_classes(title: str, cases: Collection[Case]) -> None:
    """Print what recommended relays brought, by pair of providers."""
    rows = []
    for name in ("all", *sorted({one.name for one in cases})):
        of = [one for one in cases if name in {"all", one.name}]
        relayed = [one for one in of if one.relayed]
        if relayed:
            both = zip(*(one.gains for one in relayed), strict=True)
            paid = " / ".join(f"{fmean(gain >= PAYS for gain in gains):.2f}" for gains in both)
            stated = f"{fmean(one.probability for one in relayed):.2f}"
            right = f"{fmean(one.relayed == one.pays for one in of):.3f}"
            achieved = f"{fmean(one.achieved for one in of):.3f}"
            rows.append((name, f"{len(of):,}", str(len(relayed)), stated, paid, right, achieved))
    header = ("", "pairs", "relayed", "stated", f"{PAYS:g}x", "right", "of best path")
    show(title, header, rows)


# ---- bounds of new regions -----------------------------------------------------------------------


def held_of_new_regions() -> Iterator[tuple[str, float, bool]]:
    """Yield November's links of regions that January lacks: providers, RTT in ms, whether held."""
    january = grid(JANUARY)
    samples = [sample_of(pair, JANUARY) for pair in january]
    samples += (
        Sample(*ends, "rtt_ms", ms, JANUARY_S, "ping") for ends, ms in round_trips().items()
    )
    network = Estimator(Samples.of(samples), CATALOGUE).network(Snapshot("", "", ""))
    network = network.with_(aged_to_s=NOVEMBER_S)
    for pair, received_gbps in grid(NOVEMBER).items():
        if pair not in january and same_addresses(pair):
            link = network.link(*pair)
            rate, rtt_ms = link.aggregate_gbps, link.rtt_ms.expected
            gbps = received_gbps / bundle_share_of_steady(rtt_ms, TEST_S)
            yield providers(pair), rtt_ms, rate.low <= gbps <= rate.high


def show_bounds(found: Iterable[tuple[str, float, bool]]) -> None:
    """Print how often bounds of new regions' links hold."""
    by = defaultdict[str, list[bool]](list)
    for name, rtt_ms, held in found:
        for one in ("all", name, *(["beyond 200 ms"] if rtt_ms > 200 else [])):
            by[one].append(held)
    rows = [(name, str(len(held)), f"{fmean(held):.2f}") for name, held in sorted(by.items())]
    show("links of regions that January lacks, in November", ("", "tests", "in bounds"), rows)


def main(every: int = EVERY) -> None:
    """Print all tables."""
    flows = {
        "one flow, the relay's host unseen": [*of_single_flows(every, provider=False)],
        "one flow, the relay's provider unseen": [*of_single_flows(every, provider=True)],
    }
    for title, cases in flows.items():
        show_steps(title, cases)
        show_classes(f"{title}: by the relay's cloud", cases)
    truth = truth_of_november()
    regions = sorted(truth.network.sites)
    thirds = [{*Random(seed).sample(regions, len(regions) // 3)} for seed in SEEDS]
    grids = {
        "64 connections, all links known": [*of_many_connections(truth)],
        "64 connections, a third of the regions unseen": [
            case for left_out in thirds for case in of_many_connections(truth, left_out)
        ],
    }
    for title, cases in grids.items():
        show_steps(title, cases)
        show_classes(f"{title}: if paths end / if connections are slow", cases)
    show_bounds(held_of_new_regions())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
