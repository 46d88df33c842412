"""What commands for many transfers at once have in common."""

from __future__ import annotations

import argparse
import os
from typing import Any

from planner.model.units import parse_duration_s, parse_volume_gb
from relayd.cli.options import assignments, whole_number
from relayd.settings import load_settings


def one_thread() -> None:
    """Keep NumPy's libraries, which read this when first imported, from using threads.

    Matrices of a hundred rows gain nothing from threads, which wait for each other on busy cores.
    """
    for library in ("OPENBLAS", "MKL", "OMP"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")


def common_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return VMs, connections, rules and prices, as :class:`CommonOptions` has them."""
    settings = load_settings()
    vms = assignments(options.vms, "--vms", "*")
    month = assignments(options.month_to_date, "--month-to-date", "*")
    found: dict[str, Any] = {
        "avoid": options.avoid,
        "allow": options.allow,
        "month_to_date_gb": {
            provider: parse_volume_gb(size, "--month-to-date") for provider, size in month.items()
        },
        "vm_types": assignments(options.vm_type, "--vm-type", None),
    }
    most_vms = vms.pop("*", settings.vms)
    connections = options.connections or settings.connections
    if most_vms is not None:
        found["vms"] = whole_number(most_vms, "--vms")
    found["vms_in"] = {region: whole_number(count, "--vms") for region, count in vms.items()}
    if connections is not None:
        found["connections"] = whole_number(connections, "--connections")
    if options.vm_start is not None:
        found["vm_start_s"] = parse_duration_s(options.vm_start, "--vm-start")
    return found
