"""Directed links between regions, and the sites at their ends, as estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from planner.model.estimate import AddressKind, Bound, Estimate, EstimateDrift
from planner.model.notebook import html_table
from planner.model.quotas.vcpus import VmQuota
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS

LimitedBy: TypeAlias = Literal["vm", "window", "path", "unknown"]
LinkFigure: TypeAlias = Literal["rtt_ms", "per_flow_mbps", "aggregate_gbps"]
SiteFigure: TypeAlias = Literal["egress_gbps", "ingress_gbps", "window_mb"]


LIMITED_BY: tuple[LimitedBy, ...] = ("vm", "window", "path", "unknown")
FURTHER_VM: Mapping[LimitedBy, float] = {"vm": 0.9, "window": 0.9, "path": 0.5, "unknown": 0.5}
AT_LIMIT = 0.93
"""A rate above this share of a limit is at it: one test errs by 5 %, a VM's cap by 6 %."""
# Between 44 regions of Azure and five in America, 90 % of round-trip times changed by less than
# 12 % from April 2022 to April 2024. What a backbone model leaves open bounds it: 21 %.
RTT_FADING = EstimateDrift(0.2, 10.0)
# The drift of windows was never measured: a receiver's settings may be a third off.
FLOW_FADING = EstimateDrift(0.3, 20.0)
LINK_FIGURES: tuple[LinkFigure, ...] = ("rtt_ms", "per_flow_mbps", "aggregate_gbps")
"""The estimates of a link, in the order of its fields."""
FADING: Mapping[LinkFigure, EstimateDrift | None] = {
    "rtt_ms": RTT_FADING,
    "per_flow_mbps": FLOW_FADING,
    "aggregate_gbps": None,
}
"""Their drift where they have no prior."""


@dataclass(frozen=True, slots=True)
class Link:
    """One directed pair of regions, over one kind of address.

    Attributes
    ----------
    rtt_ms, per_flow_mbps, aggregate_gbps : Estimate
        Round-trip time; steady throughput of one flow; throughput of one VM pair that is saturated,
        or with 64 connections where their windows are the limit.
    loss_pct : float | None
        Packet loss, where measured.
    limited_by : LimitedBy
        What holds the aggregate where it is: the cap of a VM; the windows of its connections;
        the path, as more connections were seen to bring nothing; or not known.
    slow_connections : float
        Where it is not known: the probability that each of its connections is slow, so that more
        of them would carry more and fewer carry less, and not that its path ends there.
    address : AddressKind
        Over which addresses its VMs reach each other.
    """

    src: str
    dst: str
    rtt_ms: Estimate
    per_flow_mbps: Estimate
    aggregate_gbps: Estimate
    loss_pct: float | None = None
    limited_by: LimitedBy = "unknown"
    address: AddressKind = "public"
    slow_connections: float = 0.0

    def __repr__(self) -> str:
        """Describe the link in one line."""
        rate, rtt = self.aggregate_gbps, self.rtt_ms
        return (
            f"<Link {self.src} -> {self.dst}: {rate.expected:.3g} Gbit/s ({rate.low:.3g} to "
            f"{rate.high:.3g}, {rate.source}), {self.per_flow_mbps.expected:.3g} Mbit/s a flow, "
            f"RTT {rtt.expected:.3g} ms>"
        )

    def _repr_html_(self) -> str:
        rows = [_cells(*one) for one in self.estimates.items()]
        return html_table(f"{self.src} -> {self.dst}", ESTIMATE_CELLS, rows)

    @property
    def estimates(self) -> dict[LinkFigure, Estimate]:
        """Its estimates by :data:`LINK_FIGURES`, in their order."""
        return {
            "rtt_ms": self.rtt_ms,
            "per_flow_mbps": self.per_flow_mbps,
            "aggregate_gbps": self.aggregate_gbps,
        }

    def rate_gbps(self, connections: int, bound: Bound = "expected") -> float:
        """Return ``min(k f, A)``: what one VM pair reaches with k connections."""
        flow_mbps = self.per_flow_mbps.at(bound)
        return min(connections * flow_mbps / MBPS_PER_GBPS, self.most_gbps(connections, bound))

    def most_gbps(self, connections: int, bound: Bound = "expected") -> float:
        """Return the aggregate that bounds k connections.

        Where windows are its limit, more connections than the usual 64 carry more in proportion.
        """
        saturated_gbps = self.aggregate_gbps.at(bound)
        if self.limited_by == "window" and connections > LAW_CONNECTIONS:
            return saturated_gbps * (connections / LAW_CONNECTIONS)
        return saturated_gbps

    @property
    def measured_connections(self) -> int:
        """The number of connections that the aggregate is of."""
        figures = self.aggregate_gbps.origin.figures
        return (figures and figures.connections) or LAW_CONNECTIONS

    @property
    def tried_vms(self) -> int:
        """The most VMs at each end that carried the aggregate each, all at once."""
        figures = self.aggregate_gbps.origin.figures
        return (figures and figures.vms) or 1

    @property
    def further(self) -> tuple[int, float]:
        """:attr:`tried_vms`, and the part of the rate that each VM pair beyond these adds at least.

        A judgement: caps and windows are of each VM, a path may be full; no data has a second VM.
        """
        return self.tried_vms, FURTHER_VM[self.limited_by]

    @property
    def slow_gbps(self) -> float:
        """The rate of each connection if connections are slow."""
        return self.aggregate_gbps.expected / self.measured_connections


@dataclass(frozen=True, slots=True)
class Site:
    """A region with the VM type used there and that VM's caps.

    Attributes
    ----------
    egress_gbps, ingress_gbps : Estimate
        Caps of one VM over all destinations together, for traffic over public addresses.
    window_mb : Estimate
        Effective TCP receive window of the VM as its host is configured.
    vms : int | None
        VMs that the user's fleet has there; None where any number can be started.
    quotas : tuple of VmQuota
        Those of the account that VMs of this type count against, where no fleet runs:
        :func:`planner.model.quotas.sites.with_quotas` lays them over a network.
    private_egress_gbps, private_ingress_gbps : Estimate | None
        The same caps for traffic over private addresses, and for all traffic where they are the
        higher ones; None where they are not known to differ.
    private_network : str
        Sites that name the same one reach each other by private addresses; ``""`` for none.
    """

    region: str
    vm_type: str
    egress_gbps: Estimate
    ingress_gbps: Estimate
    window_mb: Estimate
    vms: int | None = None
    quotas: tuple[VmQuota, ...] = ()
    private_egress_gbps: Estimate | None = None
    private_ingress_gbps: Estimate | None = None
    private_network: str = ""

    @property
    def estimates(self) -> dict[SiteFigure, Estimate]:
        """Its estimates by :data:`SITE_FIGURES`, in their order."""
        return {
            "egress_gbps": self.egress_gbps,
            "ingress_gbps": self.ingress_gbps,
            "window_mb": self.window_mb,
        }

    def may_run(self, vms: int) -> int:
        """Return the number of VMs that the quotas allow, of those wanted."""
        return min([vms, *(quota.vms for quota in self.quotas)])

    def egress(self, address: AddressKind) -> Estimate:
        """Return the cap of what one VM sends over a kind of address."""
        private = self.private_egress_gbps if address == "private" else None
        return private or self.egress_gbps

    def ingress(self, address: AddressKind) -> Estimate:
        """Return the cap of what one VM receives over a kind of address."""
        private = self.private_ingress_gbps if address == "private" else None
        return private or self.ingress_gbps

    def __repr__(self) -> str:
        """Describe the site in one line."""
        return (
            f"<Site {self.region}: {self.vm_type or 'VM type unknown'}, egress "
            f"{self.egress_gbps.expected:.3g} Gbit/s, ingress {self.ingress_gbps.expected:.3g} "
            f"Gbit/s a VM>"
        )

    def _repr_html_(self) -> str:
        rows = [_cells(*one) for one in self.estimates.items()]
        return html_table(f"{self.region}, {self.vm_type}", ESTIMATE_CELLS, rows)


ESTIMATE_CELLS = ("", "low", "expected", "high", "source", "samples")


def _cells(name: str, estimate: Estimate) -> list[str]:
    figures = (estimate.low, estimate.expected, estimate.high)
    texts = [f"{figure:.4g}" for figure in figures]
    return [name, *texts, estimate.source, str(estimate.samples)]


SITE_FIGURES: tuple[SiteFigure, ...] = ("egress_gbps", "ingress_gbps", "window_mb")
"""The same of a site."""
PRIVATE_CAPS = ("private_egress_gbps", "private_ingress_gbps")
"""Those of a site that may be missing."""
