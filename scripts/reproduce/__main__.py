"""``make reproduce``: measures, and writes the tables of docs/reproduction.md.

``python -m scripts.reproduce grid`` makes the grid's table alone, ``... lab`` the lab's.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from planner.errors import RelaydError
from scripts.reproduce.grid import grid_points
from scripts.reproduce.laboratory import lab_points
from scripts.reproduce.point import PAGE, rows
from scripts.shuffle_study import write_table

PARTS = {"grid": grid_points, "lab": lab_points}


def main(words: Sequence[str] | None = None) -> int:
    """Write the tables of the parts that are asked for; all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="grid or lab; both without")
    chosen = parser.parse_args(words).parts or list(PARTS)
    if "lab" in chosen and os.geteuid() != 0:
        print("The lab's part needs root: it is left as it is.", file=sys.stderr)
        chosen = [part for part in chosen if part != "lab"]
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
