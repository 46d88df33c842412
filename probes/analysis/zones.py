"""Whether zones of a region see the same network: CV-RMSE of their series.

The root mean square difference of two series taken at the same times, over the mean of their
means ("Measuring and understanding WANs between public-cloud datacenters", Computer Networks,
2016, where 90 % of pairs of zones are under 0.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import require

FEWEST_TIMES = 10
ALIKE = 0.2


@dataclass(frozen=True, slots=True)
class ZonePair:
    """Two zones compared.

    Attributes
    ----------
    first, second : str
    times : int
        At which both were measured.
    cv_rmse : float
    offset : float
        Mean of the first less mean of the second, in the unit of the values: zones often differ
        by a constant latency.
    cv_rmse_without_offset : float
    alike : bool
        Whether ``cv_rmse`` is under 0.2.
    """

    first: str
    second: str
    times: int
    cv_rmse: float
    offset: float
    cv_rmse_without_offset: float
    alike: bool


def zone_pairs(series: Mapping[str, ArrayLike]) -> list[ZonePair]:
    """Compare all pairs of zones.

    Parameters
    ----------
    series : mapping
        Zone to its values, all taken at the same times; NaN where one was not measured.

    Raises
    ------
    TooFewError
        If no two zones were measured ten times together.
    """
    found, most = [], 0
    for first, second in combinations(series, 2):
        a, b = (np.asarray(series[name], dtype=float) for name in (first, second))
        both = np.isfinite(a) & np.isfinite(b)
        most = max(most, int(both.sum()))
        if both.sum() < FEWEST_TIMES:
            continue
        a, b = a[both], b[both]
        mean = (a.mean() + b.mean()) / 2
        difference = a - b
        error = float(np.sqrt((difference**2).mean()) / mean)
        rest = float(difference.std() / mean)
        offset = float(difference.mean())
        found.append(ZonePair(first, second, a.size, error, offset, rest, error < ALIKE))
    if not found:
        require("values of two zones at the same times", most, FEWEST_TIMES)
    return found
