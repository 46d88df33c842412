"""Source of replays and reports: all samples that count, of a store or of a data set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from probes.samples import ADDRESSES, Metric, Samples


class SampleHistory(ABC):
    """The samples of a store or of a data set."""

    @abstractmethod
    def parts(
        self,
        metric: Metric | None = None,
        begin_s: float = -inf,
        end_s: float = inf,
        *,
        details: bool = False,
    ) -> Iterator[Samples]:
        """Yield samples in parts that fit into memory, and share their names.

        Parameters
        ----------
        metric : Metric, optional
            Only this metric.
        begin_s, end_s : float
            Only samples from one time until before another, seconds since 1970.
        details : bool
            Whether samples have the details of their tools.
        """

    def read(
        self,
        metric: Metric | None = None,
        begin_s: float = -inf,
        end_s: float = inf,
        *,
        details: bool = False,
    ) -> Samples:
        """Return the samples of :meth:`parts` as one, by source, destination, metric and time."""
        samples = Samples.concat(self.parts(metric, begin_s, end_s, details=details))
        rows = samples.rows
        order = np.lexsort((rows["measured_at_s"], rows["metric"], rows["dst"], rows["src"]))
        return samples[order]

    def finished_transfers(
        self,
        since_s: float | None,  # noqa: ARG002 - of stores
    ) -> Iterable[tuple[str, str, float, float]]:
        """Return source, destination, GB and seconds of transfers that programs reported."""
        return ()

    @abstractmethod
    def about(self) -> dict[str, str]:
        """Return the size of the history by name, in words."""


def series_codes(samples: Samples) -> np.ndarray:
    """Return a number for each sample's link, metric and whether it is over private addresses."""
    rows = samples.rows
    link = rows["src"].astype(np.int64) << 32 | rows["dst"].astype(np.int64) << 8
    private = rows["address"] == ADDRESSES.index("private")
    codes: np.ndarray = link + rows["metric"] * 2 + private
    return codes


def newest_of(samples: Samples, most: int) -> Samples:
    """Return the newest samples of each link, metric and kind of address, by these and time."""
    codes, rows = series_codes(samples), samples.rows
    order = np.lexsort((rows["value"], rows["measured_at_s"], codes))
    codes = codes[order]
    ends = np.append(np.flatnonzero(np.diff(codes)) + 1, len(codes))[: len(codes)]
    from_the_end = np.repeat(ends, np.diff(ends, prepend=0)) - np.arange(len(codes))
    return samples[order[from_the_end <= most]]
