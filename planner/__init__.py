"""The decision core: models, graphs and optimisation. No I/O, no clock, no hidden randomness.

    network = Network.from_matrices(regions, aggregate_gbps)
    prices = FlatPrices(regions, egress_usd_per_gb=0.02, vm_usd_per_h=1.5)
    plan = recommend(TransferRequest("paris", "tokyo", volume_gb=500), network, prices)

All-pairs decisions on numpy arrays are in :mod:`planner.transfer.all_pairs`.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # to type checkers true; `typing` itself takes as long as all of this
if TYPE_CHECKING:
    from typing import Any

    from planner.model.catalogue import Catalogue
    from planner.model.errors import DataError, InfeasibleError, InputError, RelaydError
    from planner.model.estimate import Estimate
    from planner.model.link import Link, Site
    from planner.model.network import Network, Snapshot
    from planner.model.pricing import CataloguePrices, FlatPrices
    from planner.transfer.plan import Plan
    from planner.transfer.recommendation import recommend
    from planner.transfer.request import TransferRequest

# Imported on first use: a command that only needs an error or a unit loads no more.
_HOME = {
    "Catalogue": "planner.model.catalogue",
    "CataloguePrices": "planner.model.pricing",
    "DataError": "planner.model.errors",
    "Estimate": "planner.model.estimate",
    "FlatPrices": "planner.model.pricing",
    "InfeasibleError": "planner.model.errors",
    "InputError": "planner.model.errors",
    "Link": "planner.model.link",
    "Network": "planner.model.network",
    "Plan": "planner.transfer.plan",
    "RelaydError": "planner.model.errors",
    "Site": "planner.model.link",
    "Snapshot": "planner.model.network",
    "TransferRequest": "planner.transfer.request",
    "recommend": "planner.transfer.recommendation",
}

__all__ = [
    "Catalogue",
    "CataloguePrices",
    "DataError",
    "Estimate",
    "FlatPrices",
    "InfeasibleError",
    "InputError",
    "Link",
    "Network",
    "Plan",
    "RelaydError",
    "Site",
    "Snapshot",
    "TransferRequest",
    "recommend",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
