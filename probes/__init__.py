"""Measurements: samples, importers that read them, estimates made of them."""

from __future__ import annotations

from probes.samples import Metric, Sample, SkippedRow

__all__ = ["Metric", "Sample", "SkippedRow"]
