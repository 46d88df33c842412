"""Install the wheel as a new user does, and print its size: ``make install-check``.

In a virtual environment of its own, in a folder without the repository: what the base install and
`relayd[parquet]` take on disk (modules compiled, pip left out), how long the first plan takes, and
whether ``relayd data doctor`` finds a problem. Needs a network, or pip's cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

_ROOT = Path(__file__).parents[1]
_MOST_MB, _FIRST_PLAN_S = 120, 60
_SETS = ("", "parquet")


def main() -> int:
    """Print a line for each set of extras; 1 where the base install is not what the docs say."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", name]
        subprocess.run(build, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
        (wheel,) = folder.glob("*.whl")
        wrong = [extra for extra in _SETS if not _installed_well(wheel, extra, folder)]
    return 1 if wrong else 0


def _installed_well(wheel: Path, extra: str, folder: Path) -> bool:
    place = folder / (extra or "base")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    before_b = _size_b(place)
    package = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", package], check=True)
    size_mb = (_size_b(place) - before_b) / 1e6
    home = {"HOME": str(place / "home"), "PATH": os.environ["PATH"]}
    command = str(place / "bin" / "relayd")
    question = [command, "plan", "us-east", "sa", "--volume", "500GB", "--json"]
    begun_s = time.perf_counter()
    plan = subprocess.run(question, cwd=folder, env=home, check=True, stdout=subprocess.PIPE)
    took_s = time.perf_counter() - begun_s
    doctor = subprocess.run([command, "doctor"], cwd=folder, env=home, stdout=subprocess.DEVNULL)
    well = not doctor.returncode and took_s < _FIRST_PLAN_S and (extra or size_mb < _MOST_MB)
    verdict, state = json.loads(plan.stdout)["verdict"], "clean" if well else "NOT as it should be"
    print(f"{extra or 'base':8}{size_mb:4.0f} MB  first plan ({verdict}) {took_s:.2f} s  {state}")
    return bool(well)


def _size_b(folder: Path) -> int:
    """Return the disk usage of files in bytes: blocks, as ``du`` counts."""
    return sum(file.lstat().st_blocks * 512 for file in folder.rglob("*"))


if __name__ == "__main__":
    sys.exit(main())
