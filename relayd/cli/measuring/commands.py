"""The commands that measure: the fleet, campaigns, verifying, watching, and the lab."""

from __future__ import annotations

import argparse
from typing import Any

from planner.transfer.request import TransferRequest
from relayd.cli.parser import Parser, add_data_options, command, group, late, option
from relayd.cli.questions.options import add_options


def add_measuring_commands(commands: Any) -> None:
    """Add the commands that measure."""
    at = "relayd.cli.measuring"
    actions = group(commands, "fleet", "look after the hosts that measure", "actions", "ACTION")
    check = command(actions, "check", f"{at}.fleet:check", "test every host at once")
    _fleet(check)
    new = "show the keys of hosts that have none on record, ask, and store them"
    option(check, "--trust-new", None, new)
    missing = "offer to install missing tools by the host's package manager"
    option(check, "--install-tools", None, missing)
    command(actions, "caps", f"{at}.fleet:caps", "show slow VMs that may be worth recreating")
    _probe(command(commands, "probe", f"{at}.probe:run", "measure with the fleet"))
    _verify(command(commands, "verify", f"{at}.verify:run", "run plans briefly, and compare"))
    _watch(command(commands, "watch", f"{at}.watch:run", "watch a fleet continuously"))
    _lab(commands)


def _fleet_file(parser: Parser) -> None:
    option(parser, "--fleet", "FILE", "the fleet file (default: RELAYD_FLEET)")


def _pairs(what: Any) -> None:
    option(what, "--pairs", "SRC>DST...", "only these; `*` is every host; repeatable")


def _fleet(parser: Parser) -> None:
    _fleet_file(parser)
    option(parser, "--yes", None, "answer yes to all questions")


def _probe(parser: Parser) -> None:
    _fleet(parser)
    what = parser.add_argument_group("what to measure")
    _pairs(what)
    option(what, "--phases", "LIST", "of rtt,per-flow,aggregate,caps (default all)")
    option(what, "--thorough", None, "all pairs")
    saturating = "TCP connections of a pair (default: as many as saturate it, at most 64)"
    option(what, "--connections", "N", saturating)
    every = "try 1, 2, 4, ... connections on every pair, not once a kind of sender"
    option(what, "--ramp", None, every)
    what.add_argument("--tool", choices=("iperf3", "nuttcp"), default="iperf3")
    option(what, "--flow-time", "TIME", "of a one-flow probe (default 10s)")
    option(what, "--aggregate-time", "TIME", "of a many-flow probe (default 5s)")
    option(what, "--full-time", None, "end no one-flow probe early, to see late changes")
    option(what, "--udp", None, "measure UDP capacity too, after each many-flow probe")
    rates = "offer UDP at so many growing rates, 8 at least: what arrives of what is sent"
    option(what, "--udp-rates", "N", rates, type=int, default=1)
    payload = "payload of each packet of UDP; more than the path takes at once is fragmented"
    option(what, "--udp-packet", "BYTES", payload, type=int, default=0)
    option(what, "--trace", None, "trace the hops of each route too")
    kinds = ("public", "private", "private-within-provider")
    option(
        what, "--addresses", None, "to probe at (default: as the fleet file says)", choices=kinds
    )
    tcp = parser.add_argument_group("TCP")
    option(tcp, "--tcp-window", "SIZE", "to ask for, such as 8M")
    option(tcp, "--congestion-control", "NAME", "to ask for, such as cubic")
    as_root = "change, as root and for the campaign only, what a socket can't ask for"
    option(tcp, "--change-sysctls", None, as_root)
    limits = parser.add_argument_group("limits")
    option(limits, "--dry-run", None, "only show what it would take")
    option(limits, "--budget", "USD", "most to spend on egress, such as 5usd")
    option(limits, "--max-minutes", "N", "start nothing that would end later")
    option(limits, "--parallel", "N", "most bandwidth probes at a time")
    option(limits, "--resume", None, "resume an interrupted campaign")


def _verify(parser: Parser) -> None:
    parser.epilog = (
        "Exit codes: 0 all was as predicted, 1 something was outside of its bounds, 5 something "
        "could not be run; otherwise as everywhere."
    )
    printed = (
        "plans as `relayd plan`, `shuffle` or `broadcast` printed them with --json, - reads one; "
        "or --src and --dst"
    )
    parser.add_argument("plans", metavar="PLAN", nargs="*", help=printed)
    _fleet(parser)
    limits = parser.add_argument_group("limits of the verification")
    option(limits, "--dry-run", None, "only show what it would take")
    option(limits, "--seconds", "N", "measured seconds of each run (default 10)")
    option(limits, "--max-gb", "N", "most GB to send for a plan, over all links")
    fees = "most egress fees for a plan, such as 1usd"
    option(limits, "--budget", "USD", fees, dest="max_usd")
    add_options(parser, TransferRequest, required=False, renamed={"budget_usd": "--plan-budget"})


def _watch(parser: Parser) -> None:
    _fleet_file(parser)
    what = parser.add_argument_group("what to watch")
    option(what, "--interval", "TIME", "time within which to notice an outage (default 30s)")
    _pairs(what)
    well = "intervals that a link must be well before it is used again (default 5)"
    option(what, "--hold", "N", well)
    limits = parser.add_argument_group("limits")
    option(limits, "--daily-budget", "USD", "most egress of a UTC day, as 2usd", required=True)
    due = "age at which a campaign is due, or never (default 7d)"
    option(limits, "--campaign-every", "TIME", due)
    regret = "measure, day by day, what keeps the expected regret below this, such as 8%%"
    option(limits, "--regret", "SHARE", regret)
    quiet = "UTC hours without throughput probes: 22:00-06:00"
    option(limits, "--quiet-hours", "FROM-TO", quiet)
    option(limits, "--retain", "TIME", "age at which samples are summarised, or never (90d)")
    signed = "notify this address when links fail or recover; signed by RELAYD_WEBHOOK_SECRET"
    option(parser, "--webhook", "URL", signed)


def _lab(commands: Any) -> None:
    lab = commands.add_parser(
        "lab",
        help="emulate datacenters on this machine, to try and to test",
        description="Emulate datacenters on this machine: each a network namespace with sshd, "
        "caps, windows and distances of its own (docs/lab.md).",
    )
    actions = lab.add_subparsers(title="commands", metavar="COMMAND")
    up = _lab_action(actions, "up", "up", "bring a lab up and write its fleet file")
    option(up, "--regions", "N|LIST", "how many, or which (comma-separated)")
    option(up, "--profile", "NAME|FILE", "paper, skyplane-2022 or a TOML file (default paper)")
    option(up, "--scale", "X", "what caps and windows are multiplied by")
    option(up, "--from-store", None, "emulate what was measured instead of a profile")
    add_data_options(up)
    _lab_action(actions, "status", "status", "show the labs that run, or one of them")
    run = _lab_action(actions, "exec", "execute", "run a command in a region")
    run.add_argument("region", help="region id, such as aws:us-east-1")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    purpose = "change how hosts and links behave, while they run"
    change = _lab_action(actions, "set", "change", purpose)
    targets = change.add_subparsers(title="what to change", metavar="WHAT")
    host = targets.add_parser("host", help="one host, or all")
    host.add_argument("region", help="region id, or all")
    link = targets.add_parser("link", help="the link between two hosts")
    link.add_argument("src", help="region id, or all")
    link.add_argument("dst", help="region id, or all")
    option(link, "--one-way", None, "only from the first to the second")
    for parser in (host, link):
        such = "such as loss_pct=1 or state=blackhole; the value `default` takes it back"
        parser.add_argument("settings", nargs="+", metavar="NAME=VALUE", help=such)
        parser.set_defaults(target=parser.prog.split()[-1])
    targets.add_parser("clear", help="undo all settings").set_defaults(target="clear")
    for parser in targets.choices.values():
        _lab_options(parser, default=argparse.SUPPRESS)  # those of `set` hold unless given here
    down = _lab_action(actions, "down", "down", "take a lab down and remove its leftovers")
    option(down, "--all", None, "every lab of this user")


def _lab_action(actions: Any, name: str, handler: str, help_text: str) -> Parser:
    parser: Parser = actions.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + "."
    )
    parser.set_defaults(run=late(f"relayd.cli.measuring.lab:{handler}"))
    _lab_options(parser)
    return parser


def _lab_options(parser: Parser, **more: Any) -> None:
    option(parser, "--name", "NAME", "which lab (default lab)", **more)
    option(parser, "--json", None, "print JSON", **more)
