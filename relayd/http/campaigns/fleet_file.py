"""The fleet file of the service: its operator's, whoever asks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from planner.model.errors import InputError
from relayd.http.responses.problems import ProblemError

if TYPE_CHECKING:
    from probes.fleet.hosts import Fleet


def fleet_of(path: Path) -> Fleet:
    """Read the fleet file; what is wrong with it is not the fault of who asked.

    Raises
    ------
    ProblemError
        503 if it can't be used; the log says why.
    """
    from probes.fleet.file import load_fleet

    try:
        return load_fleet(path)
    except InputError as error:
        print(f"relayd: {error}", file=sys.stderr)  # noqa: T201 - the operator's log
        raise ProblemError(
            503, "unavailable", "The fleet file of this service can't be used; its log says why."
        ) from None
