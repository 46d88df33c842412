"""Comparisons: two directions, first packets and others, VMs, zones, destinations, prices.

After "Network throughput variability in Azure" (GLOBECOM 2015), "Measuring and understanding WANs
between public-cloud datacenters" (Computer Networks 2016), "To Relay or Not to Relay for
Inter-Cloud Transfers?" (HotCloud 2018) and "Predictability of cloud networks" (2021). Each raises
:class:`TooFewError` where there are fewer values than it needs. A difference is one that chance
produces in at most 5 % of cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import (
    FALSE_ALARMS,
    Floats,
    Record,
    finite,
    permutation_p,
    ranks,
    require,
    runs_of,
    sign_p,
    spread,
    without_missing,
)

FEWEST_PAIRS = 6
"""With fewer, no arrangement of signs is rarer than 5 %."""
DRAWS = 1999
MOST_SIGNS = 40
COLLAPSED_MBPS = 10.0
"""One direction below this while the other is not: the intermittent collapses of the 2016 WAN
paper, which lasted hours."""
FEWEST_RUNS = 6
FEWEST_PRICED = 8
FEWEST_VMS = 5
FEWEST_FOR_PERCENTILE = 100
"""The first percentile of fewer values is a guess at their minimum."""
VM_DRAWS = 999
FEWEST_TIMES = 10
FEWEST_REGIONS = 3
NOTEWORTHY = 1.5
"""The gain of relays by which the 2018 paper counts: about 40 % of its single-flow transfers reach
it. Figure 1c shows the distribution, which collapses for aggregates."""
ALIKE = 0.2
"""90 % of pairs of zones are closer in 2016."""
FEWEST_DESTINATIONS = 3
HOMOGENEOUS_COV = 0.1
"""Rates over destinations that vary less are one rate: in Table 3 of the 2018 paper they vary by
2.5 % (t2.micro) and 0.8 % (m4.16xlarge)."""


def paired_difference(first: ArrayLike, second: ArrayLike) -> Record:
    """Compare two series pair by pair: directions, public and private addresses, two tools.

    A test of signs drawn at random for the logarithms of the ratios: no distribution is assumed,
    only that a ratio is as likely as its inverse where there is no difference. Long series, which
    are in order of time, get one sign for each fortieth of theirs, because neighbours in time
    resemble each other.

    Returns ``pairs``, ``ratio`` (first over second, geometric mean), ``p_value``, and ``differs``:
    whether chance produces as much in at most 5 % of cases. Fewer than six pairs above zero on both
    sides are too few.
    """
    both = without_missing(first, second)
    a, b = both[:, (both > 0).all(axis=0)]
    require("pairs of values", a.size, FEWEST_PAIRS)
    logs = np.log(a / b)
    sums = np.array([part.sum() for part in np.array_split(logs, min(logs.size, MOST_SIGNS))])
    p_value = sign_p(sums, DRAWS, both_sides=True)
    verdict = {"p_value": p_value, "differs": p_value <= FALSE_ALARMS}
    return {"pairs": logs.size, "ratio": float(np.exp(logs.mean())), **verdict}


def collapses(times_s: np.ndarray, mbps: np.ndarray, other_mbps: np.ndarray) -> list[Record]:
    """List the times in which one direction was below 10 Mbit/s and the other was not.

    Arrays have length n, in order of time. Of each it tells ``from_s``, ``until_s``, ``samples``
    and the median ``mbps``.
    """
    fell = (mbps < COLLAPSED_MBPS) & (other_mbps >= COLLAPSED_MBPS)
    return [
        {
            "from_s": float(times_s[start]),
            "until_s": float(times_s[stop - 1]),
            "samples": stop - start,
            "mbps": float(np.median(mbps[start:stop])),
        }
        for start, stop in runs_of(fell).tolist()
    ]


def first_packets(first_ms: ArrayLike, others_ms: ArrayLike) -> Record:
    """Compare first packets with the others of their runs; they may take ten times as long.

    Of each of n runs it takes the first packet's round-trip time, and the median of the others.
    Returns ``runs``, medians ``first_over_others`` and ``extra_ms``, ``first_differs`` (longer than
    chance explains in 5 % of cases, by a sign test) and ``p_value``. Six runs are needed.
    """
    both = without_missing(first_ms, others_ms)
    first, others = both[:, (both[1] > 0) & (both[0] != both[1])]
    require("runs of pings with a first packet", first.size, FEWEST_RUNS)
    # The first is as likely above the median of the others as below it, if it is one of them:
    # normal approximation with a correction for continuity.
    above, runs = int((first > others).sum()), first.size
    p_value = NormalDist().cdf((runs / 2 - above + 0.5) / (runs**0.5 / 2))
    return {
        "runs": runs,
        "first_over_others": float(np.median(first / others)),
        "extra_ms": float(np.median(first - others)),
        "first_differs": p_value <= FALSE_ALARMS,
        "p_value": p_value,
    }


def fees_against_performance(usd_per_gb: ArrayLike, throughput: ArrayLike) -> Record:
    """Correlate fees with throughput by ranks (Spearman).

    The 2016 paper found that where egress is dear (AP, SA), throughput is low. Links that share a
    source share its price; give one value a source to compare sources. Returns ``pairs``,
    ``correlation``, ``p_value``, and ``related``: whether chance produces as much, in either
    direction, in at most 5 % of cases. Eight pairs, and two prices, are needed.
    """
    price, rate = without_missing(usd_per_gb, throughput)
    require("pairs of price and throughput", price.size, FEWEST_PRICED)
    require("different prices", np.unique(price).size, 2)
    a, b = (ranks(values) - (price.size + 1) / 2 for values in (price, rate))
    scale = float(np.sqrt((a @ a) * (b @ b))) or 1.0
    observed = float(a @ b) / scale
    drawn = np.random.default_rng(0).permuted(np.tile(b, (DRAWS, 1)), axis=1) @ a / scale
    p_value = permutation_p(abs(observed), np.abs(drawn))
    verdict = {"p_value": p_value, "related": p_value <= FALSE_ALARMS}
    return {"pairs": price.size, "correlation": observed, **verdict}


def vm_spread(by_vm: Mapping[str, ArrayLike]) -> Record:
    """Compare VMs of one type, region and configuration, by the rates of each in repeated tests.

    The same choice can give very different VMs, each of which then stays as it is (2015). So the
    share of the variation between VMs matters, and the first percentile, on which one can count
    before any measurement. :mod:`probes.analysis.fleet_caps` has the odds of recreating a VM.

    Returns ``vms``, ``samples``; ``between``, the :func:`spread` of the VMs' medians;
    ``between_share`` of the variance of all values (intraclass correlation); ``p_value`` and
    ``vms_differ``, whether values of one VM resemble each other beyond chance (5 %);
    ``first_percentile`` of all values, None with under 100. Five VMs with two tests or more are
    needed.
    """
    groups = [values for values in map(finite, by_vm.values()) if values.size >= 2]
    require("VMs with repeated tests", len(groups), FEWEST_VMS)
    values = np.concatenate(groups)
    sizes = np.array([group.size for group in groups])
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])

    def between_squares(series: Floats) -> Floats:
        squares: Floats = (np.add.reduceat(series, starts, axis=-1) ** 2 / sizes).sum(axis=-1)
        return squares

    centred = values - values.mean()
    observed = float(between_squares(centred))
    drawn = np.random.default_rng(0).permuted(np.tile(centred, (VM_DRAWS, 1)), axis=1)
    p_value = permutation_p(observed, between_squares(drawn))
    within = sum(group.var() * group.size for group in groups) / (values.size - len(groups))
    mean_size = (values.size - float((sizes**2).sum()) / values.size) / (len(groups) - 1)
    own = float(max(0.0, (observed / (len(groups) - 1) - within) / mean_size))
    is_enough = values.size >= FEWEST_FOR_PERCENTILE
    return {
        "vms": len(groups),
        "samples": values.size,
        "between": spread([np.median(group) for group in groups]),
        "between_share": float(own / (own + within)) if own + within > 0 else 0.0,
        "p_value": p_value,
        "vms_differ": p_value <= FALSE_ALARMS,
        "first_percentile": float(np.percentile(values, 1)) if is_enough else None,
    }


def zone_pairs(series: Mapping[str, ArrayLike]) -> list[Record]:
    """Compare all pairs of zones by the CV-RMSE of their series.

    That is the root mean square difference of two series taken at the same times, over the mean of
    their means. Values are NaN where a zone was not measured. Of each pair it tells ``first``,
    ``second``, ``cv_rmse`` and ``alike``, whether that is under 0.2; two zones must have been
    measured ten times together.
    """
    pairs: list[Record] = []
    most = 0
    for first, second in combinations(series, 2):
        a, b = without_missing(series[first], series[second])
        most = max(most, a.size)
        if a.size >= FEWEST_TIMES:
            error = float(np.sqrt(((a - b) ** 2).mean()) / ((a.mean() + b.mean()) / 2))
            pair = {"first": first, "second": second}
            pairs.append({**pair, "cv_rmse": error, "alike": error < ALIKE})
    if not pairs:
        require("values of two zones at the same times", most, FEWEST_TIMES)
    return pairs


def homogeneity(rates: ArrayLike) -> Record:
    """Tell one cap from distances: the rates from one source to many destinations, in any unit.

    Figure 1a (one flow), Figure 2 and Table 3 (many) of the 2018 paper. Returns ``destinations``
    (three are needed), ``cov``, ``fastest_over_slowest``, and ``homogeneous``: whether rates vary
    by under a tenth.
    """
    require("destinations", finite(rates).size, FEWEST_DESTINATIONS)
    over = spread(rates)
    least = over["minimum"]
    return {
        "destinations": over["samples"],
        "cov": over["cov"],
        "fastest_over_slowest": over["maximum"] / least if least > 0 else float("inf"),
        "homogeneous": over["cov"] < HOMOGENEOUS_COV,
    }


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
