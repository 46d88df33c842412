"""The short form of ``make budget-check``: one campaign that is killed and resumed."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.budget_check import main


def test_a_killed_campaign_keeps_to_its_budget(machine: None, tmp_path: Path) -> None:
    outcomes = tmp_path / "outcomes.jsonl"
    words = ["--place", "veth", "--number", "1", "--first", "3", "--brief"]
    assert main([*words, "--json", str(outcomes)]) == 0
    (found,) = map(json.loads, outcomes.read_text().splitlines())
    assert found["kills"] > 0
    assert 0 < found["usd"] <= found["budget_usd"]
