"""Shows a schedule of transfers to people."""

from __future__ import annotations

import argparse
from typing import Any

from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.schedule.plan import PathRate, SchedulePlan, StoredVolume, TariffUse, TransferSchedule
from relayd.cli.questions import printing
from relayd.cli.text import figure, filled, table, table_of

BAR = 40
SENDING, WAITING, OUTSIDE = "#", "-", " "


def schedule_text(plan: SchedulePlan, options: argparse.Namespace) -> str:
    """Return a schedule for people: verdict, transfers with bars of time, what would do."""
    cost, transfers = plan.cost_usd, plan.transfers
    stored = [f"{one.id}: {_stored(volume)}" for one in transfers for volume in one.stored]
    storage = f", {usd_text(plan.storage_usd)} storage" if stored else ""
    since = f" from {duration_text(plan.now_s)} on" if plan.now_s else ""
    remedies = [f"{one.id}: {_remedies(one)}" for one in transfers if one.remedies]
    basis = "the low bounds of" if plan.request["rates"] == "low" else "what is expected of"
    return printing.answer_text(
        plan,
        f"{plan.admitted} admitted, {plan.refused} refused, {plan.best_effort} best effort.",
        "",
        _transfers(plan),
        _bars(plan),
        _periods(plan) if options.periods else "",
        filled(
            f"Cost{since}: {usd_text(cost.egress)} egress{storage} and {usd_text(cost.vm)} "
            f"VMs. {plan.relayed_share:.0%} is relayed. VMs at most: "
            f"{printing.vms_text(plan.vms) or 'none'}."
        ),
        printing.listed_block("Stored", stored),
        printing.listed_block("Tariffs", map(_tariff, plan.tariffs)),
        printing.listed_block("What would do", remedies),
        sure=f"Promises rest on {basis} links and caps.",
    )


def _transfers(plan: SchedulePlan) -> str:
    def at(field: str) -> Any:
        return lambda transfer: _clock(getattr(transfer, field))

    return table_of(
        plan.transfers,
        "transfer=id | =link | volume=volume_gb | start | deadline | verdict | ends=end | "
        "$ egress=usd",
        start=at("start_s"),
        deadline=at("deadline_s"),
        end=at("end_s"),
        usd=lambda one: figure(one, "egress_usd") if one.periods else "-",
    )


def _bars(plan: SchedulePlan) -> str:
    """Return a line of time for each transfer that is sent."""
    sent = [transfer for transfer in plan.transfers if transfer.periods]
    last_s = max((t.deadline_s or t.end_s or 0.0 for t in sent), default=0.0)
    last_s = max([last_s, *(t.end_s or 0.0 for t in sent)])
    if not sent or last_s <= 0:
        return "Nothing is sent."
    width = max(len(transfer.id) for transfer in sent)
    step = last_s / BAR
    lines = []
    for transfer in sent:
        bar = ""
        for at in range(BAR):
            begin, end = at * step, (at + 1) * step
            if any(p.start_s < end and p.end_s > begin for p in transfer.periods):
                bar += SENDING
            elif begin < (transfer.deadline_s or transfer.end_s or 0.0) and end > transfer.start_s:
                bar += WAITING
            else:
                bar += OUTSIDE
        lines.append(f"{transfer.id.ljust(width)}  |{bar}|")
    scale = f"{' ' * width}  0{duration_text(last_s).rjust(BAR + 1)}"
    return "\n".join([*lines, scale, f"{SENDING} sends, {WAITING} could"])


def _periods(plan: SchedulePlan) -> str:
    rows = [
        (
            transfer.id,
            _clock(period.start_s),
            _clock(period.end_s),
            gbps_text(period.throughput_gbps),
            str(sum(path.connections for path in period.paths)),
            ", ".join(_path(transfer, path) for path in period.paths),
        )
        for transfer in plan.transfers
        for period in transfer.periods
    ]
    return table(("transfer", "from", "to", "Gbit/s", "connections", "paths"), rows)


def _path(transfer: TransferSchedule, path: PathRate) -> str:
    """Return a path in words; into storage it ends at a relay, and out of it begins there."""
    way = printing.path_text(path)
    if path.regions[-1] != transfer.dst:
        way = f"to {path.regions[-1]}{printing.private_text(path)}"
    elif path.regions[0] != transfer.src:
        way = f"from {path.regions[0]}{printing.private_text(path)}"
    return f"{way} {gbps_text(path.throughput_gbps)}"


def _stored(stored: StoredVolume) -> str:
    return (
        f"up to {volume_text(stored.most_gb)} at {stored.region} from {_clock(stored.start_s)} to "
        f"{_clock(stored.end_s)}, {usd_text(stored.usd)}"
    )


def _remedies(transfer: TransferSchedule) -> str:
    remedies = transfer.remedies
    assert remedies
    ways = [f"a deadline of {_clock(remedies.deadline_s)}"]
    if remedies.more_vms:
        more = remedies.more_vms
        where = ", ".join(f"{n} more at {region}" for region, n in more.vms.items())
        fewer = f" (no fewer than {more.at_least} would do)"
        ways.append(f"VMs: {where}{fewer * (sum(more.vms.values()) != more.at_least)}")
    if remedies.volume_gb:
        ways.append(f"at most {volume_text(remedies.volume_gb)} by its deadline")
    return "; or ".join(ways)


def _tariff(use: TariffUse) -> str:
    """Return the volume that uses a tariff, and when its month pays."""
    said = f"{use.id} ({use.src} -> {use.dst}): "
    if not use.volume_gb:
        return f"{said}nothing is sent by it"
    said += f"{volume_text(use.volume_gb)} are sent by it, {usd_text(use.saved_usd)} less"
    if use.break_even_gb is None:
        return said
    said += (
        f"; its {usd_text(use.monthly_usd)} a month are earned by "
        f"{volume_text(use.break_even_gb)}, {use.break_even_gb / use.volume_gb:.1f} times as much"
    )
    if use.full_gb is not None and use.full_gb < use.break_even_gb:
        said += f", but at most {volume_text(use.full_gb)} can be sent by it a month: never"
    return said


def _clock(seconds: float | None) -> str:
    """Return a time on the schedule's clock, as hours, minutes and seconds."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
