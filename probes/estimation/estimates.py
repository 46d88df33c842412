"""Arrays of estimates that are made at once, and their few origins."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from math import nan
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.modelled_links import flow_caps_gbps
from planner.model.catalogue import Catalogue
from planner.model.estimate import Addresses, AddressKind, Estimate, Figures, Kind, Method, Origin
from planner.model.link import Site
from planner.model.link_array import Origins, Records, bounds_of, taken
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.agreement import figures_with, is_own, still_told
from probes.estimation.groups import Bools, Floats
from probes.samples import ADDRESSES

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
ADDRESS_OF: tuple[Addresses | None, ...] = (*ADDRESSES, "both")


def no_estimates(*shape: int) -> EstimateArray:
    """Return an array without an estimate."""
    return np.full(shape, _NOTHING)


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
    estimates: EstimateArray, low: Any, expected: Any, high: Any, origin: Any = None
) -> EstimateArray:
    """Return other estimates that rest on the same samples; their origin may be another."""
    found = taken(estimates)
    found["low"], found["expected"], found["high"] = low, expected, high
    if origin is not None:
        found["origin"] = origin
    return found


def changed_by(
    origins: Origins,
    numbers: NDArray[Any],
    keys: NDArray[Any],
    change: Callable[[Origin, Any], Origin],
) -> NDArray[np.int32]:
    """Return the numbers of origins after a change of each that depends on a key."""
    found = numbers.astype(np.int32)
    for key in np.unique(keys).tolist():
        at = keys == key
        found[at] = origins.changed(found[at], lambda one, key=key: change(one, key))  # type: ignore[misc]
    return found


def inferred_by(
    method: Method, origins: Origins, numbers: NDArray[Any], connections: NDArray[Any] | None = None
) -> NDArray[np.int32]:
    """Return the origins of what a method infers from estimates, each from one of them."""

    def inferred(one: Origin, count: int) -> Origin:
        figures = still_told(one.figures, **({"connections": count} if count else {}))
        return one._replace(kind="inferred", method=method, figures=figures)

    counts = np.zeros(len(numbers), np.int64) if connections is None else connections
    return changed_by(origins, numbers, counts, inferred)


def least_caps(sites: Collection[Site], address: AddressKind | None = None) -> Records:
    """Return the lower of egress and ingress cap of all pairs of n sites, shape (n, n).

    Without a kind of address, of their usual caps.
    """
    sends = bounds_of(site.egress(address) if address else site.egress_gbps for site in sites)
    receives = bounds_of(site.ingress(address) if address else site.ingress_gbps for site in sites)
    sends = sends[:, None]
    return np.where(sends["expected"] <= receives["expected"], sends, receives)


def flow_caps_mbps(sites: Collection[Site], catalogue: Catalogue) -> tuple[Floats, Floats]:
    """Return the most of one flow by its own cap, and by the VMs' caps, both of shape (n, n)."""
    out, into = flow_caps_gbps(sites, catalogue)
    of_vms = MBPS_PER_GBPS * least_caps(sites)["expected"]
    return MBPS_PER_GBPS * np.minimum(out[:, None], into), of_vms


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
) -> EstimateArray:
    """Return an estimate inferred from those of several links, of length 1 and without bounds."""
    told = [origins.all[number] for number in np.unique(behind["origin"]).tolist()]
    by = {name for one in told if one.figures for name in one.figures.reported_by or ()}
    if by and not any(is_own(one.figures) for one in told):
        figures = figures_with(figures, Figures(reported_by=tuple(sorted(by))))
    address = addresses_of({one.address for one in told})
    found = no_estimates(1)
    found["origin"] = origins.number_of(
        Origin("inferred", method, address=address, figures=figures)
    )
    for count in ("samples", "links"):
        found[count] = behind[count].sum()
    found["newest_s"] = np.fmax.reduce(behind["newest_s"])
    found["oldest_s"] = np.fmin.reduce(behind["oldest_s"])
    return found


def no_surer_than(estimate: Estimate, error: float) -> Estimate:
    """Return an estimate with bounds at least this relative error away."""
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def addresses_of(found: set[Addresses | None]) -> Addresses | None:
    """Return the kinds of address of which all of some are; None where one is not known."""
    if None in found:
        return None
    return found.pop() if len(found) == 1 else "both"
