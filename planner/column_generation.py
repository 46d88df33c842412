"""Routes many transfers over direct and one-hop paths, to within a certified gap.

With ``C`` the load that a source's whole pattern of paths (a *column*, of weight ``w``) puts on the
rows of :mod:`planner.site_resources`, and ``n`` their VMs::

    minimise    f w + p t
    subject to  C w <= n (T + t),   sum of w = 1 for each source,   w, t >= 0

Least time is ``f = 0, T = 0, p = 1``; least fees before a deadline ``T`` are fees ``f`` and a
penalty ``p`` that makes lateness never pay. Any prices ``y >= 0`` of rows with ``n y <= p`` prove
that nothing is better than::

    sum of demand x (cheapest path at fee + y per leg)  -  T n y

and the patterns of those cheapest paths are the columns worth adding (Dantzig and Wolfe 1960).
Prices come from an interior point of the columns so far, after every single step of the method
(Mehrotra 1992; columns from central prices: Gondzio, González-Brevis and Munari 2013), not from
an optimal vertex: vertex prices jump about, central ones settle. Weights are made to sum to 1
before they count, so that every answer is a real routing, and bound and answer hold whatever the
rounding errors on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from planner.path_program import route_over_all_paths
from planner.site_resources import Floats, Integers, SiteResources, legs_of

GAP = 1e-3
MOST_STEPS = 150
# Before the interior point: rows priced by how loaded they were so far (multiplicative weights).
FIRST_ROUNDS = 10
FIRST_STEEPNESS = 30.0
# Share of a source's volume that its new columns start with; distance kept from the boundary;
# where to aim between the present centrality and the gap wanted.
NEW_WEIGHT = 0.05
SHORT_OF_BOUNDARY = 0.95
AIM = 0.1
PREFER_DIRECT = 1e-9
# Another solver's optimum is one to about this share.
SAME = 1e-6
REGULARISATION = 1e-13
# Shares of a pair's volume too small for a path of their own, the boldest first.
SLIVERS = (0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4, 1e-6)


@dataclass(frozen=True)
class Routing:
    """A routing of all demands, and what is proven of it.

    Attributes
    ----------
    paths_gbit : array, shape (n, n, n)
        Volume by source, first hop and destination; direct where the first hop is the
        destination.
    objective, bound : float
        What it reaches, and what no routing can beat.
    row_prices : array
        What a VM-second of each row is worth, in the objective's unit.
    """

    paths_gbit: Floats
    objective: float
    bound: float
    row_prices: Floats

    @property
    def gap(self) -> float:
        """How far above the optimum it may at most be, as a share of the bound."""
        return self.objective / self.bound - 1 if self.bound > 0 else 0.0


@dataclass
class Columns:
    """Patterns of paths found so far; many problems on the same demands share them.

    Attributes
    ----------
    demands_gbit : array, shape (n, n)
    usd_per_gbit : array, shape (n, n)
        Fees of legs.
    """

    resources: SiteResources
    demands_gbit: Floats
    usd_per_gbit: Floats
    loads: Floats = field(init=False)
    fees: Floats = field(init=False)
    sources: Integers = field(init=False)
    first_hops: Integers = field(init=False)
    _seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with no columns."""
        n = self.resources.count
        self.loads = np.zeros((0, len(self.resources.rows)))
        self.fees = np.zeros(0)
        self.sources = np.zeros(0, dtype=np.int64)
        self.first_hops = np.zeros((0, n), dtype=np.int64)
        self._pairs = np.nonzero(self.demands_gbit)
        self.senders = np.unique(self._pairs[0])

    @property
    def source_count(self) -> int:
        """Number of sources that send anything."""
        return len(self.senders)

    def cheapest_paths(self, prices: Floats) -> tuple[Floats, Integers]:
        """Return each pair's least price over direct and one-hop paths, and its first hop.

        Parameters
        ----------
        prices : array, shape (n, n)
            Of legs; infinite where there is none.
        """
        n = self.resources.count
        blocked = prices.copy()
        np.fill_diagonal(blocked, np.inf)
        relays = np.nonzero(self.resources.may_relay)[0]
        hops = np.broadcast_to(np.arange(n), (n, n))
        best = blocked.copy()
        if len(relays):
            through = blocked[:, None, relays] + blocked.T[None, :, relays]
            position = through.argmin(axis=2)
            relayed = np.take_along_axis(through, position[:, :, None], axis=2)[:, :, 0]
            better = relayed < blocked * (1 - PREFER_DIRECT)
            best = np.where(better, relayed, blocked)
            hops = np.where(better, relays[position], hops)
        return best, hops

    def patterns(self, first_hops: Integers) -> tuple[Floats, Floats]:
        """Return load, shape (n, rows), and fees, length n, of each source's pattern."""
        n, rows = self.resources.count, len(self.resources.rows)
        position, inverse = self.resources.position, self.resources.s_per_gbit
        source, destination = self._pairs
        volume = self.demands_gbit[source, destination]
        first = first_hops[source, destination]
        relayed = first != destination
        loads = np.zeros(n * (rows + 1))  # the last of each: rows that never bind
        fees = np.zeros(n)
        fees += np.bincount(source, volume * self.usd_per_gbit[source, first], minlength=n)

        def add(who: Integers, at: Integers, amount: Floats) -> None:
            nonlocal loads
            loads += np.bincount(who * (rows + 1) + at, amount, minlength=len(loads))

        for who, tail, head, amount in (
            (source, source, first, volume),
            (source[relayed], first[relayed], destination[relayed], volume[relayed]),
        ):
            share = amount * inverse[tail, head]
            add(who, position[tail], share)
            add(who, position[n + head], share)
            if rows > 2 * n or self.resources.rows[-1] >= 2 * n:
                add(who, position[2 * n + tail], amount / self.resources.egress_gbps[tail])
                add(who, position[3 * n + head], amount / self.resources.ingress_gbps[head])
        fees += np.bincount(
            source[relayed],
            volume[relayed] * self.usd_per_gbit[first[relayed], destination[relayed]],
            minlength=n,
        )
        return loads.reshape(n, rows + 1)[:, :rows], fees

    def add(self, first_hops: Integers, loads: Floats, fees: Floats, wanted: Integers) -> Integers:
        """Add the patterns of some sources unless they are known; return those added."""
        fresh = []
        for source in wanted.tolist():
            hops = first_hops[source]
            key = source.to_bytes(4, "little") + hops[self.demands_gbit[source] > 0].tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(source)
        if fresh:
            self.loads = np.vstack([self.loads, loads[fresh]])
            self.fees = np.append(self.fees, fees[fresh])
            self.sources = np.append(self.sources, fresh)
            self.first_hops = np.vstack([self.first_hops, first_hops[fresh]])
        return np.array(fresh, dtype=np.int64)

    def all_of(self, prices: Floats) -> tuple[float, Floats]:
        """Add every source's cheapest pattern at prices of legs; return their price and load."""
        best, hops = self.cheapest_paths(prices)
        source, destination = self._pairs
        loads, fees = self.patterns(hops)
        self.add(hops, loads, fees, self.senders)
        price = float((self.demands_gbit[source, destination] * best[source, destination]).sum())
        return price, loads.sum(axis=0)

    def paths(self, weights: Floats) -> Floats:
        """Return volumes by source, first hop and destination, of weights that sum to 1."""
        n = self.resources.count
        found = np.zeros(n * n * n)
        used = np.nonzero(weights > 0)[0]
        source = np.repeat(self.sources[used], n)
        destination = np.tile(np.arange(n), len(used))
        hop = self.first_hops[used].ravel()
        amount = np.repeat(weights[used], n) * self.demands_gbit[source, destination]
        found += np.bincount((source * n + hop) * n + destination, amount, minlength=n**3)
        return found.reshape(n, n, n)


def least_time(columns: Columns, gap: float = GAP) -> Routing:
    """Return a routing whose time is within a gap of the least.

    Parameters
    ----------
    columns : Columns
        Gets the columns that were found.
    """
    resources = columns.resources
    vms = resources.row_vms
    if not len(columns.fees):
        prices = np.full(len(vms), 1.0) / vms.sum()
        total = np.zeros(len(vms))
        for done in range(1, FIRST_ROUNDS + 1):
            _, loads = columns.all_of(resources.leg_prices(prices))
            total += loads / vms
            level = total / done
            prices = np.exp(FIRST_STEEPNESS * (level / level.max() - 1)) / vms
            prices /= prices @ vms
    # Of the order of the time sought: all columns of a source in equal parts.
    unit_s = float((columns.loads.sum(axis=0) / vms).max())
    unit_s *= columns.source_count / len(columns.sources)
    found = _InteriorPoint(columns, 0.0, 1.0, unit_s, 0.0, gap).solve()
    return found if found.gap <= gap * (1 + SAME) else _by_all_paths(columns, found)


def least_fees(
    columns: Columns,
    deadline_s: float,
    fast: Routing,
    gap: float = GAP,
    *,
    most_steps: int = MOST_STEPS,
) -> Routing:
    """Return a routing before a deadline whose fees are within a gap of the least.

    Parameters
    ----------
    columns : Columns
    deadline_s : float
        Later than what `fast` needs.
    fast : Routing
        Meets the deadline with time to spare; what is a little late is mixed with it.
    most_steps : int
        Of the interior point; with few, the routing is good but its gap may be wide.
    """
    resources = columns.resources
    fast_usd = float((legs_of(fast.paths_gbit) * columns.usd_per_gbit).sum())
    cheapest_usd, loads = columns.all_of(_with_legs(resources, columns.usd_per_gbit))
    if (loads <= deadline_s * resources.row_vms).all():
        hops = columns.cheapest_paths(_with_legs(resources, columns.usd_per_gbit))[1]
        return Routing(_volumes(columns, hops), cheapest_usd, cheapest_usd, 0.0 * loads)
    fast_s = resources.time_s(legs_of(fast.paths_gbit))
    spare_s = deadline_s - fast_s
    saved_usd = fast_usd - cheapest_usd
    if spare_s <= 0 or saved_usd <= gap * cheapest_usd:
        return Routing(fast.paths_gbit, fast_usd, cheapest_usd, 0.0 * loads)
    # Fees are convex in the deadline: no second is worth more than the mean over the spare time.
    penalty = 2 * saved_usd / spare_s
    late = _InteriorPoint(
        columns, 1.0, penalty, deadline_s, deadline_s, gap, unit=max(cheapest_usd, saved_usd)
    ).solve(most_steps)
    if late.gap > gap * (1 + SAME) and most_steps == MOST_STEPS:
        late = _by_all_paths(columns, late, deadline_s)
    late_s = resources.time_s(legs_of(late.paths_gbit))
    share = min(1.0, max(0.0, (late_s - deadline_s) / max(late_s - fast_s, 1e-300)))
    paths = (1 - share) * late.paths_gbit + share * fast.paths_gbit
    usd = float((legs_of(paths) * columns.usd_per_gbit).sum())
    if usd > fast_usd:
        paths, usd = fast.paths_gbit, fast_usd
    return Routing(paths, usd, max(late.bound, cheapest_usd), late.row_prices)


def _by_all_paths(columns: Columns, found: Routing, deadline_s: float | None = None) -> Routing:
    """Return the better of what was found and the optimum over all paths, if a solver finds it."""
    resources = columns.resources
    exact = route_over_all_paths(resources, columns.demands_gbit, columns.usd_per_gbit, deadline_s)
    if exact is None:
        return found
    paths, value = exact
    time_s = resources.time_s(legs_of(paths))
    if deadline_s is None:
        if time_s >= found.objective:
            return replace(found, bound=max(found.bound, value * (1 - SAME)))
        value = min(value, time_s)
        return Routing(paths, time_s, value * (1 - SAME), found.row_prices)
    usd = float((legs_of(paths) * columns.usd_per_gbit).sum())
    return Routing(paths, usd, value * (1 - SAME), found.row_prices)


def _with_legs(resources: SiteResources, figures: Floats) -> Floats:
    return np.where(resources.rate_gbps > 0, figures, np.inf)


def _volumes(columns: Columns, first_hops: Integers) -> Floats:
    n = columns.resources.count
    source, destination = np.nonzero(columns.demands_gbit)
    paths = np.zeros((n, n, n))
    hop = first_hops[source, destination]
    paths[source, hop, destination] = columns.demands_gbit[source, destination]
    return paths


def without_slivers(columns: Columns, routing: Routing, time_s: float, usd: float) -> Floats:
    """Return a routing's paths without those that carry next to nothing of a pair's volume.

    Parameters
    ----------
    columns : Columns
    routing : Routing
    time_s, usd : float
        What the simpler routing may take and cost at most; where none keeps to it, the paths stay.
    """
    volumes = columns.demands_gbit
    whole = routing.paths_gbit
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.nan_to_num(whole / volumes[:, None, :])
    kept_hop = whole.argmax(axis=1)
    source, destination = np.nonzero(volumes)
    for sliver in SLIVERS:
        small = (shares < sliver) & (shares > 0)
        paths = np.where(small, 0.0, whole)
        moved = np.where(small, whole, 0.0).sum(axis=1)
        paths[source, kept_hop[source, destination], destination] += moved[source, destination]
        legs = legs_of(paths)
        fees = float((legs * columns.usd_per_gbit).sum())
        if columns.resources.time_s(legs) <= time_s and fees <= usd:
            return paths
    return whole


class _InteriorPoint:
    """A primal-dual interior point of a growing linear program.

    Primal: weights w, lateness t, slack s of rows. Dual: row prices y, source prices pi, and
    reduced costs of each primal variable. In units of `unit_s` and `unit`.
    """

    def __init__(
        self,
        columns: Columns,
        fee_factor: float,
        penalty: float,
        unit_s: float,
        deadline_s: float,
        gap: float,
        *,
        unit: float = 0.0,
    ) -> None:
        self.columns, self.gap = columns, gap
        self.unit_s, self.unit = unit_s, unit or unit_s
        self.fee_factor = fee_factor
        self.vms = columns.resources.row_vms
        self.limit = self.vms * (deadline_s / unit_s)
        self.penalty = penalty * unit_s / self.unit
        self.position = np.full(columns.resources.count, -1)
        self.position[columns.senders] = np.arange(columns.source_count)
        self.growing = True
        self.bound = -np.inf
        self.best = np.inf
        self.best_weights = np.zeros(0)
        self.best_prices = np.zeros(len(self.vms))

    def _costs(self) -> Floats:
        return self.columns.fees * (self.fee_factor / self.unit)

    def _start(self) -> None:
        loads = self.columns.loads / self.unit_s
        group = self.position[self.columns.sources]
        self.weights = 1.0 / np.bincount(group)[group]
        used = self.weights @ loads
        self.late = 1.05 * float(((used - self.limit) / self.vms).max(initial=0.0)) + 0.05
        self.slack = self.limit + self.vms * self.late - used
        level = used / self.vms / (used / self.vms).max()
        prices = np.exp(FIRST_STEEPNESS * (level - 1)) + 0.1
        share = 0.95 if not self.fee_factor else 0.25
        self.prices = prices * (share * self.penalty / (prices @ self.vms))
        self.late_cost = self.penalty - self.prices @ self.vms
        cost = loads @ self.prices + self._costs()
        least = np.full(self.columns.source_count, np.inf)
        np.minimum.at(least, group, cost)
        scale = 0.1 * max(abs(float(least.sum())), 1e-3) / len(least)
        self.source_prices = least - scale
        self.reduced = cost - self.source_prices[group]
        self.slack_prices = self.prices.copy()

    def solve(self, most_steps: int = MOST_STEPS) -> Routing:
        self._start()
        with np.errstate(all="ignore"):
            for _ in range(most_steps):
                if not self._step():
                    break
                self._note_weights()
                fresh = self._note_bound()
                if self.best - self.bound <= self.gap * self.bound:
                    break
                self.growing = len(fresh) > 0
                if self.growing:
                    self._welcome(fresh)
        weights = np.zeros(len(self.columns.fees))
        weights[: len(self.best_weights)] = self.best_weights
        return Routing(
            self.columns.paths(weights),
            self.best * self.unit,
            self.bound * self.unit,
            self.best_prices * self.unit / self.unit_s,
        )

    def _step(self) -> bool:
        """Take one predictor-corrector step; return whether it could be taken."""
        count, rows, sources = len(self.weights), len(self.vms), self.columns.source_count
        group = self.position[self.columns.sources]
        matrix = np.zeros((rows + sources, count + 1))
        matrix[:rows, :count] = self.columns.loads.T
        matrix[:rows, :count] /= self.unit_s
        matrix[:rows, count] = -self.vms
        matrix[rows + group, np.arange(count)] = 1.0
        cost = np.append(self._costs(), self.penalty)
        primal, reduced = (
            np.append(self.weights, self.late),
            np.append(self.reduced, self.late_cost),
        )
        dual = np.concatenate([-self.prices, self.source_prices])
        slack, slack_prices = self.slack, self.slack_prices

        missing = np.concatenate([self.limit - slack, np.ones(sources)]) - matrix @ primal
        missing_dual = cost - matrix.T @ dual - reduced
        missing_slack = -dual[:rows] - slack_prices
        pairs = count + 1 + rows
        centrality = (primal @ reduced + slack @ slack_prices) / pairs
        ratio, slack_ratio = primal / reduced, slack / slack_prices
        normal = (matrix * ratio) @ matrix.T
        diagonal = np.arange(rows + sources)
        normal[diagonal[:rows], diagonal[:rows]] += slack_ratio
        normal[diagonal, diagonal] += REGULARISATION * normal.diagonal().max()
        try:
            inverse = np.linalg.inv(normal)
        except np.linalg.LinAlgError:
            return False

        def direction(aim: Floats, slack_aim: Floats) -> tuple[Floats, ...]:
            right = missing + matrix @ (ratio * missing_dual - aim / reduced)
            right[:rows] += slack_ratio * missing_slack - slack_aim / slack_prices
            step = inverse @ right
            reduced_step = missing_dual - matrix.T @ step
            slack_price_step = missing_slack - step[:rows]
            primal_step = aim / reduced - ratio * reduced_step
            slack_step = slack_aim / slack_prices - slack_ratio * slack_price_step
            return step, primal_step, reduced_step, slack_step, slack_price_step

        _, dx, dz, ds, dv = direction(-primal * reduced, -slack * slack_prices)
        ahead = min(_room(primal, dx), _room(slack, ds))
        ahead_dual = min(_room(reduced, dz), _room(slack_prices, dv))
        reached = (primal + ahead * dx) @ (reduced + ahead_dual * dz)
        reached += (slack + ahead * ds) @ (slack_prices + ahead_dual * dv)
        # With columns to come, stay central; without, the gap closes only by going on.
        open_gap = self.gap
        if self.growing and np.isfinite(self.best) and self.bound > 0:
            open_gap = min(1.0, max(self.gap, self.best / self.bound - 1))
        value = abs(float(cost @ primal)) / pairs
        aim = max(centrality * (reached / pairs / centrality) ** 3, AIM * open_gap * value)
        step, dx, dz, ds, dv = direction(
            aim - primal * reduced - dx * dz, aim - slack * slack_prices - ds * dv
        )
        ahead = SHORT_OF_BOUNDARY * min(_room(primal, dx), _room(slack, ds))
        ahead_dual = SHORT_OF_BOUNDARY * min(_room(reduced, dz), _room(slack_prices, dv))
        if not (np.isfinite(step).all() and np.isfinite(dx).all() and ahead > 0):
            return False
        primal, reduced = primal + ahead * dx, reduced + ahead_dual * dz
        dual = dual + ahead_dual * step
        self.weights, self.late = primal[:count], float(primal[count])
        self.reduced, self.late_cost = reduced[:count], float(reduced[count])
        self.prices, self.source_prices = -dual[:rows], dual[rows:]
        self.slack, self.slack_prices = slack + ahead * ds, slack_prices + ahead_dual * dv
        self.centrality = aim
        return True

    def _note_weights(self) -> None:
        """Make a routing of the weights; keep the best."""
        group = self.position[self.columns.sources]
        weights = self.weights / np.bincount(group, self.weights)[group]
        used = weights @ self.columns.loads / self.unit_s
        late = float(((used - self.limit) / self.vms).max(initial=0.0))
        value = float(weights @ self._costs()) + self.penalty * late
        if value < self.best:
            self.best, self.best_weights = value, weights

    def _note_bound(self) -> Integers:
        """Prove a bound with the row prices; return the sources with new columns worth having."""
        columns, resources = self.columns, self.columns.resources
        prices = np.maximum(self.prices, 0.0)
        total = float(prices @ self.vms)
        if total > self.penalty or not self.fee_factor:
            prices = prices * (self.penalty / total)
        leg_prices = resources.leg_prices(prices / self.unit_s)
        if self.fee_factor:
            leg_prices = leg_prices + columns.usd_per_gbit * (self.fee_factor / self.unit)
        best, hops = columns.cheapest_paths(leg_prices)
        pairs = np.nonzero(columns.demands_gbit)
        self._improve_bound(float((columns.demands_gbit[pairs] * best[pairs]).sum()), prices)
        loads, fees = columns.patterns(hops)
        cost = loads @ self.prices / self.unit_s + fees * (self.fee_factor / self.unit)
        known = self.position >= 0
        cheaper = np.zeros(len(known), dtype=bool)
        cheaper[known] = (
            cost[known]
            < self.source_prices[self.position[known]]
            + 1e-4 * max(abs(self.bound), 1e-9) / columns.source_count
        )
        fresh = columns.add(hops, loads, fees, np.nonzero(cheaper)[0])
        self.fresh_reduced = cost[fresh] - self.source_prices[self.position[fresh]]
        return fresh

    def _improve_bound(self, price: float, prices: Floats) -> None:
        bound = price - float(self.limit @ prices)
        if bound > self.bound:
            self.bound, self.best_prices = bound, prices

    def _welcome(self, fresh: Integers) -> None:
        """Give new columns a little weight, taken from the others of the same source."""
        old = self.columns.sources[: len(self.weights)]
        self.weights = np.where(np.isin(old, fresh), (1 - NEW_WEIGHT) * self.weights, self.weights)
        self.weights = np.append(self.weights, np.full(len(fresh), NEW_WEIGHT))
        reduced = np.maximum(np.abs(self.fresh_reduced), self.centrality / NEW_WEIGHT)
        self.reduced = np.append(self.reduced, reduced)


def _room(values: Floats, step: Floats) -> float:
    """Return how far along a step values stay above 0, at most 1."""
    shrinking = step < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, float((-values[shrinking] / step[shrinking]).min()))
