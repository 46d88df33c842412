"""Samples of one series as columns, as its state keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from probes.samples import Sample

_COMMON = 3  # source, destination and metric: the same in all samples of a series


class SeriesSamples(NamedTuple):
    """Samples of one link and metric.

    Attributes
    ----------
    series : (src, dst, metric)
    size : int
        How many there are.
    columns : list
        The further fields of :class:`~probes.samples.Sample`, in their order: a list of values, or
        the only value that all have.
    """

    series: tuple[str, str, str]
    size: int
    columns: list[Any]

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SeriesSamples:
        """Return at least one sample of a series as columns."""
        columns = zip(*(sample[_COMMON:] for sample in samples), strict=True)
        short = [list(column) if len(set(column)) > 1 else column[0] for column in columns]
        first = samples[0]
        return cls((first.src, first.dst, first.metric), len(samples), short)


SERIES_FIELDS = {name: place for place, name in enumerate(Sample._fields[_COMMON:])}
"""Where the fields are among the columns."""
