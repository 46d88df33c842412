"""``docs/lab.md`` describes every behaviour, profile key and profile."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from probes.lab.behaviours import HostBehaviour, LinkBehaviour
from probes.lab.profiles import LawEntry, LinkEntry, Profile, SiteEntry, profile_names

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "lab.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("behaviour", [LinkBehaviour, HostBehaviour])
def test_every_behaviour_is_described(behaviour: type) -> None:
    for entry in fields(behaviour):
        assert f"{entry.name}=" in PAGE, entry.name


@pytest.mark.parametrize("entry", [Profile, SiteEntry, LinkEntry, LawEntry])
def test_every_key_of_a_profile_is_described(entry: type[Profile]) -> None:
    for name in entry.model_fields:
        assert f"`{name}`" in PAGE or f"[{name}]" in PAGE, name


def test_every_profile_is_named() -> None:
    for name in profile_names(ROOT / "configs"):
        assert name in PAGE, name
