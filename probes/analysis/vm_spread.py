"""How VMs of one type and place differ, and what can be counted on.

"Network throughput variability in Azure" (GLOBECOM, 2015): the same choice of region, size and
configuration can give very different VMs, each of which then stays as it is. So two numbers
matter: how much of the variation is between VMs, and the first percentile, which is what one can
count on before having measured. :mod:`probes.analysis.fleet_caps` has the odds of recreating one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, finite, permutation_p, require
from probes.analysis.variation import Spread, spread

FEWEST_VMS = 5
FEWEST_FOR_PERCENTILE = 100
"""The first percentile of fewer values is a guess at their minimum."""
DRAWS = 999


@dataclass(frozen=True, slots=True)
class VmSpread:
    """VMs of one scenario compared.

    Attributes
    ----------
    vms, samples : int
    between : Spread
        Of the VMs' medians.
    between_share : float
        Share of the variance of all values that is between VMs (intraclass correlation).
    vms_differ : bool
        Whether values of one VM resemble each other more than chance produces in 5 % of cases.
    first_percentile : float | None
        Of all values; None with under 100.
    """

    vms: int
    samples: int
    between: Spread
    between_share: float
    p_value: float
    vms_differ: bool
    first_percentile: float | None


def vm_spread(by_vm: Mapping[str, ArrayLike], *, seed: int = 0) -> VmSpread:
    """Compare VMs of one type, region and configuration.

    Parameters
    ----------
    by_vm : mapping
        VM to its rates in repeated tests.

    Raises
    ------
    TooFewError
        If fewer than five VMs have two tests or more.
    """
    groups = [values for values in map(finite, by_vm.values()) if values.size >= 2]
    require("VMs with repeated tests", len(groups), FEWEST_VMS)
    values = np.concatenate(groups)
    sizes = np.array([group.size for group in groups])
    starts = np.concatenate([[0], sizes.cumsum()[:-1]])

    def between_squares(series: np.ndarray) -> np.ndarray:
        sums = np.add.reduceat(series, starts, axis=-1)
        squares: np.ndarray = (sums**2 / sizes).sum(axis=-1)
        return squares

    generator = np.random.default_rng(seed)
    centred = values - values.mean()
    drawn = generator.permuted(np.tile(centred, (DRAWS, 1)), axis=1)
    p_value = permutation_p(float(between_squares(centred)), between_squares(drawn))
    within = sum(float(((g - g.mean()) ** 2).sum()) for g in groups) / (values.size - len(groups))
    mean_size = (values.size - float((sizes**2).sum()) / values.size) / (len(groups) - 1)
    among = float(between_squares(centred)) / (len(groups) - 1)
    own = max(0.0, (among - within) / mean_size)
    return VmSpread(
        len(groups),
        values.size,
        spread([float(np.median(group)) for group in groups]),
        own / (own + within) if own + within > 0 else 0.0,
        p_value,
        p_value <= FALSE_ALARMS,
        float(np.percentile(values, 1)) if values.size >= FEWEST_FOR_PERCENTILE else None,
    )
