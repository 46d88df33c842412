"""What every transfer of a replay or a benchmark is charged."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from planner.model.errors import DataError
from planner.model.pricing import Prices
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.transfer.all_pairs import Terms
from planner.transfer.request import TransferRequest


def transfer_terms(request: TransferRequest, regions: Sequence[str], prices: Prices) -> Terms:
    """Return what a transfer costs between each pair of regions.

    Parameters
    ----------
    request : TransferRequest
        Every transfer, but for its ends.
    regions : sequence of str, length n
    prices : Prices
    """
    count = len(regions)
    egress_usd = np.full((count, count), inf)
    for i, src in enumerate(regions):
        for j, dst in enumerate(regions):
            if i != j:
                egress_usd[i, j] = request.volume_gb * _fee(prices, src, dst, request.volume_gb)
    return Terms(
        BITS_PER_BYTE * request.volume_gb / S_PER_H,
        egress_usd,
        np.array([prices.vm_usd_per_h(region) for region in regions]),
        request.vm_start_s / S_PER_H,
        request.hour_usd,
        request.margin,
        request.risk,
    )


def _fee(prices: Prices, src: str, dst: str, volume_gb: float) -> float:
    try:
        return prices.egress_usd_per_gb(src, dst, volume_gb)
    except DataError:
        return inf
