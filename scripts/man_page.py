"""Writes the manual page ``relayd.1`` from the parser: a build hook of hatchling for the wheel.

The parser imports what relayd depends on, and finds the questions by entry points. A release is
built where relayd is installed, and has the page; a build in isolation, as `pip install .` makes
it, goes without.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from argparse_manpage.manpage import Manpage
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "share/man/man1/relayd.1"
NAME = r"relayd \- direct or relayed? Recommends how to move data between datacenters"


class ManPageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the page to a wheel."""

    PLUGIN_NAME = "custom"
    _folder: TemporaryDirectory[str] | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the page of the tree that is being built."""
        if not entry_points(group="relayd.questions"):
            return
        sys.path.insert(0, self.root)
        os.environ["COLUMNS"] = "100"  # where usage lines break, whatever terminal this runs in
        self._folder = TemporaryDirectory()
        page = Path(self._folder.name, "relayd.1")
        page.write_text(man_page(), encoding="utf-8")
        build_data["shared_data"][str(page)] = PLACE

    def finalize(self, version: str, build_data: dict[str, Any], path: str) -> None:
        """Remove the page: the wheel has it."""
        if self._folder is not None:
            self._folder.cleanup()


def man_page() -> str:
    """Return the page, in roff; its date is ``SOURCE_DATE_EPOCH``, or today."""
    from relayd.cli.commands import build_parser
    from relayd.version import __version__

    page = str(Manpage(build_parser()))
    page = re.sub("^'", r"\&'", page, flags=re.MULTILINE)  # else roff takes the line for a request
    page = page.replace('"Generated Python Manual"', f'"relayd {__version__}"', 1)
    return page.replace(".SH NAME\nrelayd\n", f".SH NAME\n{NAME}\n", 1)
