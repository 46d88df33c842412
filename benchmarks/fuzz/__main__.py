"""``python -m benchmarks.fuzz [--minutes 30] [PART ...]``: exits with 1 if anything was found."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping

from benchmarks.fuzz.files import fuzz_files
from benchmarks.fuzz.findings import Findings
from benchmarks.fuzz.over_http import fuzz_http
from benchmarks.fuzz.pages import fuzz_pages

PARTS: Mapping[str, Callable[[float, int], Findings]] = {
    "http": fuzz_http,
    "files": fuzz_files,
    "pages": fuzz_pages,
}


def main() -> int:
    """Run the parts that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("parts", nargs="*", default="all", choices=("all", *PARTS))
    parser.add_argument("--minutes", type=float, default=30.0, help="for each part")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"{options.minutes:g} minutes each, seed {options.seed}", flush=True)
    parts = PARTS if "all" in options.parts else options.parts
    held = [PARTS[name](options.minutes * 60, options.seed).report() for name in parts]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
