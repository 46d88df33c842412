"""``relayd completion``: scripts that complete commands and options in a shell."""

from __future__ import annotations

import argparse

import shtab

from relayd.cli.parser import build_parser


def run(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print(shtab.complete(build_parser(), options.shell))
    return 0
