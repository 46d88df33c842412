"""Two readings of slow links that were never ramped, and their consequence for a plan.

A rate below the caps of both VMs and below what windows allow has two readings: the path ends
there, or each of its connections is slow and more of them would carry more. With the connections
that the link was measured with, both agree. Rates of plans are those of the first; their bounds,
and the choice between them, rest on both, by the probability of each.

Why it is so: docs/decisions/01-two-readings.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.model.answer import PathShare
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import BITS_PER_BYTE, gbps_text
from planner.transfer.decision import Decision
from planner.transfer.options import SHARE_THAT_HOLDS, Option
from planner.transfer.plan import MeasureFirst

LINKS_NAMED = 3
RAMP_STEPS, RAMP_STEP_S = (2, 4), 5.0
"""Multiples of the connections that are tried, each for so long."""


def warnings(
    paths: Sequence[PathShare],
    vms: dict[str, int],
    network: Network,
    if_slow_gbps: float | None = None,
) -> list[str]:
    """Return warnings about links that were never tried as a plan uses them.

    Parameters
    ----------
    paths : sequence of PathShare
        Those of the plan.
    vms : dict of str to int
        Its VMs by region.
    if_slow_gbps : float | None
        What they carry in their shares if connections are slow; None where each path is alone.
    """
    found = []
    planned = sum(path.throughput_gbps for path in paths)
    slow: dict[str, None] = {}
    carried = 0.0
    for path in paths:
        rate = path.throughput_gbps
        for src, dst in pairwise(path.regions):
            link = network.link(src, dst)
            if link.slow_connections:
                at_most = path.connections * link.slow_gbps
                if at_most < SHARE_THAT_HOLDS * path.throughput_gbps:
                    slow[f"{src} -> {dst}"] = None
                rate = min(rate, at_most)
        carried += rate
    if if_slow_gbps is not None:
        carried = if_slow_gbps
    if carried < SHARE_THAT_HOLDS * planned:
        found.append(
            f"If the limit of {_listed(list(slow), 'of')} is each connection, not the whole path, "
            f"these connections carry {gbps_text(carried)} instead of {gbps_text(planned)} Gbit/s; "
            "no one has tried more of them."
        )
    doubled = [
        f"{src} -> {dst}"
        for path in paths
        for src, dst in pairwise(path.regions)
        if _needs_more_than_one_vm(network.link(src, dst), path, vms)
    ]
    if doubled:
        found.append(
            f"That a further VM carries as much as the first over {_listed(doubled, 'over')} is "
            "assumed: no one has tried it."
        )
    return found


def in_words(decision: Decision) -> str:
    """Return on which reading a decision rests, in a sentence; empty where both agree."""
    chosen, split = decision.chosen, decision.made.left_out
    if chosen.rests_on_a_reading and len(chosen.allocation.flows) > 1:
        links = _listed(_doubtful(chosen), "of")
        return f" This assumes that the limit of {links} is the whole path, not each connection."
    if split is None:
        return ""
    would = f" A split over {len(split.allocation.flows)} paths would carry "
    would += f"{gbps_text(split.allocation.rate_gbps)} Gbit/s"
    if not split.rests_on_a_reading:
        return (
            f"{would} as expected, but perhaps as little as {gbps_text(split.rate_at('low'))}: by "
            "expected regret it is not worth its further paths."
        )
    links = _listed(_doubtful(split), "of")
    return (
        f"{would} if the limit of {links} is the whole path, but {gbps_text(split.gbps_if_slow)} "
        "if it is each connection; this plan holds either way."
    )


def link_to_ramp(decision: Decision) -> tuple[str, str] | None:
    """Return the link whose ramp decides: the direct one, which a relay replaces, comes first."""
    chosen, figures = decision.chosen, decision.figures
    options = [one for one in (chosen, decision.made.left_out) if one and one.relays]
    links = [*figures.pairs_of(None)] if decision.search.transfer.direct and options else []
    links += [pair for option in options for pair in option.slow_shares]
    slow = (pair for pair in links if figures.network.link(*pair).slow_connections)
    return next(slow, None)


def _doubtful(option: Option) -> list[str]:
    """Return the names of links whose connections are too few if they are slow."""
    shares = option.slow_shares.items()
    return [f"{src} -> {dst}" for (src, dst), share in shares if share < SHARE_THAT_HOLDS]


def ramp(link: Link, most_gbps: float, connections: int, prices: Prices) -> MeasureFirst:
    """Return the test of more connections that tells what limits a link, with its price.

    Parameters
    ----------
    most_gbps : float
        What the VMs at both ends can carry.
    connections : int
        Those that it was measured with.
    """
    rates = [min(step * link.aggregate_gbps.expected, most_gbps) for step in RAMP_STEPS]
    volume_gb = sum(rates) * RAMP_STEP_S / BITS_PER_BYTE
    counts = " and ".join(str(step * connections) for step in RAMP_STEPS)
    return MeasureFirst(
        link.src,
        link.dst,
        "ramp",
        RAMP_STEP_S * len(RAMP_STEPS),
        volume_gb,
        volume_gb * prices.egress_usd_per_gb(link.src, link.dst, volume_gb),
        f"with {counts} connections it may carry more than with {connections}, at no cost and "
        "without a relay; no one has tried",
    )


def _listed(links: Sequence[str], preposition: str) -> str:
    """Return the names of links in a sentence; of many, the first."""
    named = f" and {preposition} ".join(links[:LINKS_NAMED])
    more = len(links) - LINKS_NAMED
    return f"{named} and {more} other link{'s' if more > 1 else ''}" if more > 0 else named


def _needs_more_than_one_vm(link: Link, path: PathShare, vms: dict[str, int]) -> bool:
    """Return whether a plan needs more VMs because one VM pair is too slow over a link."""
    tried = min(vms[link.src], vms[link.dst]) <= link.tried_vms
    if tried or link.limited_by not in {"path", "unknown"}:
        return False
    return path.throughput_gbps * SHARE_THAT_HOLDS > link.aggregate_gbps.expected
