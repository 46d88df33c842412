"""``relayd place``: where to reduce, and on which VM to run which task."""

from __future__ import annotations

import argparse

from planner.model.units import duration_text, usd_text, volume_text
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import ReduceRequest, TasksRequest
from relayd.cli import text
from relayd.cli.questions import printing
from relayd.cli.text import filled


def reduce(options: argparse.Namespace) -> int:
    """Say where to reduce."""
    return printing.ask_and_print(options, ReduceRequest, reduce_text)


def reduce_text(placement: ReducePlacement) -> str:
    """Return where to reduce, for people."""
    regions = len(placement.fractions)
    head = f"Reduce in {regions} region{'' if regions == 1 else 's'}."
    names = list(dict.fromkeys(r for option in placement.options for r in option.fractions))
    columns = [option.name for option in placement.options]
    rows = [
        (name, *(f"{option.fractions.get(name, 0.0):.1%}" for option in placement.options))
        for name in names
    ]
    rows += [
        ("promised", *(duration_text(option.promised_s) for option in placement.options)),
        ("really takes", *(duration_text(option.duration_s) for option in placement.options)),
        ("moved", *(volume_text(option.moved_gb) for option in placement.options)),
        ("egress, USD", *(usd_text(option.cost_usd.egress) for option in placement.options)),
        ("total, USD", *(usd_text(option.cost_usd.total) for option in placement.options)),
    ]
    planned = f"planned with {placement.links} links"
    bounds = printing.bounds_text(placement.duration_s_low, placement.duration_s_high)
    blocks = [
        printing.headed(head, f"{volume_text(placement.shuffle_gb)} to shuffle, {planned}"),
        filled(placement.reason),
        text.table(("", *columns), rows),
        filled(f"VMs: {printing.vms_text(placement.vms)}."),
        *printing.more_vms_block(placement.one_more_vm, "{} sooner"),
        filled(f"{bounds} Snapshot {printing.snapshot_text(placement.snapshot)}"),
    ]
    return printing.with_notes(blocks, placement)


def tasks(options: argparse.Namespace) -> int:
    """Say on which VM to run which task."""
    return printing.ask_and_print(options, TasksRequest, tasks_text)


def tasks_text(placement: TaskPlacement) -> str:
    """Return where to run tasks, for people."""
    rows = [
        (
            vm.id,
            vm.region,
            f"{vm.cpus_used:g}/{vm.cpus:g}",
            volume_text(vm.sent_gb) if vm.sent_gb else "-",
            volume_text(vm.received_gb) if vm.received_gb else "-",
            duration_text(vm.busy_s),
            vm.limit or "-",
            ", ".join(vm.tasks) or "-",
        )
        for vm in placement.vms
    ]
    header = ("VM", "region", "CPUs", "sends", "receives", "busy", "limit", "tasks")
    cost = placement.cost_usd
    blocks = [
        text.styled(f"All exchanged in {duration_text(placement.duration_s)}.", text.BOLD),
        filled(placement.reason),
        text.left_table(header, rows),
        filled(
            f"{volume_text(placement.moved_gb) if placement.moved_gb else 'Nothing'} crosses "
            f"between VMs, {volume_text(placement.local_gb) if placement.local_gb else 'nothing'} "
            f"stays inside one. {usd_text(cost.egress)} USD egress and {usd_text(cost.vm)} USD VMs."
        ),
        filled(f"Snapshot {printing.snapshot_text(placement.snapshot)}"),
    ]
    return printing.with_notes(blocks, placement)
