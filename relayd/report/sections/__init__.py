"""The sections of a report: one question and one module each."""

from __future__ import annotations

from collections.abc import Callable

from relayd.report.data import ReportData
from relayd.report.document import Section
from relayd.report.sections.addresses import addresses
from relayd.report.sections.calibration import calibration
from relayd.report.sections.caps import caps
from relayd.report.sections.directions import directions
from relayd.report.sections.fees import fees
from relayd.report.sections.heterogeneity import heterogeneity
from relayd.report.sections.latency import latency
from relayd.report.sections.packets import packet_loss
from relayd.report.sections.relays import relays
from relayd.report.sections.stability import stability
from relayd.report.sections.throughput import throughput
from relayd.report.sections.transients import transients

SECTIONS: tuple[Callable[[ReportData], Section], ...] = (
    throughput,
    heterogeneity,
    relays,
    stability,
    calibration,
    transients,
    directions,
    addresses,
    caps,
    latency,
    packet_loss,
    fees,
)
