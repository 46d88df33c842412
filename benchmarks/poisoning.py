"""Effect of one lying token, and of two together, on estimates and plans.

``python -m benchmarks.poisoning [SEEDS]``. 200 links among 15 regions of three clouds were measured
for two weeks by the own prober and by two honest tokens; a tenth of all samples are false besides,
by a factor of a thousandth to a thousand, from one token. In each of :data:`ATTACKS`, plans between
all pairs are compared with those on the honest samples alone. Gates of what is physically possible
are left out here: they would stop the wildest factors before.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from math import exp, log
from typing import NamedTuple, TypeAlias

from benchmarks.table import show
from planner.model.catalogue import Catalogue
from planner.model.link import LINK_FIGURES, SITE_FIGURES
from planner.model.network import Network, Snapshot
from planner.transfer.plan import Plan
from probes.estimation import Estimator
from probes.metrics import Metric
from probes.samples import OWN, Sample, Samples
from relayd.catalogue.loading import load_catalogue
from relayd.sources.wan import Wan

REGIONS = (
    *("aws:us-east-1", "aws:us-west-2", "aws:eu-west-1", "aws:ap-southeast-1", "aws:sa-east-1"),
    *("azure:eastus", "azure:westus2", "azure:westeurope", "azure:japaneast", "azure:brazilsouth"),
    *("gcp:us-east1", "gcp:us-west1", "gcp:europe-west1", "gcp:asia-southeast1"),
    "gcp:southamerica-east1",
)
LINKS = 200
DAYS = 14
FALSE_SHARE = 0.1
NOW_S = 1.795e9
DAY_S = 86400.0
LIAR = "token mallory"
HONEST = ("token a", "token b")
NOISE = {"rtt_ms": 0.01, "per_flow_mbps": 0.06, "aggregate_mbps": 0.05}
CAPS: tuple[Metric, ...] = ("egress_cap_mbps", "ingress_cap_mbps")
MOST_MOVED = 0.15
Series = tuple[str, str, Metric]


class Reported(NamedTuple):
    """A sample with its reporter, its place in the order of arrival, and when it arrived."""

    sample: Sample
    source: str
    id: int
    arrived_at_s: float


class World(NamedTuple):
    """The true figures, and what honest sources report of them."""

    links: list[tuple[str, str]]
    levels: dict[Series, float]  # source, destination and metric to the true figure
    honest: list[Reported]


def world(seed: int, catalogue: Catalogue) -> World:
    """Draw levels about the providers' laws, and two weeks of honest samples."""
    rng = random.Random(seed)
    known = Estimator(Samples(), catalogue).network(Snapshot("", "", ""))
    links = rng.sample(list(permutations(REGIONS, 2)), LINKS)
    levels: dict[Series, float] = {}
    for src, dst in links:
        link = known.link(src, dst)
        gbps = link.aggregate_gbps
        level = rng.gauss(log(gbps.expected), log(gbps.high / gbps.low) / 3.3)
        most = min(known.sites[src].egress_gbps.expected, known.sites[dst].ingress_gbps.expected)
        levels[src, dst, "aggregate_mbps"] = 1000 * min(exp(level), most)
        levels[src, dst, "per_flow_mbps"] = link.per_flow_mbps.expected * exp(rng.gauss(0, 0.05))
        levels[src, dst, "rtt_ms"] = link.rtt_ms.expected * exp(rng.gauss(0, 0.05))
    for region in REGIONS:
        site = known.sites[region]
        for metric, cap in zip(CAPS, (site.egress_gbps, site.ingress_gbps), strict=True):
            levels[region, region, metric] = 1000 * cap.expected
    honest: list[Reported] = []
    for key in levels:
        every = 2 if key[2] in CAPS else 1
        for day in range(0, DAYS, every):
            at_s = NOW_S - (DAYS - day - rng.random()) * DAY_S
            honest.append(_reported(key, levels[key] * _noise(key, rng), at_s, OWN, len(honest)))
        for source in HONEST if key[2] not in CAPS else ():
            for _ in range(4):
                at_s = NOW_S - rng.random() * DAYS * DAY_S
                found = levels[key] * _noise(key, rng)
                honest.append(_reported(key, found, at_s, source, len(honest)))
    return World(links, levels, honest)


def _noise(key: Series, rng: random.Random) -> float:
    return exp(rng.gauss(0, NOISE.get(key[2], 0.02)))


def _reported(key: Series, value: float, at_s: float, source: str, number: int) -> Reported:
    connections = 64 if key[2] in ("aggregate_mbps", *CAPS) else 1
    sample = Sample(*key, value, at_s, "iperf3", connections, 10.0, warmed_up=True)
    return Reported(sample, source, number, at_s)


class Attack(NamedTuple):
    """Where a tenth of all samples is false, and when they say that they were measured."""

    on: Callable[[World, random.Random], list[Series]]  # returns the series that are lied about
    from_s: float  # after now
    to_s: float
    # Whether each series is off by one factor again and again, or by another each time
    one_level: bool = False

    def false(self, found: World, rng: random.Random) -> list[Reported]:
        """Return false samples, off by factors of a thousandth to a thousand."""
        series = self.on(found, rng)
        levels = {key: 10 ** rng.uniform(-3, 3) for key in series if self.one_level}
        rows = []
        for number in range(round(FALSE_SHARE / (1 - FALSE_SHARE) * len(found.honest))):
            key = rng.choice(series)
            off = levels[key] * exp(rng.gauss(0, 0.02)) if levels else 10 ** rng.uniform(-3, 3)
            at_s = NOW_S + self.from_s + (self.to_s - self.from_s) * rng.random()
            value, count = found.levels[key] * off, len(found.honest) + number
            rows.append(_reported(key, value, at_s, LIAR, count))
        return rows


def _everywhere(found: World, _: random.Random) -> list[Series]:
    return list(found.levels)


def _on_twenty_links(found: World, rng: random.Random) -> list[Series]:
    chosen = set(rng.sample(found.links, 20))
    return [key for key in found.levels if key[:2] in chosen]


def _on_caps_and_round_trips(found: World, _: random.Random) -> list[Series]:
    return [key for key in found.levels if key[2] in (*CAPS, "rtt_ms")]


ATTACKS = {
    "everywhere, at any time": Attack(_everywhere, -DAYS * DAY_S, 0.0),
    "all on 20 links": Attack(_on_twenty_links, -DAYS * DAY_S, 0.0),
    "newer than any honest one": Attack(_everywhere, 0.0, 30.0),
    "one level on 20 links, ahead of time": Attack(_on_twenty_links, 30.0, 60.0, one_level=True),
    "on caps and round trips": Attack(_on_caps_and_round_trips, -DAY_S, 0.0),
}


# ---- links that only one token has measured -----------------------------------------------------

LoneAttack: TypeAlias = "Callable[[Series, dict[Series, float]], float | None]"
"""Returns what is reported of a series, or None for nothing."""


def _in_wrong_units(key: Series, levels: dict[Series, float]) -> float | None:
    return None if key[2] == "rtt_ms" or key[2] in CAPS else levels[key] / 1000


def _twice_the_card(key: Series, levels: dict[Series, float]) -> float | None:
    return 2 * levels[key[0], key[0], "egress_cap_mbps"] if key[2] == "aggregate_mbps" else None


def _of_the_opposite_direction(key: Series, levels: dict[Series, float]) -> float | None:
    return None if key[2] in CAPS else levels.get((key[1], key[0], key[2]))


LOSSY = "half of all packets are lost"
LONE_ATTACKS: dict[str, LoneAttack] = {
    "throughput in Gbit/s where Mbit/s are meant": _in_wrong_units,
    "round trips of 900 ms": lambda key, _: 900.0 if key[2] == "rtt_ms" else None,
    "throughput of twice what the sender's network card carries": _twice_the_card,
    "caps of VMs of 20 Mbit/s": lambda key, _: 20.0 if key[2] in CAPS else None,
    "figures of the opposite direction": _of_the_opposite_direction,
    "half of each rate and cap, twice each round trip": (
        lambda key, levels: levels[key] * (2.0 if key[2] == "rtt_ms" else 0.5)
    ),
    LOSSY: lambda key, _: 50.0 if key[2] == "rtt_ms" else None,
}


class LoneOutcome(NamedTuple):
    """Effect of one token on links that no other source has measured."""

    plans: int
    moved: int  # of these, those whose rate, cost, duration or paths moved by over MOST_MOVED
    silent: int  # of these, those that do not name the token


def attacked_alone(seed: int, catalogue: Catalogue, pairs: int = LINKS) -> dict[str, LoneOutcome]:
    """Compare plans of some of the links, of which the own prober and honest tokens measured half.

    One token alone reports the other half, and the caps of every second region.
    """
    found = world(seed, catalogue)
    known = {*found.links[: LINKS // 2], *((region, region) for region in REGIONS[::2])}
    honest = [row for row in found.honest if row.sample[:2] in known]
    links = found.links[:: LINKS // pairs]
    before = _plans(network_of(honest, catalogue)[1], catalogue, links)
    outcomes = {}
    for name, attack in LONE_ATTACKS.items():
        false = [
            _reported(key, value, NOW_S - 3600.0 * n, LIAR, len(found.honest) + n)
            for key in found.levels
            if key[:2] not in known and (value := attack(key, found.levels)) is not None
            for n in range(6)
        ]
        if name == LOSSY:
            false = [row._replace(sample=row.sample._replace(metric="loss_pct")) for row in false]
        after = _plans(network_of([*honest, *false], catalogue)[1], catalogue, links)
        moved = [new for old, new in zip(before, after, strict=True) if _differ(old, new)]
        silent = sum(not any(LIAR in warning for warning in plan.warnings) for plan in moved)
        outcomes[name] = LoneOutcome(len(after), len(moved), silent)
    return outcomes


def _plans(network: Network, catalogue: Catalogue, links: Sequence[tuple[str, str]]) -> list[Plan]:
    wan = Wan(catalogue, network)
    return [wan.plan(src, dst, volume_gb=500, vms=1) for src, dst in links]


def _differ(old: Plan, new: Plan) -> bool:
    figures = (
        (one.throughput_gbps, one.duration_s, one.cost_usd.total, one.direct.throughput_gbps)
        for one in (old, new)
    )
    return [path.regions for path in old.paths] != [path.regions for path in new.paths] or any(
        abs(after / before - 1) > MOST_MOVED for before, after in zip(*figures, strict=True)
    )


def network_of(rows: Sequence[Reported], catalogue: Catalogue) -> tuple[Estimator, Network]:
    """Estimate a network from samples."""
    samples = Samples.of(row.sample for row in rows)
    samples.fill("source", [row.source for row in rows])
    samples.fill("id", [row.id for row in rows])
    estimator = Estimator(samples, catalogue)
    return estimator, estimator.network(Snapshot("s", "2026-11-18T00:00:00Z", "measured"))


def _verdicts(
    network: Network, catalogue: Catalogue, links: Sequence[tuple[str, str]]
) -> list[str]:
    plans = _plans(network, catalogue, links)
    return [f"{plan.verdict} {[path.regions for path in plan.paths]}" for plan in plans]


def most_moved(before: Network, after: Network, links: Sequence[tuple[str, str]]) -> float:
    """Return the largest relative change of a figure, of links and caps."""
    ends: list[tuple[object, object, tuple[str, ...]]] = [
        (before.link(*pair), after.link(*pair), LINK_FIGURES) for pair in links
    ]
    ends += [(before.sites[name], after.sites[name], SITE_FIGURES) for name in REGIONS]
    return max(
        abs(float(getattr(new, figure).expected / getattr(old, figure).expected) - 1)
        for old, new, figures in ends
        for figure in figures
    )


class Outcome(NamedTuple):
    """Effect of an attack by one token: changed verdicts of 200, and the largest relative move."""

    verdicts: int
    moved: float


def attacked(
    seed: int, catalogue: Catalogue, pairs: int = LINKS, names: Sequence[str] = tuple(ATTACKS)
) -> dict[str, Outcome]:
    """Return the changes that each attack makes to plans between some of the pairs."""
    found = world(seed, catalogue)
    links = found.links[:pairs]
    _, honest = network_of(found.honest, catalogue)
    recommended = _verdicts(honest, catalogue, links)
    outcomes = {}
    for name in names:
        false = ATTACKS[name].false(found, random.Random(seed))
        _, network = network_of([*found.honest, *false], catalogue)
        now = _verdicts(network, catalogue, links)
        changed = sum(a != b for a, b in zip(recommended, now, strict=True))
        outcomes[name] = Outcome(changed, most_moved(honest, network, found.links))
    return outcomes


def flagged(seed: int, catalogue: Catalogue) -> tuple[int, int]:
    """Count the links on which two tokens claim a new level, and those that are flagged."""
    found, rng = world(seed, catalogue), random.Random(seed)
    chosen = rng.sample(found.links, 20)
    false: list[Reported] = []
    for pair in chosen:
        key: Series = (*pair, "aggregate_mbps")
        for number in range(6):
            value = found.levels[key] * 0.3 * _noise(key, rng)
            source = ("token mallory", "token trent")[number % 2]
            false.append(_reported(key, value, NOW_S + number, source, 10**6 + len(false)))
    estimator, _ = network_of([*found.honest, *false], catalogue)
    named = {
        (one.src, one.dst)
        for one in estimator.disputes()
        if set(one.sources) <= {"token mallory", "token trent"}
    }
    return len(chosen), len(named & set(chosen))


def followed_after(seed: int, catalogue: Catalogue, sources: Sequence[str]) -> int:
    """Count the samples of a new level, by turns from sources, until estimates follow it."""
    found, rng = world(seed, catalogue), random.Random(seed)
    key: Series = (*found.links[0], "aggregate_mbps")
    of_link = [row for row in found.honest if row.sample[:3] == key]
    if sources == [OWN]:
        of_link = [row for row in of_link if row.source == OWN]
    # More than a change of level is learnt from.
    of_link += [
        _reported(key, found.levels[key] * _noise(key, rng), NOW_S - 3600 + n, OWN, n)
        for n in range(20)
    ]
    for count in range(1, 30):
        source = sources[count % len(sources)]
        value = found.levels[key] * 0.4 * _noise(key, rng)
        of_link.append(_reported(key, value, NOW_S + count, source, 10**6 + count))
        _, network = network_of(of_link, catalogue)
        gbps = network.link(*found.links[0]).aggregate_gbps.expected
        if abs(gbps / (found.levels[key] * 0.4 / 1000) - 1) < 0.2:
            return count
    return 30


def main() -> None:
    """Print the tables; docs/security.md has figures of them."""
    seeds, catalogue = int(sys.argv[1]) if sys.argv[1:] else 5, load_catalogue()
    among = [attacked(seed, catalogue) for seed in range(seeds)]
    rows = []
    for name in ATTACKS:
        verdicts, moved = zip(*(of_seed[name] for of_seed in among), strict=True)
        rows.append((name, str(seeds * LINKS), str(sum(verdicts)), f"{max(moved):.1%}"))
    header = ("a tenth is false", "plans", "verdicts changed", "most that a figure moved")
    show("One token lies", header, rows)
    alone = [attacked_alone(seed, catalogue) for seed in range(seeds)]
    sums = {
        name: map(sum, zip(*(one[name] for one in alone), strict=True)) for name in LONE_ATTACKS
    }
    show(
        "One token lies about links that no other source has measured",
        ("false", "plans", "moved over 15 %", "of these without a word"),
        [(name, *map(str, counts)) for name, counts in sums.items()],
    )
    claimed, named = map(sum, zip(*(flagged(s, catalogue) for s in range(seeds)), strict=True))
    print(f"Two tokens together: {named} of {claimed} links flagged in one snapshot.")
    for sources in ([OWN], [OWN, "token a"], ["token a", "token b"]):
        counts = [followed_after(seed, catalogue, sources) for seed in range(seeds)]
        print(f"New level by {sources}: followed after {min(counts)} to {max(counts)} samples.")


if __name__ == "__main__":
    main()
