"""The fleet file of the service: its operator's, whoever asks."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path

from planner.model.errors import InputError
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.http.responses.problems import ProblemError


def regions_of(path: Path | None) -> frozenset[str]:
    """Return the regions of a fleet file as it is now; none where it can't be used."""
    if path is None:
        return frozenset()
    try:
        found = path.stat()
    except OSError:
        return frozenset()
    return _regions_of(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)  # read once for each version, also a broken one
def _regions_of(path: Path, modified_ns: int, size_bytes: int) -> frozenset[str]:  # noqa: ARG001
    try:
        return frozenset(host.region for host in fleet_of(path))
    except ProblemError:  # it is in the log
        return frozenset()


def fleet_of(path: Path) -> Fleet:
    """Read the fleet file; what is wrong with it is not the fault of who asked.

    Raises
    ------
    ProblemError
        503 if it can't be used; the log says why.
    """
    try:
        return load_fleet(path)
    except InputError as error:
        print(f"relayd: {error}", file=sys.stderr)  # noqa: T201 - the operator's log
        raise ProblemError(
            503, "unavailable", "The fleet file of this service can't be used; its log says why."
        ) from None
