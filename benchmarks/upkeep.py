"""Cost of keeping a grid's estimates good for decisions: ``python -m benchmarks.upkeep``.

Simulates a month in which links of the January 2022 grid drift as those of their class were seen to
(:mod:`planner.model.throughput`), or stay as they are (``--still``), and measures them with tests
that repeat as those of their class. Compares measuring by expected regret (``relayd measure watch
--regret``) with campaigns at fixed intervals. Regret is that of acting on the estimates of each
day where the day's true levels count, the mean over all ordered pairs; money is the egress of tests
of many connections, which slow start keeps below their rate at first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.table import show
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.throughput import UNKNOWN_NOISE, law_of
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS
from probes.campaign.costing import UNLIMITED, Meter, frugal_allowance
from probes.campaign.probing import warm_up_s
from probes.campaign.ramping import with_ramps
from probes.campaign.regret import RateMatrices, regret_on
from probes.campaign.selection import choose_links
from probes.campaign.specification import Method
from probes.campaign.tasks import ProbeTask
from probes.estimation import Estimator
from probes.fleet.hosts import Fleet, Host
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from relayd.watch.settings import FIRST_S
from tests.planner.grid import january_grid
from tests.probes.campaign.everything import all_pairs_tasks
from tests.slow_start import bundle_share_of_steady

CATALOGUE = load_catalogue()
CONNECTIONS, TEST_S = 64, 5.0
SECOND_TO_SECOND = 0.1
"""Of the logarithms of one flow's seconds over a day, at most (Azure, 2015); 64 differ by less."""
BEGIN_S = 1_650_000_000.0
SIGMAS = 1.645
"""Spreads and noise are stated at the 5th and the 95th percentile."""
MEASURED_S = 4.0
SHORTER = SECOND_TO_SECOND * np.sqrt(1 / FIRST_S - 1 / MEASURED_S)
"""Noise of one second beyond that of a test, in which a second is warm-up."""
MOST_BATCHES = 200

Floats = NDArray[np.float64]


@dataclass
class Links:
    """True levels that drift: an Ornstein-Uhlenbeck process about the law of each link's class."""

    regions: list[str]
    rtt_ms: dict[tuple[str, str], float]
    centre_gbps: Floats
    below: Floats
    above: Floats
    memory_days: Floats
    noise: Floats
    place: Floats  # where each level is, in standard deviations of its class

    @classmethod
    def of_grid(cls) -> Links:
        """Return the links as all tests of the grid say that they are."""
        grid = january_grid()
        regions = [r.id for r in CATALOGUE.regions.values() if r.baseline and r.id in grid.regions]
        rtt_ms = {pair: ms for pair, ms in grid.rtt_ms.items() if set(pair) <= set(regions)}
        tests = [
            tested(pair, gbps, BEGIN_S)
            for pair, gbps in grid.pair_gbps.items()
            if set(pair) <= set(regions)
        ]
        figures = np.ones((5, len(regions), len(regions)))
        place = np.zeros(figures.shape[1:])
        for link in Watched(regions, rtt_ms, tests).network():
            at = regions.index(link.src), regions.index(link.dst)
            prior, law = link.aggregate_gbps.prior, law_of(link.src, link.dst)
            assert prior
            lower, upper = np.log(prior.expected / prior.low), np.log(prior.high / prior.expected)
            tested_noise = law.noise if law else UNKNOWN_NOISE
            memory = 365 * prior.memory_years
            figures[:, *at] = prior.expected, lower, upper, memory, tested_noise
            off = np.log(link.aggregate_gbps.expected / prior.expected)
            place[at] = SIGMAS * off / (upper if off > 0 else lower)
        centre_gbps, below, above, memory_days, noise = figures
        return cls(regions, rtt_ms, centre_gbps, below, above, memory_days, noise, place)

    def level_gbps(self) -> Floats:
        """Return the true levels now."""
        side = np.where(self.place > 0, self.above, self.below)
        level = self.centre_gbps * np.exp(self.place * side / SIGMAS)
        np.fill_diagonal(level, 0.0)
        return level

    def drift(self, days: float, random: np.random.Generator) -> None:
        """Let time pass."""
        kept = np.exp(-days / self.memory_days)
        step = np.sqrt(1 - kept**2) * random.standard_normal(self.place.shape)
        self.place = kept * self.place + step


class Watched:
    """A watcher's measurements, and its spending of the day."""

    def __init__(
        self, regions: list[str], rtt_ms: dict[tuple[str, str], float], tests: Sequence[Sample] = ()
    ) -> None:
        self.regions, self.now_s, self.usd, self.sent_gb = regions, BEGIN_S, 0.0, 0.0
        self._samples = [
            Sample(*pair, "rtt_ms", ms, BEGIN_S, "ping") for pair, ms in rtt_ms.items()
        ]
        self._samples += tests
        self._known: Network | None = None

    def begin_day(self, day: int) -> None:
        """Let estimates age, and count spending from 0 on."""
        self.now_s, self.usd, self.sent_gb = BEGIN_S + day * SECONDS_PER_DAY, 0.0, 0.0
        if self._known is not None:
            self._known = self._known.with_(aged_to_s=self.now_s)

    def network(self) -> Network:
        """Return the estimates as they have aged."""
        if self._known is None:
            estimator = Estimator(Samples.of(self._samples), CATALOGUE)
            whole = estimator.network(Snapshot("", "", ""))
            self._known = whole.with_(restricted_to=self.regions).with_(aged_to_s=self.now_s)
        return self._known

    def measure(
        self,
        tasks: Sequence[ProbeTask],
        level_gbps: Floats,
        spread: Floats,
        random: np.random.Generator,
    ) -> None:
        """Test links: the results are known from now on.

        Those with a short first part end with it where it finds what is expected.
        """
        network = self.network()
        prices = CataloguePrices(CATALOGUE, network)
        for task in tasks:
            (pair,) = task.pairs
            at = self.regions.index(pair[0]), self.regions.index(pair[1])
            level, off = float(level_gbps[at]), float(spread[at]) / SIGMAS
            found, lengths_s = level * np.exp(off * random.standard_normal()), [TEST_S]
            if task.first_s:
                early = found * np.exp(SHORTER * random.standard_normal())
                if task.least_gbps <= early <= task.most_gbps:
                    found, lengths_s = early, [task.first_s]
                else:
                    lengths_s.append(task.first_s)
            # Slow start sends less.
            rtt_ms = network.link(*pair).rtt_ms.expected
            sent_s = sum(s * bundle_share_of_steady(rtt_ms, s) for s in lengths_s)
            gb = level * sent_s / BITS_PER_BYTE
            self.sent_gb += gb
            self.usd += gb * prices.egress_usd_per_gb(*pair, gb)
            self._samples.append(tested(pair, float(found), self.now_s))
        self._known = None


def tested(pair: tuple[str, str], gbps: float, at_s: float) -> Sample:
    """Return a test of many connections."""
    mbps = MBPS_PER_GBPS * gbps
    return Sample(
        *pair, "aggregate_mbps", mbps, at_s, "iperf3", CONNECTIONS, TEST_S, warmed_up=True
    )


@dataclass(frozen=True)
class Schedule:
    """When links are measured, and which."""

    every_days: int = 1
    # Expected regret at which a campaign stops; its tests then end with their first second where
    # that finds what is expected. With 0, a campaign stops at what `relayd probe` spends without a
    # budget
    threshold: float = 0.0

    def __str__(self) -> str:
        """Return it in words."""
        if self.threshold:
            return f"for an expected regret of {100 * self.threshold:g} %"
        return f"a campaign every {self.every_days} days"

    def batches(self, watched: Watched, day: int) -> Iterator[Sequence[ProbeTask]]:
        """Yield the tasks of a day, batch by batch: each uses the results of the last one."""
        if day % self.every_days:
            return
        hosts = (
            Host(region, region, "192.0.2.1", 22, "", None, Path()) for region in watched.regions
        )
        fleet = Fleet({host.name: host for host in hosts})
        region_of = {region: region for region in watched.regions}
        price, network, most = Meter(CATALOGUE).price, watched.network(), UNLIMITED
        if not self.threshold:
            everything = all_pairs_tasks(
                watched.regions,
                lambda src, dst: network.link(src, dst).rate_gbps(CONNECTIONS),
                connections=CONNECTIONS,
            )
            most = frugal_allowance(everything, region_of, price)
        for _ in range(MOST_BATCHES):
            network = watched.network()
            choice = choose_links(
                region_of,
                network,
                price,
                allowance=most.after(watched.usd, watched.sent_gb),
                threshold=self.threshold,
                connections=CONNECTIONS,
            )
            if not choice.tasks:
                return
            yield with_ramps(
                choice.tasks,
                Method(ramp="never"),
                fleet,
                network.link,
                (),
                lambda task, of=network: warm_up_s(  # type: ignore[misc]
                    task, lambda *pair: of.link(*pair).rtt_ms.expected
                ),
                first_s=FIRST_S if self.threshold else 0.0,
            )


def simulated(schedule: Schedule, links: Links, days: int, seed: int) -> tuple[Floats, Floats]:
    """Return the true regret and the money of each day."""
    links = replace(links)
    watched = Watched(links.regions, links.rtt_ms)
    # Apart, so that links drift alike in all runs.
    drifting, testing = (np.random.default_rng((seed, part)) for part in (0, 1))
    regrets, usd = [], []
    for day in range(days):
        watched.begin_day(day)
        level_gbps = links.level_gbps()
        for tasks in schedule.batches(watched, day):
            watched.measure(tasks, level_gbps, links.noise, testing)
        rates = RateMatrices.of(watched.network(), links.regions, CONNECTIONS)
        regrets.append(regret_on(rates, level_gbps))
        usd.append(watched.usd)
        links.drift(1.0, drifting)
    return np.array(regrets), np.array(usd)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--still", action="store_true", help="links that do not drift")
    parser.add_argument("--regrets", type=float, nargs="*", default=[0.0825, 0.08, 0.076])
    parser.add_argument("--every", type=int, nargs="*", default=[7, 3])
    options = parser.parse_args()
    links = Links.of_grid()
    if options.still:
        links.memory_days.fill(np.inf)
    schedules = [Schedule(threshold=share) for share in options.regrets]
    schedules += [Schedule(days) for days in options.every]
    rows = []
    for schedule in schedules:
        runs = [simulated(schedule, links, options.days, seed) for seed in range(options.seeds)]
        regrets, usd = (np.array(found) for found in zip(*runs, strict=True))
        shares = (regrets.mean(), np.quantile(regrets, 0.95), regrets[:, -7:].mean())
        figures = (usd[:, 0].mean(), usd[:, 1:].mean(), usd.sum(axis=1).mean())
        texts = [f"{100 * share:.1f} %" for share in shares], [f"{d:.2f}" for d in figures]
        rows.append((str(schedule), *texts[0], *texts[1]))
        print(" | ".join(rows[-1]), file=sys.stderr)
    header = ("measured", "regret", "p95", "last week", "$ first day", "$ a day after", "$ in all")
    moving = "without drift" if options.still else "of drift"
    title = f"{options.days} days {moving}, {len(links.regions)} regions of January 2022's grid"
    show(title, header, rows)


if __name__ == "__main__":
    main()
