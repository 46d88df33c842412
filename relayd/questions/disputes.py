"""What an answer rests on that somebody contradicts, or that nobody has confirmed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES
from planner.model.network import Network
from probes.samples import Metric

LEAST_DISPUTED = 2
DISPUTED_SHARE = 0.1
"""Of the samples that count: as many that contradict are no odd tests."""
_FIGURES = {
    "rtt_ms": "round-trip time",
    "per_flow_mbps": "throughput of one flow",
    "aggregate_gbps": "throughput",
}
_METRICS: dict[str, Metric] = {
    "rtt_ms": "rtt_ms",
    "per_flow_mbps": "per_flow_mbps",
    "aggregate_gbps": "aggregate_mbps",
}
Pair = tuple[str, str]


class DisputedFigure(NamedTuple):
    """A figure that samples contradict, or that rests on a new level that nobody has confirmed.

    Attributes
    ----------
    src, dst : str
        Region ids; equal for the cap of a VM.
    metric : Metric
        Of the samples.
    sources : tuple of str
        Who reported them.
    samples : int
        How many contradict the figure; 0 of a new level, whose samples count.
    sentence : str
    """

    src: str
    dst: str
    metric: Metric
    sources: tuple[str, ...]
    samples: int
    sentence: str


def dispute_notes(network: Network, answer: object, asked: Iterable[Pair]) -> tuple[str, ...]:
    """Return a sentence for each figure of the links of an answer that is in dispute.

    Parameters
    ----------
    network : Network
    answer : object
        Whose ``paths``, where it has some, count beside the links that were asked about.
    asked : iterable of (str, str)
    """
    pairs = dict.fromkeys(asked)
    for path in getattr(answer, "paths", ()):
        pairs.update(dict.fromkeys(pairwise(getattr(path, "regions", ()))))
    return tuple(figure.sentence for figure in disputed_figures(network, pairs))


def disputed_figures(network: Network, pairs: Iterable[Pair]) -> list[DisputedFigure]:
    """Return the figures of links, and of the VMs at their ends, that are in dispute."""
    found: dict[DisputedFigure, None] = {}
    for src, dst in pairs:
        link = network.usual.get(src, {}).get(dst)
        if link is None:
            continue
        for name in LINK_FIGURES:
            what = f"{_FIGURES[name]} of {src} -> {dst}"
            estimate = getattr(link, name)
            found.update(dict.fromkeys(_disputes_of(what, estimate, src, dst, _METRICS[name])))
        egress = network.sites[src].egress(link.address)
        of_egress = _disputes_of(f"egress cap of {src}", egress, src, src, "egress_cap_mbps")
        ingress = network.sites[dst].ingress(link.address)
        of_ingress = _disputes_of(f"ingress cap of {dst}", ingress, dst, dst, "ingress_cap_mbps")
        found.update(dict.fromkeys([*of_egress, *of_ingress]))
    return list(found)


def _disputes_of(
    what: str, estimate: Estimate, src: str, dst: str, metric: Metric
) -> Iterator[DisputedFigure]:
    figures = estimate.origin.figures
    if figures is None:
        return
    if figures.unconfirmed and figures.reported_by:
        sentence = (
            f"The {what} has changed by what {_joined(figures.reported_by)} report, which the "
            "prober has not confirmed: `relayd probe` measures it."
        )
        yield DisputedFigure(src, dst, metric, figures.reported_by, 0, sentence)
    least = max(LEAST_DISPUTED, DISPUTED_SHARE * estimate.origin.samples)
    count = figures.disputed or 0
    if figures.disputed_by and count >= least:
        sentence = (
            f"{count} samples of {_joined(figures.disputed_by)} contradict the {what} "
            "and do not count: see `relayd samples list --disputed`."
        )
        yield DisputedFigure(src, dst, metric, figures.disputed_by, count, sentence)


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
