"""Fills the disk of a PostgreSQL server: what is acknowledged is stored, and nothing else is.

``python -m benchmarks.full_disk_server [PLACES]`` does the first steps of
:mod:`benchmarks.full_disk` in a store on a server whose data folder is a small file system (Linux;
needs root). It also imports files that are larger than what the server has laid out for its log: it
then ends its sessions or itself, and is started again once there is room. Exits with 1 where
anything differs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.full_disk import (
    Disk,
    Place,
    campaigns,
    importing,
    left_bytes_of,
    report,
    snapshots,
    whole,
)
from planner.model.errors import StoreError
from relayd.store import open_store
from tests.postgresql import PostgresqlServer, server_on

PLACES = 10
_DISK_MB = 220
_MANY_ROWS = 40_000
_LARGE_LEFT_BYTES = tuple(n * 2**20 for n in (0, 4, 12, 20, 28, 36))
_LONGEST_S = 60.0
_SETTINGS = "autovacuum = off\nmax_wal_size = 32MB\nmin_wal_size = 32MB\nshared_buffers = 8MB\n"
_SAID = (
    "the disk of the server is full",
    "No space left",
    "has closed the connection",
    "can't be connected to",
)


def come_back(server: PostgresqlServer, where: str) -> None:
    """Wait until the store can be used, and start the server if it has ended itself."""
    until_s = time.monotonic() + _LONGEST_S
    while True:
        try:
            with open_store(where, mode="write") as store:
                store.samples.counts()
        except StoreError:
            if time.monotonic() > until_s:
                raise
            if not (server.folder / "data" / "postmaster.pid").exists():
                server.start()
            time.sleep(0.1)
        else:
            return


def sweep(mount: Path, files: Path, places: int) -> None:
    """Run the steps on a server whose data are on a file system."""
    disk, folder = Disk(mount), mount / "server"
    with server_on(folder, _SETTINGS) as server:
        few = left_bytes_of(places)
        _try(server, disk, files, "importing", importing, few)
        _try(server, disk, files, "snapshots", snapshots, few)
        _try(server, disk, files, "campaigns", campaigns, few)
        large = partial(importing, count=_MANY_ROWS)
        _try(server, disk, files, "large imports", large, _LARGE_LEFT_BYTES)


def _try(
    server: PostgresqlServer,
    disk: Disk,
    files: Path,
    name: str,
    step: Callable[[Place, int], bool],
    left: Sequence[int],
) -> None:
    went_well: Counter[bool] = Counter()
    for left_bytes in left:
        where = server.new_store()
        place = Place(where, disk, files, _SAID, partial(come_back, server, where))
        went_well[step(place, left_bytes)] += 1
        whole(where)
        server.drop_store(where)
    report(name, went_well)


def main(arguments: list[str]) -> int:
    """Make the file system, and sweep on it."""
    if arguments[:1] == ["--on"]:
        sweep(Path(arguments[1]), Path(arguments[2]), int(arguments[3]))
        return 0
    places = arguments[0] if arguments else str(PLACES)
    inside = (
        f'mount -t tmpfs -o size={_DISK_MB}m,mode=755 tmpfs "$1" && '
        'exec "$3" -m benchmarks.full_disk_server --on "$1" "$2" "$4"'
    )
    with TemporaryDirectory() as mount, TemporaryDirectory() as files:
        Path(mount).chmod(0o755)
        command = ["unshare", "--mount", "sh", "-c", inside, "sh", mount, files]
        return subprocess.run([*command, sys.executable, places], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
