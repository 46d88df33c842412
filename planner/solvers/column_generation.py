"""Routes many transfers over direct and one-hop paths, to within a certified gap.

With ``C`` the load that a source's whole pattern of paths (a *column*, of weight ``w``) puts on the
rows of :mod:`planner.model.shared_resources`, and ``n`` their VMs::

    minimise    f w + p t
    subject to  C w <= n (T + t),   sum of w = 1 for each source,   w, t >= 0

Least time is ``f = 0, T = 0, p = 1``; least fees before a deadline ``T`` are fees ``f`` and a
penalty ``p`` that makes lateness never pay. Any prices ``y >= 0`` of rows with ``n y <= p`` prove
that nothing is better than::

    sum of demand x (cheapest path at fee + y per link)  -  T n y

and the patterns of those cheapest paths are the columns worth adding (Dantzig and Wolfe 1960).
Prices come from an interior point of the columns so far, after every single step of the method
(Mehrotra 1992; columns from central prices: Gondzio, González-Brevis and Munari 2013), not from
an optimal vertex: vertex prices jump about, central ones settle
(:mod:`planner.solvers.interior_point`; the columns are kept by :mod:`planner.solvers.columns`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.model.shared_resources import Floats, Integers, SiteResources, links_of
from planner.solvers.columns import InteriorState, PathColumns, Routing
from planner.solvers.interior_point import FIRST_STEEPNESS, MOST_STEPS, InteriorPoint
from planner.solvers.path_program import route_over_all_paths

__all__ = [
    "GAP",
    "PathColumns",
    "Routing",
    "least_fees",
    "least_fees_at_leisure_usd",
    "least_time",
    "without_slivers",
]

GAP = 1e-3
# Before the interior point: rows priced by how loaded they were so far (multiplicative weights).
FIRST_ROUNDS = 10
# Paths that take so much of the time from then on have rows.
FULL = 0.7
# Another solver's optimum is one to about this share.
SAME = 1e-6
# Shares of a pair's volume too small for a path of their own, the boldest first.
SLIVERS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-6)


def least_time(
    columns: PathColumns, gap: float = GAP, start: InteriorState | None = None
) -> Routing:
    """Return a routing whose time is within a gap of the least.

    Parameters
    ----------
    columns : PathColumns
        Gets the columns that were found.
    gap : float
    start : InteriorState, optional
        Of the same shuffle with other VMs; `columns` are those that it has weights of.
    """
    if not len(columns.fees):
        _first_columns(columns)
    if start is not None:
        unit_s = start.unit_s
    else:  # of the order of the time sought: all columns of a source in equal parts
        unit_s = float((columns.loads.sum(axis=0) / columns.resources.row_vms).max())
        unit_s *= columns.source_count / len(columns.sources)
    found = InteriorPoint(columns, 0.0, 1.0, unit_s, 0.0, gap).solve(start=start)
    return found if found.gap <= gap * (1 + SAME) else _by_all_paths(columns, found)


def _first_columns(columns: PathColumns) -> None:
    """Add columns at prices by how loaded rows were so far, and the rows of paths that are full."""
    vms = columns.resources.row_vms
    prices = np.full(len(vms), 1.0) / vms.sum()
    links = np.zeros_like(columns.demands_gbit)
    for done in range(1, FIRST_ROUNDS + 1):
        links += columns.all_of(columns.resources.link_prices(prices))
        time_s = columns.resources.time_s(links / done)
        columns.add_rows(columns.resources.path_rows_above(links / done, FULL * time_s))
        vms = columns.resources.row_vms
        level = columns.resources.loads(links / done) / vms / time_s
        prices = np.exp(FIRST_STEEPNESS * (level - 1)) / vms
        prices /= prices @ vms


def least_fees(
    columns: PathColumns,
    deadline_s: float,
    fast: Routing,
    gap: float = GAP,
    *,
    most_steps: int = MOST_STEPS,
) -> Routing:
    """Return a routing before a deadline whose fees are within a gap of the least.

    Parameters
    ----------
    columns : PathColumns
    deadline_s : float
        Later than what `fast` needs.
    fast : Routing
        Meets the deadline with time to spare; what is a little late is mixed with it.
    most_steps : int
        Of the interior point; with few, the routing is good but its gap may be wide.
    """
    resources = columns.resources
    fast_usd = float((links_of(fast.paths_gbit) * columns.usd_per_gbit).sum())
    at_leisure = _with_links(resources, columns.usd_per_gbit)
    links = columns.all_of(at_leisure)
    cheapest_usd = float((links * columns.usd_per_gbit).sum())
    free = np.zeros(len(columns.given.rows))
    if resources.time_s(links) <= deadline_s:
        hops = columns.cheapest_paths(at_leisure)[1]
        return Routing(_volumes(columns, hops), cheapest_usd, cheapest_usd, free)
    fast_s = resources.time_s(links_of(fast.paths_gbit))
    spare_s = deadline_s - fast_s
    saved_usd = fast_usd - cheapest_usd
    if spare_s <= 0 or saved_usd <= gap * cheapest_usd:
        return Routing(fast.paths_gbit, fast_usd, cheapest_usd, free)
    # Fees are convex in the deadline: no second is worth more than the mean over the spare time.
    penalty = 2 * saved_usd / spare_s
    late = InteriorPoint(
        columns, 1.0, penalty, deadline_s, deadline_s, gap, max(cheapest_usd, saved_usd)
    ).solve(most_steps)
    if late.gap > gap * (1 + SAME) and most_steps == MOST_STEPS:
        late = _by_all_paths(columns, late, deadline_s)
    late_s = resources.time_s(links_of(late.paths_gbit))
    share = min(1.0, max(0.0, (late_s - deadline_s) / max(late_s - fast_s, 1e-300)))
    paths = (1 - share) * late.paths_gbit + share * fast.paths_gbit
    usd = float((links_of(paths) * columns.usd_per_gbit).sum())
    if usd > fast_usd:
        paths, usd = fast.paths_gbit, fast_usd
    return Routing(paths, usd, max(late.bound, cheapest_usd), late.row_prices)


def least_fees_at_leisure_usd(columns: PathColumns) -> float:
    """Return the fees of every pair's cheapest path, which no routing beats at any speed."""
    return columns.cheapest_patterns(_with_links(columns.resources, columns.usd_per_gbit))[0]


def _by_all_paths(columns: PathColumns, found: Routing, deadline_s: float | None = None) -> Routing:
    """Return the better of what was found and the optimum over all paths, if a solver finds it."""
    resources = columns.given
    exact = route_over_all_paths(resources, columns.demands_gbit, columns.usd_per_gbit, deadline_s)
    if exact is None:
        return found
    paths, value = exact
    time_s = resources.time_s(links_of(paths))
    if deadline_s is None:
        if time_s >= found.objective:
            return replace(found, bound=max(found.bound, value * (1 - SAME)))
        value = min(value, time_s)
        return Routing(paths, time_s, value * (1 - SAME), found.row_prices)
    usd = float((links_of(paths) * columns.usd_per_gbit).sum())
    return Routing(paths, usd, value * (1 - SAME), found.row_prices)


def _with_links(resources: SiteResources, figures: Floats) -> Floats:
    return np.where(resources.rate_gbps > 0, figures, np.inf)


def _volumes(columns: PathColumns, first_hops: Integers) -> Floats:
    n = columns.resources.count
    source, destination = np.nonzero(columns.demands_gbit)
    paths = np.zeros((n, n, n))
    hop = first_hops[source, destination]
    paths[source, hop, destination] = columns.demands_gbit[source, destination]
    return paths


def without_slivers(columns: PathColumns, routing: Routing, time_s: float, usd: float) -> Floats:
    """Return a routing's paths without those that carry next to nothing of a pair's volume.

    Parameters
    ----------
    columns : PathColumns
    routing : Routing
    time_s, usd : float
        What the simpler routing may take and cost at most; where none keeps to it, the paths stay.
    """
    resources, n = columns.resources, columns.resources.count
    i, k, j = np.nonzero(routing.paths_gbit)
    gbit, pair, onward = routing.paths_gbit[i, k, j], i * n + j, k != j
    volumes = columns.demands_gbit.ravel()
    share = gbit / volumes[pair]
    largest = np.zeros(n * n)
    np.maximum.at(largest, pair, share)

    def links(path_gbit: Floats) -> Floats:
        first = np.bincount(i * n + k, path_gbit, n * n)
        second = np.bincount((k * n + j)[onward], path_gbit[onward], n * n)
        return np.asarray(first + second, dtype=float).reshape(n, n)

    for sliver in SLIVERS:
        kept = share >= np.minimum(sliver, largest[pair])
        simple = np.where(kept, gbit, 0.0)
        # What the others carried goes to the path whose rows are least loaded.
        loads = resources.loads(links(simple)) / resources.row_vms
        prices = np.exp(FIRST_STEEPNESS * (loads / loads.max() - 1)) / resources.row_vms
        of_link = resources.link_prices(prices)
        of_path = np.where(kept, of_link[i, k] + np.where(onward, of_link[k, j], 0.0), np.inf)
        order = np.lexsort((of_path, pair))
        pairs, first_of_pair = np.unique(pair[order], return_index=True)
        simple[order[first_of_pair]] += (volumes - np.bincount(pair, simple, n * n))[pairs]
        fees = float((links(simple) * columns.usd_per_gbit).sum())
        if resources.time_s(links(simple)) <= time_s and fees <= usd:
            paths = np.zeros_like(routing.paths_gbit)
            paths[i, k, j] = simple
            return paths
    return routing.paths_gbit
