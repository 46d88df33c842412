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
from relayd.backtesting.replay import backtest as backtest
from relayd.client.asynchronous import AsyncWan as AsyncWan
from relayd.client.blocking import RemoteWan as RemoteWan
from relayd.client.errors import ServiceError as ServiceError
from relayd.demands import read_demands as read_demands
from relayd.emitting.formats import emit as emit
from relayd.notebooks.plots import plot as plot
from relayd.sources.opening import open as open  # noqa: A004 - relayd.open() is what a user writes
from relayd.sources.wan import Wan as Wan
from relayd.tables.matrices import Matrix as Matrix
from relayd.version import __version__ as __version__

__all__: list[str]
_HOME: dict[str, str]
