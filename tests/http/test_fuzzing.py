"""What should not be sent is refused, whatever it is: 10 seconds of each part of `make fuzz`."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.fuzz.__main__ import PARTS

SECONDS = 10.0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part", ["http", "files", pytest.param("pages", marks=pytest.mark.browser)]
)
def test_whatever_is_sent_nothing_fails(part: str) -> None:
    seed = 1 if os.environ.get("CI") == "true" else int(time.time())
    findings = PARTS[part](SECONDS, seed)
    assert not findings.problems, f"seed {seed}: {findings.problems}"
    assert sum(findings.outcomes.values()) > 30
