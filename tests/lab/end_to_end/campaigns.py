"""Running campaigns on a lab as a user would, and reading what they kept."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from probes.lab.controller import Lab
from tests.http.running import run

ROOT = Path(__file__).parents[3]
RELAYD = [sys.executable, "-m", "relayd"]
TOOLS = ("iperf3", "ping", "traceroute", "timeout", "haproxy", "socat", "head")


def relayd(*words: str | Path, db: Path) -> subprocess.CompletedProcess[str]:
    """Run a command on a store, in this process."""
    return run(*map(str, words), db=db)


def probe(fleet: Lab | Path, db: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Run a campaign, asked for by texts of words; returns the exit code and the report."""
    file = fleet.fleet_file if isinstance(fleet, Lab) else fleet
    asked = " ".join(words).split()
    done = relayd("probe", "--fleet", file, "--json", "--yes", *asked, db=db)
    assert done.returncode in (0, 5), done.stderr
    return done.returncode, json.loads(done.stdout)


def kept(db: Path, metric: str) -> list[tuple[str, str, float, int | None, dict[str, Any]]]:
    """Source, destination, value, connections and detail of each sample of a metric.

    The detail has its kind of address and its number of intervals, too.
    """
    query = (
        "SELECT src, dst, value, connections, detail, address, intervals "
        "FROM measurements WHERE metric = ? ORDER BY id"
    )
    with closing(sqlite3.connect(db)) as connection:
        return [
            (*figures, {**json.loads(detail or "{}"), "address": address, "intervals": intervals})
            for *figures, detail, address, intervals in connection.execute(query, (metric,))
        ]


def in_site(lab: Lab, region: str, *words: str) -> str:
    """Return the output of a command in a site."""
    return subprocess.run(
        lab.command(region, list(words)), capture_output=True, text=True, check=True
    ).stdout


def left_on(lab: Lab, region: str) -> list[str]:
    """Names of tools that run in a site, files of ours in it, and ports besides that of SSH."""
    script = (
        "for p in /proc/[0-9]*; do cat $p/comm; done; ls -d /tmp/relayd-*; "
        "cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == \"0A\" {print $2}'"
    )
    listed = in_site(lab, region, "sh", "-c", f"{{ {script}; }} 2>/dev/null; true").split()
    return [
        word
        for word in listed
        if word in TOOLS
        or word.startswith("/tmp/relayd")
        or (":" in word and not word.endswith(":0016"))
    ]
