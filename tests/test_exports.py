"""Which names each package promises: adding one is a decision, losing one breaks users."""

from __future__ import annotations

from types import ModuleType

import pytest

import planner
import planner.model.errors
import probes
import relayd

ERRORS = """AmbiguousRegionError CatalogueError DataError FormatError InfeasibleError InputError
    RelaydError StoreError UnknownRegionError"""
NAMES = {
    relayd: f"""AsyncWan BroadcastPlan BroadcastRequest Matrix Network Plan Ranking ReducePlacement
        RemoteWan Replan SchedulePlan ServiceError ShufflePlan ShuffleRequest TaskPlacement
        TimedTransfer TransferRequest Wan __version__ backtest emit open plot
        read_demands {ERRORS}""",
    planner: """BroadcastRequest Catalogue CataloguePrices DataError Estimate FlatPrices
        InfeasibleError InputError Link Machine Network Plan ReduceRequest RelaydError
        ScheduleRequest ShuffleRequest Site Snapshot TasksRequest TimedTransfer TransferRequest
        recommend recommend_broadcast recommend_reduce recommend_schedule recommend_shuffle
        recommend_tasks""",
    probes: "Metric Sample SkippedRow",
}


@pytest.mark.parametrize("package", NAMES, ids=lambda package: package.__name__)
def test_a_package_promises_these_names_and_has_them(package: ModuleType) -> None:
    names = set(NAMES[package].split())
    assert package is not relayd or names <= set(dir(package))
    assert set(package.__all__) == names
    assert {name for name in names if getattr(package, name, None) is None} == set()


def test_errors_are_the_same_everywhere() -> None:
    for name in ERRORS.split():
        assert getattr(relayd, name) is getattr(planner.model.errors, name)
        assert issubclass(getattr(relayd, name), relayd.RelaydError)
