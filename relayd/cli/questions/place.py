"""``relayd place``: where to reduce, and on which VM to run which task."""

from __future__ import annotations

import argparse

from planner.model.units import duration_text, usd_text, volume_text
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import ReduceRequest, TasksRequest
from relayd.cli import text
from relayd.cli.options import wan_of
from relayd.cli.questions.asking import one_thread, request_from
from relayd.cli.text import filled, notes_block


def reduce(options: argparse.Namespace) -> int:
    """Say where to reduce."""
    one_thread()
    placement = wan_of(options).ask(request_from(options, ReduceRequest))
    print(placement.model_dump_json(indent=2) if options.json else reduce_text(placement))
    return 0


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
    table = text.table(("", *columns), rows)
    blocks = [
        text.styled(head, text.BOLD)
        + f"\n{volume_text(placement.shuffle_gb)} to shuffle, planned with {placement.links} links",
        filled(placement.reason),
        table,
        filled(
            "VMs: " + ", ".join(f"{n} at {region}" for region, n in placement.vms.items()) + "."
        ),
    ]
    if placement.one_more_vm:
        lines = [
            filled(
                f"- One more VM at {more.region}: {duration_text(more.duration_s)} in all, "
                f"{duration_text(more.saved_s)} sooner",
                indent="  ",
            )
            for more in placement.one_more_vm
        ]
        blocks.append("\n".join([text.styled("What would help", text.BOLD), *lines]))
    snapshot = placement.snapshot
    blocks.append(
        filled(
            f"Within the bounds of the estimates: {duration_text(placement.duration_s_low)} to "
            f"{duration_text(placement.duration_s_high)}. Snapshot {snapshot.id} "
            f"({snapshot.source}), as of {snapshot.as_of}."
        )
    )
    return "\n\n".join([*blocks, *notes_block(placement.warnings)])


def tasks(options: argparse.Namespace) -> int:
    """Say on which VM to run which task."""
    one_thread()
    placement = wan_of(options).ask(request_from(options, TasksRequest))
    print(placement.model_dump_json(indent=2) if options.json else tasks_text(placement))
    return 0


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
    cost, snapshot = placement.cost_usd, placement.snapshot
    blocks = [
        text.styled(f"All exchanged in {duration_text(placement.duration_s)}.", text.BOLD),
        filled(placement.reason),
        text.left_table(header, rows),
        filled(
            f"{volume_text(placement.moved_gb) if placement.moved_gb else 'Nothing'} crosses "
            f"between VMs, {volume_text(placement.local_gb) if placement.local_gb else 'nothing'} "
            f"stays inside one. {usd_text(cost.egress)} USD egress and {usd_text(cost.vm)} USD VMs."
        ),
        filled(f"Snapshot {snapshot.id} ({snapshot.source}), as of {snapshot.as_of}."),
    ]
    return "\n\n".join([*blocks, *notes_block(placement.warnings)])
