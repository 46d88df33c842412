from planner.broadcast.recommendation import recommend_broadcast as recommend_broadcast
from planner.broadcast.request import BroadcastRequest as BroadcastRequest
from planner.model.catalogue import Catalogue as Catalogue
from planner.model.errors import DataError as DataError
from planner.model.errors import InfeasibleError as InfeasibleError
from planner.model.errors import InputError as InputError
from planner.model.errors import RelaydError as RelaydError
from planner.model.estimate import Estimate as Estimate
from planner.model.link import Link as Link
from planner.model.link import Site as Site
from planner.model.network import Network as Network
from planner.model.network import Snapshot as Snapshot
from planner.model.pricing import CataloguePrices as CataloguePrices
from planner.model.pricing import FlatPrices as FlatPrices
from planner.placement.reduce import recommend_reduce as recommend_reduce
from planner.placement.request import Machine as Machine
from planner.placement.request import ReduceRequest as ReduceRequest
from planner.placement.request import TasksRequest as TasksRequest
from planner.placement.tasks import recommend_tasks as recommend_tasks
from planner.schedule.recommendation import recommend_schedule as recommend_schedule
from planner.schedule.request import ScheduleRequest as ScheduleRequest
from planner.schedule.request import TimedTransfer as TimedTransfer
from planner.shuffle.recommendation import recommend_shuffle as recommend_shuffle
from planner.shuffle.request import ShuffleRequest as ShuffleRequest
from planner.transfer.plan import Plan as Plan
from planner.transfer.recommendation import recommend as recommend
from planner.transfer.request import TransferRequest as TransferRequest

__all__: list[str]
_HOME: dict[str, str]
