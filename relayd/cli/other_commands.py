"""The commands that ask no question: what each is called, what it takes, and what runs it."""

from __future__ import annotations

from typing import Any

from probes.importers import FORMATS
from probes.samples import Metric
from relayd.backtesting.request import BacktestRequest
from relayd.cli.parser import Parser, command, group, listing, option, positive
from relayd.cli.questions.options import add_options
from relayd.tables.matrices import MATRIX_METRICS
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)

SERIES: dict[str, Metric] = {
    "per-flow": "per_flow_mbps",
    "aggregate": "aggregate_mbps",
    "udp": "udp_mbps",
    "rtt": "rtt_ms",
    "loss": "loss_pct",
    "jitter": "jitter_ms",
}
GRAPHS = ("json", "csv", "graphml", "adjacency", "node-link", "parquet")
SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_other_commands(commands: Any) -> None:
    """Add the commands that list, import, export and analyse data, and run the service."""
    _add_listings(commands)
    _add_import(commands)
    _add_analyses(commands)
    purpose = "show who sent samples, and which do not count; retract and restore them"
    _add_samples(group(commands, "samples", purpose, "views", "VIEW"))
    _add_transfers(group(commands, "transfers", "report transfers under way", "actions", "ACTION"))
    _add_store(group(commands, "store", "look after the store", "actions", "ACTION"))
    prices = group(commands, "catalogue", "show and refresh the prices", "actions", "ACTION")
    _add_catalogue(prices)


def _add_listings(commands: Any) -> None:
    at = "relayd.cli.data.listing"
    regions = listing(commands, "regions", f"{at}:regions", "list regions and aliases")
    rules = "only these: a region, an alias, a city, or a pattern such as gcp:us-*"
    regions.add_argument("rules", metavar="RULE", nargs="*", help=rules)
    option(regions, "--provider", "NAME...", "only of this provider")
    option(regions, "--country", "CODE...", "only in this country, such as BR")
    types = listing(commands, "vm-types", f"{at}:vm_types", "list VM types")
    names = "only these: how names begin, such as c7gn"
    types.add_argument("names", metavar="TYPE", nargs="*", help=names)
    option(types, "--provider", "NAME...", "only of this provider")
    option(types, "--min-gbps", "N", "only those that send that much to other clouds, each")
    option(types, "--min-vcpus", "N", "only those with that many vCPUs")
    links = listing(commands, "links", f"{at}:links", "list links with estimates")
    option(links, "--src", "REGION", "only links out of this region")
    option(links, "--dst", "REGION", "only links into this region")
    purpose = "print one figure for all pairs"
    matrix = listing(commands, "matrix", "relayd.cli.data.matrix:run", purpose)
    figure = "the figure (default aggregate)"
    option(matrix, "--metric", None, figure, choices=MATRIX_METRICS, default="aggregate")
    option(matrix, "--connections", "N", "for relay-gain: TCP connections a VM (default 64)")
    option(matrix, "--measured", None, "only regions whose throughput was measured")
    option(matrix, "--summary", None, "by pair of providers instead of by region")


def _add_import(commands: Any) -> None:
    parser = command(commands, "import", "relayd.cli.data.importing:run", "import measurements")
    option(parser, "format", None, "what wrote the files", choices=FORMATS)
    parser.add_argument("files", metavar="FILE", nargs="+")
    sending = "sending region, for files that name none (iperf3: the client's)"
    option(parser, "--src", "REGION", sending)
    option(parser, "--dst", "REGION", "receiving region, for files that name none")
    option(parser, "--src-vm", "TYPE", "VM type at the source", default="")
    option(parser, "--dst-vm", "TYPE", "VM type at the destination", default="")
    at = "ISO 8601, for files without times (default: the file's modification time)"
    option(parser, "--measured-at", "TIME", at)
    option(parser, "--connections", "N", "if the file does not say")
    kind = "kind of address that it was measured over (without it, taken for public)"
    option(parser, "--address", None, kind, choices=("public", "private"))
    option(parser, "--duration", "TIME", "if the file does not say")
    tiers = "network tiers to keep of Skyplane files (default PREMIUM); repeatable"
    option(parser, "--tier", "NAME...", tiers)
    option(parser, "--force", None, "keep rows that fail a plausibility check")
    newest = (
        "of a Parquet data set, only what estimates rest on: the newest 256 samples of a series"
    )
    option(parser, "--newest", None, newest)
    trust = (
        "use also what can't be a measurement by the catalogue: above a VM type's network card, "
        "faster than light, in the future"
    )
    option(parser, "--trust", None, trust)


def _add_analyses(commands: Any) -> None:
    at = "relayd.cli.data"
    purpose = "export the graph, or all samples"
    export = command(commands, "export", f"{at}.exporting:run", purpose)
    export.add_argument("what", choices=("graph", "samples"))
    formats = "of a graph (default json); samples are written as Parquet"
    option(export, "--format", None, formats, choices=GRAPHS)
    option(export, "--output", "FILE", "instead of standard output; of samples, a new folder")
    option(export, "--since", "TIME", "only samples measured at it or later")
    purpose = "analyse all samples with the methods of measurement papers"
    report = command(commands, "report", f"{at}.report:run", purpose)
    kinds = ("md", "html", "json")
    option(report, "--format", None, "(default: by FILE's name)", choices=kinds)
    option(report, "--output", "FILE", "instead of standard output")
    option(report, "--since", "TIME", "only the newest samples, such as 30d")
    option(report, "--section", "KEY...", "only this section, such as transients; repeatable")
    series = command(commands, "series", f"{at}.report:series", "analyse a link in time")
    option(series, "--src", "REGION", "region that the link leaves", required=True)
    option(series, "--dst", "REGION", "region that it leads to", required=True)
    metric = "(default aggregate)"
    option(series, "--metric", None, metric, choices=tuple(SERIES), default="aggregate")
    option(series, "--horizon", "TIME", "of the forecast (default 1h)")
    option(series, "--since", "TIME", "only the newest samples, such as 30d")
    purpose = "replay history: what following relayd would have achieved"
    backtest = command(commands, "backtest", f"{at}.backtest:run", purpose)
    add_options(backtest, BacktestRequest)
    option(backtest, "--dask", "ADDRESS", "compute on a running Dask cluster (its scheduler)")


def _last(parser: Parser) -> None:
    option(parser, "--last", "N", "only the newest N (default 20)", type=positive, default=20)


def _deciding(parser: Parser, decision: str) -> None:
    parser.set_defaults(decision=decision)
    option(parser, "--reason", "TEXT", "why, for the record", default="")
    option(parser, "--yes", None, "do not ask")


def _add_samples(views: Any) -> None:
    at = "relayd.cli.data.samples"
    batches = listing(views, "list", f"{at}:batches", "list batches with who sent them")
    contrary = "instead, links whose samples contradict others' and do not count"
    option(batches, "--disputed", None, contrary)
    purpose = "list samples that nothing rests on"
    quarantine = listing(views, "quarantine", f"{at}:apart", purpose)
    states = ("open", "accepted", "rejected")
    which = "of which nothing is decided (the default), or those accepted or rejected"
    option(quarantine, "--state", None, which, choices=states, default="open")
    listing(views, "decisions", f"{at}:list_decisions", "list what was retracted, and so on")
    for view in views.choices.values():
        _last(view)
    for name, purpose in (
        ("retract", "let samples count no longer, after showing what that changes"),
        ("restore", "let retracted samples count again"),
        ("confirm", "let samples count as the own prober's"),
    ):
        chosen = command(views, name, f"{at}:run_decision", purpose)
        option(chosen, "--source", "NAME", "reported by it, as `list --disputed` names it")
        option(chosen, "--token", "NAME", "sent with this token")
        option(chosen, "--address", "IP", "sent from this address")
        option(chosen, "--tool", "NAME", "taken with this tool, of any version")
        option(chosen, "--src", "REGION", "of links out of this region")
        option(chosen, "--dst", "REGION", "of links into this region")
        option(chosen, "--metric", "NAME", "such as aggregate_mbps")
        option(chosen, "--batch", "N", "of this batch (`samples list`)")
        option(chosen, "--since", "TIME", "measured at this time or later, ISO 8601")
        option(chosen, "--until", "TIME", "measured at this time or earlier")
        _deciding(chosen, name)
    for name, purpose in (
        ("accept", "let samples in quarantine count as the own prober's"),
        ("reject", "keep samples in quarantine for good"),
    ):
        chosen = command(views, name, f"{at}:run_on_quarantine", purpose)
        listed = "as `samples quarantine` lists them"
        chosen.add_argument("numbers", metavar="NUMBER", nargs="+", help=listed)
        _deciding(chosen, name)


def _add_transfers(actions: Any) -> None:
    at = "relayd.cli.data.transfers"
    listed = listing(actions, "list", f"{at}:listed", "list transfers, the newest first")
    states = ("in-flight", "finished", "failed", "cancelled")
    only = "only these; in-flight are those that run and those that are silent"
    option(listed, "--state", None, only, choices=states)
    option(listed, "--src", "REGION", "only from this region")
    option(listed, "--dst", "REGION", "only to this region")
    shown = command(actions, "show", f"{at}:shown", "show one transfer")
    alone = "print its plan alone, as JSON for `relayd replan -`"
    option(shown, "--plan", None, alone)
    purpose = "say that a transfer begins; prints its id"
    add_options(command(actions, "begin", f"{at}:begin", purpose), TransferStartRequest)
    progress = command(actions, "progress", f"{at}:progress", "say how far a transfer is")
    add_options(progress, TransferProgressRequest, required=False)
    end = command(actions, "end", f"{at}:end", "say how a transfer ended")
    add_options(end, TransferEndRequest, required=False)
    for parser in (shown, progress, end):
        parser.add_argument("id", metavar="ID", help="as `transfers list` shows it")


def _add_store(chores: Any) -> None:
    at = "relayd.cli.data.store"
    compact = command(chores, "compact", f"{at}:compact", "summarise old samples")
    option(compact, "--older-than", "TIME", "such as 90d; at least a day", required=True)
    period = "that one summary stands for"
    option(compact, "--period", None, period, choices=("hour", "day"), default="hour")
    option(compact, "--files", None, "also samples of imported files, which stay otherwise")
    purpose = "make a snapshot of all samples, trusting no state"
    command(chores, "rebuild", f"{at}:rebuild", purpose)
    command(chores, "check", f"{at}:check", "look for damage of the database and its schema")
    for name, purpose in (
        ("backup", "copy the store into a new file, while in use"),
        ("restore", "make a store of a backup"),
    ):
        parser = command(chores, name, f"{at}:{name}", purpose)
        parser.add_argument("file", metavar="FILE", help="the backup")
    _last(listing(chores, "changes", f"{at}:list_changes", "list who changed what"))


def _add_catalogue(actions: Any) -> None:
    at = "relayd.cli.catalogue"
    show = command(actions, "show", f"{at}.showing:run", "show what is in force, and since when")
    names = "a region, a VM type or an egress price: every figure with its source"
    show.add_argument("names", metavar="NAME", nargs="*", help=names)
    diff = command(actions, "diff", f"{at}.changing:run", "show what an import would change")
    purpose = "lay the prices of files over the catalogue"
    importing = command(actions, "import", f"{at}.changing:run", purpose)
    paths = (
        "price documents, or folders of them: SkyPilot's catalogue, AWS price lists, Azure Retail "
        "Prices pages, Google Cloud SKUs; or quotas as the providers' command lines print them"
    )
    for parser in (diff, importing):
        parser.add_argument("paths", metavar="PATH", nargs="+", help=paths)
        option(parser, "--as-of", "DATE", "of the prices (default: what the documents say)")
    diff.set_defaults(dry_run=True)
    option(importing, "--dry-run", None, "change nothing, as `diff`")
    purpose = "download the providers' public prices and lay them over the catalogue"
    update = command(actions, "update", f"{at}.updating:run", purpose)
    which = "aws, azure or gcp, which wants a key (default: all that can be)"
    option(update, "--provider", "NAME...", which)
    large = "VM prices of this region; needed for AWS, whose lists are large"
    option(update, "--region", "ID...", large)
    option(update, "--url", "BASE", "of a mirror of the provider's server")
    option(update, "--timeout", "TIME", "in all (default 30m)", default="30m")
    option(update, "--dry-run", None, "download, and change nothing else")
    undo = command(actions, "undo", f"{at}.changing:undo", "take the newest import back")
    undo.add_argument("overlay", metavar="NAME", nargs="?", help="this one and all after it")


def add_serving_commands(commands: Any) -> None:
    """Add the commands that run the service, manage its tokens, and help with all others."""
    at = "relayd.cli.serving"
    serve = command(commands, "serve", f"{at}.serve:run", "answer questions over HTTP")
    option(serve, "--config", "FILE", "TOML with a table [serve]")
    where = serve.add_argument_group("where")
    option(where, "--host", "HOST", "address to listen at (default 127.0.0.1)")
    option(where, "--port", "N", "default 8080; 0 takes a free one")
    option(where, "--tls-cert", "FILE", "certificate, with its chain (PEM)")
    option(where, "--tls-key", "FILE", "its key (PEM)")
    proxy = "name of a proxy with TLS in front; allows a public address without TLS"
    option(where, "--behind-proxy", "NAME", proxy)
    option(where, "--insecure-public", None, "allow a public address without TLS")
    reached = "a name by which the service is reached, as localhost and addresses are; repeatable"
    option(where, "--allowed-host", "NAME...", reached, dest="allowed_hosts", default=None)
    how = serve.add_argument_group("how")
    option(how, "--no-auth", None, "need no tokens; on loopback alone")
    option(how, "--workers", "N", "processes for long questions (default: one for each core)")
    option(how, "--fleet", "FILE", "the fleet file of campaigns")
    option(how, "--check", None, "only print the settings and every problem with them")
    mcp = command(commands, "mcp", f"{at}.mcp:run", "answer questions of assistants (MCP)")
    local = "serve HTTP on this machine, with a token; 0 takes a free one"
    option(mcp, "--port", "N", f"{local} (default: standard input and output)")
    option(mcp, "--fleet", "FILE", "the fleet file of forecasts")
    reports = "let assistants report transfers, too; otherwise they only read"
    option(mcp, "--allow-reports", None, reports)
    tokens = group(commands, "token", "manage the tokens of the service", "actions", "ACTION")
    create = command(tokens, "create", f"{at}.token:create", "create a token and print it once")
    create.add_argument("name", help="who or what will use it")
    scopes = "read, plan, ingest, probe or admin; repeatable (default read and plan)"
    option(create, "--scope", "SCOPE...", scopes)
    option(create, "--expires", "TIME", "from now, such as 90d (default: never)")
    usual = "0: no limit (default: as the service is set)"
    option(create, "--requests-per-s", "N", f"that it may send; {usual}")
    option(create, "--max-series", "N", f"metrics of links that it may report; {usual}")
    listing(tokens, "list", f"{at}.token:listing", "list tokens")
    revoke = command(tokens, "revoke", f"{at}.token:revoke", "revoke a token")
    revoke.add_argument("number", help="as `relayd token list` shows it")
    at = "relayd.cli.help"
    purpose = "explain a term of the answers, or an option"
    explain = command(commands, "explain", f"{at}.explain:run", purpose)
    term = "such as aggregate, or margin"
    explain.add_argument("term", metavar="TERM", nargs="*", help=term)
    command(commands, "doctor", f"{at}.doctor:run", "look for what is missing, old or wrong here")
    purpose = "print a script that completes in a shell"
    completion = command(commands, "completion", f"{at}.completion:run", purpose)
    completion.add_argument("shell", choices=SHELLS)
