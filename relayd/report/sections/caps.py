"""VM caps."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from probes.analysis.variation import spread
from probes.analysis.vm_spread import vm_spread
from probes.samples import Metric
from relayd.report.data import ReportData
from relayd.report.document import Section, Table

_CAPS: tuple[tuple[Metric, str], ...] = (
    ("egress_cap_mbps", "egress"),
    ("ingress_cap_mbps", "ingress"),
)


def caps(data: ReportData) -> Section:
    """Answer what VMs of each type send and receive at most, and how they differ."""
    section = Section(
        "caps",
        "What do VMs carry at most?",
        "Caps from one-to-many and many-to-one tests, by VM type; how VMs of one type differ, and "
        "the first percentile (GLOBECOM 2015).",
    )
    rows = []
    for metric, name in _CAPS:
        columns = data.columns(metric)
        section.samples += len(columns)
        by_type: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in columns.rows:
            setup = columns.setups[int(row["setup"])]
            region = columns.regions[int(row["src"])]
            vm_type = f"{region.partition(':')[0]}:{setup.src_vm or '?'}"
            by_type[vm_type][region + setup.src_zone].append(float(row["value"]))
        for vm_type, by_vm in sorted(by_type.items()):
            values = spread([float(np.median(v)) for v in by_vm.values()], fewest=1)
            rows.append(
                (
                    vm_type,
                    name,
                    str(values.samples),
                    f"{values.median:,.0f}",
                    f"{values.minimum:,.0f}",
                    f"{values.maximum:,.0f}",
                    f"{values.cov:.1%}",
                )
            )
            key = f"{name}_{vm_type}"
            found = section.say(key, lambda groups=by_vm: vm_spread(groups))  # type: ignore[misc]
            if found is not None:
                section.statements.append(
                    f"{name.capitalize()} of {vm_type}: {found.between_share:.0%} of the variance "
                    f"of {found.samples} tests lies between {found.vms} VMs"
                    + (", which differ beyond chance." if found.vms_differ else ".")
                )
    if rows:
        section.tables.append(
            Table(
                "VM caps, Mbit/s",
                ("VM type", "cap", "VMs", "median", "least", "most", "variation"),
                tuple(rows),
            )
        )
    section.concluded = bool(rows)
    if not section.concluded:
        section.statements.append("There is no test of VM caps.")
    return section
