"""Loss, jitter, the first packet, and how alike file transfers are.

After "Predictability of cloud networks" (2021): pings in runs, whose first packet may take ten
times as long as the others, and transfers of one file repeated over a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, finite, require
from probes.analysis.variation import Spread, spread

FEWEST_RUNS = 6
FEWEST_PACKETS = 10
FEWEST_TRANSFERS = 10


@dataclass(frozen=True, slots=True)
class Packets:
    """Runs of pings summed up.

    Attributes
    ----------
    runs, sent : int
    loss_pct : float
    jitter_ms : float
        Mean absolute difference of neighbouring round-trip times (as RFC 3550 has it for
        transit times, without its smoothing), first packets left out.
    rtt_ms : Spread
        First packets left out.
    first_over_others : float
        Median, over runs, of the first packet's time over the median of its run's others.
    first_differs : bool
        Whether first packets take longer than chance explains in 5 % of cases (sign test).
    p_value : float
    """

    runs: int
    sent: int
    loss_pct: float
    jitter_ms: float
    rtt_ms: Spread
    first_over_others: float
    first_differs: bool
    p_value: float


def packets(runs_ms: Sequence[ArrayLike]) -> Packets:
    """Sum up runs of pings.

    Parameters
    ----------
    runs_ms : sequence of arrays
        Round-trip times of each run in the order sent; NaN for a packet that was lost.

    Raises
    ------
    TooFewError
        If fewer than six runs have ten packets or more, the first of which was answered.
    """
    runs = [np.asarray(run, dtype=float) for run in runs_ms]
    usable = [
        run
        for run in runs
        if run.size >= FEWEST_PACKETS and np.isfinite(run[0]) and np.isfinite(run[1:]).any()
    ]
    require("runs of ten pings", len(usable), FEWEST_RUNS)
    sent = np.concatenate(runs)
    differences = np.concatenate([np.abs(np.diff(run[1:])) for run in usable])
    ratios = np.array([run[0] / np.nanmedian(run[1:]) for run in usable])
    # The first is as likely above the median of the others as below it, if it is one of them.
    above = int((ratios > 1).sum())
    p_value = sum(comb(len(usable), k) for k in range(above, len(usable) + 1)) / 2 ** len(usable)
    return Packets(
        len(usable),
        sent.size,
        float(100 * np.isnan(sent).mean()),
        float(np.nanmean(differences)),
        spread(np.concatenate([run[1:] for run in usable])),
        float(np.median(ratios)),
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
