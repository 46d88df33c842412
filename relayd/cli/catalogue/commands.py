"""The commands that show the catalogue and refresh its prices."""

from __future__ import annotations

import argparse
from typing import Any

from relayd.cli.parser import command, group


def add_catalogue_commands(commands: Any) -> None:
    """Add ``relayd catalogue`` and its actions."""
    actions = group(commands, "catalogue", "show and refresh the prices", "actions", "ACTION")
    show = command(
        actions, "show", "relayd.cli.catalogue.showing:run", "show what is in force, and since when"
    )
    show.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="a region, a VM type or an egress price: every figure with its source",
    )
    diff = command(
        actions, "diff", "relayd.cli.catalogue.changing:diff", "show what an import would change"
    )
    _documents(diff)
    importing = command(
        actions,
        "import",
        "relayd.cli.catalogue.changing:run_import",
        "lay the prices of files over the catalogue",
    )
    _documents(importing)
    importing.add_argument("--dry-run", action="store_true", help="change nothing, as `diff`")
    update = command(
        actions,
        "update",
        "relayd.cli.catalogue.updating:run",
        "download the providers' public prices and lay them over the catalogue",
    )
    update.add_argument(
        "--provider",
        metavar="NAME",
        action="append",
        default=[],
        help="aws, azure or gcp, which wants a key (default: all that can be)",
    )
    update.add_argument(
        "--region",
        metavar="ID",
        action="append",
        default=[],
        help="VM prices of this region; needed for AWS, whose lists are large",
    )
    update.add_argument("--url", metavar="BASE", help="of a mirror of the provider's server")
    update.add_argument("--timeout", metavar="TIME", default="30m", help="in all (default 30m)")
    update.add_argument("--dry-run", action="store_true", help="download, and change nothing else")
    undo = command(
        actions, "undo", "relayd.cli.catalogue.changing:undo", "take the newest import back"
    )
    undo.add_argument("overlay", metavar="NAME", nargs="?", help="this one and all after it")


def _documents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="price documents, or folders of them: SkyPilot's catalogue, AWS price lists, Azure "
        "Retail Prices pages, Google Cloud SKUs; or quotas as the providers' command lines print "
        "them",
    )
    parser.add_argument(
        "--as-of", metavar="DATE", help="of the prices (default: what the documents say)"
    )
