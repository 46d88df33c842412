"""The sections of a report: one question each."""

from __future__ import annotations

from relayd.report.document import Analysis
from relayd.report.sections.links import addresses, directions, latency, packets
from relayd.report.sections.rates import caps, fees, heterogeneity, relays, throughput
from relayd.report.sections.series import calibration, forecasts, stability
from relayd.report.sections.tests import buckets, sweeps, transfers, transients

_IN_ORDER: tuple[Analysis, ...] = (
    throughput,
    heterogeneity,
    relays,
    stability,
    forecasts,
    calibration,
    transients,
    buckets,
    transfers,
    directions,
    addresses,
    caps,
    sweeps,
    latency,
    packets,
    fees,
)
SECTIONS = {one.key: one for one in _IN_ORDER}
