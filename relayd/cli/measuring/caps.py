"""``relayd fleet caps``: which VMs are slower than others of their type, and what to do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from planner.model.errors import DataError
from probes.analysis.fleet_caps import VmCap
from relayd.campaigns.caps import CAP_NAMES, cap_json, measured_caps
from relayd.cli.options import catalogue_of, store_location
from relayd.cli.text import left_table
from relayd.settings import load_settings
from relayd.store import open_if_there


def caps(options: argparse.Namespace) -> int:
    """Print the measured caps beside those of their type."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    found: list[VmCap] = []
    if store := open_if_there(store_location(options, settings)):
        with store:
            found = measured_caps(store, catalogue)
    if not found:
        raise DataError(
            "No caps of VMs have been measured. `relayd probe --phases rtt,caps --thorough` "
            "measures those of every VM of a fleet."
        )
    if options.json:
        print(json.dumps({"caps": [cap_json(cap) for cap in found]}, indent=2))
        return 0
    print(left_table(["host", "type", "cap", "Mbit/s", "slower", "recreate"], _rows(found)))
    for line in recreate_lines(found):
        print(line)
    if not any(cap.advice for cap in found):
        print(found[0].text)
    return 0


def recreate_lines(found: Sequence[VmCap]) -> list[str]:
    """Return a line for each cap whose VM is worth recreating."""
    return [
        f"recreate {cap.host}: its {CAP_NAMES[cap.metric]} cap is {cap.mbps:.4g} Mbit/s. {cap.text}"
        for cap in found
        if cap.recreate
    ]


def _rows(found: Sequence[VmCap]) -> list[list[str]]:
    return [
        [
            cap.host,
            cap.vm_type,
            CAP_NAMES[cap.metric],
            f"{cap.mbps:.4g}",
            f"{cap.advice.percentile:.0%}" if cap.advice else "-",
            ("yes" if cap.recreate else "no") if cap.advice else "-",
        ]
        for cap in found
    ]
