"""The sections of a report: one question and one module each."""

from __future__ import annotations

from collections.abc import Callable

from relayd.report.data import ReportData
from relayd.report.document import Section
from relayd.report.sections.addresses import addresses
from relayd.report.sections.buckets import buckets
from relayd.report.sections.calibration import calibration
from relayd.report.sections.caps import caps
from relayd.report.sections.directions import directions
from relayd.report.sections.fees import fees
from relayd.report.sections.forecasts import forecasts
from relayd.report.sections.heterogeneity import heterogeneity
from relayd.report.sections.latency import latency
from relayd.report.sections.packets import packet_loss
from relayd.report.sections.relays import relays
from relayd.report.sections.stability import stability
from relayd.report.sections.sweeps import sweeps
from relayd.report.sections.throughput import throughput
from relayd.report.sections.transfers import transfers
from relayd.report.sections.transients import transients

SECTIONS: dict[str, Callable[[ReportData], Section]] = {
    "throughput": throughput,
    "heterogeneity": heterogeneity,
    "relays": relays,
    "stability": stability,
    "forecasts": forecasts,
    "calibration": calibration,
    "transients": transients,
    "buckets": buckets,
    "transfers": transfers,
    "directions": directions,
    "addresses": addresses,
    "caps": caps,
    "sweeps": sweeps,
    "latency": latency,
    "packets": packet_loss,
    "fees": fees,
}
"""By the key of each."""
