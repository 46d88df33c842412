"""What would have been believed at each step of a history, and what was then measured, on arrays.

The rules are those of the estimator; a test holds both against each other. Nothing is inferred of
pairs that were not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import DAYS_PER_YEAR, faded
from planner.model.link import FLOW_FADING
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.all_pairs import Floats, RateBounds, within_caps
from probes.analysis.cold_tests import steady_rates
from probes.estimation.bundles import Windows, bundle_rates
from probes.estimation.combining import SHORT_S, combined, tests_of
from probes.estimation.laws_of_pairs import LawsOfPairs, proportions
from probes.estimation.rolling import (
    RollingBounds,
    RollingEstimates,
    SeriesColumns,
    bounds_of,
    bounds_of_logs,
    days_since,
    deviations,
    flow_bounds,
    medians,
)
from probes.estimation.round_trips import OPPOSITE_DIRECTION_ERROR
from probes.estimation.series import RTT_NOISE

Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Models:
    """What is believed of some regions without measurements.

    Attributes
    ----------
    egress_gbps, ingress_gbps : RateBounds
        Caps of one VM by its type, each of length n.
    usual_rtt_ms, usual_rtt_error : arrays, shape (n, n)
        Where neither direction was measured.
    windows : Windows
    laws : LawsOfPairs
    connections : int
        That one VM opens; 1 rests on single flows.
    """

    egress_gbps: RateBounds
    ingress_gbps: RateBounds
    usual_rtt_ms: Floats
    usual_rtt_error: Floats
    windows: Windows
    laws: LawsOfPairs
    connections: int

    @property
    def single_flow(self) -> bool:
        """Whether throughput is that of one connection."""
        return self.connections == 1

    @property
    def shape(self) -> tuple[int, int]:
        """Of arrays of pairs."""
        rows, columns = self.usual_rtt_ms.shape
        return rows, columns


@dataclass(frozen=True, slots=True)
class Part:
    """Some steps, with their samples and what is needed of those before.

    Attributes
    ----------
    edges_s : array, length steps + 1
        When steps begin, and when the last one ends.
    throughput, rtt_ms : SeriesColumns
        Of ``n * n`` pairs, row by row.
    """

    edges_s: Floats
    throughput: SeriesColumns
    rtt_ms: SeriesColumns


class Factors(NamedTuple):
    """Rates of one VM pair; caps of one VM that sends, and of one that receives."""

    links: RateBounds
    egress: RateBounds
    ingress: RateBounds


class Step(NamedTuple):
    """A step in which something was measured; arrays of shape (n, n), from row to column.

    Attributes
    ----------
    factors : Factors
        As believed before the step.
    believed : RateBounds
        Of one VM pair within the VMs' caps, before the step.
    estimated : array of bool
        Where that rests on measurements of the pair.
    rtt_ms : array
        As it was believed.
    truth_gbps, true_rtt_ms : arrays
        As measured in the step: NaN where throughput was not, and the believed round-trip time.
    begin_s : float
        When it begins, in seconds since 1970.
    """

    factors: Factors
    believed: RateBounds
    estimated: Truths
    rtt_ms: Floats
    truth_gbps: Floats
    true_rtt_ms: Floats
    begin_s: float

    @property
    def covered(self) -> Truths:
        """Where what was measured lies within the bounds."""
        truth, believed = self.truth_gbps, self.believed
        found: Truths = (believed.low <= truth) & (truth <= believed.high)
        return found


def steps_of(part: Part, models: Models) -> Iterator[Step]:
    """Yield the steps of a part in which anything was measured."""
    shape = models.shape
    rates, rtts = RollingEstimates(part.throughput), RollingEstimates(part.rtt_ms)
    rate_ends, rtt_ends = rates.ends(part.edges_s), rtts.ends(part.edges_s)
    for step in range(len(part.edges_s) - 1):
        begin, end = rate_ends[:, step], rate_ends[:, step + 1]
        if not (end > begin).any():
            continue
        rtt_ms, rtt_error = _round_trips(rtts, rtt_ends[:, step], models)
        begin_s = float(part.edges_s[step])
        factors = _believed(rates, begin, rtt_ms, rtt_error, begin_s, models)
        seen, _ = medians(rtts.values_between(rtt_ends[:, step], rtt_ends[:, step + 1])[0])
        true_rtt_ms = _either_way(seen.reshape(shape), rtt_ms)
        values, cold_s = rates.values_between(begin, end)
        truth, _ = medians(_steady(values, cold_s, true_rtt_ms, models))
        estimated = (begin > rates.series.starts[:-1]).reshape(shape)
        believed = RateBounds(*map(within_caps, *factors))
        truth_gbps = truth.reshape(shape)
        yield Step(factors, believed, estimated, rtt_ms, truth_gbps, true_rtt_ms, begin_s)


def _round_trips(
    rtts: RollingEstimates, known: NDArray[np.int64], models: Models
) -> tuple[Floats, Floats]:
    """Return round-trip times and their relative errors: measured, opposite direction, model."""
    values, *_ = rtts.newest_values(known)
    # Their age plays no part: flows are inferred from them as they were.
    found = bounds_of(values, RTT_NOISE)
    shape = models.shape
    expected = found.expected.reshape(shape)
    with np.errstate(invalid="ignore"):
        error = found.high.reshape(shape) / expected - 1
    opposite = np.maximum(error.T, OPPOSITE_DIRECTION_ERROR)
    error = np.where(np.isnan(expected), opposite, error)
    error = np.where(np.isnan(error), models.usual_rtt_error, error)
    return _either_way(expected, models.usual_rtt_ms), error


def _either_way(measured: Floats, otherwise: Floats) -> Floats:
    """Return round-trip times: measured, else the opposite direction's, else others."""
    found = np.where(np.isnan(measured), measured.T, measured)
    return np.where(np.isnan(found), otherwise, found)


def _believed(
    rates: RollingEstimates,
    known: NDArray[np.int64],
    rtt_ms: Floats,
    rtt_error: Floats,
    now_s: float,
    models: Models,
) -> Factors:
    """Return what relayd would have estimated."""
    values, cold_s, newest_s = rates.newest_values(known)
    steady = _steady(values, cold_s, rtt_ms, models)
    shape, noise = models.shape, models.laws.noise.ravel()
    found = flow_bounds(steady) if models.single_flow else bounds_of(steady, noise)
    alone = RollingBounds(*(bound.reshape(shape) for bound in found))
    middle, repeats = medians(steady)
    longest_s = np.where(np.isnan(values), 0.0, cold_s).max(axis=1)
    is_lone = ((repeats == 1) & (longest_s > 0) & (longest_s <= SHORT_S)).reshape(shape)
    egress = _raised(models.egress_gbps, alone, is_lone)
    turned = RollingBounds(*(bound.T for bound in alone))
    ingress = _raised(models.ingress_gbps, turned, is_lone.T)
    days = days_since(newest_s, now_s).reshape(shape)
    if models.single_flow:
        links = _aged_flows(alone, days)
        return Factors(RateBounds(*map(np.nan_to_num, links)), egress, ingress)
    tests = tests_of(
        middle.reshape(shape),
        deviations(steady, middle).reshape(shape),
        repeats.reshape(shape),
        is_lone,
        models.laws.noise,
    )
    proportion = proportions(egress.expected, models.egress_gbps.expected)
    priors = models.laws.priors(alone.expected, rtt_ms, rtt_error, egress, ingress, proportion)
    kept = np.exp(-days / (DAYS_PER_YEAR * models.laws.memory_years))
    links = bundle_rates(
        bounds_of_logs(faded(kept, combined(tests, *priors)[:3], priors)),
        rates.newest_connections(known).reshape(shape),
        models.connections,
        rtt_ms,
        rtt_error,
        models.windows,
    )
    return Factors(RateBounds(*map(np.nan_to_num, links)), egress, ingress)


def _aged_flows(flows: RollingBounds, days: Floats) -> RollingBounds:
    """Return single flows, which fade around themselves."""
    spread, memory_years = FLOW_FADING
    kept = np.exp(-days / (DAYS_PER_YEAR * memory_years))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, error = np.log(flows.expected), np.log(flows.high / flows.expected)
    prior = np.full_like(error, spread)
    return bounds_of_logs(faded(kept, (middle, error, error), (middle, prior, prior)))


def _raised(caps: RateBounds, links: RollingBounds, is_lone: Truths) -> RateBounds:
    """Raise the caps of VMs to what links have exceeded; rows of `links` are the VMs'.

    See :func:`probes.estimation.sites.most_carried`.
    """
    carried = np.nan_to_num(links.expected, nan=-1.0)
    np.fill_diagonal(carried, -1.0)
    rows = np.arange(len(carried))
    order = np.argsort(-carried, axis=1, kind="stable")
    first, second = order[:, 0], order[:, 1]
    sure = np.where(is_lone[rows, first], second, first)
    exceeded = carried[rows, sure] > caps.expected
    raised = RateBounds(
        *(np.where(exceeded, link[rows, sure], cap) for cap, link in zip(caps, links, strict=True))
    )
    return raised._replace(high=np.maximum(raised.high, carried[rows, first]))


def _steady(values_mbps: Floats, cold_s: Floats, rtt_ms: Floats, models: Models) -> Floats:
    if cold_s.any():
        values_mbps = steady_rates(
            values_mbps, rtt_ms.ravel()[:, None], cold_s, one_flow=models.single_flow
        )
    return values_mbps / MBPS_PER_GBPS
