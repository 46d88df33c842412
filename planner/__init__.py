"""The decision core: models, graphs and optimisation. No I/O, no clock, no hidden randomness.

    network = Network.from_matrices(regions, aggregate_gbps)
    prices = FlatPrices(regions, egress_usd_per_gb=0.02, vm_usd_per_h=1.5)
    plan = recommend(TransferRequest("paris", "tokyo", volume_gb=500), network, prices)

All-pairs decisions on numpy arrays are in :mod:`planner.transfer.all_pairs`.
"""

from __future__ import annotations

from planner.model.catalogue import Catalogue
from planner.model.errors import DataError, InfeasibleError, InputError, RelaydError
from planner.model.estimate import Estimate
from planner.model.link import Link, Site
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices, FlatPrices
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest

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
