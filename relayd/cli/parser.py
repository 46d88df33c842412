"""Commands and their options. Handlers are imported only when they run."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from relayd import __version__
from relayd.cli import lab

# Kept here, so that `--help` and completion need none of the modules that define them.
FORMATS = ("iperf3", "ping", "nuttcp", "skyplane-throughput", "skyplane-latency", "csv")
METRICS = ("per-flow", "aggregate", "rtt", "fee", "relay-gain")
OBJECTIVES = ("value", "time", "cost", "latency")
SHUFFLE_OBJECTIVES = ("time", "cost")
BROADCAST_OBJECTIVES = ("value", "time", "cost")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse a command line; ``run`` of the result is the handler."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = build_parser()
    for word in words:
        # argparse before Python 3.13 makes an empty list of this (python/cpython#59317).
        if re.fullmatch(r"--[\w-]+=--", word):
            parser.error(f"argument {word.partition('=')[0]}: `--` is not a value")
    return parser.parse_args(_with_negatives_joined(words))


def _with_negatives_joined(words: list[str]) -> list[str]:
    """Join `--volume -5GB` into one word: a value, not an option, so that it gets a real answer."""
    joined: list[str] = []
    for word in words:
        if re.match(r"-[\d.]", word) and joined and re.fullmatch(r"--[\w-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="relayd",
        description="Direct or relayed? Measures bandwidth between cloud datacenters and "
        "recommends transfer plans, with the reason, the price and the confidence.",
        epilog="Exit codes: 0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, "
        "5 finished in part, 1 our own fault.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"relayd {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _plan(_command(commands, "plan", "relayd.cli.plan:run", "recommend how to move a volume"))
    _shuffle(
        _command(
            commands, "shuffle", "relayd.cli.shuffle:run", "recommend how to run many transfers"
        )
    )
    _broadcast(
        _command(
            commands,
            "broadcast",
            "relayd.cli.broadcast:run",
            "recommend how to bring one volume to several regions",
        )
    )
    _replan(
        _command(
            commands,
            "replan",
            "relayd.cli.replanning:run",
            "say whether to keep to a plan in progress",
        )
    )
    _schedule(
        _command(commands, "schedule", "relayd.cli.schedule:run", "admit transfers with deadlines")
    )
    _place(commands)
    _command(commands, "regions", "relayd.cli.listing:regions", "list regions and aliases")
    links = _command(commands, "links", "relayd.cli.listing:links", "list legs with estimates")
    links.add_argument("--src", help="only legs out of this region")
    links.add_argument("--dst", help="only legs into this region")
    matrix = _command(
        commands, "matrix", "relayd.cli.listing:matrix", "print one figure for all pairs"
    )
    matrix.add_argument("--metric", choices=METRICS, default="aggregate")
    matrix.add_argument(
        "--connections", metavar="N", help="for relay-gain: TCP connections a VM (default 64)"
    )
    matrix.add_argument(
        "--measured", action="store_true", help="only regions whose throughput was measured"
    )
    matrix.add_argument(
        "--summary", action="store_true", help="by pair of providers instead of by region"
    )
    _import(_command(commands, "import", "relayd.cli.importing:run", "import measurements"))
    export = _command(commands, "export", "relayd.cli.exporting:run", "export the graph")
    export.add_argument("what", choices=("graph",))
    export.add_argument(
        "--format", choices=("json", "csv", "graphml", "adjacency", "node-link"), default="json"
    )
    export.add_argument("--output", metavar="FILE", help="instead of standard output")
    report = _command(
        commands, "report", "relayd.cli.report:run", "analyse all samples, as papers do"
    )
    report.add_argument(
        "--format", choices=("md", "html", "json"), help="(default: by FILE's name)"
    )
    report.add_argument("--output", metavar="FILE", help="instead of standard output")
    report.add_argument("--since", metavar="TIME", help="only the newest samples, such as 30d")
    fleet = commands.add_parser(
        "fleet", help="look after the hosts that measure", allow_abbrev=False,
        description="Look after the hosts that measure.",
    )  # fmt: skip
    actions = fleet.add_subparsers(title="actions", metavar="ACTION", required=True)
    _fleet_check(_command(actions, "check", "relayd.cli.fleet:check", "test every host at once"))
    _command(actions, "caps", "relayd.cli.caps:caps", "show slow VMs that it may pay to recreate")
    _probe(_command(commands, "probe", "relayd.cli.probe:run", "measure with the fleet"))
    _serve(_command(commands, "serve", "relayd.cli.serve:run", "answer questions over HTTP"))
    token = commands.add_parser(
        "token", help="say who may use the service", allow_abbrev=False,
        description="Say who may use the service.",
    )  # fmt: skip
    _tokens(token.add_subparsers(title="actions", metavar="ACTION", required=True))
    _watch(_command(commands, "watch", "relayd.cli.watch:run", "watch a fleet continuously"))
    store = commands.add_parser(
        "store", help="look after the store", allow_abbrev=False,
        description="Look after the store.",
    )  # fmt: skip
    chores = store.add_subparsers(title="actions", metavar="ACTION", required=True)
    _compact(_command(chores, "compact", "relayd.cli.store:compact", "make old samples small"))
    lab.add_parser(commands)
    completion = _command(
        commands, "completion", "relayd.cli.completion:run", "print a shell completion script"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    return parser


def _command(commands: Any, name: str, handler: str, help_text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=help_text, description=help_text[0].upper() + help_text[1:] + ".",
        allow_abbrev=False,
    )  # fmt: skip
    parser.set_defaults(run=_late(handler))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--db",
        metavar="FILE|URL",
        help="the store: a file, or postgresql://USER@HOST/DATABASE (default: a per-user file)",
    )
    parser.add_argument(
        "--catalogue", metavar="FILE", action="append", default=[],
        help="a catalogue file of your own; may be repeated",
    )  # fmt: skip
    return parser


def _late(handler: str) -> Callable[[argparse.Namespace], int]:
    module, _, function = handler.partition(":")

    def run(options: argparse.Namespace) -> int:
        return int(getattr(import_module(module), function)(options))

    return run


def _plan(parser: argparse.ArgumentParser) -> None:
    ask = parser.add_argument_group("transfer")
    ask.add_argument("--src", required=True, help="region, alias or city to send from")
    ask.add_argument("--dst", required=True, help="region, alias or city to send to")
    ask.add_argument("--volume", metavar="SIZE", help="such as 500GB (default 100GB)")
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective", choices=OBJECTIVES, default="value",
        help="value: cost plus time (default); time, cost or latency alone",
    )  # fmt: skip
    goal.add_argument(
        "--time-value", metavar="USD/H", help="what an hour is worth (default 20usd/h)"
    )
    goal.add_argument(
        "--margin", metavar="SHARE", help="what a relay must surely gain (default 0.1)"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--budget", metavar="USD", help="most to spend, such as 20usd")
    limits.add_argument("--deadline", metavar="TIME", help="such as 2h")
    limits.add_argument("--min-throughput", metavar="RATE", help="such as 8gbps")
    limits.add_argument(
        "--vms", metavar="N", action="append", default=[],
        help="most VMs a region (default 1), or REGION=N for one; may be repeated",
    )  # fmt: skip
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens (default 64)"
    )
    limits.add_argument(
        "--relays", metavar="any|one|none|REGION", default="any",
        help="how many relays, or the only one to consider (default any)",
    )  # fmt: skip
    _rules(limits)
    _prices(parser)
    shown = parser.add_argument_group("answer")
    shown.add_argument("--frontier", action="store_true", help="add the cost-time frontier")
    shown.add_argument(
        "--max-age", metavar="TIME", help="refuse measurements older than this, such as 30d"
    )


def _shuffle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "demands",
        metavar="FILE",
        help="CSV or JSON of sources, destinations and volumes; - reads CSV",
    )
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective", choices=SHUFFLE_OBJECTIVES, default="time",
        help="time: the last pair ends as soon as possible (default); cost: least cost",
    )  # fmt: skip
    goal.add_argument("--deadline", metavar="TIME", help="latest end of the last pair, such as 2h")
    goal.add_argument(
        "--margin", metavar="SHARE", help="what relays must surely gain (default 0.1)"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--vms", metavar="N", action="append", default=[],
        help="VMs in each region (default 1), or REGION=N for one; may be repeated",
    )  # fmt: skip
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    limits.add_argument("--relays", choices=("any", "none"), default="any")
    _rules(limits)
    _prices(parser)
    shown = parser.add_argument_group("answer")
    shown.add_argument("--frontier", action="store_true", help="add the cost-time frontier")
    shown.add_argument("--pairs", action="store_true", help="list every pair, with its paths")


def _broadcast(parser: argparse.ArgumentParser) -> None:
    ask = parser.add_argument_group("broadcast")
    ask.add_argument("--src", required=True, help="region, alias or city to send from")
    ask.add_argument(
        "--dst", required=True, action="append", help="region, alias or city to send to; repeatable"
    )
    ask.add_argument("--volume", metavar="SIZE", help="of one copy, such as 50GB (default 100GB)")
    goal = parser.add_argument_group("goal")
    goal.add_argument(
        "--objective", choices=BROADCAST_OBJECTIVES, default="value",
        help="value: cost plus time (default); time: the last destination has all as soon as "
        "possible; cost: least cost",
    )  # fmt: skip
    goal.add_argument(
        "--time-value", metavar="USD/H", help="what an hour is worth (default 20usd/h)"
    )
    goal.add_argument("--deadline", metavar="TIME", help="latest end, such as 2h")
    goal.add_argument(
        "--margin", metavar="SHARE", help="what forwarding must surely gain (default 0.1)"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--vms", metavar="N", action="append", default=[],
        help="most VMs a region (default 1), or REGION=N for one; may be repeated",
    )  # fmt: skip
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    limits.add_argument(
        "--relays", choices=("any", "ends", "none"), default="any",
        help="who forwards: any region (default), destinations alone, or nobody",
    )  # fmt: skip
    _rules(limits)
    _prices(parser)
    shown = parser.add_argument_group("answer")
    shown.add_argument("--frontier", action="store_true", help="add the cost-time frontier")
    shown.add_argument("--trees", action="store_true", help="list every tree")


def _replan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="a plan as --json printed it; - reads it")
    parser.add_argument(
        "--moved", metavar="SIZE", action="append", required=True,
        help="what has arrived, such as 120GB; of a shuffle also 'SRC>DST=50GB', repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--elapsed", metavar="TIME", required=True, help="since sending began, such as 10min"
    )
    parser.add_argument(
        "--changes", metavar="N", default="0", help="how often it was changed before (default 0)"
    )
    parser.add_argument(
        "--month-to-date", metavar="SIZE", action="append", default=[],
        help="volume billed this month, such as 40TB or aws=40TB; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--vm-type", metavar="WHERE=TYPE", action="append", default=[],
        help="such as aws=t2.micro, by provider or region; repeatable",
    )  # fmt: skip


def _schedule(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "transfers", metavar="FILE",
        help="CSV or JSON: id, src, dst, volume, start, deadline, priority, value_usd; - reads CSV",
    )  # fmt: skip
    goal = parser.add_argument_group("schedule")
    goal.add_argument(
        "--after", metavar="FILE", help="a schedule in progress (its JSON), whose promises are kept"
    )
    goal.add_argument("--now", metavar="TIME", help="on the schedule's clock, such as 90min")
    goal.add_argument(
        "--rates", choices=("expected", "low"), default="expected",
        help="what promises rest on: expected figures (default), or their low bounds",
    )  # fmt: skip
    goal.add_argument(
        "--explain", metavar="N", help="say what would do for the first N refused (default 10)"
    )
    _shared_vms(parser)
    shown = parser.add_argument_group("answer")
    shown.add_argument("--periods", action="store_true", help="list rates and paths over time")


def _place(commands: Any) -> None:
    place = commands.add_parser(
        "place", help="recommend where to reduce or run tasks", allow_abbrev=False,
        description="Recommend where to reduce, or on which VMs to run tasks.",
    )  # fmt: skip
    what = place.add_subparsers(title="what to place", metavar="WHAT", required=True)
    reduce = _command(
        what, "reduce", "relayd.cli.place:reduce", "say which region reduces which fraction"
    )
    reduce.add_argument(
        "input", metavar="FILE", help="CSV of region and input_gb, or JSON; - reads CSV"
    )
    goal = reduce.add_argument_group("goal")
    goal.add_argument("--selectivity", metavar="SHARE", help="GB shuffled for a GB (default 1)")
    goal.add_argument(
        "--links", choices=("hose", "heterogeneous"), default="hose",
        help="hose: all limits of VMs (default); heterogeneous: each pair by itself",
    )  # fmt: skip
    goal.add_argument("--objective", choices=SHUFFLE_OBJECTIVES, default="time")
    goal.add_argument("--budget", metavar="USD", help="most to spend on egress fees")
    goal.add_argument("--deadline", metavar="TIME", help="latest end of the shuffle")
    goal.add_argument(
        "--reduce-in", metavar="REGION", action="append", default=[],
        help="a region that may reduce (default: those with input); repeatable",
    )  # fmt: skip
    _shared_vms(reduce, relays=False)
    tasks = _command(what, "tasks", "relayd.cli.place:tasks", "say which VM runs which task")
    tasks.add_argument("tasks", metavar="FILE", help="JSON of tasks, traffic and vms")
    limits = tasks.add_argument_group("limits")
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    limits.add_argument("--time-limit", metavar="TIME", help="for the exact search (default 10s)")
    _prices(tasks)


def _shared_vms(parser: argparse.ArgumentParser, *, relays: bool = True) -> None:
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--vms", metavar="N", action="append", default=[],
        help="VMs in each region (default 1), or REGION=N for one; may be repeated",
    )  # fmt: skip
    limits.add_argument(
        "--connections", metavar="N", help="TCP connections that a VM opens in all (default 64)"
    )
    if relays:
        limits.add_argument("--relays", choices=("any", "none"), default="any")
    _rules(limits)
    _prices(parser)


def _rules(limits: argparse._ArgumentGroup) -> None:
    limits.add_argument(
        "--avoid", metavar="RULE", action="append", default=[],
        help="provider:NAME, country:CC, continent:CC or a region that must not relay; repeatable",
    )  # fmt: skip
    limits.add_argument(
        "--allow", metavar="RULE", action="append", default=[],
        help="the only places that may relay, written like --avoid; repeatable",
    )  # fmt: skip


def _prices(parser: argparse.ArgumentParser) -> None:
    prices = parser.add_argument_group("prices and VMs")
    prices.add_argument(
        "--month-to-date", metavar="SIZE", action="append", default=[],
        help="volume billed this month, such as 40TB or aws=40TB; repeatable",
    )  # fmt: skip
    prices.add_argument(
        "--vm-type", metavar="WHERE=TYPE", action="append", default=[],
        help="such as aws=t2.micro, by provider or region; repeatable",
    )  # fmt: skip
    prices.add_argument("--vm-start", metavar="TIME", help="paid before sending (default 60s)")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("format", choices=FORMATS)
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument(
        "--src", help="sending region, for files that name none (iperf3: the client's)"
    )
    parser.add_argument("--dst", help="receiving region, for files that name none")
    parser.add_argument("--src-vm", metavar="TYPE", default="", help="VM type at the source")
    parser.add_argument("--dst-vm", metavar="TYPE", default="", help="VM type at the destination")
    parser.add_argument(
        "--measured-at", metavar="TIME",
        help="ISO 8601, for files without times (default: the file's modification time)",
    )  # fmt: skip
    parser.add_argument("--connections", metavar="N", help="where the file does not say")
    parser.add_argument("--duration", metavar="TIME", help="where the file does not say")
    parser.add_argument(
        "--tier", action="append", default=[], metavar="NAME",
        help="network tiers to keep of Skyplane files (default PREMIUM); repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="keep rows that a sanity test would reject"
    )


def _fleet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file (default: RELAYD_FLEET)")
    parser.add_argument("--yes", action="store_true", help="agree to what would be asked")


def _fleet_check(parser: argparse.ArgumentParser) -> None:
    _fleet(parser)
    parser.add_argument(
        "--trust-new", action="store_true",
        help="show the keys of hosts that have none on record, ask, and store them",
    )  # fmt: skip
    parser.add_argument(
        "--install-tools", action="store_true",
        help="offer to install missing tools by the host's package manager",
    )  # fmt: skip


def _probe(parser: argparse.ArgumentParser) -> None:
    _fleet(parser)
    what = parser.add_argument_group("what to measure")
    what.add_argument(
        "--pairs", metavar="SRC>DST", action="append", default=[],
        help="only these; `*` is every host; repeatable",
    )  # fmt: skip
    what.add_argument(
        "--phases", metavar="LIST", help="of rtt,per-flow,aggregate,caps (default all)"
    )
    what.add_argument("--thorough", action="store_true", help="all pairs")
    what.add_argument(
        "--connections", metavar="N",
        help="TCP connections of a pair (default: as many as saturate it, at most 64)",
    )  # fmt: skip
    what.add_argument(
        "--ramp", action="store_true",
        help="try 1, 2, 4, ... connections on every pair, not once a kind of sender",
    )  # fmt: skip
    what.add_argument("--tool", choices=("iperf3", "nuttcp"), default="iperf3")
    what.add_argument("--flow-time", metavar="TIME", help="of a one-flow probe (default 10s)")
    what.add_argument("--aggregate-time", metavar="TIME", help="of a many-flow probe (default 5s)")
    what.add_argument(
        "--full-time", action="store_true", help="end no one-flow probe early: shows late changes"
    )
    what.add_argument("--udp", action="store_true", help="UDP capacity too, after each many-flow")
    what.add_argument("--trace", action="store_true", help="the hops of each route too")
    tcp = parser.add_argument_group("TCP")
    tcp.add_argument("--tcp-window", metavar="SIZE", help="to ask for, such as 8M")
    tcp.add_argument("--congestion-control", metavar="NAME", help="to ask for, such as cubic")
    tcp.add_argument(
        "--change-sysctls", action="store_true",
        help="change, as root and for the campaign only, what a socket can't ask for",
    )  # fmt: skip
    limits = parser.add_argument_group("limits")
    limits.add_argument("--dry-run", action="store_true", help="only say what it would take")
    limits.add_argument("--budget", metavar="USD", help="most to spend on egress, such as 5usd")
    limits.add_argument("--max-minutes", metavar="N", help="begin nothing that ends later")
    limits.add_argument("--parallel", metavar="N", help="most bandwidth probes at a time")
    limits.add_argument(
        "--resume", action="store_true", help="go on with a campaign that was interrupted"
    )


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="TOML with a table [serve]")
    where = parser.add_argument_group("where")
    where.add_argument("--host", help="address to listen at (default 127.0.0.1)")
    where.add_argument("--port", metavar="N", help="default 8080; 0 takes a free one")
    where.add_argument("--tls-cert", metavar="FILE", help="certificate, with its chain (PEM)")
    where.add_argument("--tls-key", metavar="FILE", help="its key (PEM)")
    where.add_argument(
        "--insecure-public", action="store_true", help="listen publicly without TLS all the same"
    )
    how = parser.add_argument_group("how")
    how.add_argument(
        "--require-tokens", action="store_true", help="need tokens even before the first is made"
    )
    how.add_argument(
        "--workers", metavar="N", help="processes for long questions (default: one a core)"
    )
    how.add_argument("--fleet", metavar="FILE", help="the fleet file of campaigns")
    how.add_argument(
        "--check", action="store_true", help="only print the settings and what is wrong with them"
    )


def _tokens(actions: Any) -> None:
    create = _command(
        actions, "create", "relayd.cli.token:create", "make a token, and show it once"
    )
    create.add_argument("name", help="who or what will use it")
    create.add_argument(
        "--scope", metavar="SCOPE", action="append", default=[],
        help="read, plan, ingest, probe or admin; repeatable (default read and plan)",
    )  # fmt: skip
    create.add_argument("--expires", metavar="TIME", help="from now, such as 90d (default: never)")
    _command(actions, "list", "relayd.cli.token:listing", "list tokens")
    revoke = _command(actions, "revoke", "relayd.cli.token:revoke", "let a token be refused")
    revoke.add_argument("number", help="as `relayd token list` shows it")


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fleet", metavar="FILE", help="the fleet file (default: RELAYD_FLEET)")
    what = parser.add_argument_group("what to watch")
    what.add_argument(
        "--interval", metavar="TIME", help="within which to notice an outage (default 30s)"
    )
    what.add_argument(
        "--pairs", metavar="SRC>DST", action="append", default=[],
        help="only these; `*` is every host; repeatable",
    )  # fmt: skip
    what.add_argument(
        "--hold",
        metavar="N",
        help="intervals that a leg must be well before it is used again (default 5)",
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--daily-budget", metavar="USD", required=True, help="most egress of a UTC day, as 2usd"
    )
    limits.add_argument(
        "--campaign-every", metavar="TIME",
        help="age at which a campaign is due, or never (default 7d)",
    )  # fmt: skip
    limits.add_argument(
        "--quiet-hours", metavar="FROM-TO", help="UTC hours without throughput probes: 22:00-06:00"
    )
    limits.add_argument(
        "--retain", metavar="TIME", help="age at which samples are made small, or never (90d)"
    )
    parser.add_argument(
        "--webhook", metavar="URL",
        help="tell this address of legs that fail and recover; signed with RELAYD_WEBHOOK_SECRET",
    )  # fmt: skip


def _compact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="TIME", required=True, help="such as 90d; at least a day"
    )
    parser.add_argument(
        "--period", choices=("hour", "day"), default="hour", help="that one summary stands for"
    )
    parser.add_argument(
        "--files", action="store_true", help="samples of imported files too; they stay otherwise"
    )
