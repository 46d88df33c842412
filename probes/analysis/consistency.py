"""The first packet against the rest, and how alike transfers of one file are.

After "Predictability of cloud networks" (2021): pings in runs, whose first packet may take ten
times as long as the others, and transfers of one file repeated over a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, finite, require
from probes.analysis.variation import Spread, spread

FEWEST_RUNS = 6
FEWEST_TRANSFERS = 10


@dataclass(frozen=True, slots=True)
class FirstPackets:
    """First packets of runs of pings.

    Attributes
    ----------
    runs : int
    first_over_others : float
        Median, over runs, of the first packet's time over the median of its run's others.
    extra_ms : float
        Median of the difference.
    first_differs : bool
        Whether first packets take longer than chance explains in 5 % of cases (sign test).
    p_value : float
    """

    runs: int
    first_over_others: float
    extra_ms: float
    first_differs: bool
    p_value: float


def first_packets(first_ms: ArrayLike, others_ms: ArrayLike) -> FirstPackets:
    """Compare first packets with the others of their runs.

    Parameters
    ----------
    first_ms, others_ms : arrays, length n
        The first packet's round-trip time of each run, and the median of the others.

    Raises
    ------
    TooFewError
        If there are fewer than six runs with both.
    """
    first, others = (np.asarray(a, dtype=float) for a in (first_ms, others_ms))
    known = np.isfinite(first) & np.isfinite(others) & (others > 0) & (first != others)
    require("runs of pings with a first packet", int(known.sum()), FEWEST_RUNS)
    first, others = first[known], others[known]
    # The first is as likely above the median of the others as below it, if it is one of them:
    # normal approximation with a correction for continuity.
    above, runs = int((first > others).sum()), first.size
    p_value = NormalDist().cdf((runs / 2 - above + 0.5) / (runs**0.5 / 2))
    return FirstPackets(
        runs,
        float(np.median(first / others)),
        float(np.median(first - others)),
        p_value <= FALSE_ALARMS,
        p_value,
    )


@dataclass(frozen=True, slots=True)
class TransferTimes:
    """Transfers of the same volume, repeated.

    Attributes
    ----------
    transfers : int
    seconds : Spread
    percentile_95_over_median : float
        What a cautious deadline adds.
    """

    transfers: int
    seconds: Spread
    percentile_95_over_median: float


def transfer_times(seconds: ArrayLike) -> TransferTimes:
    """Sum up how long the same transfer took.

    Raises
    ------
    TooFewError
        If there are fewer than ten.
    """
    known = finite(seconds)
    require("transfers of the same volume", known.size, FEWEST_TRANSFERS)
    over = spread(known)
    return TransferTimes(known.size, over, over.percentile_95 / over.median)
