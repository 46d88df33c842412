"""Gains of relays over all pairs: for one flow, for many, and in latency.

Figure 1c of "To Relay or Not to Relay for Inter-Cloud Transfers?" (HotCloud, 2018) shows the
distribution for single flows, and the paper's point is that it collapses for aggregates.
"""

from __future__ import annotations

import numpy as np

from probes.analysis.evidence import Floats, Record, finite, require

FEWEST_REGIONS = 3
NOTEWORTHY = 1.5
"""The gain by which the paper counts: about 40 % of its single-flow transfers reach it."""


def distribution(gains: Floats) -> Record:
    """Summarise the gains of the best single relay over direct.

    They are NaN for pairs without a direct path. Returns ``pairs``; ``gains`` in ascending order;
    ``share_1_1`` and ``share_1_5`` of pairs that gain that much or more; ``median``, ``maximum``.
    Three pairs are needed.
    """
    known = np.sort(finite(gains))
    require("pairs with a direct path", known.size, FEWEST_REGIONS)
    return {
        "pairs": known.size,
        "gains": known,
        "share_1_1": float((known >= 1.1 - 1e-9).mean()),
        "share_1_5": float((known >= NOTEWORTHY - 1e-9).mean()),
        "median": float(np.median(known)),
        "maximum": float(known[-1]),
    }


def latency_gains(rtt_ms: Floats, pairs: np.ndarray | None = None) -> Record:
    """Return direct RTT over the least through one relay (or direct); see :func:`distribution`.

    Arrays have shape (n, n), three regions or more; RTTs are NaN where not known. Any region may
    relay; all pairs count by default.
    """
    require("regions", len(rtt_ms), FEWEST_REGIONS)
    known = np.where(np.isfinite(rtt_ms), rtt_ms, np.inf).astype(float)
    np.fill_diagonal(known, np.inf)
    # Row by row: the cube of all triples is never built.
    relayed = np.array([(row[:, None] + known).min(axis=0) for row in known])
    with np.errstate(invalid="ignore"):
        gains = np.where(np.isfinite(known), known / np.minimum(known, relayed), np.nan)
    return distribution(gains if pairs is None else gains[pairs])
