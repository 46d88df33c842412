"""How much throughput varies: inside a test, between tests, and over destinations.

Coefficients of variation as in "Measuring and understanding WANs between public-cloud
datacenters" (Computer Networks, 2016) and "Network throughput variability in Azure" (GLOBECOM,
2015); spatial homogeneity as in Figure 2 and Table 3, and heterogeneity of single flows as in
Figure 1a, of "To Relay or Not to Relay for Inter-Cloud Transfers?" (HotCloud, 2018).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import finite, require

FEWEST_VALUES = 5
FEWEST_DESTINATIONS = 3
HOMOGENEOUS_COV = 0.1
"""Rates over destinations that vary less are one rate: in Table 3 of the 2018 paper they vary by
2.5 % (t2.micro) and 0.8 % (m4.16xlarge)."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Summary statistics of values.

    Attributes
    ----------
    samples : int
    mean, deviation : float
        Deviation is that of the population sampled (n - 1).
    minimum, median, maximum : float
    percentile_5, percentile_95 : float
    """

    samples: int
    mean: float
    deviation: float
    minimum: float
    percentile_5: float
    median: float
    percentile_95: float
    maximum: float

    @property
    def cov(self) -> float:
        """Coefficient of variation: deviation over mean."""
        return self.deviation / self.mean if self.mean else 0.0


def spread(values: ArrayLike, *, fewest: int = 2) -> Spread:
    """Summarise values.

    Raises
    ------
    TooFewError
        If there are fewer than ``fewest``.
    """
    known = finite(values)
    require("values", known.size, fewest)
    low, middle, high = np.percentile(known, (5, 50, 95))
    return Spread(
        known.size,
        float(known.mean()),
        float(known.std(ddof=1)) if known.size > 1 else 0.0,
        float(known.min()),
        float(low),
        float(middle),
        float(high),
        float(known.max()),
    )


@dataclass(frozen=True, slots=True)
class Variation:
    """Variation within and between repeated tests.

    Attributes
    ----------
    tests : int
    within : float
        Coefficient of variation of the intervals of a test: the median over tests.
    across : float
        Of the tests' means.
    """

    tests: int
    within: float
    across: float


def variation(tests: Sequence[ArrayLike]) -> Variation:
    """Separate variation within tests from variation between them.

    Parameters
    ----------
    tests : sequence of arrays
        The intervals' rates of each test.

    Raises
    ------
    TooFewError
        If fewer than five tests have five intervals or more.
    """
    usable = [known for known in map(finite, tests) if known.size >= FEWEST_VALUES]
    require("tests with five intervals", len(usable), FEWEST_VALUES)
    within = [float(test.std(ddof=1) / test.mean()) for test in usable if test.mean() > 0]
    means = spread([test.mean() for test in usable])
    return Variation(len(usable), float(np.median(within)), means.cov)


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Whether a source reaches the same rate wherever it sends.

    Attributes
    ----------
    source : str
    destinations : int
    over_destinations : Spread
    fastest_over_slowest : float
    homogeneous : bool
        Whether the rates vary by under a tenth.
    """

    source: str
    destinations: int
    over_destinations: Spread
    fastest_over_slowest: float
    homogeneous: bool


def homogeneity(source: str, rates: Mapping[str, float]) -> Homogeneity:
    """Tell one cap from distances: the rates from one source to many destinations.

    Parameters
    ----------
    source : str
    rates : mapping
        Destination to its rate, in any unit.

    Raises
    ------
    TooFewError
        If there are fewer than three destinations.
    """
    known = finite(list(rates.values()))
    require("destinations", known.size, FEWEST_DESTINATIONS)
    over = spread(known)
    ratio = over.maximum / over.minimum if over.minimum > 0 else float("inf")
    return Homogeneity(source, known.size, over, ratio, over.cov < HOMOGENEOUS_COV)
