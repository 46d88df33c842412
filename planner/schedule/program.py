"""Transfers with windows over shared VMs as one linear program over slots of time.

Time is cut at every start and deadline. Between two cuts the same transfers may send, so constant
rates lose nothing there, and the program is exact. A variable is the rate ``x`` of a transfer over
a path in a slot of length ``L``; the rows are those of :mod:`planner.model.shared_resources` for
every slot, and for a transfer of volume ``V`` the share that is moved::

    sum_paths x * load_of_path <= VMs of the site         (for each slot and kind of row)
    sum_slots,paths x * L / V = share

Direct paths are there from the beginning. Relays are added where the prices of rows say that they
pay (column generation, as in :mod:`planner.solvers.column_generation`); the last prices prove a
bound. Solved by OR-Tools: GLOP, and CLP where GLOP fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.model.errors import RelaydError
from planner.model.shared_resources import Floats, SiteResources
from planner.solvers.linear_solver import copied, new_solver

PAYS = 1e-7
# A share that is as good as one, and what is taken for one where solvers are at their limits.
WHOLE = 1.0 - 1e-7
NEARLY_WHOLE = 1.0 - 1e-6
# Next to nothing, as solvers leave it: of a transfer's volume, in one slot over one path.
SLIVER = 1e-8
RELAY_SLIVER = 1e-6
MOST_ROUNDS = 200
MOST_COLUMNS_A_ROUND = 500
PAYS_ENOUGH = 0.2
# Fees are the least within this; times, which only decide among routings of the same fees, are
# early rather than earliest.
FEES_GAP = 1e-6
TIME_GAP = 1e-3
TIME_ROUNDS = 5


@dataclass(frozen=True)
class Commodity:
    """A transfer as the program sees it.

    Attributes
    ----------
    src, dst : int
        Sites.
    first, last : int
        Slots in which it may send, both included; none if last is before first.
    hops : array of int
        Sites that may relay it.
    direct : bool
        Whether there is a direct link.
    """

    src: int
    dst: int
    volume_gbit: float
    first: int
    last: int
    hops: np.ndarray
    direct: bool


@dataclass(frozen=True)
class Flow:
    """Rate of one transfer over one path in one slot; the hop is the destination if direct."""

    commodity: int
    slot: int
    hop: int
    rate_gbps: float


class ScheduleProgram:
    """The linear program of a set of transfers, of which each is in, out, or wanted.

    Parameters
    ----------
    resources : SiteResources
    usd_per_gbit : array, shape (n, n)
    cuts_s : array, length of slots + 1
    commodities : sequence of Commodity
        All out at first.
    """

    def __init__(
        self,
        resources: SiteResources,
        usd_per_gbit: Floats,
        cuts_s: Floats,
        commodities: Sequence[Commodity],
    ) -> None:
        self._solver = new_solver("GLOP")
        self._objective = self._solver.Objective()
        self.resources, self.usd_per_gbit = resources, usd_per_gbit
        self.cuts_s = cuts_s
        self.lengths_s = np.diff(cuts_s).tolist()
        self.middles_s = ((cuts_s[1:] + cuts_s[:-1]) / 2).tolist()
        self.commodities = list(commodities)
        self._paths: dict[tuple[int, int, int], tuple[dict[int, float], float]] = {}
        self._all_variables: list[Any] = []
        self._all_rows: list[Any] = []
        self._columns: list[tuple[int, int, int, int]] = []  # commodity, slot, hop, variable
        self._known: set[tuple[int, int, int]] = set()
        self._rows: dict[tuple[int, int], int] = {}
        self._fees_row: Any = None
        self._split: tuple[int, int, int] | None = None
        self._usd_scale = 1.0
        self._weights = 0.0, 0.0
        self._src = np.array([commodity.src for commodity in self.commodities], dtype=np.int64)
        self._dst = np.array([commodity.dst for commodity in self.commodities], dtype=np.int64)
        volumes = [commodity.volume_gbit for commodity in self.commodities]
        self._volumes = np.array(volumes, dtype=float)
        self._may_hop = np.zeros((len(self.commodities), resources.count), dtype=bool)
        for number, commodity in enumerate(self.commodities):
            self._may_hop[number, commodity.hops] = True
        self._may_be_relayed = set(np.nonzero(self._may_hop.any(axis=1))[0].tolist())
        self.more_vms = [self._variable(0.0) for _ in range(resources.count)]
        self.shares = [self._variable(0.0) for _ in self.commodities]
        self._share_rows = []
        self._alive: list[set[int]] = [set() for _ in self.lengths_s]
        for number, commodity in enumerate(self.commodities):
            row = self._row(0.0, 0.0)
            self._all_rows[row].SetCoefficient(self._all_variables[self.shares[number]], -1.0)
            self._share_rows.append(row)
            for slot in range(commodity.first, commodity.last + 1):
                self._let_send(number, slot)
        self._in: set[int] = set()
        self.values = np.zeros(0)
        self.prices = np.zeros(0)

    # ---- building ------------------------------------------------------------------------

    def _variable(self, most: float) -> int:
        self._all_variables.append(self._solver.NumVar(0.0, most, ""))
        return len(self._all_variables) - 1

    def _row(self, least: float, most: float) -> int:
        self._all_rows.append(self._solver.Constraint(least, most))
        return len(self._all_rows) - 1

    def path(self, src: int, hop: int, dst: int) -> tuple[dict[int, float], float]:
        """Return the loads of a Gbit/s by row, in VMs, and the fees of a Gbit."""
        if (src, hop, dst) not in self._paths:
            loads: dict[int, float] = {}
            fees = 0.0
            for u, v in [(src, dst)] if hop == dst else [(src, hop), (hop, dst)]:
                fees += float(self.usd_per_gbit[u, v])
                for row, load in self.resources.link_rows(u, v):
                    loads[row] = loads.get(row, 0.0) + load
            self._paths[src, hop, dst] = loads, fees
        return self._paths[src, hop, dst]

    def _row_of(self, slot: int, position: int) -> int:
        """Return the row of a slot and of a site's limit, made when first needed."""
        if (slot, position) not in self._rows:
            site = self.resources.row(position)[1]
            vms = float(self.resources.vms[site])
            row = self._row(-self._solver.infinity(), vms)
            self._all_rows[row].SetCoefficient(self._all_variables[self.more_vms[site]], -1.0)
            self._rows[slot, position] = row
            if self._split:
                self._divide(slot, row, vms)
        return self._rows[slot, position]

    def _let_send(self, number: int, slot: int) -> None:
        self._alive[slot].add(number)
        commodity = self.commodities[number]
        if commodity.direct:
            self._column(number, slot, commodity.dst)
        elif len(commodity.hops):
            inverse = self.resources.s_per_gbit
            slow = np.maximum(
                inverse[commodity.src, commodity.hops], inverse[commodity.hops, commodity.dst]
            )
            self._column(number, slot, int(commodity.hops[slow.argmin()]))

    def _column(self, number: int, slot: int, hop: int) -> None:
        if (number, slot, hop) in self._known:
            return
        self._known.add((number, slot, hop))
        commodity = self.commodities[number]
        loads, fees = self.path(commodity.src, hop, commodity.dst)
        variable = self._variable(self._solver.infinity())
        self._columns.append((number, slot, hop, variable))
        self._weigh(number, slot, hop, variable)
        held = self._all_variables[variable]
        length_s = self.lengths_s[slot]
        self._all_rows[self._share_rows[number]].SetCoefficient(
            held, length_s / commodity.volume_gbit
        )
        for position, load in loads.items():
            self._all_rows[self._row_of(slot, position)].SetCoefficient(held, load)
        if self._fees_row is not None:
            self._fees_row.SetCoefficient(held, fees * length_s / self._usd_scale)

    # ---- who is in -----------------------------------------------------------------------

    def put(self, numbers: Iterable[int], state: str) -> None:
        """Make transfers `in` (moved whole), `wanted` (as far as it goes) or `out`."""
        for number in numbers:
            least, most = {"in": (1.0, 1.0), "wanted": (0.0, 1.0), "out": (0.0, 0.0)}[state]
            self._all_variables[self.shares[number]].SetBounds(least, most)
            (self._in.discard if state == "out" else self._in.add)(number)

    def let_send_until(self, number: int, last: int) -> None:
        """Move the last slot of a transfer."""
        first = self.commodities[number].first
        for slot, alive in enumerate(self._alive):
            if slot < first or slot > last:
                alive.discard(number)
            elif number not in alive:
                self._let_send(number, slot)
        for owner, slot, _, variable in self._columns:
            if owner == number:
                allowed = first <= slot <= last
                most = self._solver.infinity() if allowed else 0.0
                self._all_variables[variable].SetUb(most)

    # ---- questions -----------------------------------------------------------------------

    def together(self, numbers: Sequence[int]) -> list[float]:
        """Return shares of wanted transfers that can be moved side by side, great in sum.

        Each counts a little less than the one before it. No relays are added to those there are.
        """
        many = len(numbers)
        weights = {self.shares[number]: at / many - 2.0 for at, number in enumerate(numbers)}
        self._aim(weights)
        self._optimise(rounds=1)
        return [float(self.values[self.shares[number]]) for number in numbers]

    def fits(self, number: int) -> bool:
        """Whether a wanted transfer can be moved whole beside all that is in."""
        self._aim({self.shares[number]: -1.0})
        value, _ = self._optimise(enough=-WHOLE)
        return bool(-value >= WHOLE)

    def most_moved(self, number: int) -> float:
        """Return the greatest share of a wanted transfer that can be moved."""
        self._aim({self.shares[number]: -1.0})
        self._optimise(enough=-WHOLE, settled_at=None)
        return float(self.values[self.shares[number]])

    def least_fees(self) -> tuple[float, float]:
        """Return the least fees of what is in, and a bound on them that is proven."""
        cheapest = sum(
            self.commodities[number].volume_gbit * self._cheapest_usd_per_gbit(number)
            for number in self._in
        )
        self._usd_scale = cheapest or 1.0
        self._aim_at_columns(1.0 / self._usd_scale, 0.0)
        least, bound = self._optimise(gap=FEES_GAP)
        return least * self._usd_scale, bound * self._usd_scale

    def earliest(self, fees_usd: float) -> None:
        """Move what is in as early as it goes within fees: least sum of the mean times of all."""
        row = self._row(-self._solver.infinity(), fees_usd / self._usd_scale)
        self._fees_row = self._all_rows[row]
        for number, slot, hop, variable in self._columns:
            fees = self._fees_of(number, hop) * self.lengths_s[slot] / self._usd_scale
            self._fees_row.SetCoefficient(self._all_variables[variable], fees)
        self._aim_at_columns(0.0, 1.0 / max(float(self.cuts_s[-1]), 1e-9))
        self._optimise(fees_row=row, gap=TIME_GAP, rounds=TIME_ROUNDS)

    def fewest_vms(self, fixed: dict[int, float]) -> tuple[Floats, float] | None:
        """Return how many VMs more, in fractions, let all that is in be moved; and their sum.

        Parameters
        ----------
        fixed : dict
            Site to the most that it may get.
        """
        for site, variable in enumerate(self.more_vms):
            self._all_variables[variable].SetBounds(0.0, fixed.get(site, self._solver.infinity()))
        self._aim(dict.fromkeys(self.more_vms, 1.0))
        found = self._optimise(may_fail=True)
        for variable in self.more_vms:
            self._all_variables[variable].SetBounds(0.0, 0.0)
        if found is None:
            return None
        return np.array([self.values[variable] for variable in self.more_vms]), found[1]

    def last_slot_early(self, number: int) -> int:
        """Return the last slot of a way to move a transfer that prefers early slots by far."""
        commodity = self.commodities[number]
        rank = {
            slot: at
            for at, slot in enumerate(
                range(max(commodity.first, commodity.last + 1), len(self.lengths_s)), 1
            )
        }
        self._aim(
            {
                variable: rank[slot] ** 2 * self.lengths_s[slot] / commodity.volume_gbit
                for owner, slot, _, variable in self._columns
                if owner == number and slot in rank
            }
        )
        self._optimise()
        return self.last_slot(number)

    def last_slot(self, number: int) -> int:
        """Return the last slot in which a transfer sends by the last solution."""
        volume = self.commodities[number].volume_gbit
        return max(
            slot
            for owner, slot, _, variable in self._columns
            if owner == number and self._value(variable) * self.lengths_s[slot] > SLIVER * volume
        )

    def least_part(self, number: int, slot: int) -> float:
        """Return the least part of a slot after which a transfer can have ended.

        The slot is divided in two at a point that is a variable: rates become volumes over the
        whole slot, and VMs are had in proportion to each part.
        """
        senders = self._alive[slot] & self._in | {number}
        known = [(who, hop) for who, where, hop in self._known if where == slot and who in senders]
        self.let_send_until(number, slot - 1)
        divided = self._variable(1.0)
        extra = len(self.lengths_s)
        self.lengths_s.append(self.lengths_s[slot])
        self.middles_s.append(self.middles_s[slot])
        self._alive.append(set())
        self._split = slot, extra, divided
        for (where, position), row in list(self._rows.items()):
            if where == slot:
                self._divide(slot, row, float(self.resources.vms[self.resources.row(position)[1]]))
        self._alive[extra] |= senders
        for who, hop in sorted(known):
            self._column(who, extra, hop)
        self._aim({divided: 1.0})
        part = float(self._optimise()[0])
        self._all_variables[divided].SetBounds(0.0, 0.0)
        self._alive[extra].clear()
        self._split = None
        return min(1.0, max(0.0, part))

    def _divide(self, slot: int, row: int, vms: float) -> None:
        assert self._split
        whole, extra, divided = self._split
        held = self._all_variables[divided]
        if slot == whole:
            self._all_rows[row].SetCoefficient(held, vms)
        elif slot == extra:
            self._all_rows[row].SetCoefficient(held, -vms)
            self._all_rows[row].SetUb(0.0)

    def flows(self) -> list[Flow]:
        """Return the rates of what is in, without slivers, scaled so that volumes are exact."""
        found = []
        moved: dict[int, float] = dict.fromkeys(self._in, 0.0)
        for number, slot, hop, variable in self._columns:
            if number in self._in:
                rate = self._value(variable)
                share = rate * self.lengths_s[slot] / self.commodities[number].volume_gbit
                least = SLIVER if hop == self.commodities[number].dst else RELAY_SLIVER
                if share > least:
                    found.append(Flow(number, slot, hop, rate))
                    moved[number] += share
        return [replace(flow, rate_gbps=flow.rate_gbps / moved[flow.commodity]) for flow in found]

    def _value(self, variable: int) -> float:
        """Return a variable's last value; 0 if it came after the last solution."""
        return float(self.values[variable]) if variable < len(self.values) else 0.0

    # ---- solving -------------------------------------------------------------------------

    def _fees_of(self, number: int, hop: int) -> float:
        commodity = self.commodities[number]
        return self.path(commodity.src, hop, commodity.dst)[1]

    def _cheapest_usd_per_gbit(self, number: int) -> float:
        commodity = self.commodities[number]
        hops = [*([commodity.dst] if commodity.direct else []), *commodity.hops.tolist()]
        return min((self._fees_of(number, hop) for hop in hops), default=0.0)

    def _aim(self, coefficients: dict[int, float]) -> None:
        self._weights = 0.0, 0.0
        self._objective.Clear()
        for variable, coefficient in coefficients.items():
            self._objective.SetCoefficient(self._all_variables[variable], coefficient)
        self._objective.SetMinimization()

    def _aim_at_columns(self, fees_weight: float, time_weight: float) -> None:
        """Minimise fees, in USD, and the mean times of transfers, in seconds, so weighted."""
        self._aim({})
        self._weights = fees_weight, time_weight
        for column in self._columns:
            self._weigh(*column)

    def _weigh(self, number: int, slot: int, hop: int, variable: int) -> None:
        fees_weight, time_weight = self._weights
        weight = self.lengths_s[slot] * (
            fees_weight * self._fees_of(number, hop)
            + time_weight * self.middles_s[slot] / self.commodities[number].volume_gbit
        )
        if weight:
            self._objective.SetCoefficient(self._all_variables[variable], weight)

    def _solve(self) -> float | None:
        """Solve what there is; None if there is no solution."""
        solver = self._solver
        status = solver.Solve()
        if status in {solver.OPTIMAL, solver.INFEASIBLE}:
            variables, rows = self._all_variables, self._all_rows
        else:
            solver = copied(solver, "CLP")
            status = solver.Solve()
            variables, rows = solver.variables(), solver.constraints()
        if status == solver.INFEASIBLE:
            return None
        if status != solver.OPTIMAL:
            raise RelaydError("Two solvers failed on this schedule's linear program.")
        self.values = np.array([variable.solution_value() for variable in variables])
        self.prices = np.array([row.dual_value() for row in rows])
        return float(solver.Objective().Value())

    def _optimise(
        self,
        *,
        fees_row: int | None = None,
        enough: float | None = None,
        settled_at: float | None = -WHOLE,
        gap: float = 0.0,
        rounds: int = MOST_ROUNDS,
        may_fail: bool = False,
    ) -> Any:
        """Solve, adding relays while they pay; return the objective and a bound on it.

        Parameters
        ----------
        fees_row : int, optional
            The row that limits fees.
        enough : float, optional
            An objective that is good enough.
        settled_at : float, optional
            With `enough`: stop as soon as the bound is above this.
        gap : float
            Of the objective, at which to stop.
        rounds : int
            Most times to solve.
        """
        for number in range(rounds):
            value = self._solve()
            if value is None and may_fail:
                return None
            if value is None:
                for who in self._in:
                    self._all_variables[self.shares[who]].SetLb(NEARLY_WHOLE)
                value = self._solve()
            if value is None:
                raise RelaydError("What was admitted is not found to fit any more.")
            if enough is not None and value <= enough:
                return value, value
            limit = float(self.prices[fees_row]) / self._usd_scale if fees_row is not None else 0.0
            added, below = self._add_relays(self._weights[0] - limit, self._weights[1])
            last = not added or -below <= gap * abs(value)
            if enough is not None and settled_at is not None and value + below > settled_at:
                last = True
            if last or number == rounds - 1:
                break
        assert value is not None
        return value, value + below

    def _add_relays(self, fees_weight: float, time_weight: float) -> tuple[int, float]:
        """Add the relays that pay at the last prices; return how many, and what they could bring.

        No solution is below the objective by more than the sum, over all transfers, of what the
        best path pays for the whole of each.
        """
        resources = self.resources
        row_prices: dict[int, Floats] = {}
        for (slot, position), row in self._rows.items():
            if self.prices[row]:
                if slot not in row_prices:
                    row_prices[slot] = np.zeros(len(resources.rows))
                row_prices[slot][position] = max(0.0, -self.prices[row])
        free = resources.link_prices(np.zeros(len(resources.rows)))
        share_prices = self.prices[self._share_rows]
        best_of = np.zeros(len(self.commodities))
        found: list[tuple[float, int, int, int]] = []
        for slot, alive in enumerate(self._alive):
            numbers = np.array(sorted(alive & self._in & self._may_be_relayed), dtype=np.int64)
            if not len(numbers):
                continue
            links = resources.link_prices(row_prices[slot]) if slot in row_prices else free
            src, dst, volumes = self._src[numbers], self._dst[numbers], self._volumes[numbers]
            worth = (links[src] + links[:, dst].T) * (volumes / self.lengths_s[slot])[:, None]
            if fees_weight:
                fees = self.usd_per_gbit[src] + self.usd_per_gbit[:, dst].T
                worth += fees_weight * volumes[:, None] * fees
            worth[~self._may_hop[numbers]] = np.inf
            hops = worth.argmin(axis=1)
            least = worth[np.arange(len(numbers)), hops]
            least += time_weight * self.middles_s[slot] - share_prices[numbers]
            best_of[numbers] = np.minimum(best_of[numbers], least)
            for at in np.nonzero(least < -PAYS)[0].tolist():
                number, hop = int(numbers[at]), int(hops[at])
                if (number, slot, hop) not in self._known:
                    found.append((float(least[at]), number, slot, hop))
        found.sort()
        # Columns that pay little now mostly do not pay at the next prices, and slow the solver.
        for worth_now, number, slot, hop in found[:MOST_COLUMNS_A_ROUND]:
            if worth_now <= PAYS_ENOUGH * found[0][0]:
                self._column(number, slot, hop)
        return len(found), float(best_of.sum())
