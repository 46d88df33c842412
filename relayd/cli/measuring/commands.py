"""The commands that measure: the fleet, campaigns, verifying, watching, and the lab."""

from __future__ import annotations

import argparse
from typing import Any

from planner.transfer.request import TransferRequest
from relayd.cli.parser import Parser, add_data_options, command, flags, group, late
from relayd.cli.questions.options import add_options


def add_measuring_commands(commands: Any) -> None:
    """Add the commands that measure."""
    actions = group(commands, "fleet", "look after the hosts that measure", "actions", "ACTION")
    _fleet_check(
        command(actions, "check", "relayd.cli.measuring.fleet:check", "test every host at once")
    )
    command(
        actions,
        "caps",
        "relayd.cli.measuring.fleet:caps",
        "show slow VMs that may be worth recreating",
    )
    _probe(command(commands, "probe", "relayd.cli.measuring.probe:run", "measure with the fleet"))
    _verify(
        command(
            commands, "verify", "relayd.cli.measuring.verify:run", "run plans briefly, and compare"
        )
    )
    _watch(
        command(commands, "watch", "relayd.cli.measuring.watch:run", "watch a fleet continuously")
    )
    _lab(commands)


def _fleet_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file (default: RELAYD_FLEET)")


def _pairs(what: Any) -> None:
    what.add_argument(
        "--pairs",
        metavar="SRC>DST",
        action="append",
        default=[],
        help="only these; `*` is every host; repeatable",
    )


def _fleet(parser: argparse.ArgumentParser) -> None:
    _fleet_file(parser)
    parser.add_argument("--yes", action="store_true", help="answer yes to all questions")


def _fleet_check(parser: argparse.ArgumentParser) -> None:
    _fleet(parser)
    parser.add_argument(
        "--trust-new",
        action="store_true",
        help="show the keys of hosts that have none on record, ask, and store them",
    )
    parser.add_argument(
        "--install-tools",
        action="store_true",
        help="offer to install missing tools by the host's package manager",
    )


def _probe(parser: argparse.ArgumentParser) -> None:
    _fleet(parser)
    what = parser.add_argument_group("what to measure")
    _pairs(what)
    what.add_argument(
        "--phases", metavar="LIST", help="of rtt,per-flow,aggregate,caps (default all)"
    )
    what.add_argument("--thorough", action="store_true", help="all pairs")
    what.add_argument(
        *flags("--connections"),
        metavar="N",
        help="TCP connections of a pair (default: as many as saturate it, at most 64)",
    )
    what.add_argument(
        "--ramp",
        action="store_true",
        help="try 1, 2, 4, ... connections on every pair, not once a kind of sender",
    )
    what.add_argument("--tool", choices=("iperf3", "nuttcp"), default="iperf3")
    what.add_argument("--flow-time", metavar="TIME", help="of a one-flow probe (default 10s)")
    what.add_argument("--aggregate-time", metavar="TIME", help="of a many-flow probe (default 5s)")
    what.add_argument(
        "--full-time", action="store_true", help="end no one-flow probe early, to see late changes"
    )
    what.add_argument(
        "--udp", action="store_true", help="measure UDP capacity too, after each many-flow probe"
    )
    what.add_argument(
        "--udp-rates",
        type=int,
        default=1,
        metavar="N",
        help="offer UDP at so many growing rates, 8 at least: what arrives of what is sent",
    )
    what.add_argument(
        "--udp-packet",
        type=int,
        default=0,
        metavar="BYTES",
        help="payload of each packet of UDP; more than the path takes at once is fragmented",
    )
    what.add_argument("--trace", action="store_true", help="trace the hops of each route too")
    what.add_argument(
        "--addresses",
        choices=("public", "private", "private-within-provider"),
        help="to probe at (default: as the fleet file says)",
    )
    tcp = parser.add_argument_group("TCP")
    tcp.add_argument("--tcp-window", metavar="SIZE", help="to ask for, such as 8M")
    tcp.add_argument("--congestion-control", metavar="NAME", help="to ask for, such as cubic")
    tcp.add_argument(
        "--change-sysctls",
        action="store_true",
        help="change, as root and for the campaign only, what a socket can't ask for",
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--dry-run", action="store_true", help="only show what it would take")
    limits.add_argument("--budget", metavar="USD", help="most to spend on egress, such as 5usd")
    limits.add_argument("--max-minutes", metavar="N", help="start nothing that would end later")
    limits.add_argument("--parallel", metavar="N", help="most bandwidth probes at a time")
    limits.add_argument("--resume", action="store_true", help="resume an interrupted campaign")


def _verify(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit codes: 0 all was as predicted, 1 something was outside of its bounds, 5 something "
        "could not be run; otherwise as everywhere."
    )
    parser.add_argument(
        "plans",
        metavar="PLAN",
        nargs="*",
        help="plans as `relayd plan`, `shuffle` or `broadcast` printed them with --json, - reads "
        "one; or --src and --dst",
    )
    _fleet(parser)
    limits = parser.add_argument_group("limits of the verification")
    limits.add_argument("--dry-run", action="store_true", help="only show what it would take")
    limits.add_argument("--seconds", metavar="N", help="measured seconds of each run (default 10)")
    limits.add_argument("--max-gb", metavar="N", help="most GB to send for a plan, over all links")
    limits.add_argument(
        "--budget", metavar="USD", dest="max_usd", help="most egress fees for a plan, such as 1usd"
    )
    add_options(parser, TransferRequest, required=False, renamed={"budget_usd": "--plan-budget"})


def _watch(parser: argparse.ArgumentParser) -> None:
    _fleet_file(parser)
    what = parser.add_argument_group("what to watch")
    what.add_argument(
        "--interval", metavar="TIME", help="time within which to notice an outage (default 30s)"
    )
    _pairs(what)
    what.add_argument(
        "--hold",
        metavar="N",
        help="intervals that a link must be well before it is used again (default 5)",
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--daily-budget", metavar="USD", required=True, help="most egress of a UTC day, as 2usd"
    )
    limits.add_argument(
        "--campaign-every",
        metavar="TIME",
        help="age at which a campaign is due, or never (default 7d)",
    )
    limits.add_argument(
        "--regret",
        metavar="SHARE",
        help="measure, day by day, what keeps the expected regret below this, such as 8%%",
    )
    limits.add_argument(
        "--quiet-hours", metavar="FROM-TO", help="UTC hours without throughput probes: 22:00-06:00"
    )
    limits.add_argument(
        "--retain", metavar="TIME", help="age at which samples are summarised, or never (90d)"
    )
    parser.add_argument(
        "--webhook",
        metavar="URL",
        help="notify this address when links fail or recover; signed by RELAYD_WEBHOOK_SECRET",
    )


def _lab(commands: Any) -> None:
    lab = commands.add_parser(
        "lab",
        help="emulate datacenters on this machine, to try and to test",
        description="Emulate datacenters on this machine: each a network namespace with sshd, "
        "caps, windows and distances of its own (docs/lab.md).",
    )
    actions = lab.add_subparsers(title="commands", metavar="COMMAND")
    up = _lab_action(actions, "up", "up", "bring a lab up and write its fleet file")
    up.add_argument("--regions", metavar="N|LIST", help="how many, or which (comma-separated)")
    up.add_argument(
        "--profile",
        metavar="NAME|FILE",
        default=None,
        help="paper, skyplane-2022 or a TOML file (default paper)",
    )
    up.add_argument("--scale", metavar="X", help="what caps and windows are multiplied by")
    up.add_argument(
        "--from-store", action="store_true", help="emulate what was measured instead of a profile"
    )
    add_data_options(up)
    _lab_action(actions, "status", "status", "show the labs that run, or one of them")
    run = _lab_action(actions, "exec", "execute", "run a command in a region")
    run.add_argument("region", help="region id, such as aws:us-east-1")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    change = _lab_action(
        actions, "set", "change", "change how hosts and links behave, while they run"
    )
    targets = change.add_subparsers(title="what to change", metavar="WHAT")
    host = targets.add_parser("host", help="one host, or all")
    host.add_argument("region", help="region id, or all")
    link = targets.add_parser("link", help="the link between two hosts")
    link.add_argument("src", help="region id, or all")
    link.add_argument("dst", help="region id, or all")
    link.add_argument("--one-way", action="store_true", help="only from the first to the second")
    for parser in (host, link):
        parser.add_argument(
            "settings",
            nargs="+",
            metavar="NAME=VALUE",
            help="such as loss_pct=1 or state=blackhole; the value `default` takes it back",
        )
        parser.set_defaults(target=parser.prog.split()[-1])
    targets.add_parser("clear", help="undo all settings").set_defaults(target="clear")
    for parser in targets.choices.values():
        _lab_options(parser, default=argparse.SUPPRESS)  # those of `set` hold unless given here
    down = _lab_action(actions, "down", "down", "take a lab down and remove its leftovers")
    down.add_argument("--all", action="store_true", help="every lab of this user")


def _lab_action(actions: Any, name: str, handler: str, help_text: str) -> Parser:
    parser: Parser = actions.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + "."
    )
    parser.set_defaults(run=late(f"relayd.cli.measuring.lab:{handler}"))
    _lab_options(parser)
    return parser


def _lab_options(parser: Parser, **more: Any) -> None:
    parser.add_argument("--name", metavar="NAME", help="which lab (default lab)", **more)
    parser.add_argument(*flags("--json"), action="store_true", help="print JSON", **more)
