"""The commands that list, import, export and analyse data, and look after the store."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.backtesting.request import BacktestRequest
from relayd.cli.parser import command, flags, group, listing, positive
from relayd.cli.questions.options import add_options
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)

# Kept here, so that `--help` and completion need none of the modules that define them.
SERIES = ("per-flow", "aggregate", "udp", "rtt", "loss", "jitter")
METRICS = ("per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age")


def add_data_commands(commands: Any) -> None:
    """Add the commands that work on the data."""
    regions = listing(
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
    types = listing(commands, "vm-types", "relayd.cli.data.vm_types:run", "list VM types")
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
    links = listing(commands, "links", "relayd.cli.data.listing:links", "list links with estimates")
    links.add_argument(*flags("--src"), help="only links out of this region")
    links.add_argument(*flags("--dst"), help="only links into this region")
    matrix = listing(
        commands, "matrix", "relayd.cli.data.listing:matrix", "print one figure for all pairs"
    )
    matrix.add_argument(
        "--metric", choices=METRICS, default="aggregate", help="the figure (default aggregate)"
    )
    matrix.add_argument(
        *flags("--connections"),
        metavar="N",
        help="for relay-gain: TCP connections a VM (default 64)",
    )
    matrix.add_argument(
        "--measured", action="store_true", help="only regions whose throughput was measured"
    )
    matrix.add_argument(
        "--summary", action="store_true", help="by pair of providers instead of by region"
    )
    add_import(commands)
    export = command(
        commands, "export", "relayd.cli.data.exporting:run", "export the graph, or all samples"
    )
    export.add_argument("what", choices=("graph", "samples"))
    export.add_argument(
        "--format",
        choices=("json", "csv", "graphml", "adjacency", "node-link", "parquet"),
        help="of a graph (default json); samples are written as Parquet",
    )
    export.add_argument(
        *flags("--output"),
        metavar="FILE",
        help="instead of standard output; of samples, a new folder",
    )
    export.add_argument("--since", metavar="TIME", help="only samples measured at it or later")
    report = command(
        commands,
        "report",
        "relayd.cli.data.report:run",
        "analyse all samples with the methods of measurement papers",
    )
    report.add_argument(
        "--format", choices=("md", "html", "json"), help="(default: by FILE's name)"
    )
    report.add_argument(*flags("--output"), metavar="FILE", help="instead of standard output")
    report.add_argument("--since", metavar="TIME", help="only the newest samples, such as 30d")
    report.add_argument(
        "--section",
        metavar="KEY",
        action="append",
        default=[],
        help="only this section, such as transients; repeatable",
    )
    _series(command(commands, "series", "relayd.cli.data.report:series", "analyse a link in time"))
    _backtest(
        command(
            commands,
            "backtest",
            "relayd.cli.data.backtest:run",
            "replay history: what following relayd would have achieved",
        )
    )
    _samples(
        group(
            commands,
            "samples",
            "show who sent samples, and which do not count; retract and restore them",
            "views",
            "VIEW",
        )
    )
    _transfers(group(commands, "transfers", "report transfers under way", "actions", "ACTION"))
    chores = group(commands, "store", "look after the store", "actions", "ACTION")
    module = "relayd.cli.data.store"
    _compact(command(chores, "compact", f"{module}:compact", "summarise old samples"))
    command(
        chores, "rebuild", f"{module}:rebuild", "make a snapshot of all samples, trusting no state"
    )
    command(chores, "check", f"{module}:check", "look for damage of the database and its schema")
    copies = (
        command(
            chores, "backup", f"{module}:backup", "copy the store into a new file, while in use"
        ),
        command(chores, "restore", f"{module}:restore", "make a store of a backup"),
    )
    for parser in copies:
        parser.add_argument("file", metavar="FILE", help="the backup")
    changed = listing(
        chores, "changes", "relayd.cli.data.store:list_changes", "list who changed what"
    )
    changed.add_argument(
        "--last", metavar="N", type=positive, default=20, help="only the newest N (default 20)"
    )


def _samples(views: Any) -> None:
    batches = listing(
        views, "list", "relayd.cli.data.samples:batches", "list batches with who sent them"
    )
    batches.add_argument(
        "--disputed",
        action="store_true",
        help="instead, links whose samples contradict others' and do not count",
    )
    quarantine = listing(
        views, "quarantine", "relayd.cli.data.samples:apart", "list samples that nothing rests on"
    )
    quarantine.add_argument(
        "--state",
        choices=("open", "accepted", "rejected"),
        default="open",
        help="of which nobody has decided (the default), or those accepted or rejected",
    )
    listing(
        views,
        "decisions",
        "relayd.cli.data.samples:list_decisions",
        "list what was retracted, and so on",
    )
    for view in views.choices.values():
        view.add_argument(
            "--last", metavar="N", type=positive, default=20, help="only the newest N (default 20)"
        )
    for name, purpose in (
        ("retract", "let samples count no longer, after showing what that changes"),
        ("restore", "let retracted samples count again"),
        ("confirm", "let samples count as the own prober's"),
    ):
        chosen = command(views, name, "relayd.cli.data.samples:run_decision", purpose)
        chosen.set_defaults(decision=name)
        _selecting(chosen)

    for name, purpose in (
        ("accept", "let samples in quarantine count as the own prober's"),
        ("reject", "keep samples in quarantine for good"),
    ):
        chosen = command(views, name, "relayd.cli.data.samples:run_on_quarantine", purpose)
        chosen.set_defaults(decision=name)
        chosen.add_argument(
            "numbers", metavar="NUMBER", nargs="+", help="as `samples quarantine` lists them"
        )
        chosen.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
        chosen.add_argument("--yes", action="store_true", help="do not ask")


def _transfers(actions: Any) -> None:
    module = "relayd.cli.data.transfers"
    listed = listing(actions, "list", f"{module}:listed", "list transfers, the newest first")
    listed.add_argument(
        "--state",
        choices=("in-flight", "finished", "failed", "cancelled"),
        help="only these; in-flight are those that run and those that are silent",
    )
    listed.add_argument(*flags("--src"), metavar="REGION", help="only from this region")
    listed.add_argument(*flags("--dst"), metavar="REGION", help="only to this region")
    shown = command(actions, "show", f"{module}:shown", "show one transfer")
    shown.add_argument(
        "--plan", action="store_true", help="print its plan alone, as JSON for `relayd replan -`"
    )
    add_options(
        command(actions, "begin", f"{module}:begin", "say that a transfer begins; prints its id"),
        TransferStartRequest,
    )
    progress = command(actions, "progress", f"{module}:progress", "say how far a transfer is")
    add_options(progress, TransferProgressRequest, required=False)
    end = command(actions, "end", f"{module}:end", "say how a transfer ended")
    add_options(end, TransferEndRequest, required=False)
    for parser in (shown, progress, end):
        parser.add_argument("id", metavar="ID", help="as `transfers list` shows it")


def _selecting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source", metavar="NAME", help="reported by it, as `list --disputed` names it"
    )
    parser.add_argument("--token", metavar="NAME", help="sent with this token")
    parser.add_argument("--address", metavar="IP", help="sent from this address")
    parser.add_argument("--tool", metavar="NAME", help="taken with this tool, of any version")
    parser.add_argument(*flags("--src"), metavar="REGION", help="of links out of this region")
    parser.add_argument(*flags("--dst"), metavar="REGION", help="of links into this region")
    parser.add_argument("--metric", metavar="NAME", help="such as aggregate_mbps")
    parser.add_argument("--batch", metavar="N", help="of this batch (`samples list`)")
    parser.add_argument("--since", metavar="TIME", help="measured at this time or later, ISO 8601")
    parser.add_argument("--until", metavar="TIME", help="measured at this time or earlier")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for the record")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _series(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(*flags("--src"), required=True, help="region that the link leaves")
    parser.add_argument(*flags("--dst"), required=True, help="region that it leads to")
    parser.add_argument("--metric", choices=SERIES, default="aggregate", help="(default aggregate)")
    parser.add_argument("--horizon", metavar="TIME", help="of the forecast (default 1h)")
    parser.add_argument("--since", metavar="TIME", help="only the newest samples, such as 30d")


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


# Kept here, so that `--help` and completion need none of the modules that define them.
FORMATS = (
    "iperf3",
    "iperf",
    "ping",
    "nuttcp",
    "smokeping",
    "blackbox",
    "skyplane-throughput",
    "skyplane-latency",
    "csv",
    "parquet",
)


def add_import(commands: Any) -> None:
    """Add the command that imports files."""
    handler = "relayd.cli.data.importing:run"
    parser = command(commands, "import", handler, "import measurements")
    parser.add_argument("format", choices=FORMATS, help="what wrote the files")
    parser.add_argument("files", metavar="FILE", nargs="+")
    parser.add_argument(
        *flags("--src"), help="sending region, for files that name none (iperf3: the client's)"
    )
    parser.add_argument(*flags("--dst"), help="receiving region, for files that name none")
    parser.add_argument("--src-vm", metavar="TYPE", default="", help="VM type at the source")
    parser.add_argument("--dst-vm", metavar="TYPE", default="", help="VM type at the destination")
    parser.add_argument(
        "--measured-at",
        metavar="TIME",
        help="ISO 8601, for files without times (default: the file's modification time)",
    )
    parser.add_argument(*flags("--connections"), metavar="N", help="if the file does not say")
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
        "--newest",
        action="store_true",
        help="of a Parquet data set, only what estimates rest on: the newest 256 samples of a "
        "series",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="use also what can't be a measurement by the catalogue: above a VM type's network "
        "card, faster than light, in the future",
    )
