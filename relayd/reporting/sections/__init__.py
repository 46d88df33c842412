"""The questions of a report, one module each; each has a function from data to a section."""

from __future__ import annotations

from collections.abc import Callable

from relayd.reporting.data import ReportData
from relayd.reporting.document import Section
from relayd.reporting.sections.addresses import addresses
from relayd.reporting.sections.caps import caps
from relayd.reporting.sections.directions import directions
from relayd.reporting.sections.fees import fees
from relayd.reporting.sections.heterogeneity import heterogeneity
from relayd.reporting.sections.latency import latency
from relayd.reporting.sections.packets import packet_loss
from relayd.reporting.sections.relays import relays
from relayd.reporting.sections.stability import stability
from relayd.reporting.sections.throughput import throughput
from relayd.reporting.sections.transients import transients

SECTIONS: tuple[Callable[[ReportData], Section], ...] = (
    throughput,
    heterogeneity,
    relays,
    stability,
    transients,
    directions,
    addresses,
    caps,
    latency,
    packet_loss,
    fees,
)
