"""The laws of all pairs of some regions as arrays, for replays of history.

The rules are those of :class:`probes.estimation.arrays.laws.MeasuredLaw`, with the same functions
where a class learns and where tests are combined with it. Samples are taken to be over one kind of
address, and the law is that of public ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.throughput import (
    CLASSES_MS,
    UNKNOWN_MEMORY_YEARS,
    UNKNOWN_NOISE,
    UNKNOWN_SPREAD,
    AggregateLaw,
    law_of,
)
from planner.transfer.all_pairs import RateBounds
from probes.estimation.arrays.laws import LEAST_GBPS
from probes.estimation.arrays.provider_laws import OTHER_SIZE
from probes.estimation.combining import LEAST_RATIO, Floats, class_law


class Priors(NamedTuple):
    """What would be believed of pairs without their tests, as logarithms; shapes (n, n)."""

    expected: Floats
    below: Floats
    above: Floats


class LawsOfPairs:
    """The laws between some regions.

    Parameters
    ----------
    regions : sequence of str, length n

    Attributes
    ----------
    noise, memory_years : arrays, shape (n, n)
        Of one test, as a logarithm; and in which time a measurement fades.
    """

    def __init__(self, regions: Sequence[str]) -> None:
        shape = (len(regions), len(regions))
        self._numbers: NDArray[np.int64] = np.full(shape, -1)
        self._laws: list[AggregateLaw] = []
        self.noise = np.full(shape, UNKNOWN_NOISE)
        self.memory_years = np.full(shape, UNKNOWN_MEMORY_YEARS)
        for i, src in enumerate(regions):
            for j, dst in enumerate(regions):
                if law := law_of(src, dst):
                    if law not in self._laws:
                        self._laws.append(law)
                    self._numbers[i, j] = self._laws.index(law)
                    self.noise[i, j], self.memory_years[i, j] = law.noise, law.memory_years

    def priors(
        self,
        alone_gbps: Floats,
        rtt_ms: Floats,
        rtt_error: Floats,
        egress: RateBounds,
        ingress: RateBounds,
        proportion: Floats,
    ) -> Priors:
        """Return what the laws say of each pair, as far as tests bear them out.

        Parameters
        ----------
        alone_gbps : array, shape (n, n)
            What tests say by themselves; NaN where there are none.
        rtt_ms, rtt_error : arrays, shape (n, n)
        egress, ingress : RateBounds
            Caps of one VM, each of length n.
        proportion : array, length n
            Of the law that a sender of another size is taken to reach.
        """
        cap = _least(egress, ingress)
        classes = np.digitize(rtt_ms * (1 + rtt_error), CLASSES_MS)
        middle = np.log(np.maximum(alone_gbps, LEAST_GBPS))
        found = Priors(
            middle,
            np.full_like(middle, UNKNOWN_SPREAD.below),
            np.full_like(middle, UNKNOWN_SPREAD.above),
        )
        for number, law in enumerate(self._laws):
            pairs = self._numbers == number
            law_gbps = np.full(np.count_nonzero(pairs), law.limit_gbps)
            if law.exponent:
                far_gbps = law.scale_gbps * (rtt_ms[pairs] / 100.0) ** law.exponent
                law_gbps = np.minimum(law_gbps, far_gbps)
            law_gbps *= np.broadcast_to(proportion[:, None], pairs.shape)[pairs]
            held_gbps = np.minimum(law_gbps, cap.expected[pairs])
            ratios = np.log(np.maximum(LEAST_RATIO, alone_gbps[pairs] / held_gbps))
            self._learn(found, pairs, law, held_gbps, ratios, classes[pairs], cap)
        return found

    def _learn(
        self,
        found: Priors,
        pairs: NDArray[np.bool_],
        law: AggregateLaw,
        law_gbps: Floats,
        ratios: Floats,
        classes: NDArray[np.int64],
        cap: RateBounds,
    ) -> None:
        """Fill in what is believed of the pairs of a law."""
        measured = ~np.isnan(ratios)
        shift, below, above = (np.empty_like(law_gbps) for _ in range(3))
        for number in np.unique(classes):
            own = classes == number
            learned = class_law(
                ratios[measured & own].tolist(),
                ratios[measured & ~own].tolist(),
                law.spread_of_class(int(number)),
            )
            shift[own], (below[own], above[own]) = learned.shift, learned.spread
        shifted = law_gbps * np.exp(shift)
        expected = np.minimum(shifted, cap.expected[pairs])
        low = np.minimum(np.minimum(shifted * np.exp(-below), cap.low[pairs]), expected)
        high = np.maximum(expected, np.minimum(shifted * np.exp(above), cap.high[pairs]))
        found.expected[pairs] = np.log(expected)
        found.below[pairs] = np.log(expected / low)
        found.above[pairs] = np.log(high / expected)


def proportions(found_gbps: Floats, of_type_gbps: Floats) -> Floats:
    """Return which part of a law VMs reach that are of another size than its VMs."""
    with np.errstate(invalid="ignore"):
        share = found_gbps / of_type_gbps
        usual = ~np.isfinite(of_type_gbps) | ((share >= 1 / OTHER_SIZE) & (share <= OTHER_SIZE))
    return np.where(usual, 1.0, share)


def _least(egress: RateBounds, ingress: RateBounds) -> RateBounds:
    """Return, for each pair, the lower of its caps."""
    sends_less = egress.expected[:, None] <= ingress.expected[None, :]
    return RateBounds(
        *(
            np.where(sends_less, out[:, None], into[None, :])
            for out, into in zip(egress, ingress, strict=True)
        )
    )
