"""Run all of it, or some: ``python -m benchmarks.chaos [WHAT...] [--kills N] [--tries N]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from benchmarks.chaos import builds, kills, partition, takeover
from tests.postgresql import running_server

MOST_TAKEOVER_S = 15.0


def _service(engine: str, count: int) -> kills.Killed:
    return _on(engine, lambda where, folder: kills.kill_services(where, folder, count))


def _import(engine: str, count: int) -> kills.Killed:
    return _on(engine, lambda where, folder: kills.kill_imports(where, folder, count))


def _build(engine: str, count: int) -> kills.Killed:
    return _on(engine, lambda where, folder: builds.kill_builds(where, folder, count))


def _on(engine: str, run: Callable[[str, Path], kills.Killed]) -> kills.Killed:
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as folder:
        if engine == "sqlite":
            return run(f"{folder}/relayd.db", Path(folder))
        with running_server() as server:
            return run(server.new_store(), Path(folder))


def _database(_: str, count: int) -> kills.Killed:
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as folder, running_server() as server:
        return kills.kill_databases(server, Path(folder), count)


KILLS: Mapping[str, tuple[Callable[[str, int], kills.Killed], str]] = {
    "service-sqlite": (_service, "sqlite"),
    "service-postgresql": (_service, "postgresql"),
    "import-sqlite": (_import, "sqlite"),
    "import-postgresql": (_import, "postgresql"),
    "build-sqlite": (_build, "sqlite"),
    "build-postgresql": (_build, "postgresql"),
    "database": (_database, "postgresql"),
}
TAKEOVERS: Mapping[str, Callable[[int], takeover.TakenOver]] = {
    "stopped-sqlite": takeover.stopped_on_sqlite,
    "stopped-postgresql": takeover.stopped_on_postgresql,
    "cut-off": takeover.cut_off_from_postgresql,
    "packets-dropped": takeover.packets_dropped_to_postgresql,
    "stopped-service-sqlite": takeover.services_stopped_on_sqlite,
    "stopped-service-postgresql": takeover.services_stopped_on_postgresql,
}

PARTITION = "services-cut-off"


def main(words: Sequence[str] | None = None) -> int:
    """Run it and say what was seen; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="*", help=f"of {', '.join((*KILLS, *TAKEOVERS, PARTITION))}")
    parser.add_argument("--kills", type=int, default=100, help="of each kind")
    parser.add_argument("--tries", type=int, default=10, help="of each way to take over")
    options = parser.parse_args(words)
    if unknown := set(options.what) - KILLS.keys() - TAKEOVERS.keys() - {PARTITION}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    wrong: list[str] = []
    for name in options.what or (*KILLS, *TAKEOVERS, PARTITION):
        if name in KILLS:
            run, engine = KILLS[name]
            said, found = killed_text(run(engine, options.kills))
        elif name == PARTITION:
            said, found = partition_text(partition.cut_off(options.tries))
        else:
            said, found = takeover_text(TAKEOVERS[name](options.tries))
        print(f"{name}: {said}", flush=True)
        for problem in found:
            print(f"  WRONG: {problem}", flush=True)
        wrong += found
    return 1 if wrong else 0


def killed_text(seen: kills.Killed) -> tuple[str, list[str]]:
    """Return what was seen in a line, and what was wrong."""
    text = f"{seen.kills} kills, {seen.acknowledged} acknowledged, {seen.unavailable} times 503"
    if seen.again_s:
        text += f", again after {median(seen.again_s):.1f} s, at most {max(seen.again_s):.1f} s"
    return text, seen.wrong


def partition_text(seen: partition.Partitioned) -> tuple[str, list[str]]:
    """Return what was seen in a line, and what was wrong."""
    text, found = takeover_text(takeover.TakenOver(seen.took_s, wrong=seen.wrong))
    return (
        f"{text}; {seen.samples.acknowledged} samples acknowledged, {seen.samples.unavailable} "
        f"times 503; {seen.pings} pings for ${seen.sent_usd:.7f}, ${seen.spent_usd:.7f} spent",
        found,
    )


def takeover_text(seen: takeover.TakenOver) -> tuple[str, list[str]]:
    """Return what was seen in a line, and what was wrong."""
    took = seen.took_s
    text = f"{len(took)} times taken over after {median(took):.1f} s, at most {max(took):.1f} s"
    if seen.gaps_s:
        text += f"; nobody probed for {min(seen.gaps_s):.1f} s at least"
    late = [f"taken over after {s:.1f} s" for s in took if s > MOST_TAKEOVER_S]
    return text, [*seen.wrong, *late]


if __name__ == "__main__":
    sys.exit(main())
