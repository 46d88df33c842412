"""relayd: send it direct, or relay it? Measures the WAN between datacenters and plans transfers.

import relayd

wan = relayd.open()
plan = wan.plan("us-east", "sa", volume_gb=500)
print(plan.verdict, plan.reason)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from relayd.version import __version__

if TYPE_CHECKING:
    from planner.broadcast.plan import BroadcastPlan as BroadcastPlan
    from planner.broadcast.request import BroadcastRequest as BroadcastRequest
    from planner.comparison.plan import Ranking as Ranking
    from planner.model.errors import AmbiguousRegionError as AmbiguousRegionError
    from planner.model.errors import CatalogueError as CatalogueError
    from planner.model.errors import DataError as DataError
    from planner.model.errors import FormatError as FormatError
    from planner.model.errors import InfeasibleError as InfeasibleError
    from planner.model.errors import InputError as InputError
    from planner.model.errors import RelaydError as RelaydError
    from planner.model.errors import StoreError as StoreError
    from planner.model.errors import UnknownRegionError as UnknownRegionError
    from planner.model.network import Network as Network
    from planner.placement.plan import ReducePlacement as ReducePlacement
    from planner.placement.plan import TaskPlacement as TaskPlacement
    from planner.replanning.plan import Replan as Replan
    from planner.schedule.plan import SchedulePlan as SchedulePlan
    from planner.schedule.request import TimedTransfer as TimedTransfer
    from planner.shuffle.plan import ShufflePlan as ShufflePlan
    from planner.shuffle.request import ShuffleRequest as ShuffleRequest
    from planner.transfer.plan import Plan as Plan
    from planner.transfer.request import TransferRequest as TransferRequest
    from relayd.backtesting.running import backtest as backtest
    from relayd.client.asynchronous import AsyncWan as AsyncWan
    from relayd.client.blocking import RemoteWan as RemoteWan
    from relayd.client.errors import ServiceError as ServiceError
    from relayd.emitting.formats import emit as emit
    from relayd.notebooks.plots import plot as plot
    from relayd.sources.opening import open as open  # noqa: A004 - relayd.open() is what a user writes
    from relayd.sources.wan import Wan as Wan

# Imported on first use: `import relayd` costs nothing, and a command line loads what it needs.
_HOME = {
    "AmbiguousRegionError": "planner.model.errors",
    "AsyncWan": "relayd.client.asynchronous",
    "BroadcastPlan": "planner.broadcast.plan",
    "BroadcastRequest": "planner.broadcast.request",
    "CatalogueError": "planner.model.errors",
    "DataError": "planner.model.errors",
    "FormatError": "planner.model.errors",
    "InfeasibleError": "planner.model.errors",
    "InputError": "planner.model.errors",
    "Matrix": "relayd.tables.matrices",
    "Network": "planner.model.network",
    "Plan": "planner.transfer.plan",
    "Ranking": "planner.comparison.plan",
    "ReducePlacement": "planner.placement.plan",
    "RelaydError": "planner.model.errors",
    "RemoteWan": "relayd.client.blocking",
    "ServiceError": "relayd.client.errors",
    "Replan": "planner.replanning.plan",
    "SchedulePlan": "planner.schedule.plan",
    "ShufflePlan": "planner.shuffle.plan",
    "ShuffleRequest": "planner.shuffle.request",
    "StoreError": "planner.model.errors",
    "TaskPlacement": "planner.placement.plan",
    "TimedTransfer": "planner.schedule.request",
    "TransferRequest": "planner.transfer.request",
    "UnknownRegionError": "planner.model.errors",
    "Wan": "relayd.sources.wan",
    "backtest": "relayd.backtesting.running",
    "emit": "relayd.emitting.formats",
    "open": "relayd.sources.opening",
    "plot": "relayd.notebooks.plots",
}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
