"""All commands with their options, and the words of a command line that are read by them.

:mod:`relayd.cli.parser` says how they are written. Those that ask questions have theirs from the
questions.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any

from planner.model.errors import InputError
from planner.transfer.request import TransferRequest
from probes.importers.kinds import GROUP as IMPORTERS
from probes.plugins import names
from relayd.backtesting.request import BacktestRequest
from relayd.cli.parser import DATA, Parser, add_commands
from relayd.cli.questions.options import add_fields, add_question_commands
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)

FIRST = """\
A first question, which needs no measurement and no account:

  relayd plan us-east sa --volume 500GB
"""
_LISTING = """
  --format {table,csv,json,parquet}  (default: by FILE's name)
  --output FILE        instead of standard output
"""
_SELECTION = """
  --source NAME        reported by it, as `list --disputed` names it
  --token NAME         sent with this token
  --address IP         sent from this address
  --tool NAME          taken with this tool, of any version
  --src REGION         of links out of this region
  --dst REGION         of links into this region
  --metric NAME        such as aggregate_mbps
  --batch N            of this batch (`samples list`)
  --since TIME         measured at this time or later, ISO 8601
  --until TIME         measured at this time or earlier
"""
_DECIDING = """
  --reason TEXT        why, for the record
  --yes                do not ask
"""
_FLEET = """
  --fleet FILE         the fleet file (default: RELAYD_FLEET)
"""
_PRICES = """
  paths:PATH+          documents: SkyPilot's catalogue, AWS, Azure and Google Cloud prices;
                       or quotas as the providers' command lines print them
  --as-of DATE         of the prices (default: what the documents say)
"""
_BLOCKS = {
    "data": DATA,
    "listing": _LISTING,
    "last": f"{_LISTING}  --last N:count:=20  only the newest N (default 20)",
    "selection": _SELECTION + _DECIDING,
    "numbers": f"  numbers:NUMBER+  as `samples quarantine` lists them{_DECIDING}",
    "id": "  id:ID  as `transfers list` shows it",
    "backup": "  file:FILE  the backup",
    "prices": _PRICES,
    "fleet": _FLEET,
    "asking": f"{_FLEET}  --yes  answer yes to all questions",
    "pairs": "  * --pairs SRC>DST...  only these; `*` is every host; repeatable",
    "setting": "  settings:NAME=VALUE+  such as loss_pct=1 or state=blackhole; `default` undoes it",
}
_DATA_COMMANDS = """
import  import measurements
  +importers
  * --src REGION         sending region, for files that name none (iperf3: the client's)
  * --dst REGION         receiving region, for files that name none
  --src-vm TYPE        VM type at the source
  --dst-vm TYPE        VM type at the destination
  * --measured-at TIME   ISO 8601, for files without times (default: the file's modification time)
  --connections N      if the file does not say
  --address {public,private}  kind of address measured over (default public)
  --hosts {tuned,as they come}  whether TCP windows were raised, if the file does not say
  --duration TIME      if the file does not say
  * --columns NAME=COLUMN,...  of CSV or JSON rows: columns that have other names, such as
                       src=srcRegion,per_flow_mbps=received_mbps
  * --provider PROVIDER  of CSV or JSON rows, series and graphs: that of regions written without one
  --labels NAME=LABEL,...  of any series of Prometheus: what its labels mean, such as
                       src=source,dst=target
  * --metric NAME        a CSV file is a matrix of this figure, such as rtt_ms: sources to the left,
                       destinations above; of series of Prometheus and esmond, what their values are
  --tier NAME...       network tiers to keep of Skyplane files (default PREMIUM); repeatable
  --force              keep rows that fail a plausibility check
  --newest             of a Parquet data set, only the newest 256 samples of a series
  --trust              use also what can't be: above a card's rate, faster than light, in the future
data COMMAND  list what is known, and look after it
data regions  list regions and aliases
  +listing
  rules:RULE*          only these: a region, an alias, a city, or a pattern such as gcp:us-*
  --provider NAME...   only of this provider
  --country CODE...    only in this country, such as BR
data vm-types  list VM types
  +listing
  names:TYPE*          only these: how names begin, such as c7gn
  --provider NAME...   only of this provider
  --min-gbps N         only those that send that much to other clouds, each
  --min-vcpus N        only those with that many vCPUs
data links  list links with estimates
  +listing
  --src REGION         only links out of this region
  --dst REGION         only links into this region
data matrix  print one figure for all pairs
  +listing
  --metric {per-flow,aggregate,rtt,fee,relay-gain,loss,age}:=aggregate  the figure (default
                       aggregate)
  --connections N      for relay-gain: TCP connections a VM (default 64)
  --measured           only regions whose throughput was measured
  --summary            by pair of providers instead of by region
data export  export the graph, or all samples
  what:{graph,samples}
  --format {json,csv,graphml,adjacency,node-link,parquet}  of a graph (default json)
  --output FILE        instead of standard output; of samples, a new folder
  --since TIME         only samples measured at it or later
data doctor  look for what is missing, old or wrong here
data samples COMMAND  show who sent samples, and which do not count; retract and restore them
data samples list  list batches with who sent them
  +last
  --disputed           instead, links whose samples contradict others' and do not count
data samples quarantine  list samples that nothing rests on
  +last
  --state {open,accepted,rejected}:=open  default: those to decide on
data samples decisions  list what was retracted, and so on
  +last
data samples retract  retract samples, after showing what that changes
  +selection
data samples restore  let retracted samples count again
  +selection
data samples confirm  let samples count as the own prober's
  +selection
data samples accept  let samples in quarantine count
  +numbers
data samples reject  keep samples in quarantine for good
  +numbers
transfers list  list transfers, the newest first
  +listing
  --state {in-flight,ended,finished,failed,cancelled}  in-flight: running or silent
  --src REGION         only from this region
  --dst REGION         only to this region
  --pools              list what they hold of pools, quotas and interconnects instead
transfers show  show one transfer
  +id
  --plan               print its plan alone, as JSON for `relayd transfers replan -`
transfers begin  say that a transfer begins; prints its id
transfers progress  say how far a transfer is
  +id
transfers end  say how a transfer ended
  +id
transfers follow  run rclone at the rate that its transfer is told, and report it
  +id
  words:-- COMMAND*    such as rclone copy SRC DST
data store COMMAND  look after the store
data store compact  summarise old samples
  --older-than TIME!   such as 90d; at least a day
  --period {hour,day}:=hour  that one summary stands for
  --files              also samples of imported files, which stay otherwise
data store rebuild  make a snapshot of all samples, trusting no state
data store check  look for damage of the database and its schema
data store backup  copy the store into a new file, while in use
  +backup
data store restore  make a store of a backup
  +backup
data store changes  list who changed what
  +last
data catalogue COMMAND  show and refresh the prices
data catalogue show  show what is in force, and since when
  names:NAME*          a region, a VM type or an egress price: every figure with its source
data catalogue diff  show what an import would change
  +prices
data catalogue import  lay the prices of files over the catalogue
  +prices
  --dry-run            change nothing, as `diff`
data catalogue update  download prices and lay them over the catalogue
  --provider NAME...   aws, azure or gcp, which wants a key (default: all that can be)
  --region ID...       VM prices of this region; needed for AWS, whose lists are large
  --url BASE           of a mirror of the provider's server
  --timeout TIME:=30m   in all (default 30m)
  --dry-run            download, and change nothing else
data catalogue undo  take the newest import back
  overlay:NAME?        this one and all after it
"""
_MEASURING_COMMANDS = """
probe  measure with the fleet
  +asking
  [what to measure]
  +pairs
  * --phases LIST        of rtt,per-flow,aggregate,caps (default all)
  * --thorough           all pairs
  * --connections N      TCP connections of a pair (default: as many as saturate it, at most 64)
  --ramp               try 1, 2, 4, ... connections on every pair, not once a kind of sender
  --flow-time TIME     of a one-flow probe (default 10s)
  --aggregate-time TIME  of a many-flow probe (default 5s)
  --full-time          end no one-flow probe early, to see late changes
  --udp                measure UDP capacity too, after each many-flow probe
  --udp-rates N:int:=1  offer UDP at so many growing rates, 8 at least: what arrives of what is sent
  --udp-packet BYTES:int:=0  payload of a UDP packet; longer than the path takes, it is fragmented
  --trace              trace the hops of each route too
  --addresses {public,private,private-within-provider}  (default: the fleet file's)
  [TCP]
  --tcp-window SIZE    to ask for, such as 8M
  --congestion-control NAME  to ask for, such as cubic
  --change-sysctls     change, as root and for the campaign only, what a socket can't ask for
  [limits]
  * --dry-run            only show what it would take
  * --budget USD         most to spend on egress, such as 5usd
  * --max-minutes N      start nothing that would end later
  --parallel N         most bandwidth probes at a time
  * --resume             resume an interrupted campaign
measure COMMAND  look after hosts, verify plans, watch links, emulate
measure fleet COMMAND  look after the hosts that measure
measure fleet check  test every host at once
  +asking
  --trust-new          show the keys of hosts that have none on record, ask, and store them
  --install-tools      offer to install missing tools by the host's package manager
measure fleet caps  show slow VMs that may be worth recreating
measure verify  run plans briefly, and compare
  plans:PLAN*          plans as printed with --json, - reads one; or --src and --dst
  +asking
  [limits of the verification]
  --dry-run            only show what it would take
  --seconds N          measured seconds of each run (default 10)
  --max-gb N           most GB to send for a plan, over all links
  --budget USD@max_usd  most egress fees for a plan, such as 1usd
measure watch  watch a fleet continuously
  +fleet
  --dry-run            only show what a campaign that is due would take, at most
  --webhook URL        called when links fail or recover, signed by RELAYD_WEBHOOK_SECRET
  [what to watch]
  --interval TIME      time within which to notice an outage (default 30s)
  +pairs
  --hold N             intervals that a link must be well before it is used again (default 5)
  [limits]
  --daily-budget USD!  most egress of a UTC day, as 2usd
  --campaign-every TIME  age at which a campaign is due, or never (default 7d)
  --regret SHARE       measure, day by day, what keeps the expected regret below this, such as 8%
  --quiet-hours FROM-TO  UTC hours without throughput probes: 22:00-06:00
  --retain TIME        age at which samples are summarised, or never (90d)
"""
_LAB_COMMANDS = """
measure lab COMMAND  emulate datacenters on this machine, to try and to test
measure lab up  bring a lab up and write its fleet file
  --regions N|LIST     how many, or which (comma-separated)
  --profile NAME|FILE  paper, skyplane-2022 or a TOML file (default paper)
  --scale X            what caps and windows are multiplied by
  --from-store         emulate what was measured instead of a profile
  +data
measure lab status  show the labs that run, or one of them
measure lab exec  run a command in a region
  region:              region id, such as aws:us-east-1
  words:-- COMMAND*    what to run
measure lab set COMMAND  change how hosts and links behave, while they run
measure lab set host  one host, or all
  region:              region id, or all
  +setting
measure lab set link  the link between two hosts
  src:                 region id, or all
  dst:                 region id, or all
  --one-way            only from the first to the second
  +setting
measure lab set clear  undo all settings
measure lab down  take a lab down and remove its leftovers
  --all                every lab of this user
"""
_OF_LAB = """
  --name NAME          which lab (default lab)
  --json               print JSON
"""
_SERVING_COMMANDS = """
study COMMAND  analyse and replay what was measured
study report  analyse all samples with the methods of measurement papers
  --format {md,html,json}  (default: by FILE's name)
  --output FILE        instead of standard output
  --since TIME         only the newest samples, such as 30d
  --section KEY...     only this section, such as transients; repeatable
study series  analyse a link in time
  --src REGION!        region that the link leaves
  --dst REGION!        region that it leads to
  --metric {per-flow,aggregate,udp,rtt,loss,jitter}:=aggregate  (default aggregate)
  --horizon TIME       of the forecast (default 1h)
  --since TIME         only the newest samples, such as 30d
study bill  compare what traffic cost by a bill with prices and other ways
  +listing
  file:FILE            AWS's CUR, Azure's cost export or Google Cloud's billing export; CSV or JSON
                       lines, as they are or compressed with gzip; - is standard input; a
                       name such as bill.html for --output has a chart
study backtest  replay history: what following relayd would have achieved
  --dask ADDRESS       compute on a running Dask cluster (its scheduler)
serve  answer questions over HTTP
  * --config FILE        TOML with a table [serve]
  [where]
  * --host HOST          address to listen at (default 127.0.0.1)
  * --port N             default 8080; 0 takes a free one
  * --tls-cert FILE      certificate, with its chain (PEM)
  * --tls-key FILE       its key (PEM)
  --behind-proxy NAME  name of a proxy with TLS in front; allows a public address without TLS
  --insecure-public    allow a public address without TLS
  --allowed-host NAME...@allowed_hosts  name by which the service is reached, as localhost and
                       addresses are; repeatable
  [how]
  * --no-auth            need no tokens; on loopback alone
  --workers N          processes that answer questions (default: one for each core)
  * --fleet FILE         the fleet file of campaigns
  * --check              only print the settings and every problem with them
serve mcp  answer questions of assistants (MCP)
  --port N             serve HTTP here, with a token; 0 takes a free one (default: standard input)
  --fleet FILE         the fleet file of forecasts
serve token COMMAND  manage the tokens of the service
serve token create  create a token and print it once
  name:                who or what will use it
  --scope SCOPE...     read, plan, ingest, probe or admin; repeatable (default read and plan)
  --expires TIME       from now, such as 90d (default: never)
  --requests-per-s N   that it may send; 0: no limit (default: as the service is set)
  --max-series N       metrics of links that it may report; 0: no limit (default: the service's)
serve token list  list tokens
  +listing
serve token revoke  revoke a token
  number:              as `relayd serve token list` shows it
help  explain a term of the answers, or an option
  term:TERM*           such as aggregate, or margin
"""
_VERIFY_EXIT_CODES = (
    "Exit codes: 0 all was as predicted, 1 something was outside of its bounds, 5 something "
    "could not be run; otherwise as everywhere."
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; ``command`` of the result has the words of its command.

    Raises an InputError if a word is wrong, or one is missing.
    """
    parser = build_parser()
    runs = [*words[:3]] == ["measure", "lab", "exec"] or [*words[:2]] == ["transfers", "follow"]
    if runs and "--" in words:  # another program's
        at = [*words].index("--")
        options = parser.parse([*words[:at]])
        options.words = [*words[at + 1 :]]
        return options
    joined: list[str] = []
    for word in words:
        # argparse before Python 3.13 makes an empty list of this (python/cpython#59317).
        if re.fullmatch(r"--[\w-]+=--", word):
            raise InputError(word.partition("=")[0], "`--` is not a value")
        # `--volume -5GB` is an option with its value, which gets a real answer.
        if re.match(r"-[\d.]", word) and joined and re.fullmatch(r"--[\w-]+|-[a-z]", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return parser.parse(joined)


def build_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(
        prog="relayd",
        description="Direct or relayed? Measures bandwidth between cloud datacenters and "
        "recommends transfer plans, with the reason, the price and the confidence.",
        epilog="Exit codes: 0 done, 2 bad input, 3 no feasible plan, 4 data missing or too old, "
        "5 finished in part, 1 internal error.",
    )
    parser.add_argument(  # answered by :mod:`relayd.cli.running`, before this is built
        "--version", action="store_true", help="show program's version number and exit"
    )
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=("bash", "zsh", "fish", "tcsh"),
        help="print a script that completes in this shell",
    )
    known = parser.known
    known[""] = parser
    add_question_commands(known)
    formats = f"  files:FILE+  before them, if need be, their format: {', '.join(names(IMPORTERS))}"
    add_commands(known, _DATA_COMMANDS, {**_BLOCKS, "importers": formats})
    add_commands(known, _MEASURING_COMMANDS, _BLOCKS)
    add_commands(known, _LAB_COMMANDS, _BLOCKS, common=_OF_LAB)
    add_commands(known, _SERVING_COMMANDS, _BLOCKS)
    add_fields(known["study backtest"], BacktestRequest)
    add_fields(known["transfers begin"], TransferStartRequest)
    add_fields(known["transfers progress"], TransferProgressRequest, required=False)
    add_fields(known["transfers end"], TransferEndRequest, required=False)
    of_plan = {"budget_usd": "--plan-budget"}
    add_fields(known["measure verify"], TransferRequest, required=False, renamed=of_plan)
    known["measure verify"].epilog = _VERIFY_EXIT_CODES
    known["data catalogue diff"].set_defaults(dry_run=True)
    for decision in ("retract", "restore", "confirm", "accept", "reject"):
        known[f"data samples {decision}"].set_defaults(decision=decision)
    for listed in parser.listed:  # a group's line has its commands
        if verbs := ", ".join(known[listed.dest].commands):
            listed.help = f"{listed.help}: {verbs}"
    return parser


class _PrintCompletion(argparse.Action):
    """Print a shell's script, and leave."""

    def __call__(self, parser: Any, _namespace: Any, values: Any, _option: Any = None) -> None:
        from argcomplete.shell_integration import shellcode

        print(shellcode(["relayd"], shell=values))
        parser.exit()


def introduction() -> str:
    """Return the text for a command line without words."""
    return f"{build_parser().format_help()}\n{FIRST}"
