"""Shared by the tests of the importers: reading bytes with sensible options."""

from __future__ import annotations

import dataclasses
import io
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from probes.importers import ImportedRow, ImportOptions, read
from probes.samples import Sample, SkippedRow

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For property tests: how busy the machine is must not decide them."""

FIXTURES = Path(__file__).parent / "fixtures"

OPTIONS = ImportOptions(
    src="aws:us-east-1", dst="gcp:us-east1-b", measured_at_s=1.65e9, name="measurements"
)


def outcomes(format_name: str, content: bytes | str | Path, **options: Any) -> list[ImportedRow]:
    if isinstance(content, Path):
        content = content.read_bytes()
    if isinstance(content, str):
        content = content.encode()
    stated = dataclasses.replace(OPTIONS, **options)
    return list(read(format_name, io.BytesIO(content), stated))


def samples(format_name: str, content: bytes | str | Path, **options: Any) -> list[Sample]:
    found = outcomes(format_name, content, **options)
    return [outcome for outcome in found if isinstance(outcome, Sample)]


def skipped(format_name: str, content: bytes | str | Path, **options: Any) -> list[SkippedRow]:
    found = outcomes(format_name, content, **options)
    return [outcome for outcome in found if isinstance(outcome, SkippedRow)]


def reasons(found: list[ImportedRow]) -> Counter[str]:
    return Counter(outcome.reason for outcome in found if isinstance(outcome, SkippedRow))
