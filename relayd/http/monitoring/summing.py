"""Figures of several processes as those of one service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan, nan
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.samples import Sample

Families: TypeAlias = list[list[Any]]
"""Of each family its name, type and description, and of each sample name, labels and value."""
_STARTED = "process_start_time_seconds"


def families_of(registry: CollectorRegistry) -> Families:
    """Return what a process counts and measures now, as JSON types."""
    return [
        [
            family.name,
            family.type,
            family.documentation,
            [[sample.name, sample.labels, sample.value] for sample in family.samples],
        ]
        for family in registry.collect()
    ]


def lasting(families: Families) -> Families:
    """Return what a process leaves when it ends: its counts, and since when they count."""
    return [
        family
        for family in families
        if family[1] in ("counter", "histogram") or family[0] == _STARTED
    ]


def summed(parts: Iterable[Families]) -> Families:
    """Return the families of several processes as those of one service.

    Counts are added up, and so is what processes hold. Of times (in seconds) the longest counts, of
    times at which something began the first.
    """
    found: dict[str, tuple[list[Any], dict[tuple[str, tuple[tuple[str, str], ...]], float]]] = {}
    for families in parts:
        for name, kind, documentation, samples in families:
            _, values = found.setdefault(name, ([name, kind, documentation], {}))
            for sample, labels, value in samples:
                key = sample, tuple(labels.items())
                values[key] = _joined(sample, kind, values.get(key, nan), value)
    return [
        [*about, [[sample, dict(labels), value] for (sample, labels), value in values.items()]]
        for about, values in found.values()
    ]


def metrics_of(families: Families) -> Iterator[Metric]:
    """Yield families as prometheus_client writes them."""
    for name, kind, documentation, samples in families:
        metric = Metric(name, documentation, kind)
        metric.samples = [Sample(*sample) for sample in samples]
        yield metric


def _joined(sample: str, kind: str, one: float, other: float | None) -> float:
    if other is None or isnan(other):  # NaN is null in JSON
        return one
    if isnan(one):
        return other
    if sample == _STARTED or sample.endswith("_created"):
        return min(one, other)
    if kind == "info" or (kind == "gauge" and sample.endswith("_seconds")):
        return max(one, other)
    return one + other
