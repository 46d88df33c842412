"""Direct or the best single relay, for all pairs of regions at once.

:func:`planner.transfer.decision.decide` decides one transfer over whole VMs, splits and limits.
Replaying a month takes millions of decisions; :func:`choose` is the same rule on arrays for the
plainest case: one VM a region and one path a transfer. The least value (cost plus time) wins, and a
relay is taken only if that has less expected regret, by the same draws. :func:`best_relays` finds
the relays of greatest rate alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.model.throughput import RAMP_UP_ROUND_TRIPS
from planner.model.units import MS_PER_S, S_PER_H
from planner.solvers.joint import DRAWS, Risk, factors, scores, spread, worth
from planner.transfer.allocation import EQUAL
from planner.transfer.options import DIRECT_LINK, DST_CAP, RELAYS, SRC_CAP

DIRECT = -1
"""In place of a relay's position."""
# Triples of source, relay and destination that are held at a time: they stay in the cache.
TRIPLES_AT_ONCE = 1 << 16
NO_GBPS = 1e-12

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Bools = NDArray[np.bool_]
F = TypeVar("F", Floats, NDArray[np.float32])


class RateBounds(NamedTuple):
    """Rates in Gbit/s: of one VM pair, shape (n, n), row to column, or caps of one VM, length n.

    0 where there is no link.
    """

    low: Floats
    expected: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Terms:
    """Prices of a transfer of one volume, and the value of its user's time.

    Attributes
    ----------
    gbps_h : float
        Its duration in hours at 1 Gbit/s.
    egress_usd : array, shape (n, n)
        Fee of the whole volume from row to column; infinity where it is not known.
    vm_usd_per_h : array, length n
    vm_start_h : float
        Time that VMs take to start before the transfer begins.
    hour_usd : float
        What an hour is worth; infinity where time alone counts.
    margin : float
        How much a relay must gain of the value without fees.
    risk : Risk
    """

    gbps_h: float
    egress_usd: Floats
    vm_usd_per_h: Floats
    vm_start_h: float
    hour_usd: float
    margin: float
    risk: Risk = "neutral"

    def margins(self, alone: Floats) -> Floats:
        """Return the margin as a share of the values of direct paths, shape (n, n)."""
        if self.hour_usd == inf:
            return np.full_like(alone, self.margin)
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.margin * (1 - np.nan_to_num(self.egress_usd / alone))


class Choices(NamedTuple):
    """Shapes (n, n), row to column.

    Attributes
    ----------
    chosen : array of int32
        Position of the relay, or :data:`DIRECT`.
    best_relay : array of int32
        The relay of least value, chosen or not; :data:`DIRECT` where there is none.
    """

    chosen: NDArray[np.int32]
    best_relay: NDArray[np.int32]


class Outcomes(NamedTuple):
    """Rate, time and cost of transfers: shapes (n, n).

    Attributes
    ----------
    rate_gbps : array
        0 where the path does not exist.
    time_s, cost_usd : array
        Starting VMs, getting up to speed and sending; egress fees and VMs.
    value : array
        Cost plus time in USD, or the time in seconds where time alone counts.
    """

    rate_gbps: Floats
    time_s: Floats
    cost_usd: Floats
    value: Floats


def within_caps(rates: F, egress_gbps: F, ingress_gbps: F) -> F:
    """Return rates within the caps of one VM; 0 on the diagonal and where there is none (NaN)."""
    capped = np.minimum(np.nan_to_num(rates), np.minimum(egress_gbps[:, None], ingress_gbps))
    np.fill_diagonal(capped, 0.0)
    return capped


def best_relays_by_value(
    terms: Terms, rates: Floats, rtt_ms: Floats
) -> tuple[NDArray[np.int32], Floats]:
    """Return the relay of least value for each pair (:data:`DIRECT`: none), and that value.

    Parameters
    ----------
    terms : Terms
    rates : array, shape (n, n)
        Gbit/s; 0 where there is no link.
    rtt_ms : array, shape (n, n)
    """
    count = len(rates)
    by_time = terms.hour_usd == inf
    # What a link would cost may not be known: then it can't be recommended.
    able = (rates > 0) & np.isfinite(terms.egress_usd)
    links = np.where(able, 0.0 if by_time else terms.egress_usd, inf)
    ramp_h = np.where(able, RAMP_UP_ROUND_TRIPS / MS_PER_S / S_PER_H * rtt_ms, 0.0)
    vms = np.zeros(count) if by_time else terms.vm_usd_per_h
    hour = 1.0 if by_time else terms.hour_usd
    into, links_into, lead_h = map(
        np.ascontiguousarray, (rates.T, links.T, ramp_h.T + terms.vm_start_h)
    )
    relay = np.empty((count, count), np.int32)
    value = np.empty((count, count))
    rows = max(1, TRIPLES_AT_ONCE // (count * count))
    for first in range(0, count, rows):
        part = slice(first, min(first + rows, count))
        # Axes: source, destination, relay.
        rate = np.minimum(rates[part, None, :], into)
        np.maximum(rate, NO_GBPS, out=rate)
        hours = np.divide(terms.gbps_h, rate, out=rate)
        hours += ramp_h[part, None, :]
        hours += lead_h
        usd_per_h = vms[part, None, None] + vms[:, None] + vms
        worth = hours * (usd_per_h + hour)
        worth += links[part, None, :]
        worth += links_into
        best = worth.argmin(axis=2)
        relay[part] = best
        value[part] = np.take_along_axis(worth, best[:, :, None], axis=2)[:, :, 0]
    np.fill_diagonal(value, inf)
    relay[~np.isfinite(value)] = DIRECT
    return relay, value * S_PER_H if by_time else value


def outcomes(terms: Terms, rates: Floats, rtt_ms: Floats, relay: NDArray[np.int32]) -> Outcomes:
    """Return rate, time and cost of transfers over given paths.

    Parameters
    ----------
    terms, rates, rtt_ms
        See :func:`best_relays_by_value`.
    relay : array, shape (n, n)
        Position of each pair's relay, or :data:`DIRECT`.
    """
    return _come_to(terms, _charges(terms, rtt_ms, relay), path_rates(rates, relay))


class _Charges(NamedTuple):
    """Time and prices of paths that do not depend on the rate: shapes (n, n), or parts of that."""

    ramp_s: Floats
    egress_usd: Floats
    vm_usd_per_h: Floats


def _charges(terms: Terms, rtt_ms: Floats, relay: NDArray[np.int32]) -> _Charges:
    direct, vms = relay == DIRECT, terms.vm_usd_per_h
    ramp_s = RAMP_UP_ROUND_TRIPS / MS_PER_S * np.where(direct, rtt_ms, _both(rtt_ms, relay))
    egress_usd = np.where(direct, terms.egress_usd, _both(terms.egress_usd, relay))
    return _Charges(ramp_s, egress_usd, vms[:, None] + vms + np.where(direct, 0.0, vms[relay]))


def _come_to(terms: Terms, paths: _Charges, rate_gbps: Floats) -> Outcomes:
    time_s = terms.gbps_h / np.maximum(rate_gbps, NO_GBPS) * S_PER_H
    time_s = time_s + terms.vm_start_h * S_PER_H + paths.ramp_s
    cost_usd = paths.egress_usd + paths.vm_usd_per_h * time_s / S_PER_H
    by_time = terms.hour_usd == inf
    value = time_s if by_time else cost_usd + terms.hour_usd * time_s / S_PER_H
    return Outcomes(rate_gbps, time_s, cost_usd, np.where(rate_gbps > 0, value, inf))


def path_rates(rates: Floats, relay: NDArray[np.int32]) -> Floats:
    """Return the rate of each pair's path: the lower of its links'."""
    return np.where(relay == DIRECT, rates, _both(rates, relay, least=True))


def choose(
    terms: Terms,
    links: RateBounds,
    egress: RateBounds,
    ingress: RateBounds,
    rtt_ms: Floats,
    odd: Bools | None = None,
) -> Choices:
    """Choose for every pair with a direct link; the others have no meaning.

    Parameters
    ----------
    terms : Terms
    links : RateBounds
        Of one VM pair, not yet within the VMs' caps.
    egress, ingress : RateBounds
        Caps of one VM.
    rtt_ms : array, shape (n, n)
    odd : array of bool, shape (n, n), optional
        Links that were not measured.
    """
    odd = np.zeros(rtt_ms.shape, np.bool_) if odd is None else odd
    rates = within_caps(links.expected, egress.expected, ingress.expected)
    relay, _ = best_relays_by_value(terms, rates, rtt_ms)
    paths = [_charges(terms, rtt_ms, path) for path in (np.full_like(relay, DIRECT), relay)]
    values = [
        _come_to(terms, path, gbps).value
        for path, gbps in zip(paths, (rates, path_rates(rates, relay)), strict=True)
    ]
    pays, margins = np.zeros(rates.shape, dtype=bool), terms.margins(values[0])[..., None]
    rows = max(1, TRIPLES_AT_ONCE // (len(rates) * DRAWS))
    for part in np.array_split(np.arange(len(rates)), ceil(len(rates) / rows)):
        direct, relayed = (
            _come_to(terms, _Charges(*(figure[part, :, None] for figure in path)), gbps).value
            for path, gbps in zip(
                paths, _drawn_rates_gbps(links, odd, egress, ingress, relay, part), strict=True
            )
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            pays[part] = worth(direct / relayed, margins[part], terms.risk)
    pays &= (relay != DIRECT) & (values[1] < values[0] * (1 - EQUAL))
    return Choices(np.where(pays, relay, DIRECT).astype(np.int32), relay)


def _drawn_rates_gbps(
    links: RateBounds,
    odd: Bools,
    egress: RateBounds,
    ingress: RateBounds,
    relay: NDArray[np.int32],
    part: NDArray[np.intp],
) -> tuple[Floats, Floats]:
    """Return rates of some sources' direct paths, and of those through the relays, in each draw.

    As :class:`planner.transfer.options.OptionEvaluator` draws them.
    """
    via, src, dst = relay[part], part[:, None], np.arange(len(relay))
    smaller = ingress.expected <= egress.expected
    forwards = RateBounds(*(np.where(smaller, a, b) for a, b in zip(ingress, egress, strict=True)))

    def drawn(bounds: RateBounds, dimension: int, *at: np.ndarray) -> Floats:
        return _drawn(
            RateBounds(*(bound[at] for bound in bounds)),
            dimension,
            odd[at] if bounds is links else False,
        )

    ends = np.minimum(drawn(egress, SRC_CAP, src), _drawn(ingress, DST_CAP))
    direct = np.minimum(ends, drawn(links, DIRECT_LINK, part))
    direct[np.arange(len(part)), part] = 0.0
    first, second = drawn(links, RELAYS, src, via), drawn(links, RELAYS + 1, via, dst)
    forwarded = drawn(forwards, RELAYS + 2, via)
    return direct, np.minimum.reduce([ends, first, second, forwarded])


def _drawn(bounds: RateBounds, dimension: int, odd: Bools | bool = False) -> Floats:
    """Return rates in each draw, along a new last axis; 0 where there is none."""
    expected = np.nan_to_num(bounds.expected)
    below, above = spread(expected, bounds.low), spread(expected, bounds.high)
    with np.errstate(over="ignore"):  # where nothing is known, anything is possible
        found: Floats = expected[..., None] * factors(scores(dimension), below, above, odd)
    return found


def _both(links: Floats, relay: NDArray[np.int32], *, least: bool = False) -> Floats:
    """Return the sum, or the least, of the two links of each pair's relay path."""
    first, second = np.take_along_axis(links, relay, axis=1), links[relay, np.arange(len(links))]
    both: Floats = np.minimum(first, second) if least else first + second
    return both


class BestRelays(NamedTuple):
    """Shapes (n, n), row to column.

    Attributes
    ----------
    relay : array of int32
        Position of the relay of greatest rate; -1 where no relay path exists.
    rate_gbps : array of float32
        What one VM at each of the three sites carries through it; 0 where there is none.
    """

    relay: NDArray[np.int32]
    rate_gbps: NDArray[np.float32]


def best_relays(
    pair_gbps: NDArray[np.floating],
    egress_gbps: NDArray[np.floating],
    ingress_gbps: NDArray[np.floating],
) -> BestRelays:
    """Find the one-hop relay of greatest rate for all pairs.

    ``min(E_s, A_sr, I_r, E_r, A_rd, I_d)`` is maximised over r by looping over sources: each
    takes one pass over an n x n array in float32. The n x n x n array is never built, so memory
    stays at a few n x n arrays.

    Parameters
    ----------
    pair_gbps : array, shape (n, n)
        Rate of one VM pair; 0 or less where there is no link. The diagonal is ignored.
    egress_gbps, ingress_gbps : arrays, shape (n,)
        Caps of one VM.
    """
    caps = (np.asarray(cap, np.float32) for cap in (egress_gbps, ingress_gbps))
    first = within_caps(np.asarray(pair_gbps, np.float32), *caps)
    second = np.ascontiguousarray(first.T)  # row d holds the rates from every r into d
    relay, rate, through = np.empty_like(first, np.int32), np.empty_like(first), second.copy()
    every = np.arange(len(first))
    for src, row in enumerate(first):
        np.minimum(second, row, out=through)
        best = through.argmax(axis=1)
        relay[src], rate[src] = best, through[every, best]
    np.fill_diagonal(rate, 0.0)
    relay[rate <= 0] = -1
    return BestRelays(relay, rate)
