"""A user's folders are those of platformdirs, wherever variables point."""

from __future__ import annotations

import pytest
from platformdirs import user_cache_dir, user_data_dir

from relayd.folders import user_cache_folder, user_data_folder


@pytest.mark.parametrize("value", [None, "", "  ", "/elsewhere", "relative", "~/unexpanded"])
def test_folders_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    assert user_data_folder() == user_data_dir("relayd", appauthor=False)
    assert user_cache_folder() == user_cache_dir("relayd")
