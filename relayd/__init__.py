"""relayd: send it direct, or relay it? Measures the WAN between datacenters and plans transfers.

import relayd

wan = relayd.open()
plan = wan.plan("us-east", "sa", volume_gb=500)
print(plan.verdict, plan.reason)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.broadcast_plan import BroadcastPlan
    from planner.broadcast_request import BroadcastRequest
    from planner.errors import (
        AmbiguousRegionError,
        CatalogueError,
        DataError,
        FormatError,
        InfeasibleError,
        InputError,
        RelaydError,
        StoreError,
        UnknownRegionError,
    )
    from planner.network import Network
    from planner.placement_plan import ReducePlacement, TaskPlacement
    from planner.plan import Plan
    from planner.replanning_answer import Replan
    from planner.request import TransferRequest
    from planner.schedule_plan import SchedulePlan
    from planner.schedule_request import TimedTransfer
    from planner.shuffle_plan import ShufflePlan
    from planner.shuffle_request import ShuffleRequest
    from relayd.backtesting.running import backtest
    from relayd.client.asynchronous import AsyncWan
    from relayd.client.blocking import RemoteWan
    from relayd.client.errors import ServiceError
    from relayd.emitting.formats import emit
    from relayd.opening import open  # noqa: A004 - relayd.open() is what a user writes
    from relayd.wan import Wan

__version__ = "0.1.0"

# Imported on first use: `import relayd` costs nothing, and a command line loads what it needs.
_HOME = {
    "AmbiguousRegionError": "planner.errors",
    "AsyncWan": "relayd.client.asynchronous",
    "BroadcastPlan": "planner.broadcast_plan",
    "BroadcastRequest": "planner.broadcast_request",
    "CatalogueError": "planner.errors",
    "DataError": "planner.errors",
    "FormatError": "planner.errors",
    "InfeasibleError": "planner.errors",
    "InputError": "planner.errors",
    "Matrix": "relayd.matrices",
    "Network": "planner.network",
    "Plan": "planner.plan",
    "ReducePlacement": "planner.placement_plan",
    "RelaydError": "planner.errors",
    "RemoteWan": "relayd.client.blocking",
    "ServiceError": "relayd.client.errors",
    "Replan": "planner.replanning_answer",
    "SchedulePlan": "planner.schedule_plan",
    "ShufflePlan": "planner.shuffle_plan",
    "ShuffleRequest": "planner.shuffle_request",
    "StoreError": "planner.errors",
    "TaskPlacement": "planner.placement_plan",
    "TimedTransfer": "planner.schedule_request",
    "TransferRequest": "planner.request",
    "UnknownRegionError": "planner.errors",
    "Wan": "relayd.wan",
    "backtest": "relayd.backtesting.running",
    "emit": "relayd.emitting.formats",
    "open": "relayd.opening",
}

__all__ = [
    "AmbiguousRegionError",
    "AsyncWan",
    "BroadcastPlan",
    "BroadcastRequest",
    "CatalogueError",
    "DataError",
    "FormatError",
    "InfeasibleError",
    "InputError",
    "Matrix",
    "Network",
    "Plan",
    "ReducePlacement",
    "RelaydError",
    "RemoteWan",
    "Replan",
    "SchedulePlan",
    "ServiceError",
    "ShufflePlan",
    "ShuffleRequest",
    "StoreError",
    "TaskPlacement",
    "TimedTransfer",
    "TransferRequest",
    "UnknownRegionError",
    "Wan",
    "__version__",
    "backtest",
    "emit",
    "open",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
