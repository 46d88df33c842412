"""The options of ``relayd import``, apart from those of other commands: it loads none of these."""

from __future__ import annotations

from typing import Any

from relayd.cli.command import command
from relayd.cli.flags import flags

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
