"""``make reproduce``: measures, and writes the results into the tables of results.md.

``python -m scripts.reproduce grid causes`` makes the tables of the grid alone; the others are those
of the lab.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from planner.model.errors import RelaydError
from scripts.reproduce.bursts import burst_points
from scripts.reproduce.causes import causes
from scripts.reproduce.grid import grid_points
from scripts.reproduce.laboratory import cap_points, flow_points
from scripts.reproduce.over_minutes import minute_points
from scripts.reproduce.point import PAGE, Point, filled
from scripts.reproduce.round_trips import round_trip_points
from scripts.reproduce.windows import window_points

PARTS: dict[str, Callable[[], Sequence[Point | str]]] = {
    "grid": grid_points,
    "causes": causes,
    "flows": flow_points,
    "windows": window_points,
    "caps": cap_points,
    "minutes": minute_points,
    "bursts": burst_points,
    "round-trips": round_trip_points,
}
WITHOUT_LAB = {"grid", "causes"}


def main() -> int:
    """Write the tables of the parts that are asked for; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default="all", choices=("all", *PARTS))
    named = parser.parse_args().parts
    chosen = list(PARTS) if "all" in named else named
    if os.geteuid() != 0 and not set(chosen) <= WITHOUT_LAB:
        print("The lab needs root: its tables stay as they are.", file=sys.stderr)
        chosen = [part for part in chosen if part in WITHOUT_LAB]
    for part in chosen:
        try:
            found = PARTS[part]()
        except RelaydError as error:
            print(f"{part}: {error}", file=sys.stderr)
            return 1
        PAGE.write_text(filled(PAGE.read_text(), part, found))
        print(*found, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
