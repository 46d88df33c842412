"""Which names each package promises: adding one is a decision, losing one breaks users."""

from __future__ import annotations

import planner
import probes
import relayd

ERRORS = {
    "AmbiguousRegionError",
    "CatalogueError",
    "DataError",
    "FormatError",
    "InfeasibleError",
    "InputError",
    "RelaydError",
    "StoreError",
    "UnknownRegionError",
}


def test_relayd() -> None:
    names = {
        "AsyncWan",
        "BroadcastPlan",
        "BroadcastRequest",
        "Ranking",
        "Matrix",
        "Network",
        "Plan",
        "Replan",
        "ReducePlacement",
        "RemoteWan",
        "SchedulePlan",
        "ShufflePlan",
        "ShuffleRequest",
        "TaskPlacement",
        "TimedTransfer",
        "TransferRequest",
        "Wan",
        "__version__",
        "backtest",
        "emit",
        "open",
        "plot",
    }
    assert set(relayd.__all__) == names | ERRORS | {"ServiceError"}
    assert set(dir(relayd)) >= names
    for name in relayd.__all__:
        assert getattr(relayd, name) is not None


def test_planner() -> None:
    assert set(planner.__all__) == {
        "BroadcastRequest",
        "Catalogue",
        "CataloguePrices",
        "DataError",
        "Estimate",
        "FlatPrices",
        "InfeasibleError",
        "InputError",
        "Link",
        "Machine",
        "Network",
        "Plan",
        "ReduceRequest",
        "RelaydError",
        "ScheduleRequest",
        "ShuffleRequest",
        "Site",
        "Snapshot",
        "TasksRequest",
        "TimedTransfer",
        "TransferRequest",
        "recommend",
        "recommend_broadcast",
        "recommend_reduce",
        "recommend_schedule",
        "recommend_shuffle",
        "recommend_tasks",
    }
    assert all(hasattr(planner, name) for name in planner.__all__)


def test_probes() -> None:
    assert set(probes.__all__) == {"Metric", "Sample", "SkippedRow"}
    assert all(hasattr(probes, name) for name in probes.__all__)


def test_errors_are_the_same_everywhere() -> None:
    import planner.model.errors

    for name in ERRORS:
        assert getattr(relayd, name) is getattr(planner.model.errors, name)
        assert issubclass(getattr(relayd, name), relayd.RelaydError)
