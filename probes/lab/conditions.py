"""Present conditions of a lab: its topology with every behaviour that was set since."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from planner.model.errors import InputError
from probes.lab.behaviours import (
    BLACKHOLE,
    FILTERED,
    RESET,
    UP,
    HostBehaviour,
    Impairment,
    LinkBehaviour,
)
from probes.lab.topology import Topology, whole_segments

ALL = "all"


class Conditions:
    """Topology and behaviours, and the figures for the emulator that follow from them.

    Attributes
    ----------
    topology : Topology
    hosts : list of HostBehaviour
        By site.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.hosts = [HostBehaviour()] * len(topology.sites)
        self._links = dict(topology.links)

    def link(self, source: int, destination: int) -> LinkBehaviour:
        """Behaviour of one direction of a link."""
        return self._links.get((source, destination)) or LinkBehaviour()

    def set_host(self, region: str, settings: Mapping[str, str | float]) -> list[int]:
        """Change a host (or ``all``); returns the sites that changed."""
        chosen = self._chosen(region)
        new = {site: self.hosts[site].with_settings(settings) for site in chosen}
        for site, behaviour in new.items():
            self.hosts[site] = behaviour
        return chosen

    def set_link(
        self,
        source: str,
        destination: str,
        settings: Mapping[str, str | float],
        *,
        one_way: bool = False,
    ) -> list[tuple[int, int]]:
        """Change links between two hosts (or ``all``); returns the directions that changed.

        Raises an InputError if both ends are one host or one is unknown, or a setting is wrong.
        """
        pairs = {(i, j) for i in self._chosen(source) for j in self._chosen(destination) if i != j}
        if not pairs:
            raise InputError("link", "has the same host at both ends", value=source)
        if not one_way:
            pairs |= {(j, i) for i, j in pairs}
        new = {pair: self.link(*pair).with_settings(settings) for pair in pairs}
        self._links.update(new)
        return sorted(pairs)

    def clear(self) -> None:
        """Take back everything that was set since the lab came up."""
        self.hosts = [HostBehaviour()] * len(self.topology.sites)
        self._links = dict(self.topology.links)

    def pairs_of(self, sites: Iterable[int]) -> list[tuple[int, int]]:
        """Both directions of every link that touches one of these sites."""
        count = len(self.topology.sites)
        touching = {(i, j) for i in sites for j in range(count) if i != j}
        return sorted(touching | {(j, i) for i, j in touching})

    def delay_s(self, source: int, destination: int) -> float:
        """One-way delay of a direction."""
        rtt_ms = self.link(source, destination).rtt_ms
        if rtt_ms is None:
            rtt_ms = self.topology.rtt_ms[source][destination]
        return rtt_ms / 2e3

    def window_bytes(self, site: int, peer: int) -> int:
        """Receive window of a site for connections with a peer."""
        for window_kb in (self.link(peer, site).window_kb, self.hosts[site].window_kb):
            if window_kb is not None:
                return whole_segments(round(window_kb * 1000))
        return self.topology.window_of(site, peer)

    def largest_window_bytes(self, site: int) -> int:
        """Largest receive window of a site towards any peer."""
        peers = range(len(self.topology.sites))
        return max(self.window_bytes(site, peer) for peer in peers)

    def egress_mbps(self, site: int) -> float:
        """Egress cap of a site; of one that bursts, while it has tokens."""
        if self.hosts[site].burst_mb:
            return self.topology.sites[site].egress_mbps
        return self.lasting_egress_mbps(site)

    def lasting_egress_mbps(self, site: int) -> float:
        """Rate that a site can send at for good."""
        changed = self.hosts[site].egress_mbps
        return self.topology.sites[site].egress_mbps if changed is None else changed

    def ingress_s_per_byte(self, site: int) -> float:
        """Time that a byte takes at the ingress cap of a site."""
        changed = self.hosts[site].ingress_mbps
        rate_mbps = self.topology.sites[site].ingress_mbps if changed is None else changed
        return 8 / (rate_mbps * 1e6)

    def impairment(self, source: int, destination: int) -> Impairment:
        """Return the impairment of a direction's packets besides their delay."""
        link, ends = self.link(source, destination), (self.hosts[source], self.hosts[destination])
        states = {link.state, *(host.state for host in ends)}
        changed = ends[0].flow_mbps
        flow_mbps = self.topology.sites[source].flow_mbps if changed is None else changed
        after_mb = link.cut_after_mb
        return Impairment(
            state=next((state for state in (BLACKHOLE, RESET) if state in states), UP),
            icmp_filtered=any(host.icmp == FILTERED for host in ends),
            loss=link.loss_pct / 100,
            jitter_s=link.jitter_ms / 1e3,
            rate=_bytes_per_s(link.rate_mbps),
            queue_s=link.queue_ms / 1e3,
            burst_bytes=link.burst_mb * 1e6,
            cut_after_s=math.inf if link.cut_after_s is None else link.cut_after_s,
            cut_after_bytes=math.inf if after_mb is None else after_mb * 1e6,
            cut_rate=_bytes_per_s(link.cut_mbps),
            flow_rate=_bytes_per_s(flow_mbps if flow_mbps < self.egress_mbps(source) else None),
        )

    def _chosen(self, region: str) -> list[int]:
        if region == ALL:
            return list(range(len(self.topology.sites)))
        return [self.topology.index(region)]


def _bytes_per_s(rate_mbps: float | None) -> float:
    return math.inf if rate_mbps is None else rate_mbps * 1e6 / 8
