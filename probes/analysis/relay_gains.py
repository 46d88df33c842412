"""What relays gain over all pairs: for one flow, for many, and in latency.

Figure 1c of "To Relay or Not to Relay for Inter-Cloud Transfers?" (HotCloud, 2018) shows the
distribution for single flows, and the paper's point is that it collapses for aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.transfer.all_pairs import best_relays
from probes.analysis.evidence import Floats, finite, require

FEWEST_REGIONS = 3
NOTEWORTHY = 1.5
"""The gain by which the paper counts: about 40 % of its single-flow transfers reach it."""


@dataclass(frozen=True, slots=True)
class GainDistribution:
    """Gains of the best single relay over direct.

    Attributes
    ----------
    pairs : int
    gains : array, ascending
        Best path (direct included) over direct, of every pair with a direct path.
    share_1_1, share_1_5 : float
        Of pairs that gain that much or more.
    median, maximum : float
    """

    pairs: int
    gains: Floats
    share_1_1: float
    share_1_5: float
    median: float
    maximum: float


def distribution(gains: np.ndarray) -> GainDistribution:
    """Summarise gains; NaN marks pairs without a direct path."""
    known = np.sort(finite(gains))
    require("pairs with a direct path", known.size, FEWEST_REGIONS)

    def share(least: float) -> float:
        return float((known >= least - 1e-9).mean())

    return GainDistribution(
        known.size, known, share(1.1), share(NOTEWORTHY), float(np.median(known)), float(known[-1])
    )


def throughput_gains(
    rates: np.ndarray, egress: np.ndarray | None = None, ingress: np.ndarray | None = None
) -> GainDistribution:
    """Return what the best relay gains in throughput.

    Parameters
    ----------
    rates : array, shape (n, n)
        Row to column, NaN where not known; of single flows or of aggregates.
    egress, ingress : arrays, length n, optional
        VM caps in the same unit: a relay can't pass on more. Leave them out for single flows.

    Raises
    ------
    TooFewError
        If there are fewer than three regions or pairs.
    """
    count = len(rates)
    require("regions", count, FEWEST_REGIONS)
    unlimited = np.full(count, np.inf)
    known = np.nan_to_num(np.asarray(rates, dtype=float))
    np.fill_diagonal(known, 0.0)
    out = unlimited if egress is None else np.asarray(egress, dtype=float)
    into = unlimited if ingress is None else np.asarray(ingress, dtype=float)
    direct = np.minimum(np.minimum(known, out[:, None]), into[None, :])
    best = np.maximum(best_relays(known, out, into).rate_gbps.astype(float), direct)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains = np.where(direct > 0, best / direct, np.nan)
    np.fill_diagonal(gains, np.nan)
    return distribution(gains)


def latency_gains(rtt_ms: np.ndarray, pairs: np.ndarray | None = None) -> GainDistribution:
    """Return direct RTT over the least through one relay (or direct).

    Parameters
    ----------
    rtt_ms : array, shape (n, n)
        NaN where not known.
    pairs : array of bool, shape (n, n), optional
        Which pairs count; any region may relay. All by default.

    Raises
    ------
    TooFewError
        If there are fewer than three regions or pairs.
    """
    count = len(rtt_ms)
    require("regions", count, FEWEST_REGIONS)
    known = np.where(np.isfinite(rtt_ms), rtt_ms, np.inf).astype(float)
    np.fill_diagonal(known, np.inf)
    # Row by row: the cube of all triples is never built.
    relayed = np.array([(row[:, None] + known).min(axis=0) for row in known])
    with np.errstate(invalid="ignore"):
        gains = np.where(np.isfinite(known), known / np.minimum(known, relayed), np.nan)
    np.fill_diagonal(gains, np.nan)
    return distribution(gains if pairs is None else gains[pairs])
