"""Questions: what to do with one transfer, with many, with data and tasks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from relayd.cli.commands.command import command, group, worth

# Kept here, so that `--help` and completion need none of the modules that define them.
OBJECTIVES = ("value", "time", "cost", "latency")
SHUFFLE_OBJECTIVES = ("time", "cost")
BROADCAST_OBJECTIVES = ("value", "time", "cost")
EMITTED = ("haproxy", "socat", "iperf3", "rclone", "aws-cli", "azcopy", "gcloud", "env")


def add(commands: Any) -> None:
    """Add the commands that answer a question."""
    plan_options(
        command(commands, "plan", "relayd.cli.questions.plan:run", "recommend how to move a volume")
    )
    _shuffle(
        command(
            commands,
            "shuffle",
            "relayd.cli.questions.shuffle:run",
            "recommend how to run many transfers",
        )
    )
    _broadcast(
        command(
            commands,
            "broadcast",
            "relayd.cli.questions.broadcast:run",
            "recommend how to bring one volume to several regions",
        )
    )
    _schedule(
        command(
            commands,
            "schedule",
            "relayd.cli.questions.schedule:run",
            "admit transfers with deadlines",
        )
    )
    _place(commands)
    _replan(
        command(
            commands,
            "replan",
            "relayd.cli.questions.replan:run",
            "say whether to keep to a plan in progress",
        )
    )


def plan_options(
    parser: argparse.ArgumentParser, *, required: bool = True, budget: str = "--budget"
) -> None:
    """Add the options of one transfer's plan.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    required : bool
        Whether both ends must be given.
    budget : str
        What the option for the transfer's budget is called.
    """
    ask = parser.add_argument_group("transfer")
    ask.add_argument("--src", required=required, help="region, alias or city to send from")
    ask.add_argument("--dst", required=required, help="region, alias or city to send to")
    ask.add_argument("--volume", metavar="SIZE", help="such as 500GB (default 100GB)")
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="value",
        help="value: cost plus time (default); time, cost or latency alone",
    )
    worth(goal)
    limits = parser.add_argument_group("limits")
    limits.add_argument(budget, metavar="USD", dest="budget", help="most to spend, such as 20usd")
    limits.add_argument("--deadline", metavar="TIME", help="such as 2h")
    limits.add_argument("--min-throughput", metavar="RATE", help="such as 8gbps")
    limits.add_argument(
        "--relays",
        metavar="any|one|none|REGION",
        default="any",
        help="how many relays, or the only one to consider (default any)",
    )
    _limits(parser, most=True, relays=())
    shown = _frontier(parser)
    shown.add_argument(
        "--candidates", metavar="N", help="list this many single relays at most (JSON: 6)"
    )
    shown.add_argument(
        "--max-age", metavar="TIME", help="refuse measurements older than this, such as 30d"
    )
    run = parser.add_argument_group("running it")
    run.add_argument("--emit", choices=EMITTED, help="print what to run with this tool instead")
    run.add_argument(
        "--endpoint",
        metavar="REGION=ADDRESS",
        action="append",
        default=[],
        help="for --emit: address of the VM there, or of several, with commas; repeatable",
    )
    run.add_argument("--port", metavar="N", help="for --emit: where relays listen (default 5201)")


def _shuffle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "demands",
        metavar="FILE",
        help="CSV or JSON of sources, destinations and volumes; - reads CSV",
    )
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective",
        choices=SHUFFLE_OBJECTIVES,
        default="time",
        help="time: the last pair ends as soon as possible (default); cost: least cost",
    )
    goal.add_argument("--deadline", metavar="TIME", help="latest end of the last pair, such as 2h")
    goal.add_argument(
        "--margin", metavar="SHARE", help="what relays must surely gain (default 0.1)"
    )
    _limits(parser)
    _frontier(parser).add_argument(
        "--pairs", action="store_true", help="list every pair, with its paths"
    )


def _broadcast(parser: argparse.ArgumentParser) -> None:
    ask = parser.add_argument_group("broadcast")
    ask.add_argument("--src", required=True, help="region, alias or city to send from")
    ask.add_argument(
        "--dst", required=True, action="append", help="region, alias or city to send to; repeatable"
    )
    ask.add_argument("--volume", metavar="SIZE", help="of one copy, such as 50GB (default 100GB)")
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective",
        choices=BROADCAST_OBJECTIVES,
        default="value",
        help="value: cost plus time (default); time: the last destination has all as soon as "
        "possible; cost: least cost",
    )
    goal.add_argument(
        "--time-value", metavar="USD/H", help="what an hour is worth (default 20usd/h)"
    )
    goal.add_argument("--deadline", metavar="TIME", help="latest end, such as 2h")
    goal.add_argument(
        "--margin", metavar="SHARE", help="what forwarding must surely gain (default 0.1)"
    )
    _limits(
        parser,
        most=True,
        relays=("any", "ends", "none"),
        relays_help="who forwards: any region (default), destinations alone, or nobody",
    )
    _frontier(parser).add_argument("--trees", action="store_true", help="list every tree")


def _schedule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "transfers",
        metavar="FILE",
        help="CSV or JSON: id, src, dst, volume, start, deadline, priority, value_usd; - reads CSV",
    )
    goal = parser.add_argument_group("schedule")
    goal.add_argument(
        "--after", metavar="FILE", help="a schedule in progress (its JSON), whose promises are kept"
    )
    goal.add_argument("--now", metavar="TIME", help="on the schedule's clock, such as 90min")
    goal.add_argument(
        "--rates",
        choices=("expected", "low"),
        default="expected",
        help="what promises rest on: expected figures (default), or their low bounds",
    )
    goal.add_argument(
        "--explain", metavar="N", help="say what would do for the first N refused (default 10)"
    )
    _limits(parser)
    shown = parser.add_argument_group("answer")
    shown.add_argument("--periods", action="store_true", help="list rates and paths over time")


def _place(commands: Any) -> None:
    what = group(
        commands, "place", "recommend where to reduce or run tasks", "what to place", "WHAT"
    )
    reduce = command(
        what,
        "reduce",
        "relayd.cli.questions.place:reduce",
        "say which region reduces which fraction",
    )
    reduce.add_argument(
        "input", metavar="FILE", help="CSV of region and input_gb, or JSON; - reads CSV"
    )
    goal = reduce.add_argument_group("goal")
    goal.add_argument("--selectivity", metavar="SHARE", help="GB shuffled for a GB (default 1)")
    goal.add_argument(
        "--links",
        choices=("hose", "heterogeneous"),
        default="hose",
        help="hose: all limits of VMs (default); heterogeneous: each pair by itself",
    )
    goal.add_argument("--objective", choices=SHUFFLE_OBJECTIVES, default="time")
    goal.add_argument("--budget", metavar="USD", help="most to spend on egress fees")
    goal.add_argument("--deadline", metavar="TIME", help="latest end of the shuffle")
    goal.add_argument(
        "--reduce-in",
        metavar="REGION",
        action="append",
        default=[],
        help="a region that may reduce (default: those with input); repeatable",
    )
    _limits(reduce, relays=())
    tasks = command(
        what, "tasks", "relayd.cli.questions.place:tasks", "say which VM runs which task"
    )
    tasks.add_argument("tasks", metavar="FILE", help="JSON of tasks, traffic and vms")
    limits = tasks.add_argument_group("limits")
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    limits.add_argument("--time-limit", metavar="TIME", help="for the exact search (default 10s)")
    _prices(tasks)


def _replan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan as --json printed it; - reads it")
    parser.add_argument(
        "--moved",
        metavar="SIZE",
        action="append",
        required=True,
        help="what has arrived, such as 120GB; of a shuffle also 'SRC>DST=50GB', repeatable",
    )
    parser.add_argument(
        "--elapsed", metavar="TIME", required=True, help="since sending began, such as 10min"
    )
    parser.add_argument(
        "--changes", metavar="N", default="0", help="how often it was changed before (default 0)"
    )
    _prices(parser, vm_start=False)


def _limits(
    parser: argparse.ArgumentParser,
    *,
    most: bool = False,
    relays: Sequence[str] = ("any", "none"),
    relays_help: str | None = None,
) -> None:
    """Add what every question takes: VMs, connections, who relays, rules, prices.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    most : bool
        Whether the number of VMs is a greatest one that the plan may stay below.
    relays : sequence of str
        Choices; none where nothing is relayed.
    """
    limits = parser.add_argument_group("VMs and relays")
    number = "most VMs a region" if most else "VMs in each region"
    limits.add_argument(
        "--vms",
        metavar="N",
        action="append",
        default=[],
        help=f"{number} (default 1), or REGION=N for one; may be repeated",
    )
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    if relays:
        limits.add_argument("--relays", choices=relays, default="any", help=relays_help)
    _rules(limits)
    _prices(parser)


def _frontier(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    shown = parser.add_argument_group("answer")
    shown.add_argument("--frontier", action="store_true", help="add the cost-time frontier")
    return shown


def _rules(limits: argparse._ArgumentGroup) -> None:
    limits.add_argument(
        "--avoid",
        metavar="RULE",
        action="append",
        default=[],
        help="provider:NAME, country:CC, continent:CC or a region that must not relay; repeatable",
    )
    limits.add_argument(
        "--allow",
        metavar="RULE",
        action="append",
        default=[],
        help="the only places that may relay, written like --avoid; repeatable",
    )


def _prices(parser: argparse.ArgumentParser, *, vm_start: bool = True) -> None:
    prices = parser.add_argument_group("prices and VMs")
    prices.add_argument(
        "--month-to-date",
        metavar="SIZE",
        action="append",
        default=[],
        help="volume billed this month, such as 40TB or aws=40TB; repeatable",
    )
    prices.add_argument(
        "--vm-type",
        metavar="WHERE=TYPE",
        action="append",
        default=[],
        help="such as aws=t2.micro, by provider or region; repeatable",
    )
    if vm_start:
        prices.add_argument("--vm-start", metavar="TIME", help="paid before sending (default 60s)")
