"""docs/client.md, run from top to bottom against a service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.http.running import served

_PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def test_every_example_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, Any] = {}
    with served(tmp_path / "store.db") as service:
        for block in blocks:
            exec(block.replace("http://127.0.0.1:8080", service.url), names)
        names["wan"].close()
        names["mirror"].close()
    said = capsys.readouterr().out
    assert "no plan: src is not a known region" in said
    assert "1000 GB: " in said
    assert "accepted=1" in said
