"""Run all of it, or some: ``python -m benchmarks.chaos [WHAT...] [--kills N] [--tries N]``.

``soak`` (``make soak``) runs two replicas behind pgbouncer and a proxy for ``--minutes``, asks and
feeds them, breaks their way to the database again and again, and watches their memory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import get_args

from benchmarks.chaos import builds, kills, proxied, takeovers
from tests.postgresql import running_server

MOST_AGAIN_S = 15.0
"""Until another service probes, or services behind a broken way to the database are whole."""
MOST_GROWTH = 0.03
JUDGED_FROM_MIN = 12.0
"""In less, memory is reported and not judged: caches still fill, and modules are loaded."""
ON_STORES: Mapping[str, Callable[[str, Path, int], kills.Outcome]] = {
    "service": kills.kill_services,
    "import": kills.kill_imports,
    "build": builds.kill_builds,
}
ENGINES = ("sqlite", "postgresql")
KILLS = tuple(f"{what}-{engine}" for what in ON_STORES for engine in ENGINES)
TAKEOVERS: tuple[takeovers.Kind, ...] = get_args(takeovers.Kind)


def main() -> int:
    """Run it and print the results; 1 if anything was wrong."""
    everything = (*KILLS, "database", *TAKEOVERS, "soak")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="*", default="all", choices=("all", *everything))
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--tries", type=int, default=10, help="of each way to take over")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the soak")
    options = parser.parse_args()
    wrong: list[str] = []
    for name in everything if "all" in options.what else options.what:
        if name in TAKEOVERS:
            lines, found = told(seen := takeovers.take_over(name, options.tries), MOST_AGAIN_S)
            lines.append(
                f"{seen.pings} pings for ${seen.sent_usd:.7f}, ${seen.spent_usd:.7f} spent"
            )
        elif name == "soak":
            lines, found = soak_told(proxied.soak(options.minutes), options.minutes)
        else:
            lines, found = told(killed(name, options.kills), kills.AGAIN_S)
        print(f"{name}: {lines[0]}", *(f"  {line}" for line in lines[1:]), sep="\n")
        print(*(f"  WRONG: {problem}\n" for problem in found), sep="", end="", flush=True)
        wrong += found
    return 1 if wrong else 0


def killed(name: str, count: int) -> kills.Outcome:
    """Kill so many times, in a store of its own."""
    what, _, engine = name.partition("-")
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as folder:
        if engine == "sqlite":
            return ON_STORES[what](f"{folder}/relayd.db", Path(folder), count)
        with running_server() as server:
            if what == "database":
                return kills.kill_databases(server, Path(folder), count)
            return ON_STORES[what](server.new_store(), Path(folder), count)


def told(seen: kills.Outcome, most_s: float) -> tuple[list[str], list[str]]:
    """Return a summary and the errors."""
    text = f"{seen.kills} kills, {seen.acknowledged} acknowledged, {seen.unavailable} times 503"
    if seen.again_s:
        text += f", again after {median(seen.again_s):.1f} s, at most {max(seen.again_s):.1f} s"
    late = [f"again after {s:.1f} s" for s in seen.again_s if s > most_s]
    return [text], [*seen.wrong, *late]


def soak_told(seen: proxied.Soaked, minutes: float) -> tuple[list[str], list[str]]:
    """Return a summary with a line for each kind of fault and replica, and the errors."""
    (first,), wrong = told(seen, MOST_AGAIN_S)
    lines = [f"{seen.plans} plans, {seen.further} further answers, {first}"]
    for kind, took in sorted(seen.heals_s.items()):
        healed = f"healed after {median(took):.1f} s, at most {max(took):.1f} s"
        lines.append(f"{len(took)} times {kind}: {healed}")
    for memory, grown in zip(seen.memory_mb, seen.grown, strict=True):
        every = [sum(processes.values()) for _, processes in memory][:: max(1, len(memory) // 6)]
        lines.append(f"memory {', '.join(f'{mb:.0f}' for mb in every)} MB: {grown:+.1%}")
    most = MOST_GROWTH if minutes >= JUDGED_FROM_MIN else float("inf")
    much = [f"memory grew by {grown:.1%}" for grown in seen.grown if grown > most]
    return lines, [*wrong, *much]


if __name__ == "__main__":
    sys.exit(main())
