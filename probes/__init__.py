"""Measurements: samples, importers that read them, estimates made of them."""

from __future__ import annotations

from probes.metrics import Metric
from probes.samples import Sample, SkippedRow

__all__ = ["Metric", "Sample", "SkippedRow"]
