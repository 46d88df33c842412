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
    fleet = commands.add_parser(
        "fleet", help="look after the hosts that measure", allow_abbrev=False,
        description="Look after the hosts that measure.",
    )  # fmt: skip
    actions = fleet.add_subparsers(title="actions", metavar="ACTION", required=True)
    _fleet_check(_command(actions, "check", "relayd.cli.fleet:check", "test every host at once"))
    _probe(_command(commands, "probe", "relayd.cli.probe:run", "measure with the fleet"))
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
    parser.add_argument("--db", metavar="FILE", help="the store (default: a per-user file)")
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
    what.add_argument("--connections", metavar="N", help="most TCP connections (default 64)")
    what.add_argument(
        "--ramp", action="store_true", help="try 1, 2, 4, ... connections instead of the most"
    )
    what.add_argument("--tool", choices=("iperf3", "nuttcp"), default="iperf3")
    what.add_argument("--flow-time", metavar="TIME", help="of a one-flow probe (default 10s)")
    what.add_argument("--aggregate-time", metavar="TIME", help="of a many-flow probe (default 5s)")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--dry-run", action="store_true", help="only say what it would take")
    limits.add_argument("--budget", metavar="USD", help="most to spend on egress, such as 5usd")
    limits.add_argument("--max-minutes", metavar="N", help="begin nothing that ends later")
    limits.add_argument("--parallel", metavar="N", help="most bandwidth probes at a time")
    limits.add_argument(
        "--resume", action="store_true", help="go on with a campaign that was interrupted"
    )
