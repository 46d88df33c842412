"""What to measure, so that decisions come out right for little money.

The order of a campaign: :func:`rtt_tasks`, :func:`per_flow_tasks`, :func:`cap_tasks`, then
:func:`choose_legs` again and again, each time with the network that the samples so far give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.network import Network
from planner.pricing import Prices
from probes.campaign.tasks import ProbeTask


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure next, and how much there is left to lose.

    Attributes
    ----------
    tasks : list of ProbeTask
        Best first; empty when it is time to stop.
    regret : float
        Expected share of throughput (per dollar) lost over the workload as things are.
    regret_after : float
        The same once these tasks have been run, as far as can be foreseen.
    usd : float
        Price of the tasks.
    reason : str
        Why it goes on or stops, in words.
    """

    tasks: list[ProbeTask]
    regret: float
    regret_after: float
    usd: float
    reason: str


def rtt_tasks(hosts: Sequence[str], *, pings_s: float = 2.0) -> list[ProbeTask]:
    """Return one RTT task for every unordered pair of hosts (or ordered: see Parameters)."""
    raise NotImplementedError


def per_flow_tasks(
    region_of: Mapping[str, str],
    network: Network,
    *,
    per_type: int = 3,
    duration_s: float = 10.0,
) -> list[ProbeTask]:
    """Return a few single-connection probes for each type of receiver, at RTT 60 to 250 ms."""
    raise NotImplementedError


def cap_tasks(
    region_of: Mapping[str, str],
    network: Network,
    *,
    per_type: int = 1,
    peers: int = 4,
    connections: int = 64,
    duration_s: float = 5.0,
) -> list[ProbeTask]:
    """Return one-to-many and many-to-one probes."""
    raise NotImplementedError


def choose_legs(
    region_of: Mapping[str, str],
    network: Network,
    prices: Prices,
    *,
    budget_usd: float = float("inf"),
    threshold: float = 0.01,
    batch: int = 20,
    connections: int = 64,
    margin: float = 0.1,
    duration_s: float = 5.0,
    seed: int = 0,
) -> Choice:
    """Return the legs whose measurement is expected to save most regret for a dollar."""
    raise NotImplementedError
