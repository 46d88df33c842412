"""The shared January 2022 grid of 63 regions, as transfers and as a network.

Steady rates (64 connections, one VM pair, corrected for slow start), clean round-trip times and
egress fees. VM prices are those of the VMs that measured it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from planner.model.link import AT_LIMIT
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.problem import End, Relays, TransferPath, TransferProblem
from tests.planner.independent import SkyplaneProblem
from tests.shared_data import shared
from tests.slow_start import bundle_share_of_steady

VM_USD_PER_H = {"aws": 1.536, "azure": 1.52, "gcp": 1.55}
TEST_S = 5.0
USUAL_RTT_MS = 100.0

Pair = tuple[str, str]


@dataclass(frozen=True)
class Grid:
    """What was measured between every pair of regions.

    Attributes
    ----------
    regions : tuple of str
    pair_gbps, rtt_ms, usd_per_gb : dict
        By source and destination; pairs may be missing.
    """

    regions: tuple[str, ...]
    pair_gbps: dict[Pair, float]
    rtt_ms: dict[Pair, float]
    usd_per_gb: dict[Pair, float]

    def egress_gbps(self, region: str) -> float:
        return max(self.pair_gbps.get((region, other), 0.0) for other in self.regions)

    def ingress_gbps(self, region: str) -> float:
        return max(self.pair_gbps.get((other, region), 0.0) for other in self.regions)

    def held(self, src: str, dst: str) -> tuple[float, float]:
        """Return the limits that a link sets to a VM that sends, and to one that receives."""
        gbps, sends, receives = (
            self.pair_gbps[src, dst],
            self.egress_gbps(src),
            self.ingress_gbps(dst),
        )
        if gbps < AT_LIMIT * min(sends, receives):
            return gbps, gbps
        return (inf, gbps) if receives < sends else (gbps, inf)

    def transfer(
        self, src: str, dst: str, *, vms: int, volume_gb: float = 500.0, vm_start_s: float = 60.0
    ) -> TransferProblem:
        """Return a transfer with every relay whose links and fees are known."""
        relays = []
        for position, region in enumerate(self.regions):
            first, second = (src, region), (region, dst)
            in_gbps, out_gbps = self.pair_gbps.get(first, 0.0), self.pair_gbps.get(second, 0.0)
            known = first in self.usd_per_gb and second in self.usd_per_gb
            if region in {src, dst} or min(in_gbps, out_gbps) <= 0 or not known:
                continue
            (sends, accepts), (forwards, receives) = self.held(*first), self.held(*second)
            caps = min(self.ingress_gbps(region), self.egress_gbps(region))
            relays.append(
                TransferPath(
                    position,
                    sends,
                    receives,
                    min(accepts, forwards, caps),
                    self.usd_per_gb[first] + self.usd_per_gb[second],
                    vm_usd_per_h(region),
                    vms,
                )
            )
        return TransferProblem(
            volume_gb,
            End(self.egress_gbps(src), vm_usd_per_h(src), vms),
            End(self.ingress_gbps(dst), vm_usd_per_h(dst), vms),
            TransferPath(None, *self.held(src, dst), inf, self.usd_per_gb[src, dst], 0.0, 1),
            Relays.of(relays),
            vm_start_s,
        )

    def of_skyplane(self, src: str, dst: str, transfer: TransferProblem) -> SkyplaneProblem:
        """Return a transfer as Skyplane's program states it."""
        names: dict[Any, str] = {"s": src, "d": dst}
        relays = [relay.region or 0 for relay in transfer.relays]
        names |= {relay: self.regions[relay] for relay in relays}
        ends: list[tuple[Any, Any]] = [("s", "d")]
        ends += [link for relay in relays for link in (("s", relay), (relay, "d"))]
        links = {link: (names[link[0]], names[link[1]]) for link in ends}
        quotas: dict[Any, int] = {"s": transfer.src.quota, "d": transfer.dst.quota}
        quotas |= {r.region: r.quota for r in transfer.relays}
        return SkyplaneProblem(
            transfer.volume_gb,
            {link: self.pair_gbps[pair] for link, pair in links.items()},
            {link: self.usd_per_gb[pair] for link, pair in links.items()},
            {
                site: (self.egress_gbps(n), self.ingress_gbps(n), vm_usd_per_h(n), quotas[site])
                for site, n in names.items()
            },
            transfer.lead_s,
        )

    def random_pairs(self, count: int, seed: int) -> list[Pair]:
        """Return pairs whose direct path was measured."""
        known = sorted(p for p, g in self.pair_gbps.items() if g > 0 and p in self.usd_per_gb)
        return Random(seed).choices(known, k=count)

    def network(self) -> Network:
        """Return the grid as a network, its figures taken as exact."""
        return Network.from_matrices(
            self.regions,
            self.matrix(self.pair_gbps, 0.0),
            rtt_ms=self.matrix(self.rtt_ms, USUAL_RTT_MS),
        )

    def prices(self) -> FlatPrices:
        """Return its fees; a missing one costs as much as the dearest."""
        dearest = max(self.usd_per_gb.values())
        return FlatPrices(
            self.regions,
            self.matrix(self.usd_per_gb, dearest),
            {region: vm_usd_per_h(region) for region in self.regions},
        )

    def matrix(self, figures: dict[Pair, float], missing: float) -> np.ndarray:
        return np.array(
            [[figures.get((a, b), missing) for b in self.regions] for a in self.regions]
        )


def vm_usd_per_h(region: str) -> float:
    return VM_USD_PER_H[region.partition(":")[0]]


@cache
def january_grid() -> Grid:
    """Load the grid, or skip the test where the shared data is missing."""
    return read_grid(shared("aggregate_2022-01.csv").parent)


def read_grid(folder: Path) -> Grid:
    """Read the three tidied files of the grid."""
    with (folder / "rtt_2022-04.csv").open() as file:
        rtt_ms = {
            (row["src"], row["dst"]): float(row["rtt_clean_ms"])
            for row in csv.DictReader(file)
            if row["rtt_clean_ms"]
        }
    with (folder / "egress_usd_per_gb_2022-05.csv").open() as file:
        usd_per_gb = {
            (row["src"], row["dst"]): float(row["egress_usd_per_gb"])
            for row in csv.DictReader(file)
        }
    pair_gbps = {}
    with (folder / "aggregate_2022-01.csv").open() as file:
        for row in csv.DictReader(file):
            pair = src, dst = row["src"], row["dst"]
            rtt = rtt_ms.get(pair) or rtt_ms.get((dst, src)) or USUAL_RTT_MS
            received = float(row["throughput_received_gbps"] or 0)
            pair_gbps[pair] = received / bundle_share_of_steady(rtt, TEST_S)
    regions = tuple(sorted({region for pair in pair_gbps for region in pair}))
    return Grid(regions, pair_gbps, rtt_ms, usd_per_gb)
