"""One figure of all pairs as JSON."""

from __future__ import annotations

from typing import Any

from planner.model.network import Network
from relayd.http.responses.encoding import encoded
from relayd.sources.memory import MemorySource
from relayd.sources.wan import Wan


def matrix_bytes(
    wan: Wan, metric: Any, connections: int, measured_only: bool, digits: int | None
) -> bytes:
    """Return a matrix as JSON."""
    found = wan.matrix(metric, connections, measured_only=measured_only)
    values: Any = found.values
    if digits:
        # By way of text: a power of ten times a whole number would show a binary fraction's end.
        values = [[float(f"{value:.{digits}g}") for value in row] for row in values.tolist()]
    return encoded(
        {
            "snapshot": found.snapshot,
            "metric": found.metric,
            "unit": found.unit,
            "regions": found.regions,
            "values": values,
            "sources": found.sources,
        }
    )


def older_matrix_bytes(wan: Wan, network: Network, *asked: Any) -> bytes:
    """Return a matrix of an older snapshot as JSON."""
    return matrix_bytes(Wan(MemorySource(wan.catalogue, network)), *asked)
