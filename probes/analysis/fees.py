"""Whether a higher price buys better performance.

"Measuring and understanding WANs between public-cloud datacenters" (Computer Networks, 2016)
found the opposite: where egress is dear (AP, SA), throughput is low.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, permutation_p, ranks, require

FEWEST_PAIRS = 8
DRAWS = 1999


@dataclass(frozen=True, slots=True)
class FeesAgainstPerformance:
    """Rank correlation of price and throughput.

    Attributes
    ----------
    pairs : int
        Source regions, or links, that were compared.
    correlation : float
        Spearman's: 1 where the dearer is always the faster, -1 where it is always the slower.
    p_value : float
    related : bool
        Whether chance produces as much, in either direction, in at most 5 % of cases.
    """

    pairs: int
    correlation: float
    p_value: float
    related: bool


def fees_against_performance(
    usd_per_gb: ArrayLike, throughput: ArrayLike, *, seed: int = 0
) -> FeesAgainstPerformance:
    """Correlate fees with throughput.

    Links that share a source share its price; give one value a source (its median throughput) if
    sources are what is to be compared.

    Raises
    ------
    TooFewError
        If fewer than eight pairs have both, or all have the same price.
    """
    price, rate = (np.asarray(values, dtype=float) for values in (usd_per_gb, throughput))
    known = np.isfinite(price) & np.isfinite(rate)
    require("pairs of price and throughput", int(known.sum()), FEWEST_PAIRS)
    require("different prices", np.unique(price[known]).size, 2)
    a, b = (ranks(values[known]) - (known.sum() + 1) / 2 for values in (price, rate))
    scale = float(np.sqrt((a @ a) * (b @ b))) or 1.0
    observed = float(a @ b) / scale
    generator = np.random.default_rng(seed)
    drawn = generator.permuted(np.tile(b, (DRAWS, 1)), axis=1) @ a / scale
    p_value = permutation_p(abs(observed) * (1 - 1e-9), np.abs(drawn))
    return FeesAgainstPerformance(int(known.sum()), observed, p_value, p_value <= FALSE_ALARMS)
