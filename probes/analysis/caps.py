"""A VM's egress and ingress cap from one-to-many and many-to-one probes.

Under the hose model a VM's rates to all its peers add up to its cap at most. A probe that loads
several peers at once shows the cap if the sum stays below what the peers could have taken one by
one; otherwise the peers were the limit, and the sum is only a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.errors import InputError
from planner.network import Estimate
from planner.units import MBPS_PER_GBPS

# 90th percentile of the error of one short probe of a cap, as for aggregates.
CAP_NOISE = 0.05
# The sum is the VM's limit if it stays this far below what the peers reach alone.
HELD_BACK = 0.93
# Where the cap was not reached, it may be anything from there; twice as much stands for that.
OPEN_ABOVE = 2.0


def cap_estimate(
    together_mbps: Mapping[str, float],
    alone_mbps: Mapping[str, float | None],
    *,
    measured_at_s: float,
) -> Estimate:
    """Return a VM's cap in Gbit/s.

    Parameters
    ----------
    together_mbps : mapping
        Peer to the rate it had while all ran at once.
    alone_mbps : mapping
        Peer to the saturated rate of that pair alone. A peer of which it is not known (None or
        left out) is taken to be able to take more: probes are to be laid out so
        (:func:`probes.campaign.selection.cap_tasks`).
    measured_at_s : float

    Returns
    -------
    Estimate
        ``high`` is twice ``expected`` where the cap was not reached: a lower bound only.

    Raises
    ------
    InputError
        If there is no peer, or nothing got through to any.
    """
    total_gbps = sum(together_mbps.values()) / MBPS_PER_GBPS
    if total_gbps <= 0:
        raise InputError("cap probe", "moved nothing", value=dict(together_mbps))
    alone = [alone_mbps.get(peer) for peer in together_mbps]
    known = [mbps for mbps in alone if mbps is not None]
    reached = len(known) < len(alone) or total_gbps < HELD_BACK * sum(known) / MBPS_PER_GBPS
    peers = f"{len(together_mbps)} peers at once"
    return Estimate(
        total_gbps / (1 + CAP_NOISE),
        total_gbps,
        total_gbps * (1 + CAP_NOISE if reached else OPEN_ABOVE),
        "measured",
        measured_at_s,
        1,
        basis=peers if reached else f"{peers}, which could take no more: a lower bound",
    )
