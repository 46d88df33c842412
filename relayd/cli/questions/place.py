"""``relayd place``: where to reduce, and on which VM to run which task."""

from __future__ import annotations

import argparse
from typing import Any

from planner.model.errors import FormatError
from planner.model.units import parse_duration_s, parse_money_usd, parse_volume_gb
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.placement.request import ReduceRequest, TasksRequest
from relayd.cli import text
from relayd.cli.options import assignments, number, wan_of, whole_number
from relayd.cli.questions.many import common_options, one_thread
from relayd.cli.text import filled, notes_block
from relayd.files.rows import read_json, read_rows
from relayd.settings import load_settings


def reduce(options: argparse.Namespace) -> int:
    """Say where to reduce."""
    options.request = ReduceRequest
    one_thread()
    goal: dict[str, Any] = {}
    if options.selectivity is not None:
        goal["selectivity"] = number(options.selectivity, "--selectivity")
    if options.budget is not None:
        goal["budget_usd"] = parse_money_usd(options.budget, "--budget")
    if options.deadline is not None:
        goal["deadline_s"] = parse_duration_s(options.deadline, "--deadline")
    placement = wan_of(options).place_reduce(
        _inputs(options.input),
        links=options.links,
        objective=options.objective,
        reduce_in=options.reduce_in,
        **goal,
        **common_options(options),
    )
    print(placement.model_dump_json(indent=2) if options.json else reduce_text(placement))
    return 0


def _inputs(name: str) -> Any:
    if name.endswith(".json"):
        content = read_json(name, "input")
        if isinstance(content, dict):
            return content
    return read_rows(name, "input")


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
        ("promised", *(text.duration(option.promised_s) for option in placement.options)),
        ("really takes", *(text.duration(option.duration_s) for option in placement.options)),
        ("moved", *(text.volume(option.moved_gb) for option in placement.options)),
        ("egress, USD", *(text.usd(option.cost_usd.egress) for option in placement.options)),
        ("total, USD", *(text.usd(option.cost_usd.total) for option in placement.options)),
    ]
    table = text.table(("", *columns), rows)
    blocks = [
        text.styled(head, text.BOLD)
        + f"\n{text.volume(placement.shuffle_gb)} to shuffle, planned with {placement.links} links",
        filled(placement.reason),
        table,
        filled(
            "VMs: " + ", ".join(f"{n} at {region}" for region, n in placement.vms.items()) + "."
        ),
    ]
    if placement.one_more_vm:
        lines = [
            filled(
                f"- One more VM at {more.region}: {text.duration(more.duration_s)} in all, "
                f"{text.duration(more.saved_s)} sooner",
                indent="  ",
            )
            for more in placement.one_more_vm
        ]
        blocks.append("\n".join([text.styled("What would help", text.BOLD), *lines]))
    snapshot = placement.snapshot
    blocks.append(
        filled(
            f"Within the bounds of the estimates: {text.duration(placement.duration_s_low)} to "
            f"{text.duration(placement.duration_s_high)}. Snapshot {snapshot.id} "
            f"({snapshot.source}), as of {snapshot.as_of}."
        )
    )
    return "\n\n".join([*blocks, *notes_block(placement.warnings)])


def tasks(options: argparse.Namespace) -> int:
    """Say on which VM to run which task."""
    options.request = TasksRequest
    one_thread()
    content = read_json(options.tasks, "tasks")
    if not isinstance(content, dict) or not {"tasks", "traffic", "vms"} <= content.keys():
        raise FormatError(
            "tasks",
            "needs tasks, traffic and vms",
            value=options.tasks,
            remedy='Write {"tasks": [{"id", "cpus"}], "traffic": [{"src", "dst", "volume_gb"}], '
            '"vms": [{"id", "region", "cpus"}]}.',
        )
    settings = load_settings()
    limits: dict[str, Any] = {}
    if options.time_limit is not None:
        limits["time_limit_s"] = parse_duration_s(options.time_limit, "--time-limit")
    if (connections := options.connections or settings.connections) is not None:
        limits["connections"] = whole_number(connections, "--connections")
    if options.vm_start is not None:
        limits["vm_start_s"] = parse_duration_s(options.vm_start, "--vm-start")
    month = assignments(options.month_to_date, "--month-to-date", "*")
    placement = wan_of(options).place_tasks(
        content["tasks"],
        _traffic(content["traffic"]),
        content["vms"],
        month_to_date_gb={
            provider: parse_volume_gb(size, "--month-to-date") for provider, size in month.items()
        },
        vm_types=assignments(options.vm_type, "--vm-type", None),
        **limits,
    )
    print(placement.model_dump_json(indent=2) if options.json else tasks_text(placement))
    return 0


def _traffic(given: Any) -> Any:
    """Return traffic as rows, from a list of objects; a nested mapping is left as it is."""
    if isinstance(given, dict):
        return given
    rows = []
    for at, item in enumerate(given if isinstance(given, list) else [given], 1):
        if not isinstance(item, dict) or not {"src", "dst", "volume_gb"} <= item.keys():
            raise FormatError(f"traffic {at}", "needs src, dst and volume_gb", value=item)
        volume = item["volume_gb"]
        if isinstance(volume, str):
            volume = parse_volume_gb(volume, f"traffic {at}, volume_gb")
        rows.append((item["src"], item["dst"], volume))
    return rows


def tasks_text(placement: TaskPlacement) -> str:
    """Return where to run tasks, for people."""
    rows = [
        (
            vm.id,
            vm.region,
            f"{vm.cpus_used:g}/{vm.cpus:g}",
            text.volume(vm.sent_gb) if vm.sent_gb else "-",
            text.volume(vm.received_gb) if vm.received_gb else "-",
            text.duration(vm.busy_s),
            vm.limit or "-",
            ", ".join(vm.tasks) or "-",
        )
        for vm in placement.vms
    ]
    header = ("VM", "region", "CPUs", "sends", "receives", "busy", "limit", "tasks")
    cost, snapshot = placement.cost_usd, placement.snapshot
    blocks = [
        text.styled(f"All exchanged in {text.duration(placement.duration_s)}.", text.BOLD),
        filled(placement.reason),
        text.left_table(header, rows),
        filled(
            f"{text.volume(placement.moved_gb) if placement.moved_gb else 'Nothing'} crosses "
            f"between VMs, {text.volume(placement.local_gb) if placement.local_gb else 'nothing'} "
            f"stays inside one. {text.usd(cost.egress)} USD egress and {text.usd(cost.vm)} USD VMs."
        ),
        filled(f"Snapshot {snapshot.id} ({snapshot.source}), as of {snapshot.as_of}."),
    ]
    return "\n\n".join([*blocks, *notes_block(placement.warnings)])
