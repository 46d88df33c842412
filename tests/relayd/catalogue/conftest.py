"""A home of its own for each test, so that what it imports counts nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def overlays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of overlays."""
    folder = tmp_path / "overlays"
    monkeypatch.setenv("RELAYD_CATALOGUE_DIR", str(folder))
    monkeypatch.setenv("RELAYD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return folder
