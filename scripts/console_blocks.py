"""Runs the commands shown in the docs: ``python -m scripts.console_blocks`` writes their output.

With names of pages (``docs/emit.md``), of those alone.

A fenced block marked ``console`` holds commands after ``$ `` and what they print. Commands run
in a temporary folder with ``examples``; ``../shared/data`` there is the folder of shared
measurements, and blocks that need it are left alone where there is none. ``tests/test_docs.py``
holds the docs to this.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHARED = "../shared/data"


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    text: str

    @property
    def needs_shared_data(self) -> bool:
        """Return whether a command reads the shared measurements or a store made of them."""
        return SHARED in self.text or ("grid.db" in self.text and self.page != PAGES[0])

    @property
    def commands(self) -> list[str]:
        """The commands of the block."""
        joined = self.text.replace("\\\n", "")
        return [line[2:] for line in joined.splitlines() if line.startswith("$ ")]


def blocks(page: Path) -> Iterator[Block]:
    """Iterate over the console blocks of a page."""
    for match in BLOCK.finditer(page.read_text()):
        yield Block(page, match[1])


class Shell:
    """A folder in which a page's commands run one after another, away from the user's files.

    Parameters
    ----------
    folder : Path
    shared_data : Path, optional
    cache : Path, optional
        Where what they compile is kept, in place of the folder.
    """

    def __init__(self, folder: Path, shared_data: Path | None, cache: Path | None = None) -> None:
        self._folder = folder / "work"
        self._folder.mkdir()
        (self._folder / "examples").symlink_to(ROOT / "examples")
        if shared_data:
            (folder / "shared").mkdir()
            (folder / "shared" / "data").symlink_to(shared_data)
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("RELAYD_")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(cache or folder / "cache"),
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
        }

    def output(self, block: Block) -> str:
        """Run a block's commands and return it with their output."""
        lines = block.text.splitlines(keepends=True)
        shown: list[str] = []
        command = ""
        for line in lines:
            if line.startswith("$ ") or (command.endswith("\\\n")):
                command += line
                shown.append(line)
                if not line.endswith("\\\n"):
                    shown.append(self._run(command[2:]))
                    command = ""
        return "".join(shown)

    def _run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout


def main() -> None:
    """Rewrite the blocks of pages with the current output of their commands."""
    parser = argparse.ArgumentParser(description="Rewrite what the commands in the docs print.")
    parser.add_argument("pages", metavar="PAGE", nargs="*", type=Path, help="only these")
    pages = [page.resolve() for page in parser.parse_args().pages] or PAGES
    if not Path(sys.executable).with_name("relayd").exists():
        parser.error(f"install relayd beside {sys.executable} first: `make dev`")
    shared_data = ROOT.parent / "shared" / "data"
    for page in pages:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder:
            shell = Shell(Path(folder), shared_data if shared_data.exists() else None)
            for block in blocks(page):
                if block.needs_shared_data and not shared_data.exists():
                    continue
                output = shell.output(block)
                text = text.replace(f"```console\n{block.text}```", f"```console\n{output}```")
        page.write_text(text)


if __name__ == "__main__":
    main()
