"""The decision core: models, graphs and optimisation. No I/O, no clock, no hidden randomness.

    network = Network.from_matrices(regions, aggregate_gbps)
    prices = FlatPrices(regions, egress_usd_per_gb=0.02, vm_usd_per_h=1.5)
    plan = recommend(TransferRequest("paris", "tokyo", volume_gb=500), network, prices)

All-pairs decisions on numpy arrays are in :mod:`planner.all_pairs`.
"""

from __future__ import annotations

from planner.catalogue import Catalogue
from planner.errors import DataError, InfeasibleError, InputError, RelaydError
from planner.network import Estimate, Leg, Network, Site, Snapshot
from planner.plan import Plan
from planner.pricing import CataloguePrices, FlatPrices
from planner.recommendation import recommend
from planner.request import TransferRequest

__all__ = [
    "Catalogue",
    "CataloguePrices",
    "DataError",
    "Estimate",
    "FlatPrices",
    "InfeasibleError",
    "InputError",
    "Leg",
    "Network",
    "Plan",
    "RelaydError",
    "Site",
    "Snapshot",
    "TransferRequest",
    "recommend",
]
