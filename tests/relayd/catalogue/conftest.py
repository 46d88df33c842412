"""A folder of overlays for each test, so that what it imports counts nowhere else."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from pathlib import Path

import pytest

from tests.relayd.conftest import Outcome, Relayd

Commands = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def overlays(tmp_path: Path, environment: MutableMapping[str, str]) -> Path:
    """Return the folder of overlays."""
    folder = tmp_path / "overlays"
    environment["RELAYD_CATALOGUE_DIR"] = str(folder)
    return folder


@pytest.fixture
def catalogue(relayd: Relayd) -> Commands:
    """Run a command on the catalogue, which has to end with a code."""

    def run(*words: object, code: int = 0) -> Outcome:
        outcome = relayd("data", "catalogue", *words)
        assert outcome.code == code, outcome
        return outcome

    return run
