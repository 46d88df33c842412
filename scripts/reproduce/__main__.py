"""``make reproduce``: measures, and writes the tables of docs/reproduction.md.

``python -m scripts.reproduce grid`` makes the table of the grid alone; ``flows`` and ``caps`` are
those of the lab.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from planner.model.errors import RelaydError
from scripts.reproduce.grid import grid_points
from scripts.reproduce.laboratory import cap_points, flow_points
from scripts.reproduce.point import PAGE, rows
from scripts.shuffle_study import write_table

PARTS = {"grid": grid_points, "flows": flow_points, "caps": cap_points}


def main(words: Sequence[str] | None = None) -> int:
    """Write the tables of the parts that are asked for; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all without")
    chosen = parser.parse_args(words).parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"unknown part {', '.join(sorted(unknown))}; parts are {', '.join(PARTS)}")
    if os.geteuid() != 0 and chosen != ["grid"]:
        print("The lab needs root: its tables stay as they are.", file=sys.stderr)
        chosen = [part for part in chosen if part == "grid"]
    for part in chosen:
        try:
            found = PARTS[part]()
        except RelaydError as error:
            print(f"{part}: {error}", file=sys.stderr)
            return 1
        PAGE.write_text(write_table(PAGE.read_text(), part, rows(found)))
        print("\n".join(rows(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
