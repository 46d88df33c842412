"""A VM's egress and ingress cap from one-to-many and many-to-one probes."""

from __future__ import annotations

from collections.abc import Mapping

from planner.network import Estimate


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
        Peer to the saturated rate of that pair alone, measured or expected; None: not known.
    """
    raise NotImplementedError
