"""Origins of estimates that are made at once: few, however many links there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import Addresses, Estimate, Figures, Kind, Method, Origin
from planner.model.link_array import EstimateArrays, Origins
from probes.estimation.agreement import Mark, figures_with, is_own
from probes.estimation.groups import Bools, Floats, Groups, Ints
from probes.estimation.link_samples import CountedSamples
from probes.samples import ADDRESSES, Rows

_ADDRESSES: tuple[Addresses | None, ...] = (*ADDRESSES, "both")


def joined_addresses(rows: Rows, groups: Groups) -> Ints:
    """Return over which kinds of address the samples of each group are, as a place."""
    least = groups.reduced(np.minimum, rows["address"]).astype(np.int64)
    most = groups.reduced(np.maximum, rows["address"])
    return np.where(least == 0, 0, np.where(least == most, least, 3))


def measured(
    counted: CountedSamples,
    marks: Sequence[Mark | None],
    bounds: tuple[Floats, Floats, Floats],
    origins: Origins,
    extra: Ints | None = None,
    figures_of: Callable[[int], Figures | None] = lambda _: None,
) -> EstimateArrays:
    """Return estimates of links, each from its own samples.

    Parameters
    ----------
    counted : CountedSamples
    marks : sequence of Mark or None
    bounds : (low, expected, high)
        Of each link.
    origins : Origins
    extra : array of int, optional
        Of each link, what makes its figures other ones than those of another link.
    figures_of : callable
        Returns the figures for such a number.
    """
    rows, groups, of_link = counted[1:]
    further = np.zeros(len(of_link), np.int64) if extra is None else extra
    keys = np.stack([of_link, joined_addresses(rows, groups), further])
    unique, number = np.unique(keys, axis=1, return_inverse=True)
    made = [
        origins.number_of(
            Origin(
                "measured",
                "median-of-samples",
                address=_ADDRESSES[address],
                figures=figures_with(figures_of(more), marks[mark]),
            )
        )
        for mark, address, more in unique.T.tolist()
    ]
    at_s = rows["measured_at_s"]
    return EstimateArrays(
        *bounds,
        np.array(made, np.int32)[number.reshape(-1)],
        groups.counts.astype(np.int32),
        np.ones(len(of_link), np.int32),
        groups.reduced(np.maximum, at_s),
        groups.reduced(np.minimum, at_s),
    )


def changed(
    origins: Origins, numbers: NDArray[Any], change: Callable[[Origin], Origin]
) -> NDArray[np.int32]:
    """Return the numbers of origins after a change of each."""
    used = np.zeros(len(origins.all), np.bool_)
    used[numbers] = True
    new = np.zeros(len(used), np.int32)
    for number in np.flatnonzero(used).tolist():
        new[number] = origins.number_of(change(origins.all[number]))
    found: NDArray[np.int32] = new[numbers]
    return found


def those(origins: Origins, numbers: NDArray[Any], test: Callable[[Origin], bool]) -> Bools:
    """Return where a test holds of the origin of some numbers."""
    holds: Bools = np.array([test(origin) for origin in origins.all], np.bool_)[numbers]
    return holds


def are_measured(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return where an estimate was measured."""
    return those(origins, numbers, lambda origin: origin.kind == "measured")


def are_baseline(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return where an estimate is of models alone."""
    return those(origins, numbers, lambda origin: origin.kind == "baseline")


def are_own(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return where samples of the own prober are behind an estimate, or there is but one source."""
    return those(origins, numbers, is_own)


def own_first(origins: Origins, numbers: NDArray[Any]) -> Bools:
    """Return which of some estimates to go by: the own prober's, or all where it has none.

    What is learned of a class of links must not follow from links that somebody else alone has
    reported, while the own prober has measured others of the class.
    """
    own = are_own(origins, numbers)
    return own if own.any() else np.ones(len(own), np.bool_)


def of_many(
    method: Method, behind: EstimateArrays, origins: Origins, figures: Figures | None = None
) -> Origin:
    """Return the origin of what was inferred from several links."""
    newest_s, oldest_s = (times[~np.isnan(times)] for times in (behind.newest_s, behind.oldest_s))
    return Origin(
        "inferred",
        method,
        int(behind.samples.sum()),
        int(behind.links.sum()),
        float(newest_s.max()) if len(newest_s) else None,
        float(oldest_s.min()) if len(oldest_s) else None,
        _joined({origins.all[number].address for number in np.unique(behind.origin).tolist()}),
        figures,
    )


def of_rows(rows: Rows, kind: Kind, method: Method, figures: Figures | None = None) -> Origin:
    """Return the origin of what was made from samples of any links."""
    pairs = len(np.unique(rows[["src", "dst"]]))
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
