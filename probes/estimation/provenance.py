"""Provenance of each figure of a link: its samples, their links, and the rule.

An estimate's origin names its method; this module finds the links and samples that took part. The
function that estimates use decides which of a link's samples count
(:meth:`.LinkSamples.counted`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Literal, TypeAlias

import numpy as np

from planner.model.baseline.modelled_links import flow_caps_gbps
from planner.model.catalogue import Catalogue
from planner.model.estimate import BOUNDS, AddressKind, Estimate, HeldTo, Method, Origin
from planner.model.link import LINK_FIGURES, Link, LinkFigure, Site
from planner.model.link_array import KINDS, Origins
from planner.model.network import Network
from probes.estimation.estimates import EstimateArray, no_estimates
from probes.estimation.groups import Floats
from probes.estimation.laws import LinkClasses
from probes.estimation.links import part_of
from probes.estimation.sites import most_calibrating_mbps
from probes.metrics import Metric

Quantity: TypeAlias = Literal[
    "rtt_ms",
    "per_flow_mbps",
    "aggregate_gbps",
    "loss_pct",
    "egress_gbps",
    "ingress_gbps",
    "window_mb",
]
Kind: TypeAlias = Literal["samples", "inference", "model", "stated", "nothing"]


@dataclass(frozen=True, slots=True)
class UsedSeries:
    """A link and metric whose samples took part."""

    src: str
    dst: str
    metric: Metric
    most: float = inf  # samples above it did not


@dataclass(frozen=True, slots=True)
class FigureProvenance:
    """The samples and the rule of which one figure was made."""

    quantity: Quantity
    region: str  # region of its VM; empty for the link itself
    estimate: Estimate | None  # None for loss, which has no bounds
    # ``samples`` of this very quantity, ``inference`` from others, ``model`` alone, ``stated`` by
    # the operator, or ``nothing`` is known
    kind: Kind
    rule: str  # the rule in a sentence
    rests_on: tuple[Quantity, ...] = ()  # other quantities of this link that it depends on
    series: tuple[UsedSeries, ...] = ()


class Provenance:
    """Follows the figures of a network back to samples.

    The network is as it was estimated: neither widened for age nor with states of links laid over
    it. Without a kind of address, links of both kinds may be in use.
    """

    def __init__(
        self, network: Network, catalogue: Catalogue, address: AddressKind | None = None
    ) -> None:
        self._network = network
        self._catalogue = catalogue
        self._address = address

    def of(self, src: str, dst: str) -> list[FigureProvenance]:
        """Return the provenance of each figure of a link and of the VMs at its ends.

        Raises DataError if nothing is known of the link.
        """
        link = self._network.link(src, dst)
        if self._address is None and self._network.has_private_links:
            part = part_of(self._network, link.address)
            return Provenance(part, self._catalogue, link.address).of(src, dst)
        sender, receiver = self._network.sites[src], self._network.sites[dst]
        return [
            *(self._of_link(link, name) for name in LINK_FIGURES),
            _loss(link),
            self._of_vm(receiver, "window_mb", receiver.window_mb),
            self._of_vm(sender, "egress_gbps", sender.egress_gbps),
            self._of_vm(receiver, "ingress_gbps", receiver.ingress_gbps),
        ]

    def _of_link(self, link: Link, name: LinkFigure) -> FigureProvenance:
        estimate: Estimate = getattr(link, name)
        if estimate.source == "measured":
            metric, text, rests_on = _MEASURED[name]
            own = UsedSeries(link.src, link.dst, metric)
            return FigureProvenance(name, "", estimate, "samples", text, rests_on, (own,))
        kind, text, rests_on = _rule(estimate.origin)
        if estimate.origin.method == "window-over-rtt":
            ends = (self._network.sites[end] for end in (link.src, link.dst))
            (out_gbps, _), (_, into_gbps) = flow_caps_gbps(ends, self._catalogue)
            figures = estimate.origin.figures
            held, more = _HELD.get(figures and figures.held_to, ("", ()))
            rests_on = (*rests_on, *more)
            if (cap_gbps := min(out_gbps, into_gbps)) < inf:
                text += f", at most what one flow may carry there ({cap_gbps:g} Gbit/s)"
            text += f"{held}."
        series = tuple(self._links_behind(link, estimate.origin.method))
        return FigureProvenance(name, "", estimate, kind, text, rests_on, series)

    def _links_behind(self, link: Link, method: Method) -> Iterator[UsedSeries]:
        match method:
            case "opposite-direction":
                yield UsedSeries(link.dst, link.src, "rtt_ms")
            case "same-cities":
                city = {name: self._catalogue.region(name).city for name in self._network.sites}
                for other in self._network:
                    alike = {city[other.src], city[other.dst]} == {city[link.src], city[link.dst]}
                    if alike and other.rtt_ms.source == "measured":
                        yield UsedSeries(other.src, other.dst, "rtt_ms")
            case "shifted-law" | "neighbouring-links":
                names = list(self._network.sites)
                ends = names.index(link.src), names.index(link.dst)
                behind = self._classes.links_behind(*ends, method)
                for src, dst in sorted((names[src], names[dst]) for src, dst in behind):
                    yield UsedSeries(src, dst, "aggregate_mbps")

    @cached_property
    def _rtts_ms(self) -> EstimateArray:
        links = self._network.usual.among(self._network.sites)
        found = no_estimates(len(links), len(links))
        for bound in BOUNDS:
            found[bound] = np.where(links.present, links.whole["rtt_ms"][bound], np.nan)
        return found

    @cached_property
    def _classes(self) -> LinkClasses:
        regions, origins = list(self._network.sites), Origins()
        links = self._network.usual.among(regions)
        is_measured = links.kinds(links.whole, "aggregate_gbps") == KINDS.index("measured")
        src, dst = np.nonzero(is_measured & links.present)
        alone = no_estimates(len(src))
        numbers = np.array([origins.number_of(origin) for origin in links.origins])
        evidence = links.whole["aggregate_gbps"]["evidence"][src, dst]
        alone["origin"] = numbers[links.evidence["origin"][evidence]]
        address, ends = self._address or "public", (src, dst)
        return LinkClasses(regions, self._catalogue, address, self._rtts_ms, ends, alone, origins)

    def _of_vm(self, site: Site, quantity: Quantity, estimate: Estimate) -> FigureProvenance:
        series = tuple(self._behind_vm(site, quantity, estimate.origin))
        rule = _rule(estimate.origin)
        return FigureProvenance(quantity, site.region, estimate, *rule, series)

    def _behind_vm(self, site: Site, quantity: Quantity, origin: Origin) -> Iterator[UsedSeries]:
        metric: Metric = "egress_cap_mbps" if quantity == "egress_gbps" else "ingress_cap_mbps"
        match origin.method:
            case "cap-probe" | "cap-probe-lower-bound":
                yield UsedSeries(site.region, site.region, metric)
            case "caps-of-vm-type":
                for other in self._of_type(site):
                    found = getattr(other, quantity).origin
                    # Before a link or a probe exceeded it:
                    was = found.figures and found.figures.raised_from
                    if (was or found.method) == "cap-probe":
                        yield UsedSeries(other.region, other.region, metric)
            case "link-above-cap":
                assert origin.figures is not None
                assert origin.figures.between is not None
                yield UsedSeries(*origin.figures.between, "aggregate_mbps")
            case "token-bucket":
                for link in self._network.links[site.region].values():
                    if link.aggregate_gbps.origin.rate_cut is not None:
                        yield UsedSeries(site.region, link.dst, "aggregate_mbps")
            case "flows-into-region":
                yield from self._calibrating(site)
            case "windows-of-tests":
                into = {other.region for other in self._of_type(site)}
                for link in self._network.usual.all_links():
                    for name in ("per_flow_mbps", "aggregate_gbps") if link.dst in into else ():
                        if getattr(link, name).source == "measured":
                            yield UsedSeries(link.src, link.dst, _MEASURED[name][0])
            case "flows-into-vm-type":
                for other in self._of_type(site):
                    yield from self._calibrating(other)

    def _of_type(self, site: Site) -> Iterator[Site]:
        return (other for other in self._network.sites.values() if other.vm_type == site.vm_type)

    def _calibrating(self, destination: Site) -> Iterator[UsedSeries]:
        sites = list(self._network.sites)
        most = self._most_calibrating_mbps[:, sites.index(destination.region)]
        for number in np.flatnonzero(most > -inf).tolist():
            link = self._network.link(sites[number], destination.region)
            if link.per_flow_mbps.source == "measured":
                yield UsedSeries(link.src, link.dst, "per_flow_mbps", most[number].item())

    @cached_property
    def _most_calibrating_mbps(self) -> Floats:
        rtts_ms = self._rtts_ms["expected"]
        return most_calibrating_mbps(self._network.sites, rtts_ms, self._catalogue)


def _rule(origin: Origin) -> tuple[Kind, str, tuple[Quantity, ...]]:
    """Return the rule of an estimate that is not of its link's own samples."""
    kind, text, *rests_on = _RULES[origin.method]
    told = text.format(basis=origin.basis, of=origin.figures)
    return kind or _KINDS[origin.kind], told, tuple(rests_on)


def _loss(link: Link) -> FigureProvenance:
    if link.loss_pct is None:
        rule = "Loss was not measured on this link."
        return FigureProvenance("loss_pct", "", None, "nothing", rule)
    return FigureProvenance(
        "loss_pct",
        "",
        None,
        "samples",
        "The median share of packets that were lost; where all were, that is taken for a filter.",
        series=(UsedSeries(link.src, link.dst, "loss_pct"),),
    )


_HELD: dict[HeldTo | None, tuple[str, tuple[Quantity, ...]]] = {
    "aggregate": ("; held to what many flows carried together", ("aggregate_gbps",)),
    "vm-caps": ("; held to the caps of the VMs at its ends", ("egress_gbps", "ingress_gbps")),
}
"""Limits of flows, in words, and the figures that these depend on."""
_CAPS: tuple[Quantity, ...] = ("rtt_ms", "egress_gbps", "ingress_gbps", "per_flow_mbps")
_LAW = (
    "No measurement between these providers: {basis}; at most the caps of both VMs and the windows "
    "of 64 connections."
)
_SHIFTED = (
    "What VMs of these providers reach at such a distance, shifted by the median of what was "
    "measured on {basis}; at most the caps of both VMs and the windows of 64 connections."
)
_WINDOW = (
    "Throughput times round-trip time, the median of {basis} from far enough away for the window "
    "to be the limit."
)
_MEASURED: dict[LinkFigure, tuple[Metric, str, tuple[Quantity, ...]]] = {
    "rtt_ms": ("rtt_ms", "The median of this link's round trips.", ()),
    "per_flow_mbps": (
        "per_flow_mbps",
        "The median of this link's single flows; where slow start was part of one, its share of "
        "the time is taken out, which depends on the round-trip time.",
        ("rtt_ms",),
    ),
    "aggregate_gbps": (
        "aggregate_mbps",
        "The median of this link's measurements with the most connections, without what slow "
        "start cost them.",
        ("rtt_ms", "per_flow_mbps"),
    ),
}
_KINDS: dict[str, Kind] = {"measured": "samples", "inferred": "inference", "baseline": "model"}
_RULES: dict[Method, tuple[Kind | None, str, *tuple[Quantity, ...]]] = {
    "unknown": (None, "An earlier version saved only this about it: {basis}."),
    "stated": ("stated", "As the caller states it."),
    # Round-trip times
    "opposite-direction": (
        "inference",
        "Round trips of the opposite direction: routes are nearly symmetric.",
    ),
    "same-cities": ("inference", "The median of round trips of {basis}."),
    "backbone": (
        "model",
        "The shortest way over a model of the world's backbone, from the locations alone.",
    ),
    "location-unknown": ("model", "Anywhere on Earth: the locations are not known."),
    # Throughput
    "window-over-rtt": (
        None,
        "The receiver's window, or what its sender keeps in flight, over the round-trip time",
        *("window_mb", "rtt_ms"),
    ),
    "share-of-aggregate": (
        "inference",
        "At least {basis}: the window alone would have given less.",
        "aggregate_gbps",
    ),
    "provider-pair-law": ("model", _LAW, *_CAPS),
    "vm-caps": ("model", _LAW, *_CAPS),
    "shifted-law": ("inference", _SHIFTED, *_CAPS),
    "neighbouring-links": ("inference", _SHIFTED, *_CAPS),
    "one-connection": ("inference", "What {basis}.", "per_flow_mbps"),
    # VMs
    "vm-type": ("model", "What VMs of type {of.vm_type} have ({basis})."),
    "vm-type-unknown": ("model", "Not known: neither a VM type nor a measurement."),
    "system-default": ("model", "What hosts of the provider have as they come, for most types."),
    "hosts-tuned": ("stated", "Of hosts whose receive windows are raised, as is stated of them."),
    "windows-of-tests": ("inference", "The median of {basis}, as their tools or reporters state."),
    "fleet-file": ("stated", "As the fleet file has it."),
    "cap-probe": (
        "samples",
        "The median of probes with many peers at once that the peers did not hold back.",
    ),
    "cap-probe-lower-bound": (
        "inference",
        "The most that a probe carried while its peers were the limit: a lower bound.",
    ),
    "caps-of-vm-type": ("inference", "The median of {basis}."),
    "link-above-cap": (
        "inference",
        "Raised to what a link was seen to carry, which is more than the VM's cap was thought to "
        "be.",
    ),
    "token-bucket": (
        "samples",
        "The rate that lasts in tests out of this VM whose rate fell: pauses fill a bucket that "
        "all its links share.",
    ),
    "flows-into-region": ("inference", _WINDOW),
    "flows-into-vm-type": ("inference", _WINDOW),
}
"""The kind of each method (None where it is as the origin's), its rule, and what it rests on."""
