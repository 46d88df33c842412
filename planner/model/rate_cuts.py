"""Links that carry more at first: their mean rate over the volume of a transfer.

A link falls from ``a`` to ``b`` after a volume G, or after a time T, in which it has carried
``G = a T / 8``. Over a volume V beyond G it takes ``8 G / a + 8 (V - G) / b``, so on average it
carries ``V / (G / a + (V - G) / b)``. A path that takes a share of V only is better off than that:
it is on the safe side. So is what more VMs have: the volume at the first rate counts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.model.estimate import RateCut
from planner.model.link import Link, Site
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, duration_text


def with_first_rates(network: Network, src: str, dst: str, volume_gb: float) -> Network:
    """Return the network as a transfer that begins now finds it, on average over its volume.

    Only links that it may use are looked at, directly and over one relay.
    """
    changed = []
    for link, cut in _links_that_fall(network, src, dst):
        more = average_gbps(cut, volume_gb) / cut.after_gbps
        changed.append(replace(link, aggregate_gbps=link.aggregate_gbps.scaled(more)))
    return network.with_(links=network.usual.with_links(changed)) if changed else network


def average_gbps(cut: RateCut, volume_gb: float) -> float:
    """Return the mean rate of a link over a volume."""
    first_gb = _first_gb(cut)
    if volume_gb <= first_gb:
        return cut.before_gbps
    return volume_gb / (first_gb / cut.before_gbps + (volume_gb - first_gb) / cut.after_gbps)


def in_words(link: Link, volume_gb: float) -> str | None:
    """Describe a link whose rate falls, for a plan; None for other links."""
    cut = link.aggregate_gbps.origin.rate_cut
    if cut is None:
        return None
    after = f"{cut.after_gb:.3g} GB" if cut.cause == "volume" else f"{cut.after_s:.0f} s"
    fall = (
        f"{link.src} -> {link.dst} falls from {cut.before_gbps:.3g} to {cut.after_gbps:.3g} Gbit/s "
        f"a VM pair after {after}"
    )
    if cut.cause == "burst":
        return f"{fall}: the plan counts on the second alone."
    if volume_gb <= _first_gb(cut):
        return f"{fall}; this transfer may end before."
    return f"{fall}: {average_gbps(cut, volume_gb):.3g} on average over {volume_gb:g} GB."


def burst_in_words(site: Site, cut: RateCut) -> str:
    """Describe a VM with a token bucket, for a plan that counts on the lasting rate alone."""
    rest = ""
    if cut.refill_gbps:
        tokens_gb = cut.after_gb * (1 - cut.after_gbps / cut.before_gbps)
        rest = f", and rests {duration_text(BITS_PER_BYTE * tokens_gb / cut.refill_gbps)} for more"
    return (
        f"A VM at {site.region} sends {cut.before_gbps:.3g} Gbit/s for the first "
        f"{cut.after_gb:.3g} GB, then {cut.after_gbps:.3g}{rest}: the plan counts on what lasts."
    )


def _links_that_fall(network: Network, src: str, dst: str) -> Iterator[tuple[Link, RateCut]]:
    """Yield the links out of a source, and into a destination, whose rate falls.

    But for a burst at the start, which is the VM's, and which all its links share.
    """
    links, index, names = network.usual, network.index, network.usual.regions
    for k, cut in links.rate_cuts(links.row(index[src])):
        if cut.cause != "burst":
            yield links[src][names[k]], cut
    for k, cut in links.rate_cuts(links.column(index[dst])):
        if cut.cause != "burst" and links.link(src, names[k]):
            yield links[names[k]][dst], cut


def _first_gb(cut: RateCut) -> float:
    return cut.before_gbps * cut.after_s / BITS_PER_BYTE if cut.cause == "time" else cut.after_gb
