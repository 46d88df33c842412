"""A folder of overlays for each test, so that what it imports counts nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def overlays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of overlays."""
    folder = tmp_path / "overlays"
    monkeypatch.setenv("RELAYD_CATALOGUE_DIR", str(folder))
    return folder
