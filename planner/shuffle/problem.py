"""The figures of a shuffle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.errors import no_path
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.quotas.sites import refuse_without_vms
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE
from planner.shared_vms.problem import SharedFigures, participants, shared_figures
from planner.shuffle.request import ShuffleRequest


@dataclass(frozen=True)
class ShuffleProblem(SharedFigures):
    """The figures of a shuffle on a network."""

    ends: np.ndarray  # length n
    demands_gbit: Floats  # shape (n, n)
    usd_per_gbit: Floats  # shape (n, n): fees if all volume goes direct

    @property
    def most_gbit(self) -> float:
        """The most that a meter can count: the whole volume, once on each link of a path."""
        return 2.0 * float(self.demands_gbit.sum())


def shuffle_problem(
    request: ShuffleRequest,
    network: Network,
    prices: Prices,
    *,
    at_once: bool = False,
    needs_paths: bool = True,
) -> ShuffleProblem:
    """Return the figures of a shuffle.

    Raises InputError if an end is not in the network; DataError if nothing is known of any
    permitted path of a pair, or no fee of its direct link; InfeasibleError if quotas leave an end
    no VM.

    Parameters
    ----------
    at_once : bool
        Whether all pairs send at the same time, so that each has connections of its own.
    needs_paths : bool
        Whether each pair must have a path.
    """
    for region in request.ends:
        network.check_region(region, "demands", names="name a region that")
    refuse_without_vms(network, request.ends, request.vms_in)
    ends, may_relay = set(request.ends), request.any_may_relay
    # No other regions take part.
    regions = participants(request, network, ends)
    index = {region: i for i, region in enumerate(regions)}
    demands = np.zeros((len(regions), len(regions)))
    for (src, dst), volume_gb in request.demands_gb.items():
        demands[index[src], index[dst]] = volume_gb * BITS_PER_BYTE
    relays = np.array([may_relay and r not in request.forbidden for r in regions])
    figures = shared_figures(
        request,
        network,
        prices,
        regions,
        may_relay=relays,
        needed={(index[src], index[dst]) for src, dst in request.demands_gb},
        links_out=np.count_nonzero(demands, axis=1) if at_once else None,
    )
    for src, dst in request.demands_gb if needs_paths else ():
        if not figures.resources.connects(index[src], index[dst]):
            raise no_path(src, dst)
    fees = figures.fees.usd_per_gbit(demands)
    is_end = np.array([region in ends for region in regions])
    return ShuffleProblem(**vars(figures), ends=is_end, demands_gbit=demands, usd_per_gbit=fees)
