"""Random sites, links, VMs and fees for questions of many transfers, and what paths load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats, SiteResources

CONNECTIONS = 64


@dataclass(frozen=True)
class World:
    """A network, its fees, and VMs.

    `rate` is what one VM pair reaches, `flows` what all connections of a VM would.
    """

    rate: Floats
    flows: Floats
    egress: Floats
    ingress: Floats
    vms: np.ndarray
    fees: Floats
    may_relay: np.ndarray
    vm_usd: tuple[float, ...] = ()

    @property
    def names(self) -> list[str]:
        return [f"r{i}" for i in range(len(self.rate))]

    @property
    def vms_in(self) -> dict[str, int]:
        return {name: int(count) for name, count in zip(self.names, self.vms, strict=True)}

    def network(self, rtt_ms: Floats | float = 0.0) -> Network:
        return Network.from_matrices(
            self.names,
            self.rate,
            rtt_ms=rtt_ms,
            per_flow_mbps=self.flows / CONNECTIONS * 1000,
            egress_gbps=list(self.egress),
            ingress_gbps=list(self.ingress),
        )

    def prices(self) -> FlatPrices:
        vm_usd = self.vm_usd or (1.0,) * len(self.rate)
        return FlatPrices(self.names, self.fees, dict(zip(self.names, vm_usd, strict=True)))

    @property
    def held(self) -> tuple[Floats, Floats]:
        """Rates that links hold a sending and a receiving VM to: not to the other's cap.

        Figures are exact, so a rate below the caps, however little, is its path's.
        """
        sends, receives = self.egress[:, None], self.ingress[None, :]
        at_cap = self.rate >= np.minimum(sends, receives)
        by_receiver = at_cap & (receives < sends)
        by_sender = at_cap & ~by_receiver
        return np.where(by_receiver, self.flows, self.rate), np.where(by_sender, np.inf, self.rate)

    def resources(self) -> SiteResources:
        vms, (sent, received) = self.vms.astype(float), self.held
        sites = SiteResources(sent, self.flows, self.egress, self.ingress, vms, self.may_relay)
        return replace(sites, received_gbps=received)

    def with_vms(self, more: dict[str, int]) -> World:
        return replace(self, vms=self.vms + [more.get(name, 0) for name in self.names])

    def paths(self, src: int, dst: int) -> list[tuple[int, ...]]:
        """Return the direct path and those through each relay, where their links are known."""
        n = len(self.rate)
        relayed = [(src, k, dst) for k in range(n) if k not in (src, dst) and self.may_relay[k]]
        return [
            path
            for path in [(src, dst), *relayed]
            if all(self.rate[link] > 0 for link in pairwise(path))
        ]

    def loads(self, path: tuple[int, ...]) -> dict[int, float]:
        """Return the VM-seconds of a Gbit on a path, by row.

        Rows are connections out of each site, its caps, and paths at both of their ends. A relay
        opens as many connections as it accepts.
        """
        n, (sent, received) = len(self.rate), self.held
        found: dict[int, float] = {}
        slowest = min(self.flows[link] for link in pairwise(path))
        for u, v in pairwise(path):
            for row, load in (
                (u, 1 / slowest),
                (n + u, 1 / self.egress[u]),
                (2 * n + v, 1 / self.ingress[v]),
                (3 * n + u * n + v, 1 / sent[u, v]),
                (3 * n + n * n + u * n + v, 1 / received[u, v]),
            ):
                found[row] = found.get(row, 0.0) + load
        return found

    @property
    def row_sites(self) -> np.ndarray:
        """Site of each row that :meth:`loads` names."""
        sites = np.arange(len(self.rate))
        return np.concatenate(
            [np.tile(sites, 3), np.repeat(sites, len(sites)), np.tile(sites, len(sites))]
        )

    @property
    def limits(self) -> Floats:
        """VMs of each row that :meth:`loads` names."""
        return np.asarray(self.vms[self.row_sites], dtype=float)

    def loads_of(self, links_gbit: Floats) -> Floats:
        """Return the VM-seconds of volumes on links, of all rows."""
        found = np.zeros(len(self.limits))
        for u, v in zip(*np.nonzero(links_gbit), strict=True):
            for row, load in self.loads((int(u), int(v))).items():
                found[row] += load * links_gbit[u, v]
        return found


def world(seed: int, n: int = 0, most_vms: int = 2) -> World:
    """Sites (three to six unless stated), caps that bind or not, missing links, several VMs."""
    random = np.random.default_rng(seed)
    n = n or int(random.integers(3, 7))
    rate = random.uniform(0.5, 10, (n, n)) * random.uniform(0.5, 2, (n, 1))
    rate[(random.random((n, n)) < 0.15) & (seed % 3 == 0)] = 0.0
    np.fill_diagonal(rate, 0.0)
    rate[0, 1] = rate[0, 1] or 3.0
    return World(
        rate,
        rate * random.uniform(1, 6, (n, n)),
        random.uniform(3, 12, n),
        random.uniform(3, 12, n),
        random.integers(1, most_vms + 1, n),
        random.choice([0.01, 0.02, 0.09], (n, n)),
        random.random(n) < 0.8,
    )


def even(gbps: list[list[float]] | Floats, cap_gbps: float = 0.0, fee_usd: float = 0.02) -> World:
    """Return sites of one VM with stated links; connections carry twice as much."""
    rate = np.array(gbps, dtype=float)
    np.fill_diagonal(rate, 0.0)
    n = len(rate)
    caps, fees = np.full(n, cap_gbps or rate.max()), np.full((n, n), fee_usd)
    return World(rate, 2 * rate, caps, caps, np.ones(n, dtype=int), fees, np.ones(n, dtype=bool))
