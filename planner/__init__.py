"""The decision core: models, graphs and optimisation. No I/O, no clock, no hidden randomness.

    network = Network.from_matrices(regions, aggregate_gbps)
    prices = FlatPrices(regions, egress_usd_per_gb=0.02, vm_usd_per_h=1.5)
    plan = recommend(TransferRequest("paris", "tokyo", volume_gb=500), network, prices)

Each question has a request and a function, such as ``recommend_shuffle(ShuffleRequest(...),
network, prices)``: shuffles, broadcasts, schedules, and placements of reducers and of tasks.

All-pairs decisions on numpy arrays are in :mod:`planner.transfer.all_pairs`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Imported on first use, so that a question loads what it needs; type checkers read `__init__.pyi`.
_NAMES = {
    "broadcast.recommendation": "recommend_broadcast",
    "broadcast.request": "BroadcastRequest",
    "model.catalogue": "Catalogue",
    "model.errors": "DataError InfeasibleError InputError RelaydError",
    "model.estimate": "Estimate",
    "model.link": "Link Site",
    "model.network": "Network Snapshot",
    "model.pricing": "CataloguePrices FlatPrices",
    "placement.reduce": "recommend_reduce",
    "placement.request": "Machine ReduceRequest TasksRequest",
    "placement.tasks": "recommend_tasks",
    "schedule.recommendation": "recommend_schedule",
    "schedule.request": "ScheduleRequest TimedTransfer",
    "shuffle.recommendation": "recommend_shuffle",
    "shuffle.request": "ShuffleRequest",
    "transfer.plan": "Plan",
    "transfer.recommendation": "recommend",
    "transfer.request": "TransferRequest",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"planner.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
