"""Random networks of a few regions, with the cases that tend to break planners."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import relayd

Floats = NDArray[np.float64]

MOST_TO_ONE_VM = 64  # connections; docs/shuffles.md

VOLUMES_GB = (0.001, 0.1, 1.0, 10.0, 100.0, 500.0, 5e3, 5e4, 1e6)


@dataclass(frozen=True)
class Network:
    """Figures of a network as stated to ``relayd.open``; links are (n, n), Gbit/s or ms."""

    seed: int
    aggregate: Floats
    rtt: Floats
    flow: Floats | None
    egress: Floats | None
    ingress: Floats | None
    fee: Floats
    hourly: Floats
    avoid: tuple[int, ...] = ()
    regions: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = tuple(f"site{i}" for i in range(len(self.aggregate)))
        object.__setattr__(self, "regions", names)

    @property
    def size(self) -> int:
        """Number of regions."""
        return len(self.aggregate)

    @property
    def avoided(self) -> list[str]:
        """Regions that must not relay."""
        return [self.regions[i] for i in self.avoid]

    @cached_property
    def wan(self) -> relayd.Wan:
        """The same network, opened by relayd."""
        figures: dict[str, object] = {
            "regions": list(self.regions),
            "aggregate_gbps": self.aggregate,
            "rtt_ms": self.rtt,
            "usd_per_gb": self.fee,
            "vm_usd_per_h": self.hourly,
        }
        if self.flow is not None:
            figures["per_flow_mbps"] = self.flow * 1000.0
        if self.egress is not None and self.ingress is not None:
            figures |= {"egress_gbps": self.egress.tolist(), "ingress_gbps": self.ingress.tolist()}
        wan = relayd.open(figures)
        assert isinstance(wan, relayd.Wan)
        return wan

    @cached_property
    def send(self) -> Floats:
        """Most that one VM sends: as stated, else the largest rate of the row."""
        return self.aggregate.max(axis=1) if self.egress is None else self.egress

    @cached_property
    def receive(self) -> Floats:
        """Most that one VM receives: as stated, else the largest rate of the column."""
        return self.aggregate.max(axis=0) if self.ingress is None else self.ingress

    @cached_property
    def one(self) -> Floats:
        """Rate of one connection: as stated, else what many do."""
        return self.aggregate if self.flow is None else np.minimum(self.flow, self.aggregate)

    def link(self, i: int, j: int) -> bool:
        """Whether there is a link."""
        return i != j and bool(self.aggregate[i, j] > 0)

    def sent(self, i: int, j: int, connections: int) -> float:
        """Return what a VM sends over a link at most, over so many connections.

        Where receiving VMs are what limits a link, further ones add to what a VM sends.
        """
        few = float(connections * self.one[i, j])
        rate = float(self.aggregate[i, j])
        return few if self.receive[j] <= rate < self.send[i] else min(few, rate)

    def ends_in_path(self, i: int, j: int) -> bool:
        """Whether the path itself is the limit, so that it binds receiving VMs too.

        Stated figures are exact, so a link below the caps of both ends is limited by its path.
        """
        return bool(self.aggregate[i, j] < min(self.send[i], self.receive[j]))

    def relays(self, src: int, dst: int) -> list[int]:
        """Return regions that may relay between two ends."""
        return [
            r
            for r in range(self.size)
            if r not in {src, dst, *self.avoid} and self.link(src, r) and self.link(r, dst)
        ]


def random_network(
    seed: int,
    *,
    most: int = 8,
    least: int = 3,
    broken: bool = True,
    stated_flow: bool | None = None,
) -> Network:
    """Return a network that a seed decides."""
    rng = np.random.default_rng([seed, 20260])
    n = int(rng.integers(least, most + 1))
    style = rng.choice(["wide", "ties", "narrow", "capped"])
    if style == "ties":
        aggregate = rng.choice([1.0, 2.0, 5.0], (n, n))
    elif style == "narrow":
        aggregate = rng.uniform(4.5, 5.5, (n, n))
    else:
        aggregate = np.exp(rng.uniform(np.log(0.1), np.log(20.0), (n, n)))
    if broken and rng.random() < 0.4:
        aggregate[rng.random((n, n)) < 0.25] = 0.0
    np.fill_diagonal(aggregate, 0.0)
    rtt = rng.uniform(1.0, 300.0, (n, n)) if rng.random() < 0.8 else np.full((n, n), 80.0)
    rtt = np.round((rtt + rtt.T) / 2, 1)
    np.fill_diagonal(rtt, 0.0)
    flow = None
    if stated_flow if stated_flow is not None else rng.random() < 0.5:
        flow = np.maximum(aggregate * np.exp(rng.uniform(np.log(0.01), 0.0, (n, n))), 1e-3)
        flow = np.where(aggregate > 0, np.minimum(flow, aggregate), 0.0)
    egress = ingress = None
    if style == "capped" or rng.random() < 0.3:
        egress = np.maximum(aggregate.max(axis=1), 0.1) * rng.uniform(1.0, 2.0, n)
        ingress = np.maximum(aggregate.max(axis=0), 0.1) * rng.uniform(1.0, 2.0, n)
    fee = (
        np.round(rng.uniform(0.0, 0.2, (n, n)), 3) if rng.random() < 0.8 else np.full((n, n), 0.02)
    )
    hourly = np.round(rng.uniform(0.05, 5.0, n), 2) if rng.random() < 0.8 else np.full(n, 1.5)
    avoid = tuple(int(i) for i in np.flatnonzero(rng.random(n) < 0.3) if i >= 2 and broken)
    return Network(seed, aggregate, rtt, flow, egress, ingress, fee, hourly, avoid)
