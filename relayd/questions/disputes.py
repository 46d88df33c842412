"""What an answer rests on that somebody contradicts, or that nobody has confirmed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES
from planner.model.network import Network

LEAST_DISPUTED = 2
DISPUTED_SHARE = 0.1
"""Of the samples that count: as many that contradict are no odd tests."""
_FIGURES = {
    "rtt_ms": "round-trip time",
    "per_flow_mbps": "throughput of one flow",
    "aggregate_gbps": "throughput",
}
Pair = tuple[str, str]


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
    notes: dict[str, None] = {}
    for src, dst in pairs:
        link = network.usual.get(src, {}).get(dst)
        if link is None:
            continue
        of_link = [(f"{_FIGURES[name]} of {src} -> {dst}", name) for name in LINK_FIGURES]
        figures = [(what, getattr(link, name)) for what, name in of_link]
        figures.append((f"egress cap of {src}", network.sites[src].egress(link.address)))
        figures.append((f"ingress cap of {dst}", network.sites[dst].ingress(link.address)))
        for what, estimate in figures:
            notes.update(dict.fromkeys(_notes_of(what, estimate)))
    return tuple(notes)


def _notes_of(what: str, estimate: Estimate) -> Iterable[str]:
    figures = estimate.origin.figures
    if figures is None:
        return
    if figures.unconfirmed and figures.reported_by:
        yield (
            f"The {what} has changed by what {_joined(figures.reported_by)} report, which the "
            "prober has not confirmed: `relayd probe` measures it."
        )
    least = max(LEAST_DISPUTED, DISPUTED_SHARE * estimate.origin.samples)
    if figures.disputed_by and (figures.disputed or 0) >= least:
        yield (
            f"{figures.disputed} samples of {_joined(figures.disputed_by)} contradict the {what} "
            "and do not count: see `relayd samples list --disputed`."
        )


def _joined(names: tuple[str, ...]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
