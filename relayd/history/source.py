"""What replays and reports read: all samples that count, wherever they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probes.samples import Metric, Samples
from relayd.store.samples.columns import BothKinds, Columns, DetailedTest, Setup


class SeriesSpan(NamedTuple):
    """Samples of one series that were taken in one way: how many, and when.

    Attributes
    ----------
    src, dst, setup : int
        Keys of a history's ``regions`` and ``setups``.
    metric : Metric
    samples : int
    first_s, last_s : float
        Seconds since 1970.
    """

    src: int
    dst: int
    metric: Metric
    setup: int
    samples: int
    first_s: float
    last_s: float


class Vote(NamedTuple):
    """Samples that are summarised, and still say of which VM type the regions are."""

    metric: str
    src: str
    dst: str
    src_vm: str
    dst_vm: str
    samples: int


class SampleHistory(ABC):
    """Samples in columns. Rows are of :data:`~relayd.store.samples.columns.ROW`.

    Attributes
    ----------
    regions : dict of int to str
    setups : dict of int to Setup
    """

    regions: dict[int, str]
    setups: dict[int, Setup]

    @abstractmethod
    def series(self) -> list[SeriesSpan]:
        """Return what there is."""

    @abstractmethod
    def votes(self) -> Iterable[Vote]:
        """Return what summarised samples say of VM types."""

    @abstractmethod
    def read(self, *, details: bool = False) -> Samples:
        """Return all samples, with what their tools said or without."""

    @abstractmethod
    def most_connections(self, metric: Metric) -> int:
        """Return the most connections of any sample of a metric; 0 if no sample states them."""

    @abstractmethod
    def between(
        self, metric: Metric, regions: Collection[int], begin_s: float, end_s: float
    ) -> NDArray[np.void]:
        """Return the samples among regions from one time until before another, in any order."""

    @abstractmethod
    def before(
        self, metric: Metric, regions: Collection[int], before_s: float, most: int
    ) -> NDArray[np.void]:
        """Return of each link among regions the newest samples from before a time."""

    @abstractmethod
    def columns(self, metric: Metric, since_s: float | None) -> Columns:
        """Return all samples of a metric, or those since a time."""

    @abstractmethod
    def details(
        self, metric: Metric, since_s: float | None, *, steady: bool = False
    ) -> Iterator[DetailedTest]:
        """Yield samples whose tool said more, or those that kept their intervals."""

    @abstractmethod
    def address_kinds(self, metric: Metric, since_s: float | None) -> Iterator[BothKinds]:
        """Yield the values of links that were probed over both kinds of address."""

    @abstractmethod
    def finished_transfers(self, since_s: float | None) -> Iterator[tuple[str, str, float, float]]:
        """Yield source, destination, GB and seconds of transfers that programs reported."""

    @abstractmethod
    def about(self) -> dict[str, str]:
        """Return how much there is, in words."""
