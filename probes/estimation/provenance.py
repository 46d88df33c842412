"""From what each figure of a link was made: which samples, of which links, by which rule.

The graph says in words what an estimate rests on; here the same rules are followed back. Which of a
link's samples count is decided by the function that estimates use (:func:`.series.counted`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf, isclose
from typing import Literal, TypeAlias

from planner.model.baseline import baseline_site, flow_cap_gbps, flow_estimate
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate
from planner.model.link import Link, Site
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.aggregates import MeasuredLaw
from probes.estimation.sites import most_calibrating_mbps
from probes.samples import Metric

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
class Series:
    """A link and metric whose samples took part.

    Attributes
    ----------
    most : float
        Samples above it did not.
    """

    src: str
    dst: str
    metric: Metric
    most: float = inf


@dataclass(frozen=True, slots=True)
class FigureProvenance:
    """What one figure was made of.

    Attributes
    ----------
    region : str
        Whose VM it is of; empty for the link itself.
    estimate : Estimate | None
        None for loss, which has no bounds.
    kind : str
        ``samples`` of this very quantity, ``inference`` from others, ``model`` alone, ``stated`` by
        the operator, or ``nothing`` is known.
    rule : str
        How, in a sentence.
    rests_on : tuple of str
        Other quantities of this link that went in.
    series : tuple of Series
    """

    quantity: Quantity
    region: str
    estimate: Estimate | None
    kind: Kind
    rule: str
    rests_on: tuple[Quantity, ...] = ()
    series: tuple[Series, ...] = ()


class Provenance:
    """Follows the figures of a graph back.

    Parameters
    ----------
    network : Network
        As it was estimated: neither widened for age nor with states of links laid over it.
    catalogue : Catalogue
    """

    def __init__(self, network: Network, catalogue: Catalogue) -> None:
        self._network = network
        self._catalogue = catalogue

    def of(self, src: str, dst: str) -> list[FigureProvenance]:
        """Return where each figure of a link and of the VMs at its ends comes from.

        Raises
        ------
        DataError
            If nothing is known of the link.
        """
        link = self._network.link(src, dst)
        return [
            self._rtt(link),
            self._flow(link),
            self._aggregate(link),
            self._loss(link),
            self._window(dst),
            self._cap(src, "egress_gbps"),
            self._cap(dst, "ingress_gbps"),
        ]

    def _rtt(self, link: Link) -> FigureProvenance:
        estimate = link.rtt_ms
        if estimate.source == "measured":
            return FigureProvenance(
                "rtt_ms",
                "",
                estimate,
                "samples",
                "The median of this link's round trips.",
                series=(Series(link.src, link.dst, "rtt_ms"),),
            )
        if estimate.basis == "the opposite direction":
            return FigureProvenance(
                "rtt_ms",
                "",
                estimate,
                "inference",
                "Round trips of the opposite direction: routes are nearly symmetric.",
                series=(Series(link.dst, link.src, "rtt_ms"),),
            )
        if estimate.basis.startswith("other regions in"):
            return FigureProvenance(
                "rtt_ms",
                "",
                estimate,
                "inference",
                f"The median of round trips of {estimate.basis}.",
                series=tuple(self._between_cities(link)),
            )
        rule = "Anywhere on Earth: the places are not known."
        if estimate.basis == "backbone model":
            rule = "The shortest way over a model of the world's backbone, from the places alone."
        return FigureProvenance("rtt_ms", "", estimate, "model", rule)

    def _between_cities(self, link: Link) -> Iterator[Series]:
        region = self._catalogue.region
        cities = {region(link.src).city, region(link.dst).city}
        for other in self._network:
            if other.rtt_ms.source != "measured":
                continue
            if cities == {region(other.src).city, region(other.dst).city}:
                yield Series(other.src, other.dst, "rtt_ms")

    def _flow(self, link: Link) -> FigureProvenance:
        estimate = link.per_flow_mbps
        if estimate.source == "measured":
            return FigureProvenance(
                "per_flow_mbps",
                "",
                estimate,
                "samples",
                "The median of this link's single flows; where slow start was part of one, its "
                "share of the time is taken out, which depends on the round-trip time.",
                ("rtt_ms",),
                (Series(link.src, link.dst, "per_flow_mbps"),),
            )
        source, destination = self._network.sites[link.src], self._network.sites[link.dst]
        cap_gbps = flow_cap_gbps(source, self._catalogue)
        by_window = flow_estimate(destination.window_mb, link.rtt_ms, cap_gbps).expected
        rule = "The receiver's window over the round-trip time"
        if cap_gbps < inf:
            rule += f", at most what one flow may carry there ({cap_gbps:g} Gbit/s)"
        rests_on: tuple[Quantity, ...] = ("window_mb", "rtt_ms")
        if isclose(estimate.expected, by_window, rel_tol=1e-9):
            rule += "."
        elif estimate.expected > by_window:
            rule = f"At least {estimate.basis}: the window alone would have given less."
            rests_on = ("aggregate_gbps",)
        elif isclose(estimate.expected, link.aggregate_gbps.expected * MBPS_PER_GBPS, rel_tol=1e-9):
            rule += "; held to what many flows carried together."
            rests_on = (*rests_on, "aggregate_gbps")
        else:
            rule += "; held to the caps of the VMs at its ends."
            rests_on = (*rests_on, "egress_gbps", "ingress_gbps")
        kind: Kind = "model" if estimate.source == "baseline" else "inference"
        return FigureProvenance("per_flow_mbps", "", estimate, kind, rule, rests_on)

    def _aggregate(self, link: Link) -> FigureProvenance:
        estimate = link.aggregate_gbps
        if estimate.source == "measured":
            return FigureProvenance(
                "aggregate_gbps",
                "",
                estimate,
                "samples",
                "The median of this link's measurements with the most connections, without what "
                "slow start cost them.",
                ("rtt_ms",),
                (Series(link.src, link.dst, "aggregate_mbps"),),
            )
        rests_on: tuple[Quantity, ...] = ("rtt_ms", "egress_gbps", "ingress_gbps")
        if estimate.source == "inferred":
            behind = self._law.links_behind(link.src, link.dst, estimate)
            return FigureProvenance(
                "aggregate_gbps",
                "",
                estimate,
                "inference",
                "What VMs of these providers reach at such a distance, shifted by the median of "
                f"what was measured on {estimate.basis}; at most the caps of both VMs.",
                rests_on,
                tuple(Series(*pair, "aggregate_mbps") for pair in sorted(behind)),
            )
        return FigureProvenance(
            "aggregate_gbps",
            "",
            estimate,
            "model",
            f"No measurement between these providers: {estimate.basis}; at most the caps of both "
            "VMs.",
            rests_on,
        )

    @cached_property
    def _law(self) -> MeasuredLaw:
        network, catalogue = self._network, self._catalogue
        typed = {
            name: baseline_site(name, catalogue, {name: site.vm_type} if site.vm_type else {})
            for name, site in network.sites.items()
        }
        rtts = {(link.src, link.dst): link.rtt_ms for link in network}
        measured = {
            (link.src, link.dst): link.aggregate_gbps
            for link in network
            if link.aggregate_gbps.source == "measured"
        }
        return MeasuredLaw(network.sites, typed, rtts, measured)

    def _loss(self, link: Link) -> FigureProvenance:
        if link.loss_pct is None:
            return FigureProvenance(
                "loss_pct", "", None, "nothing", "Loss was not measured on this link."
            )
        return FigureProvenance(
            "loss_pct",
            "",
            None,
            "samples",
            "The median share of packets that were lost; where all were, that is taken for a "
            "filter.",
            series=(Series(link.src, link.dst, "loss_pct"),),
        )

    def _window(self, region: str) -> FigureProvenance:
        site = self._network.sites[region]
        estimate = site.window_mb
        if estimate.source == "baseline":
            return FigureProvenance(
                "window_mb",
                region,
                estimate,
                "model",
                f"As VMs of type {site.vm_type} are set up ({estimate.basis})."
                if site.vm_type
                else "What Linux has by default: no VM type is known.",
            )
        own = estimate.source == "measured"
        receivers = [
            other
            for other in self._network.sites.values()
            if (other.region == region if own else other.vm_type == site.vm_type)
        ]
        return FigureProvenance(
            "window_mb",
            region,
            estimate,
            "inference",
            f"Throughput times round-trip time, the median of {estimate.basis} from far enough "
            "away for the window to be the limit.",
            series=tuple(s for other in receivers for s in self._calibrating(other)),
        )

    def _calibrating(self, destination: Site) -> Iterator[Series]:
        for source in self._network.sites.values():
            link = self._network.links.get(source.region, {}).get(destination.region)
            if link is None or link.per_flow_mbps.source != "measured":
                continue
            most = most_calibrating_mbps(source, destination, link.rtt_ms, self._catalogue)
            if most is not None:
                yield Series(link.src, link.dst, "per_flow_mbps", most)

    def _cap(
        self, region: str, quantity: Literal["egress_gbps", "ingress_gbps"]
    ) -> FigureProvenance:
        site = self._network.sites[region]
        outward = quantity == "egress_gbps"
        estimate: Estimate = getattr(site, quantity)
        metric: Metric = "egress_cap_mbps" if outward else "ingress_cap_mbps"
        if estimate.source == "baseline":
            if estimate.basis == "the fleet file":
                return FigureProvenance(
                    quantity, region, estimate, "stated", "As the fleet file has it."
                )
            return FigureProvenance(
                quantity,
                region,
                estimate,
                "model",
                f"The cap of VM type {site.vm_type} ({estimate.basis})."
                if site.vm_type
                else "Not known: neither a VM type nor a measurement.",
            )
        # A cap that a link exceeded is the very estimate of that link.
        ends = (link for link in self._network if (link.src if outward else link.dst) == region)
        if above := next((link for link in ends if link.aggregate_gbps == estimate), None):
            return FigureProvenance(
                quantity,
                region,
                estimate,
                "inference",
                "Raised to what a link was seen to carry, which is more than the VM's cap was "
                "thought to be.",
                series=(Series(above.src, above.dst, "aggregate_mbps"),),
            )
        if estimate.source == "measured":
            return FigureProvenance(
                quantity,
                region,
                estimate,
                "samples",
                "The median of probes with many peers at once that the peers did not hold back.",
                series=(Series(region, region, metric),),
            )
        if estimate.basis == "the most it carried while its peers were the limit":
            return FigureProvenance(
                quantity,
                region,
                estimate,
                "inference",
                "The most that a probe carried while its peers were the limit: a lower bound.",
                series=(Series(region, region, metric),),
            )
        alike = [
            other.region
            for other in self._network.sites.values()
            if other.vm_type == site.vm_type and getattr(other, quantity).source == "measured"
        ]
        return FigureProvenance(
            quantity,
            region,
            estimate,
            "inference",
            f"The median of {estimate.basis}.",
            series=tuple(Series(other, other, metric) for other in alike),
        )
