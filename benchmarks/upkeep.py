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
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.grid import grid
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
FIGURES = ("centre_gbps", "below", "above", "memory_days", "noise")

Floats = NDArray[np.float64]


@dataclass
class Links:
    """True levels that drift: an Ornstein-Uhlenbeck process about the law of each link's class.

    Attributes
    ----------
    regions : list of str
    rtt_ms : dict
    centre_gbps, below, above, memory_days, noise : array of shape (n, n)
    place : array of shape (n, n)
        Where each level is, in standard deviations of its class.
    """

    regions: list[str]
    rtt_ms: dict[tuple[str, str], float]
    centre_gbps: Floats
    below: Floats
    above: Floats
    memory_days: Floats
    noise: Floats
    place: Floats

    @classmethod
    def of_grid(cls) -> tuple[Links, str]:
        """Return the links as all tests of a grid say that they are, and the grid's name."""
        measured, title = grid()
        regions = [
            r.id for r in CATALOGUE.regions.values() if r.baseline and r.id in measured.regions
        ]
        rtt_ms = {pair: ms for pair, ms in measured.rtt_ms.items() if set(pair) <= set(regions)}
        tests = [
            tested(pair, gbps, BEGIN_S)
            for pair, gbps in measured.pair_gbps.items()
            if set(pair) <= set(regions)
        ]
        network = Watched(regions, rtt_ms, tests).network()
        shape = len(regions), len(regions)
        figures = {figure: np.ones(shape) for figure in FIGURES}
        place = np.zeros(shape)
        for link in network:
            at = regions.index(link.src), regions.index(link.dst)
            prior, law = link.aggregate_gbps.prior, law_of(link.src, link.dst)
            assert prior
            below, above = np.log(prior.expected / prior.low), np.log(prior.high / prior.expected)
            figures["centre_gbps"][at] = prior.expected
            figures["below"][at], figures["above"][at] = below, above
            figures["memory_days"][at] = 365 * prior.memory_years
            figures["noise"][at] = law.noise if law else UNKNOWN_NOISE
            off = np.log(link.aggregate_gbps.expected / prior.expected)
            place[at] = SIGMAS * off / (above if off > 0 else below)
        return cls(regions, rtt_ms, place=place, **figures), title

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


@dataclass
class Watched:
    """A watcher's measurements, and its spending by day."""

    regions: list[str]
    rtt_ms: dict[tuple[str, str], float]
    tests: Sequence[Sample] = ()
    now_s: float = BEGIN_S
    usd: list[float] = field(default_factory=list)
    sent_gb: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._samples = [
            Sample(*pair, "rtt_ms", ms, BEGIN_S, "ping") for pair, ms in self.rtt_ms.items()
        ]
        self._samples += self.tests
        self._known: Network | None = None
        self._aged: Network | None = None

    def network(self) -> Network:
        """Return the estimates as they have aged."""
        if self._known is None:
            estimator = Estimator(Samples.of(self._samples), CATALOGUE)
            whole = estimator.network(Snapshot("", "", ""))
            self._known, self._aged = whole.with_(restricted_to=self.regions), None
        if self._aged is None or self._aged.aged_to_s != self.now_s:
            self._aged = self._known.with_(aged_to_s=self.now_s)
        return self._aged

    @property
    def fleet(self) -> Fleet:
        """A host in each region, of the region's name."""
        hosts = (Host(region, region, "192.0.2.1", 22, "", None, Path()) for region in self.regions)
        return Fleet({host.name: host for host in hosts})

    @staticmethod
    def gbps(network: Network, src: str, dst: str) -> float:
        """Return the rate that a test is expected to reach."""
        return network.link(src, dst).rate_gbps(CONNECTIONS)

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
        samples = []
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
            self.sent_gb[-1] += gb
            self.usd[-1] += gb * prices.egress_usd_per_gb(*pair, gb)
            samples.append(tested(pair, float(found), self.now_s))
        self._samples += samples
        self._known = None


def tested(pair: tuple[str, str], gbps: float, at_s: float) -> Sample:
    """Return a test of many connections."""
    mbps = MBPS_PER_GBPS * gbps
    return Sample(
        *pair, "aggregate_mbps", mbps, at_s, "iperf3", CONNECTIONS, TEST_S, warmed_up=True
    )


@dataclass(frozen=True)
class Schedule:
    """When links are measured, and which.

    Attributes
    ----------
    name : str
    every_days : int
    threshold : float
        Expected regret at which a campaign stops.
    limited : bool
        Whether a campaign stops at what `relayd probe` spends without a budget.
    all_pairs : bool
        Whether a campaign measures every link, at any regret.
    first_s : float
        What a test measures first, and ends with where that finds what is expected.
    """

    name: str
    every_days: int = 1
    threshold: float = 0.0
    limited: bool = True
    all_pairs: bool = False
    first_s: float = 0.0

    def batches(self, watched: Watched, day: int) -> Iterator[Sequence[ProbeTask]]:
        """Yield the tasks of a day, batch by batch: each uses the results of the last one."""
        if day % self.every_days:
            return
        network, region_of = watched.network(), {region: region for region in watched.regions}
        most = UNLIMITED
        if self.all_pairs or self.limited:
            everything = all_pairs_tasks(
                watched.regions, lambda s, d: watched.gbps(network, s, d), connections=CONNECTIONS
            )
            if self.all_pairs:
                yield everything
                return
            most = frugal_allowance(everything, region_of, Meter(CATALOGUE).price)
        for _ in range(MOST_BATCHES):
            choice = choose_links(
                region_of,
                network,
                Meter(CATALOGUE).price,
                allowance=most.after(watched.usd[-1], watched.sent_gb[-1]),
                threshold=self.threshold,
                connections=CONNECTIONS,
            )
            if not choice.tasks:
                return
            yield self._shaped(choice.tasks, watched, network)
            network = watched.network()

    def _shaped(
        self, tasks: Sequence[ProbeTask], watched: Watched, network: Network
    ) -> list[ProbeTask]:
        """Return tasks as campaigns run them."""
        return with_ramps(
            tasks,
            Method(ramp="never"),
            watched.fleet,
            network.link,
            (),
            lambda task: warm_up_s(task, lambda *pair: network.link(*pair).rtt_ms.expected),
            first_s=self.first_s,
        )


def simulated(schedule: Schedule, links: Links, days: int, seed: int) -> tuple[Floats, Floats]:
    """Return the true regret and the money of each day."""
    links = replace(links)
    watched = Watched(links.regions, links.rtt_ms)
    # Apart, so that links drift alike in all runs.
    drifting, testing = (np.random.default_rng((seed, part)) for part in (0, 1))
    regrets = []
    for day in range(days):
        watched.now_s = BEGIN_S + day * SECONDS_PER_DAY
        watched.usd.append(0.0)
        watched.sent_gb.append(0.0)
        level_gbps = links.level_gbps()
        for tasks in schedule.batches(watched, day):
            watched.measure(tasks, level_gbps, links.noise, testing)
        rates = RateMatrices.of(watched.network(), links.regions, CONNECTIONS)
        regrets.append(regret_on(rates, level_gbps))
        links.drift(1.0, drifting)
    return np.array(regrets), np.array(watched.usd)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--still", action="store_true", help="links that do not drift")
    parser.add_argument("--regrets", type=float, nargs="*", default=[0.0825, 0.08, 0.076])
    parser.add_argument("--whole", type=float, nargs="*", default=[], help="with whole tests")
    parser.add_argument("--every", type=int, nargs="*", default=[7, 3])
    parser.add_argument("--short", type=int, nargs="*", default=[], help="with short tests")
    parser.add_argument("--all-pairs", type=int, nargs="*", default=[])
    options = parser.parse_args()
    schedules = [
        *(
            Schedule(
                f"for an expected regret of {100 * share:g} %{how}",
                1,
                share,
                limited=False,
                first_s=first_s,
            )
            for shares, first_s, how in (
                (options.regrets, FIRST_S, ""),
                (options.whole, 0.0, ", whole tests"),
            )
            for share in shares
        ),
        *(
            Schedule(f"a campaign every {days} days{how}", days, first_s=first_s)
            for every, first_s, how in (
                (options.every, 0.0, ""),
                (options.short, FIRST_S, ", short tests"),
            )
            for days in every
        ),
        *(
            Schedule(f"all pairs every {days} days", days, all_pairs=True)
            for days in options.all_pairs
        ),
    ]
    links, title = Links.of_grid()
    if options.still:
        links.memory_days.fill(np.inf)
    rows = []
    for schedule in schedules:
        runs = [simulated(schedule, links, options.days, seed) for seed in range(options.seeds)]
        regrets, usd = (np.array(found) for found in zip(*runs, strict=True))
        figures = (usd[:, 0].mean(), usd[:, 1:].mean(), usd.sum(axis=1).mean())
        rows.append(
            (
                schedule.name,
                f"{100 * regrets.mean():.1f} %",
                f"{100 * np.quantile(regrets, 0.95):.1f} %",
                f"{100 * regrets[:, -7:].mean():.1f} %",
                *(f"{dollars:.2f}" for dollars in figures),
            )
        )
        print(" | ".join(rows[-1]), file=sys.stderr)
    header = ("measured", "regret", "p95", "last week", "$ first day", "$ a day after", "$ in all")
    moving = "without drift" if options.still else "of drift"
    title = f"{options.days} days {moving}, {len(links.regions)} regions of the {title}"
    show(title, header, rows)


if __name__ == "__main__":
    main()
