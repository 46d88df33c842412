"""Places tasks on VMs, for the shortest transfers between them.

The question of Choreo (LaCurts et al., *Choreo: Network-Aware Task Placement for Cloud
Applications*, IMC 2013). All volumes are exchanged at once at the best rates that pair rates and
the limits of each VM allow (:mod:`planner.model.shared_resources`, each VM a site): the fullest
limit decides the time. Tasks on one VM exchange data in no time.

The paper's greedy rule and a local search find a placement; a mixed-integer program through
OR-Tools' SCIP proves how far from the best it can be. ``x_au`` says that task a is on VM u,
``y_abuv`` that a is on u and b on v, for each pair of tasks that exchange a volume ``D_ab``::

    minimise T   with   sum_u x_au = 1,   sum_a cpus_a x_au <= slots_u
                        sum_v y_abuv = x_au,   sum_u y_abuv = x_bv
                        sum_ab,v D_ab y_abuv / E_u <= T   (and the other rows of each VM)
                        sum_ab D_ab y_abuv / P_uv <= T    (for each pair of VMs)
"""

from __future__ import annotations

from itertools import permutations
from math import inf

import numpy as np

from planner.model.answer import Cost, identified
from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import Prices, hours_usd
from planner.model.shared_resources import Floats, SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.model.vm_limits import PAIR_CONNECTIONS, caps_by_kind
from planner.placement.plan import MachineLoad, TaskPlacement
from planner.placement.request import TasksRequest
from planner.shared_vms.connections import connections_by_region
from planner.shared_vms.fees import LinkFees
from planner.solvers.linear_solver import new_solver, solver_library

# Moves and swaps that a local search tries at most; each takes some 20 us.
MOST_TRIES = 50_000
NOTHING_S = 1e-9
TASKS_ROUNDING = 1e-9
# With more products than this, the program takes longer to state than it is worth.
MOST_PRODUCTS = 60_000
PLACEMENT_GAP = 1e-6
MS_PER_S = 1000


def recommend_tasks(
    request: TasksRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> TaskPlacement:
    """Return a VM for each task.

    Raises InfeasibleError if the tasks do not fit on the VMs; InputError or DataError if a region
    is not in the network, or nothing is known of a link between two VMs.
    """
    return _Tasks(request, network, prices).plan(notes)


class _Tasks:
    """Decides one placement of k tasks on m VMs, each a site.

    Attributes
    ----------
    traffic_gbit : array, shape (k, k)
    cpus : array, length k
    slots : array, length m
        CPUs of each VM.
    """

    def __init__(self, request: TasksRequest, network: Network, prices: Prices) -> None:
        self.request, self.network = request, network
        machines = request.machines
        for machine in machines:
            network.check_region(machine.region, f"vm {machine.id}, region")
        regions = [machine.region for machine in machines]
        egress, ingress, *weights = caps_by_kind(network, regions)
        m, count = len(machines), min(request.connections, PAIR_CONNECTIONS)
        rate, carried, self.rtt_ms = np.zeros((3, m, m))
        self.fees = LinkFees(prices, regions)
        for (u, src), (v, dst) in permutations(enumerate(regions), 2):
            if src == dst:  # inside a region, only the VMs' caps limit the rate
                rate[u, v] = min(egress[u], ingress[v])
                carried[u, v] = request.connections * rate[u, v]
                continue
            link = network.links.get(src, {}).get(dst)
            if link is None:
                raise DataError(
                    f"Nothing is known of {src} -> {dst}, which tasks might use. Measure or "
                    "import it, or leave one of the VMs out."
                )
            rate[u, v] = link.rate_gbps(count)
            carried[u, v] = request.connections * link.rate_gbps(1)
            self.rtt_ms[u, v] = link.rtt_ms.expected
            self.fees.add(u, v)
        self.vm_usd_per_h = np.array([prices.vm_usd_per_h(region) for region in regions])
        self.names = list(request.tasks)
        index = {name: position for position, name in enumerate(self.names)}
        self.traffic_gbit = np.zeros((len(index), len(index)))
        for (a, b), volume in request.traffic_gb.items():
            self.traffic_gbit[index[a], index[b]] = volume * BITS_PER_BYTE
        cpus = self.cpus = np.array(list(request.tasks.values()), dtype=float)
        slots = self.slots = np.array([machine.cpus for machine in machines], dtype=float)
        of = rate, carried, egress, ingress, np.ones(m), np.zeros(m, dtype=bool), None
        self.resources = SiteResources(*of, *weights).with_fixed_vms
        if cpus.sum() > slots.sum() * (1 + TASKS_ROUNDING):
            raise InfeasibleError(
                f"the tasks take {cpus.sum():g} CPUs and the VMs have {slots.sum():g}",
                f"Add VMs with {cpus.sum() - slots.sum():g} CPUs more.",
            )
        if cpus.max() > slots.max() * (1 + TASKS_ROUNDING):
            task = self.names[int(cpus.argmax())]
            raise InfeasibleError(
                f"task {task} takes {cpus.max():g} CPUs and no VM has more than {slots.max():g}",
                f"Add a VM with {cpus.max():g} CPUs.",
            )

    # ---- assignments -----------------------------------------------------------------------

    def links_gbit(self, where: np.ndarray) -> Floats:
        """Return the volume between VMs, shape (m, m)."""
        m = len(self.slots)
        on = np.zeros((len(where), m))
        on[np.arange(len(where)), where] = 1.0
        links = on.T @ self.traffic_gbit @ on
        np.fill_diagonal(links, 0.0)
        return np.asarray(links)

    def time_s(self, where: np.ndarray) -> float:
        """Return the time that the fullest limit needs."""
        return self.resources.time_s(self.links_gbit(where))

    def rank(self, where: np.ndarray) -> tuple[float, float]:
        """Return the time, and the sum of squared loads of all limits; less is better."""
        loads = self.resources.loads(self.links_gbit(where))
        most = float(loads.max(initial=0.0))
        # Nearly equal times count as equal, or rounding would prefer two placements in turn.
        return float(f"{most:.9e}"), float(f"{float((loads**2).sum()):.9e}")

    def fits(self, where: np.ndarray) -> bool:
        """Return whether each VM has enough CPUs for its tasks."""
        used = np.bincount(where, self.cpus, minlength=len(self.slots))
        return bool((used <= self.slots * (1 + TASKS_ROUNDING)).all())

    def greedy(self) -> np.ndarray | None:
        """Return Choreo's greedy assignment, or None if a task finds no place.

        It places the largest transfer first, each on the pair of VMs where it ends soonest, given
        the transfers already placed.
        """
        resources, where, free = self.resources, np.full(len(self.cpus), -1), self.slots.copy()
        loads = np.zeros(len(resources.rows))

        def places(task: int, free: Floats) -> list[int]:
            if where[task] >= 0:
                return [int(where[task])]
            return np.nonzero(free >= self.cpus[task] - TASKS_ROUNDING)[0].tolist()

        def place(task: int, vm: int) -> None:
            if where[task] < 0:
                where[task] = vm
                free[vm] -= self.cpus[task]

        sources, targets = np.nonzero(self.traffic_gbit)
        order = np.argsort(-self.traffic_gbit[sources, targets], kind="stable")
        for a, b in zip(sources[order].tolist(), targets[order].tolist(), strict=True):
            volume = float(self.traffic_gbit[a, b])
            best: tuple[float, int, int] | None = None
            for u in places(a, free):
                left = free.copy()
                left[u] -= self.cpus[a] if where[a] < 0 else 0.0
                for v in places(b, left):
                    rows = resources.link_rows(u, v) if u != v else ()
                    time = max((float(loads[row]) + volume * s for row, s in rows), default=0.0)
                    if best is None or time < best[0] * (1 - TASKS_ROUNDING):
                        best = time, u, v
            if best is None:
                return None
            place(a, best[1])
            place(b, best[2])
            for row, s in resources.link_rows(*best[1:]) if best[1] != best[2] else ():
                loads[row] += volume * s
        for task in np.argsort(-self.cpus, kind="stable").tolist():
            if not places(task, free):
                return None
            place(task, int(free.argmax()))
        return where

    def improved(self, where: np.ndarray) -> np.ndarray:
        """Return an assignment that no move of one task, and no swap of two, improves."""
        best, better, tries = self.rank(where), True, 0
        while better and tries < MOST_TRIES:
            better = False
            for task in range(len(where)):
                for other in [*range(len(self.slots)), *range(-len(where), 0)]:
                    tried = where.copy()
                    if other >= 0:
                        tried[task] = other
                    else:
                        tried[task], tried[other] = where[other], where[task]
                    if (tried == where).all() or not self.fits(tried):
                        continue
                    tries += 1
                    if (rank := self.rank(tried)) < best:
                        where, best, better = tried, rank, True
        return where

    def best(self, start: np.ndarray | None) -> tuple[np.ndarray | None, float]:
        """Return the best assignment found in the time, and a lower bound on the time of any.

        The start if nothing better is found; None with an infinite bound if there is none at all.
        """
        start_s = inf if start is None else self.time_s(start)
        time_limit_s, resources = self.request.time_limit_s, self.resources
        pairs = [(int(a), int(b)) for a, b in zip(*np.nonzero(self.traffic_gbit), strict=True)]
        m = len(self.slots)
        if start_s == 0 or time_limit_s <= 0 or len(pairs) * m * m > MOST_PRODUCTS:
            return start, 0.0

        solver = new_solver("SCIP")
        solver.SetTimeLimit(round(time_limit_s * MS_PER_S))
        # Else a time in the order of magnitude of any placement.
        slowest = float(resources.s_per_gbit.max(initial=0.0))
        scale = start_s if start_s < inf else float(self.traffic_gbit.sum()) * slowest or 1.0
        time = solver.NumVar(0.0, 1.0 if start_s < inf else solver.infinity(), "")
        on = [[solver.BoolVar("") for _ in range(m)] for _ in self.cpus]
        for of in on:
            solver.Add(sum(of) == 1)
        for u, slots in enumerate(self.slots.tolist()):
            solver.Add(
                sum(cpus * of[u] for cpus, of in zip(self.cpus.tolist(), on, strict=True))
                <= slots * (1 + TASKS_ROUNDING)
            )
        rows = [solver.Constraint(-solver.infinity(), 0.0) for _ in resources.rows]
        for constraint in rows:
            constraint.SetCoefficient(time, -1.0)
        for a, b in pairs:
            volume = float(self.traffic_gbit[a, b]) / scale
            grid = [[solver.NumVar(0.0, 1.0, "") for _ in range(m)] for _ in range(m)]
            for u in range(m):
                solver.Add(sum(grid[u]) == on[a][u])
                solver.Add(sum(grid[v][u] for v in range(m)) == on[b][u])
            for u, v in permutations(range(m), 2):
                for row, need in resources.link_rows(u, v):
                    rows[row].SetCoefficient(grid[u][v], volume * need)
        solver.Minimize(time)
        if start is not None:
            flat = [variable for of in on for variable in of]
            solver.SetHint(flat, [float(place == u) for place in start.tolist() for u in range(m)])
        parameters = solver_library().MPSolverParameters()
        parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, PLACEMENT_GAP)
        status = solver.Solve(parameters)
        if status == solver.INFEASIBLE and start is None:
            return None, inf
        if status not in {solver.OPTIMAL, solver.FEASIBLE}:
            return start, 0.0
        bound_s = max(0.0, solver.Objective().BestBound() * scale)
        values = np.array([[variable.solution_value() for variable in of] for of in on])
        found = values.argmax(axis=1)
        if not self.fits(found) or self.time_s(found) >= start_s:
            return start, min(bound_s, start_s)
        return found, min(bound_s, self.time_s(found))

    # ---- answer ----------------------------------------------------------------------------

    def plan(self, notes: tuple[str, ...]) -> TaskPlacement:
        """Return the best placement that is found, or raise an InfeasibleError if none is."""
        request, greedy = self.request, self.greedy()
        start = None if greedy is None else self.improved(greedy)
        greedy_s = None if greedy is None else self.time_s(greedy)
        where, bound_s = self.best(start)
        if where is None:
            raise InfeasibleError(
                "no assignment was found that fits the tasks on the VMs"
                + ("" if bound_s == np.inf else f" in {request.time_limit_s:g} s"),
                "Add a VM, or take smaller tasks.",
            )
        time_s, links = self.time_s(where), self.links_gbit(where)
        ramp_s = ramp_up_s(float((self.rtt_ms * (links > 0)).max(initial=0.0)))
        used = np.isin(np.arange(len(self.slots)), where)
        sites = self.network.sites
        starts_s = np.array([request.starts_s(sites[at.region]) for at in request.machines])
        start_s = float(starts_s[used].max(initial=0.0)) if links.any() else 0.0
        hours = (time_s + ramp_s + starts_s) / S_PER_H
        proven = bool(time_s <= bound_s * (1 + 1e-5) + TASKS_ROUNDING)
        fees = self.fees.lines(links, hours * used)
        vm_usd = float(used @ (self.vm_usd_per_h * hours)) + hours_usd(fees)
        names = [machine.id for machine in request.machines]
        moved = float(links.sum()) / BITS_PER_BYTE
        plan = TaskPlacement(
            plan_id="",
            snapshot=self.network.snapshot,
            request=request.described(),
            fees=fees,
            reason=self._reason(time_s, bound_s, greedy_s, proven=proven),
            assignment={
                task: names[place] for task, place in zip(self.names, where.tolist(), strict=True)
            },
            duration_s=start_s + time_s + ramp_s,
            bound_s=min(bound_s, time_s),
            proven=proven,
            greedy_s=greedy_s,
            moved_gb=moved,
            local_gb=sum(request.traffic_gb.values()) - moved,
            cost_usd=Cost.of(self.fees.usd(links), vm_usd),
            vms=self._loads(where, links),
            warnings=notes,
            vm_start_s=start_s,
        )
        return identified(plan)

    def _reason(
        self, time_s: float, bound_s: float, greedy_s: float | None, *, proven: bool
    ) -> str:
        if not time_s:
            return "Tasks that exchange data share a VM, so nothing crosses between VMs."
        text = (
            "Proven: no assignment is faster."
            if proven
            else f"No assignment ends before {bound_s:.1f} s; this one is the best found in the "
            "time allowed."
        )
        if greedy_s is not None and greedy_s > time_s * (1 + 1e-3):
            text += f" The greedy rule alone takes {greedy_s / time_s:.2f}x as long."
        return text

    def _loads(self, where: np.ndarray, links: Floats) -> tuple[MachineLoad, ...]:
        resources = self.resources
        loads = resources.loads(links)
        ids = [machine.id for machine in self.request.machines]
        rates, vms = links / max(self.time_s(where), NOTHING_S), np.ones(len(ids))
        most, (sent, received) = self.request.connections, (links.sum(axis=1), links.sum(axis=0))
        connections = connections_by_region(resources, ids, rates, vms, most)
        ends = np.array([resources.row_sites, resources.row_sites])
        ends[:, len(loads) - len(resources.paths[0]) :] = resources.paths  # limits of both VMs
        found = []
        for place, machine in enumerate(self.request.machines):
            tasks = np.nonzero(where == place)[0].tolist()
            own = np.where((ends == place).any(axis=0), loads, 0.0)
            busy_s, cpus = float(own.max(initial=0.0)), float(self.cpus[tasks].sum())
            limit = resources.row(int(own.argmax())).kind if busy_s else ""
            out_gb, in_gb = (float(gb[place]) / BITS_PER_BYTE for gb in (sent, received))
            named = tuple(self.names[task] for task in tasks)
            has = machine.id, machine.region, named, cpus, machine.cpus, out_gb, in_gb
            found.append(MachineLoad(*has, busy_s, limit, connections.get(machine.id, 0)))
        return tuple(found)
