"""Prints what relays recommended on January 2022 bring in November, by two rules of decision.

``python -m scripts.recommendation_study`` imports the grid of January, plans every pair that
November measured too (objective time, one VM a region) and holds the plans against November. The
rules are today's, expected regret over shared draws, and that of version 0.1: relay-low over
direct-high. Links within Google Cloud are left out, as the grids differ in their kind of address.
Needs the shared measurements (tests/shared_data.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.achieved import exact, outcome
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.transfer.decision import Decision, decide
from planner.transfer.options import Option
from planner.transfer.request import TransferRequest
from tests.probes.estimation.cross_validation import (
    CATALOGUE,
    JANUARY,
    NOVEMBER,
    NOVEMBER_S,
    estimated,
    grid,
    providers,
    same_addresses,
)

VOLUME_GB = 500.0
STILL = 1.1
FEWEST = 10


Rule = Callable[[Decision, Option, Option], bool]
"""Tells whether a plan is worth taking over the direct one."""


def by_regret(decision: Decision, option: Option, direct: Option) -> bool:
    """Today's rule: the least expected regret."""
    return decision.figures.gain(option, direct).worth


def by_bounds(decision: Decision, option: Option, direct: Option) -> bool:
    """Relay-low over direct-high."""
    low = option.rate_at("low")
    high = direct.rate_at("high")
    return low >= (1 + decision.request.margin) * high


RULES: dict[str, Rule] = {"expected regret": by_regret, "relay-low over direct-high": by_bounds}
VIEWS = {"one path": False, "several paths": True}


def best(decision: Decision, *, several: bool) -> Option:
    """Return the fastest plan on expected figures: of one path, or of any number."""
    if several:
        return decision.made.optimum
    return min(
        (option for option in (decision.direct, decision.best_relay) if option),
        key=lambda option: option.value_usd,
    )


@dataclass
class Followed:
    """The results of following a rule.

    Attributes
    ----------
    kept : dict of str to list of bool
        Whether a recommended relay still brings :data:`STILL` times the direct path, by providers.
    rates_gbps, best_gbps, usd : list of float
        Of all pairs, what was chosen and what hindsight has.
    """

    kept: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    rates_gbps: list[float] = field(default_factory=list)
    best_gbps: list[float] = field(default_factory=list)
    usd: list[float] = field(default_factory=list)


def followed() -> dict[tuple[str, str], Followed]:
    """Plan on January in each view by each rule, and carry the plans out in November."""
    pairs = [pair for pair in sorted(grid(NOVEMBER)) if same_addresses(pair)]
    regions = sorted({end for pair in pairs for end in pair})
    january = [pair for pair in grid(JANUARY) if same_addresses(pair)]
    believed = _among(regions, estimated(january)).with_(aged_to_s=NOVEMBER_S)
    truth = exact(_among(regions, estimated(pairs, NOVEMBER)))
    found = {(view, rule): Followed() for view in VIEWS for rule in RULES}
    for src, dst in pairs:
        if (src, dst) not in grid(JANUARY):
            continue
        request = TransferRequest(src, dst, volume_gb=VOLUME_GB, objective="time", vms=1)
        decision = decide(request, believed, CataloguePrices(CATALOGUE, believed))
        hindsight = decide(request, truth, CataloguePrices(CATALOGUE, truth))
        direct = decision.direct
        assert direct is not None
        for (view, rule), result in found.items():
            option = best(decision, several=VIEWS[view])
            if option is not direct and not RULES[rule](decision, option, direct):
                option = direct
            gbps, usd = outcome(hindsight, option.allocation)
            of_hindsight = best(hindsight, several=VIEWS[view]).allocation
            result.rates_gbps.append(gbps)
            result.best_gbps.append(outcome(hindsight, of_hindsight)[0])
            result.usd.append(usd)
            if option is not direct:
                direct_gbps, _ = outcome(hindsight, direct.allocation)
                result.kept[providers((src, dst))].append(gbps >= STILL * direct_gbps)
    return found


def _among(regions: list[str], network: Network) -> Network:
    """Return a network without other regions and without links over other addresses."""
    links = {
        src: {dst: link for dst, link in row.items() if same_addresses((src, dst))}
        for src, row in network.links.items()
    }
    return network.with_(links=links, restricted_to=regions)


def rows() -> list[str]:
    """Return the rows of the table."""
    table = [
        ["", "rule", "relays", f"still {STILL}x", "throughput of hindsight", "mean cost", "by"]
    ]
    for (view, rule), found in followed().items():
        every = [one for kept in found.kept.values() for one in kept]
        by = (
            f"{pair} {sum(kept)} of {len(kept)}"
            for pair, kept in sorted(found.kept.items())
            if len(kept) >= FEWEST
        )
        table.append(
            [
                view,
                rule,
                f"{len(every)}",
                f"{sum(every) / max(1, len(every)):.1%}",
                f"{sum(found.rates_gbps) / sum(found.best_gbps):.2%}",
                f"${sum(found.usd) / len(found.usd):.2f}",
                ", ".join(by),
            ]
        )
    return [f"| {' | '.join(row)} |" for row in table]


if __name__ == "__main__":
    print(*rows(), sep="\n")
