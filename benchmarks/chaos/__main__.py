"""Run all of it, or some: ``python -m benchmarks.chaos [WHAT...] [--kills N] [--tries N]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import get_args

from benchmarks.chaos import builds, kills, takeovers
from tests.postgresql import running_server

MOST_TAKEOVER_S = 15.0
ON_STORES: Mapping[str, Callable[[str, Path, int], kills.Killed]] = {
    "service": kills.kill_services,
    "import": kills.kill_imports,
    "build": builds.kill_builds,
}
KILLS = (*(f"{what}-{engine}" for what in ON_STORES for engine in ("sqlite", "postgresql")),)
TAKEOVERS: tuple[takeovers.Kind, ...] = get_args(takeovers.Kind)


def main(words: Sequence[str] | None = None) -> int:
    """Run it and print the results; 1 if anything was wrong."""
    everything = (*KILLS, "database", *TAKEOVERS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(everything)}")
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--tries", type=int, default=10, help="of each way to take over")
    options = parser.parse_args(words)
    if unknown := set(options.what) - set(everything):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    wrong: list[str] = []
    for name in options.what or everything:
        if name in TAKEOVERS:
            said, found = takeover_text(takeovers.take_over(name, options.tries))
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
        if engine == "sqlite":
            return ON_STORES[what](f"{folder}/relayd.db", Path(folder), count)
        with running_server() as server:
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


if __name__ == "__main__":
    sys.exit(main())
