"""The laws between providers (:mod:`planner.model.throughput`), laid over all pairs of sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isfinite, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.graph import larger_than_law, origin_of_law
from planner.model.estimate import AddressKind, Origin
from planner.model.link import Site
from planner.model.link_array import EstimateArrays, Origins
from planner.model.throughput import CLASSES_MS, UNKNOWN_SPREAD, AggregateLaw, LawSpread, law_of
from probes.estimation.groups import Floats, Ints
from probes.estimation.site_arrays import Bounds, least_caps

OTHER_SIZE = 2.0
"""A VM whose cap differs more from its type's is not of the size that a law is of."""
USUAL_RTT_MS = 100.0
"""Where no location is known: a law needs some distance."""
CLASSES = len(CLASSES_MS) + 1
"""Of distance."""
_VM_CAPS = Origin("baseline", "vm-caps")


class ProviderLaws:
    """The laws between the providers of n sites, and of which law and class each link is.

    Parameters
    ----------
    sites : mapping
        With caps measured where they were.
    typed : mapping
        The same sites with the caps of their VM types. Where a cap was found to be less than half
        of that, or more than twice, the VM is not of the size that the law is of, and the law
        holds in proportion.
    rtts_ms : EstimateArrays, shape (n, n)
    address : AddressKind
    origins : Origins
    """

    def __init__(
        self,
        sites: Mapping[str, Site],
        typed: Mapping[str, Site],
        rtts_ms: EstimateArrays,
        address: AddressKind,
        origins: Origins,
    ) -> None:
        self._sites, self._typed = list(sites.values()), list(typed.values())
        self._address, self._origins = address, origins
        names = [name.partition(":")[0] for name in sites]
        self.providers = list(dict.fromkeys(names))
        self.provider = np.array([self.providers.index(name) for name in names], np.int64)
        self.models = [[law_of(p, q, address) for q in self.providers] for p in self.providers]
        unknown = ~rtts_ms.known
        self.rtts_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms.expected)
        highest_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms.high)
        distance = np.searchsorted(CLASSES_MS, highest_ms, side="right")
        count = len(self.providers)
        self.kind = self.provider[:, None] * count + self.provider
        self.key = self.kind * CLASSES + distance

    def model(self, key: int) -> AggregateLaw | None:
        """Return the law of a class of links, by its number."""
        return self.models[key // CLASSES // len(self.providers)][
            key // CLASSES % len(self.providers)
        ]

    def laws(self) -> EstimateArrays:
        """Return one VM pair's saturated throughput by law and caps, shape (n, n).

        As :func:`planner.model.baseline.graph.aggregate_estimate` says of one pair.
        """
        caps = least_caps(self._sites, self._address)
        size = len(self._sites)
        found = EstimateArrays.none(size, size).with_bounds(
            caps.expected * exp(-UNKNOWN_SPREAD.below),
            caps.expected.copy(),
            caps.high.copy(),
            np.full((size, size), self._origins.number_of(_VM_CAPS), np.int32),
        )
        found.expected[np.isinf(caps.expected)] = np.nan
        for i, row in enumerate(self.models):
            for j, model in enumerate(row):
                if model is not None:
                    self._lay(model, i, j, caps, found)
        return found

    def _lay(
        self, model: AggregateLaw, sends: int, receives: int, caps: Bounds, found: EstimateArrays
    ) -> None:
        """Lay a law over the links from one provider to another."""
        of_larger: dict[float, list[int]] = {}
        for number in np.flatnonzero(self.provider == sends).tolist():
            larger = larger_than_law(self._sites[number], model, self._address)
            of_larger.setdefault(larger, []).append(number)
        to = np.flatnonzero(self.provider == receives)
        for larger, sources in of_larger.items():
            places = np.ix_(np.array(sources), to)
            rates = self._steady_gbps(model, self.rtts_ms[places])
            rates = rates * self._proportions(sources)[:, None] * larger
            classes = self.key[places] % CLASSES
            spreads = [_wider(model.spread_of_class(one), larger) for one in range(CLASSES)]
            pair = (self.providers[sends], self.providers[receives])
            origins = [
                self._origins.number_of(origin_of_law(pair, exp(max(spread)) - 1))
                for spread in spreads
            ]
            bounds = within_caps(rates, spreads, classes, Bounds(*(c[places] for c in caps)))
            number_of_class = np.array(origins, np.int32)
            laid: Sequence[NDArray[Any]] = (*bounds, number_of_class[classes])
            columns: Sequence[NDArray[Any]] = found[:4]
            for column, values in zip(columns, laid, strict=True):
                column[places] = values

    def _steady_gbps(self, model: AggregateLaw, rtts_ms: Floats) -> Floats:
        if model.exponent == 0:
            return np.full(rtts_ms.shape, model.limit_gbps)
        far_gbps = model.scale_gbps * (rtts_ms / 100.0) ** model.exponent
        return np.minimum(model.limit_gbps, far_gbps)

    def _proportions(self, sources: Sequence[int]) -> Floats:
        found = [
            _proportion(
                self._sites[number].egress_gbps.expected, self._typed[number].egress_gbps.expected
            )
            for number in sources
        ]
        return np.array(found)


def _wider(spread: LawSpread, larger: float) -> LawSpread:
    # That smaller VMs were held by their cap, not by the path, is not known of each link.
    return LawSpread(spread.below + log(larger), spread.above) if larger > 1 else spread


def within_caps(
    rates: Floats, spreads: Sequence[LawSpread], of_spread: Ints, caps: Bounds
) -> tuple[Floats, Floats, Floats]:
    """Return :func:`planner.model.baseline.graph.within_cap` of many pairs.

    Parameters
    ----------
    rates : array
    spreads : sequence of LawSpread
    of_spread : array of int
        Which of these is of each pair.
    caps : Bounds
    """
    below = np.array([exp(-spread.below) for spread in spreads])[of_spread]
    above = np.array([exp(spread.above) for spread in spreads])[of_spread]
    expected = np.minimum(rates, caps.expected)
    return (
        np.minimum(np.minimum(rates * below, caps.low), expected),
        expected,
        np.maximum(expected, np.minimum(rates * above, caps.high)),
    )


def _proportion(found_gbps: float, of_type_gbps: float) -> float:
    if not isfinite(of_type_gbps):
        return 1.0
    share = found_gbps / of_type_gbps
    return share if not 1 / OTHER_SIZE <= share <= OTHER_SIZE else 1.0
