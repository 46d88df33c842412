"""The pairs of regions on which a single relay gains most, as JSON."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from planner.fields.shared import DEFAULT_MARGIN
from planner.model.errors import DataError, InfeasibleError
from planner.model.units import S_PER_H
from planner.transfer.plan import Plan
from planner.transfer.request import TransferRequest
from relayd.http.responses.encoding import encoded
from relayd.sources.wan import Wan

VOLUME_GB = 1000.0
PLANS_PER_ENTRY = 2
"""Pairs that are planned for each entry of the answer, because a plan's gain may be less than the
matrix says: it allows for what VMs do to each other."""
MOST_S = 3.0
"""After which no further pair is planned; some 40 ms a pair."""


def relay_gains_bytes(wan: Wan, limit: int) -> bytes:
    """Return the largest gains as JSON: plans of the pairs that are first in the matrix."""
    until_s = time.monotonic() + MOST_S
    matrix = wan.matrix("relay-gain")
    assert matrix.sources is not None
    gains = np.nan_to_num(matrix.values, posinf=0.0)
    worth = int((gains >= 1 + DEFAULT_MARGIN).sum())
    found: list[dict[str, Any]] = []
    for at in np.argsort(-gains, axis=None, kind="stable")[: min(worth, PLANS_PER_ENTRY * limit)]:
        if time.monotonic() > until_s and len(found) >= limit:
            break
        i, j = divmod(int(at), len(matrix.regions))
        src, dst = matrix.regions[i], matrix.regions[j]
        request = TransferRequest(
            src, dst, volume_gb=VOLUME_GB, objective="time", relays="one", vms=1, candidates=1
        )
        try:
            entry = _entry(wan.ask(request), src, dst)
        except (DataError, InfeasibleError):  # such as a quota that leaves an end no VM
            continue
        if entry:
            found.append(entry | {"source": matrix.sources[i][j]})
    found.sort(key=lambda entry: -entry["gain"])
    return encoded(
        {"snapshot": wan.snapshot, "volume_gb": VOLUME_GB, "pairs": worth, "relays": found[:limit]}
    )


def _entry(plan: Plan, src: str, dst: str) -> dict[str, Any] | None:
    relay, direct = plan.best_relay, plan.direct
    if relay is None or relay.gain is None or direct.duration_s is None or direct.cost_usd is None:
        return None  # the direct path is down: that is no gain, but an outage
    saved_h = (direct.duration_s - relay.duration_s) / S_PER_H
    if saved_h <= 0:
        return None
    return {
        "src": src,
        "dst": dst,
        "relay": relay.relay,
        "gain": relay.gain,
        "gain_low": relay.gain_low,
        "gain_high": relay.gain_high,
        "probability": relay.probability,
        "direct_gbps": direct.throughput_gbps,
        "relay_gbps": relay.throughput_gbps,
        "direct_s": direct.duration_s,
        "relay_s": relay.duration_s,
        "direct_usd": direct.cost_usd.total,
        "relay_usd": relay.cost_usd.total,
        "pays_from_usd_per_h": max(0.0, relay.cost_usd.total - direct.cost_usd.total) / saved_h,
    }
