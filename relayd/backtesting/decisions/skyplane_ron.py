"""Skyplane's planner that decides by itself: its RON solver, on the figures that all planners get.

It takes the relay with the greatest throughput, or direct where none has more; fees play no part.
(Skyplane's other one, an integer program, needs a throughput to aim at, which transfers here have
not.) The solver is that of the installed package; only its tables of throughput and fees are
replaced.
"""

from __future__ import annotations

from collections.abc import Sequence

from skyplane.planner.solver import ThroughputProblem
from skyplane.planner.solver_ron import ThroughputSolverRON

from relayd.backtesting.decisions.task import DecisionTask


class OnTask(ThroughputSolverRON):  # type: ignore[misc]
    """The solver, with a task's figures: what was measured, else what is expected."""

    def __init__(self, task: DecisionTask) -> None:
        self._task = task

    def get_regions(self) -> list[str]:
        """Return all regions."""
        return list(self._task.network.sites)

    def get_path_throughput(self, src: str, dst: str) -> float:
        """Return a rate; 0 where there is no link."""
        link = self._task.network.links.get(src, {}).get(dst)
        if link is None:
            return 0.0
        return self._task.measured_gbps.get((src, dst), link.aggregate_gbps.expected)

    def get_path_cost(self, src: str, dst: str) -> float:
        """Return the fee in $/GB."""
        volume_gb = self._task.transfers[0].volume_gb
        return self._task.prices.egress_usd_per_gb(src, dst, volume_gb)


def decide(task: DecisionTask) -> Sequence[str | None]:
    """Return the relay of each path that the solver finds; see :class:`.DecisionTask`."""
    solver = OnTask(task)
    regions = solver.get_regions()
    found: list[str | None] = []
    for transfer in task.transfers:
        problem = ThroughputProblem(transfer.src, transfer.dst, 1.0, transfer.volume_gb, 1)
        used = solver.solve(problem).var_edge_flow_gigabits[regions.index(transfer.src)]
        [hop] = used.nonzero()[0]
        found.append(None if regions[hop] == transfer.dst else regions[hop])
    return found
