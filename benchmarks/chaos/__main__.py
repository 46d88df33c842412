"""Run all of it, or some: ``python -m benchmarks.chaos [WHAT...] [--kills N] [--tries N]``.

``soak`` runs two replicas behind pgbouncer and a proxy for ``--minutes`` (60 by default).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import count as count_up
from pathlib import Path
from statistics import median
from typing import get_args

from benchmarks.chaos import builds, kills, proxied, takeovers
from tests.postgresql import running_server

MOST_TAKEOVER_S = MOST_HEALING_S = 15.0
MOST_GROWTH = 0.03
ON_STORES: Mapping[str, Callable[[str, Path, int], kills.Killed]] = {
    "service": kills.kill_services,
    "import": kills.kill_imports,
    "build": builds.kill_builds,
}
KILLS = (
    *(
        f"{what}-{engine}"
        for what in (*ON_STORES, "creation")
        for engine in ("sqlite", "postgresql")
    ),
)
TAKEOVERS: tuple[takeovers.Kind, ...] = get_args(takeovers.Kind)


def main(words: Sequence[str] | None = None) -> int:
    """Run it and print the results; 1 if anything was wrong."""
    everything = (*KILLS, "database", *TAKEOVERS, "soak")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(everything)}")
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--tries", type=int, default=10, help="of each way to take over")
    parser.add_argument("--minutes", type=float, default=60.0, help="of the soak")
    options = parser.parse_args(words)
    if unknown := set(options.what) - set(everything):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    wrong: list[str] = []
    for name in options.what or everything:
        if name in TAKEOVERS:
            said, found = takeover_text(takeovers.take_over(name, options.tries))
        elif name == "soak":
            said, found = soaked_text(proxied.soak(options.minutes))
        else:
            said, found = killed_text(killed(name, options.kills))
        print(
            f"{name}: {said}", *(f"  WRONG: {problem}" for problem in found), sep="\n", flush=True
        )
        wrong += found
    return 1 if wrong else 0


def killed(name: str, count: int) -> kills.Killed:
    """Kill so many times, in a store of its own."""
    what, _, engine = name.partition("-")
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as folder:
        if engine == "sqlite" and what == "creation":
            return builds.kill_creations((f"{folder}/{n}.db" for n in count_up()), count)
        if engine == "sqlite":
            return ON_STORES[what](f"{folder}/relayd.db", Path(folder), count)
        with running_server() as server:
            if what == "creation":
                places = (server.url(server.new_database()) for _ in count_up())
                return builds.kill_creations(places, count)
            if what == "database":
                return kills.kill_databases(server, Path(folder), count)
            return ON_STORES[what](server.new_store(), Path(folder), count)


def killed_text(seen: kills.Killed) -> tuple[str, list[str]]:
    """Return a summary in one line, and the errors."""
    text = f"{seen.kills} kills, {seen.acknowledged} acknowledged, {seen.unavailable} times 503"
    if seen.again_s:
        text += f", again after {median(seen.again_s):.1f} s, at most {max(seen.again_s):.1f} s"
    return text, seen.wrong


def takeover_text(seen: takeovers.TakenOver) -> tuple[str, list[str]]:
    """Return a summary in one line, and the errors."""
    took = seen.took_s
    text = (
        f"{len(took)} times taken over after {median(took):.1f} s, at most {max(took):.1f} s; "
        f"{seen.samples.acknowledged} samples acknowledged, {seen.samples.unavailable} times 503; "
        f"{seen.pings} pings for ${seen.sent_usd:.7f}, ${seen.spent_usd:.7f} spent"
    )
    return text, [
        *seen.wrong,
        *(f"taken over after {s:.1f} s" for s in took if s > MOST_TAKEOVER_S),
    ]


def soaked_text(seen: proxied.Soaked) -> tuple[str, list[str]]:
    """Return a summary with a line for each kind of fault and replica, and the errors."""
    lines = [
        f"{seen.plans} plans, {seen.further} further answers, {seen.samples.acknowledged} samples "
        f"acknowledged, {seen.samples.unavailable} times a clear 503"
    ]
    for kind, took in sorted(seen.heals_s.items()):
        lines.append(
            f"  {len(took)} times {kind}: healed after {median(took):.1f} s, "
            f"at most {max(took):.1f} s"
        )
    for memory, grown in zip(seen.memory_mb, seen.grown, strict=True):
        every = [sum(processes.values()) for _, processes in memory][:: max(1, len(memory) // 6)]
        lines.append(f"  memory {', '.join(f'{mb:.0f}' for mb in every)} MB: {grown:+.1%}")
    late = [s for took in seen.heals_s.values() for s in took if s > MOST_HEALING_S]
    return "\n".join(lines), [
        *seen.wrong,
        *(f"healed after {s:.1f} s" for s in late),
        *(f"memory grew by {grown:.1%}" for grown in seen.grown if grown > MOST_GROWTH),
    ]


if __name__ == "__main__":
    sys.exit(main())
