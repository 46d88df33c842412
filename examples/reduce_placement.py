"""Where to reduce: the share of keys per region for which a shuffle ends soonest.

With ``D_i`` the data at region i, ``r_i`` its share of the reduce stage and ``u_i``, ``d_i`` the
egress and ingress caps of its VM (hose model)::

    minimise z   subject to   D_i (1 - r_i) <= z u_i,   r_i (sum of D - D_i) <= z d_i,   sum r = 1

(Pu et al., *Low Latency Geo-distributed Data Analytics*, SIGCOMM 2015, section 3.1). For a given z
each share has a lowest and a highest value, so the least z is found by halving.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from planner.shuffle.plan import ShufflePlan
from relayd import Wan

HALVINGS = 60


@dataclass(frozen=True)
class Placement:
    """What share of the keys each region reduces, and the shuffle that it takes.

    Attributes
    ----------
    shares : dict
        Region to its share; they sum to 1.
    plan : ShufflePlan
        Rates, paths and connections of the transfers, and when they end.
    evenly : ShufflePlan
        The same with an equal share everywhere.
    """

    shares: dict[str, float]
    plan: ShufflePlan
    evenly: ShufflePlan

    def buckets(self, count: int) -> list[str]:
        """Return the region of each of so many buckets of keys, in proportion to the shares."""
        names, ends = list(self.shares), list(accumulate(self.shares.values()))
        found = []
        for bucket in range(count):
            middle = (bucket + 0.5) / count * ends[-1]
            found.append(names[next(i for i, end in enumerate(ends) if end >= middle)])
        return found


def place_reduce(wan: Wan, data_gb: Mapping[str, float]) -> Placement:
    """Return the shares for which the shuffle ends soonest, and its plan.

    Parameters
    ----------
    wan : Wan
    data_gb : mapping
        Region id to GB of map output there.
    """
    sites = wan.sites()
    caps = {
        region: (sites[region].egress_gbps.expected, sites[region].ingress_gbps.expected)
        for region in data_gb
    }
    shares = reduce_shares(data_gb, caps)
    even = dict.fromkeys(data_gb, 1 / len(data_gb))
    return Placement(
        shares, wan.shuffle(demands_gb(data_gb, shares)), wan.shuffle(demands_gb(data_gb, even))
    )


def reduce_shares(
    data_gb: Mapping[str, float], caps_gbps: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Return each region's share of the reduce stage, from its caps out and in."""
    total = sum(data_gb.values())

    def bounds(z: float) -> list[tuple[float, float]]:
        found = []
        for region, here in data_gb.items():
            out, into = caps_gbps[region]
            low = max(0.0, 1 - z * out / here) if here else 0.0
            high = min(1.0, z * into / (total - here)) if total > here else 1.0
            found.append((low, high))
        return found

    def enough(z: float) -> bool:
        found = bounds(z)
        fits = all(low <= high for low, high in found)
        return fits and sum(low for low, _ in found) <= 1 <= sum(high for _, high in found)

    slow = max(total / min(caps_gbps[region]) for region in data_gb)
    quick = 0.0
    for _ in range(HALVINGS):
        middle = (quick + slow) / 2
        quick, slow = (quick, middle) if enough(middle) else (middle, slow)
    found = bounds(slow)
    left = 1 - sum(low for low, _ in found)
    room = sum(high - low for low, high in found)
    part = left / room if room else 0.0
    return {
        region: low + part * (high - low)
        for region, (low, high) in zip(data_gb, found, strict=True)
    }


def demands_gb(
    data_gb: Mapping[str, float], shares: Mapping[str, float]
) -> dict[tuple[str, str], float]:
    """Return what goes from where to where when every key is spread alike."""
    return {
        (src, dst): gb * share
        for src, gb in data_gb.items()
        for dst, share in shares.items()
        if src != dst and gb * share > 0
    }
