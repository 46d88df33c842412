"""The commands that list, import, export and analyse data, and look after the store."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.backtesting.request import BacktestRequest
from relayd.cli.command import command, group
from relayd.cli.questions.asking import add_options

# Kept here, so that `--help` and completion need none of the modules that define them.
FORMATS = ("iperf3", "ping", "nuttcp", "skyplane-throughput", "skyplane-latency", "csv")
METRICS = ("per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age")


def add_data_commands(commands: Any) -> None:
    """Add the commands that work on the data."""
    regions = command(
        commands, "regions", "relayd.cli.data.listing:regions", "list regions and aliases"
    )
    regions.add_argument(
        "rules",
        metavar="RULE",
        nargs="*",
        help="only these: a region, an alias, a city, or a pattern such as gcp:us-*",
    )
    regions.add_argument(
        "--provider", metavar="NAME", action="append", default=[], help="only of this provider"
    )
    regions.add_argument(
        "--country",
        metavar="CODE",
        action="append",
        default=[],
        help="only in this country, such as BR",
    )
    types = command(commands, "vm-types", "relayd.cli.data.vm_types:run", "list VM types")
    types.add_argument(
        "names", metavar="TYPE", nargs="*", help="only these: how names begin, such as c7gn"
    )
    types.add_argument(
        "--provider", metavar="NAME", action="append", default=[], help="only of this provider"
    )
    types.add_argument(
        "--min-gbps", metavar="N", help="only those that send that much to other clouds, each"
    )
    types.add_argument("--min-vcpus", metavar="N", help="only those with that many vCPUs")
    links = command(commands, "links", "relayd.cli.data.listing:links", "list links with estimates")
    links.add_argument("--src", help="only links out of this region")
    links.add_argument("--dst", help="only links into this region")
    matrix = command(
        commands, "matrix", "relayd.cli.data.listing:matrix", "print one figure for all pairs"
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
    _import(command(commands, "import", "relayd.cli.data.importing:run", "import measurements"))
    export = command(commands, "export", "relayd.cli.data.exporting:run", "export the graph")
    export.add_argument("what", choices=("graph",))
    export.add_argument(
        "--format", choices=("json", "csv", "graphml", "adjacency", "node-link"), default="json"
    )
    export.add_argument("--output", metavar="FILE", help="instead of standard output")
    report = command(
        commands,
        "report",
        "relayd.cli.data.report:run",
        "analyse all samples with the methods of measurement papers",
    )
    report.add_argument(
        "--format", choices=("md", "html", "json"), help="(default: by FILE's name)"
    )
    report.add_argument("--output", metavar="FILE", help="instead of standard output")
    report.add_argument("--since", metavar="TIME", help="only the newest samples, such as 30d")
    _backtest(
        command(
            commands,
            "backtest",
            "relayd.cli.data.backtest:run",
            "replay history: what following relayd would have achieved",
        )
    )
    kept = group(
        commands, "samples", "show who sent samples, and which are kept apart", "views", "VIEW"
    )
    command(kept, "list", "relayd.cli.data.samples:batches", "list batches with who sent them")
    command(
        kept, "quarantine", "relayd.cli.data.samples:apart", "list samples that nothing rests on"
    )
    for view in kept.choices.values():
        view.add_argument(
            "--last", metavar="N", type=int, default=20, help="only the newest N (default 20)"
        )
    chores = group(commands, "store", "look after the store", "actions", "ACTION")
    _compact(command(chores, "compact", "relayd.cli.data.store:compact", "summarise old samples"))


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
        "--measured-at",
        metavar="TIME",
        help="ISO 8601, for files without times (default: the file's modification time)",
    )
    parser.add_argument("--connections", metavar="N", help="if the file does not say")
    parser.add_argument(
        "--address",
        choices=("public", "private"),
        help="kind of address that it was measured over (without it, taken for public)",
    )
    parser.add_argument("--duration", metavar="TIME", help="if the file does not say")
    parser.add_argument(
        "--tier",
        action="append",
        default=[],
        metavar="NAME",
        help="network tiers to keep of Skyplane files (default PREMIUM); repeatable",
    )
    parser.add_argument(
        "--force", action="store_true", help="keep rows that fail a plausibility check"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="use also what can't be a measurement by the catalogue: above a VM type's network "
        "card, faster than light, in the future",
    )


def _compact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="TIME", required=True, help="such as 90d; at least a day"
    )
    parser.add_argument(
        "--period", choices=("hour", "day"), default="hour", help="that one summary stands for"
    )
    parser.add_argument(
        "--files", action="store_true", help="also samples of imported files, which stay otherwise"
    )


def _backtest(parser: argparse.ArgumentParser) -> None:
    add_options(parser, BacktestRequest)
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="compute on a running Dask cluster (its scheduler)"
    )
