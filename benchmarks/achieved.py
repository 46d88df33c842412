"""Compare plans made on estimates with plans made on the truth, by what they achieve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from statistics import fmean
from typing import Any

from benchmarks.table import quantile
from planner.model.estimate import Estimate, exactly
from planner.model.link import LINK_FIGURES, SITE_FIGURES, Link, Site
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import S_PER_H, duration_s
from planner.transfer.allocation import Allocation
from planner.transfer.decision import Decision, decide
from planner.transfer.options import Option
from planner.transfer.request import Objective, TransferRequest


@dataclass(frozen=True, slots=True)
class Achieved:
    """Shares of what plans on the truth achieve; 1 is all of it.

    A plan on beliefs may get more for a dollar than one on the truth that pays for speed; by pair,
    that counts as 1 and makes up for nothing elsewhere.
    """

    # Throughput per dollar and throughput, each pair at most 1: mean and 10th percentile
    per_usd: float
    per_usd_p10: float
    rate: float
    rate_p10: float


def achieved(
    believed: Network,
    truth: Network,
    prices_of: Callable[[Network], Prices],
    objective: Objective,
    *,
    volume_gb: float = 500.0,
    connections: int = 64,
) -> Achieved:
    """Compare plans for all ordered pairs, one VM a region, as `relayd plan` makes them.

    Parameters
    ----------
    believed, truth : Network
        Of the same regions in the same order.
    prices_of : callable
    objective : Objective
    volume_gb, connections
        Of each transfer.
    """
    known = exact(truth)
    # Allocations name relays by their place.
    assert list(believed.sites) == list(known.sites)
    per_usd, rates = [], []
    for src, dst in permutations(truth.sites, 2):
        request = TransferRequest(
            src, dst, volume_gb=volume_gb, objective=objective, connections=connections, vms=1
        )
        judge = decide(request, known, prices_of(known))
        best = judge.chosen.allocation
        made = decide(request, believed, prices_of(believed)).chosen.allocation
        best_gbps, best_usd = outcome(judge, best)
        made_gbps, made_usd = outcome(judge, made)
        rates.append(min(1.0, made_gbps / best_gbps))
        per_usd.append(min(1.0, made_gbps / made_usd * best_usd / best_gbps))
    return Achieved(fmean(per_usd), quantile(per_usd, 0.1), fmean(rates), quantile(rates, 0.1))


def exact(network: Network) -> Network:
    """Return a network whose expected figures are certain."""
    return with_estimates(network, lambda _, estimate: exactly(estimate.expected))


def with_estimates(network: Network, changed: Callable[[str, Estimate], Estimate]) -> Network:
    """Return a network with other estimates, each made from its name and the one that was."""

    def all_of(names: Sequence[str], of: Site | Link) -> dict[str, Any]:
        return {name: changed(name, getattr(of, name)) for name in names}

    sites = {
        name: replace(site, **all_of(SITE_FIGURES, site)) for name, site in network.sites.items()
    }
    links = {
        src: {dst: replace(link, **all_of(LINK_FIGURES, link)) for dst, link in row.items()}
        for src, row in network.links.items()
    }
    return network.with_(sites=sites, links=links)


def outcome(judge: Decision, allocation: Allocation) -> tuple[float, float]:
    """Return the rate in Gbit/s and the cost in USD that an allocation really has."""
    # Of the two, one is the planned rate and the other what is possible.
    option = Option(judge.figures, allocation, judge.request.hour_usd)
    slower_gbps, faster_gbps = option.rate_at("low"), option.rate_at("high")
    gbps = slower_gbps if slower_gbps < allocation.rate_gbps else faster_gbps
    paid_s = option.lead_s + duration_s(judge.request.volume_gb, gbps)
    vm_usd = allocation.usd_per_h * paid_s / S_PER_H
    return gbps, allocation.egress_usd + vm_usd
