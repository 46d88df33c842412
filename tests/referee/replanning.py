"""A plan in progress, from docs/replanning.md: what is left of it, and what changing takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tests.referee.checks import numbers
from tests.referee.networks import Network
from tests.referee.transfer import ROUND_TRIPS, Answer, Path, Question, paths_of, rows_of


@dataclass(frozen=True)
class Rest:
    """The rest of a transfer, on paths with shares and VMs.

    Attributes
    ----------
    q : Question
        Of the remaining volume, on the network as it is now.
    """

    q: Question
    shares: dict[tuple[int, ...], float]
    vms: dict[int, int]

    @classmethod
    def of(cls, q: Question, plan: Any) -> Rest:
        """Return the rest on the paths of a plan, as JSON has it."""
        shares = {numbers(q.net, tuple(p["regions"])): p["share"] for p in plan["paths"]}
        vms = {q.net.regions.index(name): count for name, count in plan["vms"].items()}
        return cls(q, shares, vms)

    @classmethod
    def of_answer(cls, q: Question, best: Answer) -> Rest:
        """Return the rest on the referee's own plan."""
        rate = sum(best.rates.values())
        return cls(q, {path: x / rate for path, x in best.rates.items()}, best.vms)

    @property
    def paths(self) -> list[Path]:
        """Paths in the order of their shares."""
        known = {path.regions: path for path in paths_of(self.q)}
        return [known[regions] for regions in self.shares]

    @property
    def rate(self) -> float:
        """Gbit/s that the rows of the model allow, with shares as they are."""
        share = np.array(list(self.shares.values()))
        loads = ((c @ share, limit * self.vms[at]) for c, at, limit in rows_of(self.q, self.paths))
        return min(float(limit / load) for load, limit in loads if load > 0)

    @property
    def ramp(self) -> float:
        """Seconds until connections are up to speed."""
        return ROUND_TRIPS * max(p.rtt for p in self.paths)

    @property
    def fee(self) -> float:
        """USD per GB."""
        return sum(p.fee * x for p, x in zip(self.paths, self.shares.values(), strict=True))

    @property
    def hourly(self) -> float:
        """USD per hour of all VMs."""
        return float(sum(self.q.net.hourly[at] * count for at, count in self.vms.items()))

    def kept(self, rate: float) -> tuple[float, float]:
        """Return seconds and USD of keeping to it, at a rate."""
        seconds = 8 * self.q.volume / rate
        return seconds, self.q.volume * self.fee + self.hourly * seconds / 3600

    def changed(self, new: Rest, rate: float, new_rate: float) -> tuple[float, float] | None:
        """Return seconds and USD of changing; None if all is moved before VMs have started.

        New VMs are paid while they start and the old plan goes on meanwhile; new paths need 8.5
        round trips a link.
        """
        more = {at: count - self.vms.get(at, 0) for at, count in new.vms.items()}
        started = {at: count for at, count in more.items() if count > 0}
        wait = self.q.start if started else 0.0
        meanwhile = rate * wait / 8
        left = self.q.volume - meanwhile
        if left <= 0:
            return None
        ramp = ROUND_TRIPS * max(
            (p.rtt for p in new.paths if p.regions not in self.shares), default=0
        )
        sending = 8 * left / new_rate + ramp
        starting = float(sum(self.q.net.hourly[at] * count for at, count in started.items()))
        hours_usd = (self.hourly + starting) * wait + new.hourly * sending
        usd = meanwhile * self.fee + left * new.fee + hours_usd / 3600
        return wait + sending, usd


def worth(objective: str, hour: float, seconds: float, usd: float) -> float:
    """Return what the objective makes least."""
    return Answer({}, {}, seconds, usd).worth(objective, hour)


def drifted(net: Network, seed: int) -> Network:
    """Return a network some time later: some links are slower or faster, or as before."""
    rng = np.random.default_rng([seed, 5])
    n = net.size
    if rng.random() < 0.2:
        return net
    factor = np.exp(rng.uniform(np.log(0.15), np.log(2.0), (n, n)))
    factor[rng.random((n, n)) < 0.5] = 1.0
    if rng.random() < 0.5:
        factor[0, 1] = rng.uniform(0.1, 0.6)
    flow = None if net.flow is None else net.flow * factor
    # The caps of VMs are as before.
    return replace(
        net, aggregate=net.aggregate * factor, flow=flow, egress=net.send, ingress=net.receive
    )


def at_share(rest: Rest, share: float) -> Network:
    """Return the network with the links in use at a share of their rate, as achieved there."""
    net = rest.q.net
    aggregate, flow = net.aggregate.copy(), net.one.copy()
    for i, j in {link for path in rest.shares for link in pairwise(path)}:
        aggregate[i, j] = share * min(net.aggregate[i, j], net.send[i], net.receive[j])
        flow[i, j] = min(aggregate[i, j], share * flow[i, j])
    return replace(net, aggregate=aggregate, flow=flow, egress=net.send, ingress=net.receive)
