"""Finds the shared measurements that some tests are calibrated against."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest

from planner.model.catalogue import Catalogue
from relayd.catalogue.loading import load_catalogue

GRID_VM_TYPES = {"aws": "aws:m5.8xlarge", "azure": "azure:D32_v5", "gcp": "gcp:n2-standard-32"}
"""VM types of the grids of 2022."""
_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared(name: str) -> Path:
    """Return the path of a shared data file, or skip the test where there is none.

    In CI a missing file is a failure: the data is always there.
    """
    folder = Path(os.environ.get("RELAYD_SHARED_DATA", _BESIDE_THE_REPOSITORY))
    path = folder / name
    if not path.exists():
        reason = f"needs {name} in {folder} (set RELAYD_SHARED_DATA to its folder)"
        if os.environ.get("CI") == "true" and not os.environ.get("RELAYD_WITHOUT_SHARED_DATA"):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def shared_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a shared table."""
    with shared(name).open(newline="") as file:
        return list(csv.DictReader(file))


def grid_catalogue() -> Catalogue:
    """Return the catalogue with the grids' VM types as default ones.

    For figures that rest on the grids where the samples themselves state no type.
    """
    return replace(load_catalogue(), default_vm_types=GRID_VM_TYPES)
