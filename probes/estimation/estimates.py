"""Arrays of estimates that are made at once, and their few origins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import Addresses, Estimate, Figures, Kind, Method, Origin
from planner.model.link_array import Origins, taken
from probes.estimation.agreement import figures_with, is_own, trusted
from probes.estimation.groups import Bools, Floats, Ints
from probes.estimation.link_samples import CountedSamples, LinkSamples
from probes.samples import ADDRESSES, Rows, distinct

ESTIMATE = np.dtype(
    [
        ("low", "f8"),
        ("expected", "f8"),
        ("high", "f8"),
        ("origin", "i4"),
        ("samples", "i4"),
        ("links", "i4"),
        ("newest_s", "f8"),
        ("oldest_s", "f8"),
    ]
)
"""An estimate; its origin is a number among :class:`.Origins`. NaN where there is none."""
EstimateArray: TypeAlias = NDArray[np.void]
"""Structured, of :data:`ESTIMATE`."""
_NOTHING = np.array((nan, nan, nan, 0, 0, 0, nan, nan), ESTIMATE)
_ADDRESSES: tuple[Addresses | None, ...] = (*ADDRESSES, "both")


def no_estimates(*shape: int) -> EstimateArray:
    """Return an array without an estimate."""
    return np.full(shape, _NOTHING)


def estimates_of(estimates: Iterable[Estimate], origins: Origins) -> EstimateArray:
    """Return estimates as an array of their number."""
    rows = []
    for one in estimates:
        origin = one.origin
        times = (nan if at_s is None else at_s for at_s in (origin.newest_s, origin.oldest_s))
        counts = origins.number_of(origin), origin.samples, origin.links
        rows.append((one.low, one.expected, one.high, *counts, *times))
    return np.array(rows, ESTIMATE)


def estimate_at(estimates: EstimateArray, place: int, origins: Origins) -> Estimate:
    """Return one of some estimates."""
    low, expected, high, number, samples, links, *times = estimates[place].item()
    newest_s, oldest_s = (None if at_s != at_s else at_s for at_s in times)
    origin = origins.all[number]._replace(
        samples=samples, links=links, newest_s=newest_s, oldest_s=oldest_s
    )
    return Estimate(low, expected, high, origin)


def are_known(estimates: EstimateArray) -> Bools:
    """Return True where there is an estimate."""
    known: Bools = ~np.isnan(estimates["expected"])
    return known


def with_bounds(
    estimates: EstimateArray, low: Floats, expected: Floats, high: Floats, origin: Any
) -> EstimateArray:
    """Return other estimates that rest on the same samples."""
    found = taken(estimates)
    found["low"], found["expected"], found["high"], found["origin"] = low, expected, high, origin
    return found


def measured(
    samples: LinkSamples,
    counted: CountedSamples,
    bounds: tuple[Floats, Floats, Floats],
    number: Ints | None = None,
    figures: Sequence[Figures | None] = (None,),
) -> EstimateArray:
    """Return estimates of links, each from its own samples, with bounds (low, expected, high).

    The number is the place of each link's figures, 0 by default.
    """
    (rows, groups, of_link), marks = counted[1:], samples.marks
    further = np.zeros(len(of_link), np.int64) if number is None else number
    least = groups.reduced(np.minimum, rows["address"]).astype(np.int64)
    most = groups.reduced(np.maximum, rows["address"])
    addresses = np.where(least == 0, 0, np.where(least == most, least, 3))
    keys = of_link, addresses, further
    shape = len(marks), len(_ADDRESSES), len(figures)
    used, made_of = distinct(np.ravel_multi_index(keys, shape))
    made = []
    for mark, place, more in zip(*np.unravel_index(used, shape), strict=True):
        told = figures_with(figures[more], marks[mark])
        origin = Origin("measured", "median-of-samples", address=_ADDRESSES[place], figures=told)
        made.append(samples.origins.number_of(origin))
    of_origin = np.array(made, np.int32)[made_of]
    found = with_bounds(no_estimates(len(of_link)), *bounds, of_origin)
    found["samples"], found["links"] = groups.counts, 1
    found["newest_s"] = groups.reduced(np.maximum, rows["measured_at_s"])
    found["oldest_s"] = groups.reduced(np.minimum, rows["measured_at_s"])
    return found


def are_of(kind: Kind, origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return True where an estimate is of a kind."""
    found: Bools = np.array([origin.kind == kind for origin in origins.all], np.bool_)[numbers]
    return found


def are_own(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return True where the own prober is behind an estimate, or there is but one source."""
    found: Bools = np.array([is_own(origin.figures) for origin in origins.all], np.bool_)[numbers]
    return found


def own_first(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Mask the estimates to go by: the own prober's, or all where it has none.

    A class of links must not be judged by links that another source alone has reported, while the
    own prober has measured others of the class.
    """
    own = are_own(origins, numbers)
    return own if own.any() else np.ones(len(own), np.bool_)


def of_many(
    method: Method, behind: EstimateArray, origins: Origins, figures: Figures | None = None
) -> Origin:
    """Return the origin of an estimate inferred from several links."""
    newest_s, oldest_s = np.fmax.reduce(behind["newest_s"]), np.fmin.reduce(behind["oldest_s"])
    told = [origins.all[number].figures for number in np.unique(behind["origin"]).tolist()]
    by = {name for one in told if one for name in one.reported_by or ()}
    if by and not any(map(is_own, told)):
        figures = figures_with(figures, Figures(reported_by=tuple(sorted(by))))
    return Origin(
        "inferred",
        method,
        int(behind["samples"].sum()),
        int(behind["links"].sum()),
        None if np.isnan(newest_s) else float(newest_s),
        None if np.isnan(oldest_s) else float(oldest_s),
        _joined({origins.all[number].address for number in np.unique(behind["origin"]).tolist()}),
        figures,
    )


def of_rows(
    samples: LinkSamples, rows: Rows, kind: Kind, method: Method, figures: Figures | None = None
) -> Origin:
    """Return the origin of an estimate made from some of the samples, of any links."""
    by = trusted(*(samples.sources[number] for number in np.unique(rows["source"]).tolist()))
    if by and samples.is_mixed:
        figures = figures_with(figures, Figures(reported_by=by))
    pairs = len(np.unique(rows["src"].astype(np.int64) << 32 | rows["dst"]))
    at_s = rows["measured_at_s"]
    address = _joined({_ADDRESSES[place] for place in np.unique(rows["address"]).tolist()})
    return Origin(
        kind, method, len(rows), pairs, float(at_s.max()), float(at_s.min()), address, figures
    )


def no_surer_than(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate with bounds at least this relative error away."""
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def _joined(found: set[Addresses | None]) -> Addresses | None:
    if None in found:
        return None
    return found.pop() if len(found) == 1 else "both"
