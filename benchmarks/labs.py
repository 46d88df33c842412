"""Common parts of checks on labs: bringing one up, running commands, and promised figures."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.lab_measuring import running
from benchmarks.table import quantile, write_table
from planner.model.baseline import backbone
from planner.model.errors import RelaydError
from probes.lab.controller import Lab
from probes.lab.profiles import load_profile, topology_of
from probes.lab.topology import Topology, private_address
from relayd.catalogue.files import built_in_folder
from relayd.catalogue.loading import load_catalogue
from tests.http.running import ROOT


class Check:
    """Collects findings and prints them as they come."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str]] = []
        self._held = True

    def at_most(self, what: str, value: float, limit: float, unit: str) -> None:
        """Note a value that must not exceed a limit."""
        self._add(what, f"<= {limit:g} {unit}", f"{value:.3g} {unit}", value <= limit)

    def at_least(self, what: str, value: float, limit: float, unit: str) -> None:
        """Note a value that must reach a limit."""
        self._add(what, f">= {limit:g} {unit}", f"{value:.3g} {unit}", value >= limit)

    def within(self, what: str, value: float, low: float, high: float) -> None:
        """Note a ratio that must lie in a range."""
        self._add(what, f"{low:g} to {high:g}", f"{value:.3f}", low <= value <= high)

    def note(self, what: str, value: float, unit: str) -> None:
        """Note a value without a promise."""
        self._add(what, "", f"{value:.3g} {unit}", held=True)

    def errors(
        self, what: str, found: Sequence[float], most: float | None = None, most_p90: float = 0.0
    ) -> None:
        """Note the median of errors in percent and their 90th percentile, and what is promised."""
        p90 = quantile(found, 0.9)
        if most is None:
            self.note(what, median(found), "%")
        else:
            self.at_most(what, median(found), most, "%")
        if most_p90:
            self.at_most("  90th percentile", p90, most_p90, "%")
        else:
            self.note("  90th percentile", p90, "%")

    def finished(self, docs: str | None, mark: str) -> int:
        """Put what was promised between two marks of a document, if named; return the exit code."""
        if docs:
            page = Path(docs)
            page.write_text(write_table(page.read_text(), mark, list(self._promised())))
        return 0 if self._held else 1

    def _promised(self) -> Iterator[str]:
        """Rows of a document's table; an indented finding is of the last that is not."""
        of = ""
        for what, promised, found in self._rows:
            if not what.startswith(" "):
                of = what.rpartition(": ")[0] or what
            if promised:
                name = f"{of}: {what.strip()}" if what.startswith(" ") else what
                yield f"| {name} | {promised} | {found} |"

    def _add(self, what: str, promised: str, found: str, held: bool) -> None:
        self._rows.append((what, promised, found))
        self._held = self._held and held
        mark = "" if held else "   NOT HELD"
        print(f"{what:<62} {promised:>12}  {found:>14}{mark}", flush=True)


def checked(name: str, docs: str | None, measure: Callable[[Check, Path], None]) -> int:
    """Measure, print the findings, and return the exit code.

    Parameters
    ----------
    name : str
        Of the check, such as ``campaign-check``.
    docs : str | None
        A document whose marks get the table.
    measure : callable
        Takes the check and a folder that is removed at the end.
    """
    print(f"{platform.system()} {platform.release()}, {os.cpu_count()} processors\n")
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        try:
            measure(check, Path(folder))
        except RelaydError as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 1
    return check.finished(docs, name)


@contextmanager
def lab_of(topology: Topology) -> Iterator[Lab]:
    """Bring up a lab for a ``with`` block."""
    lab = Lab(f"benchmark-{os.getpid()}")
    lab.up(topology, ends_with_caller=True)
    try:
        yield lab
    finally:
        lab.down()


def topology_like(
    name: str,
    regions: Sequence[str] | int | None = None,
    scale: float | None = None,
    **vm_types: str,
) -> Topology:
    """Return the topology of a profile that comes with relayd, with other VM types if named."""
    profile = load_profile(built_in_folder() / f"lab-{name}.toml")
    profile = profile.model_copy(update={"vm_types": {**profile.vm_types, **vm_types}})
    return topology_of(profile, load_catalogue(), backbone.rtt_ms, regions=regions, scale=scale)


def run(*words: object, allowed: Sequence[int] = (0,)) -> dict[str, Any]:
    """Run the command line with ``--json``; progress goes where ours does."""
    done = subprocess.run(
        [sys.executable, "-m", "relayd", *map(str, words), "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode not in allowed:
        raise RelaydError(f"`relayd {' '.join(map(str, words))}` exited with {done.returncode}.")
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def relayed_mbps(
    lab: Lab, path: Sequence[int], flows: int, seconds: float = 6.0, omitted_s: int = 3
) -> float:
    """Return the goodput from the first to the last of three sites, through socat on the second."""
    src, relay, dst = (lab.topology().sites[i].region for i in path)
    onward = f"TCP:{private_address(path[2])}:5201"
    split = ["socat", "-d", "-d", "TCP-LISTEN:5301,fork,reuseaddr", onward]
    ask = ["iperf3", "-c", private_address(path[1]), "-p", "5301", "-J", "-t", f"{seconds:g}"]
    with (
        running(lab, relay, split, until="listening"),
        running(lab, dst, ["iperf3", "-s", "-1", "--forceflush"], until="listening"),
        running(lab, src, [*ask, "-O", str(omitted_s), "-P", str(flows)]) as client,
    ):
        text, _ = client.communicate(timeout=seconds + 110)
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 1e6
